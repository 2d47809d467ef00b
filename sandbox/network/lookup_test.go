package network

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLookups asks for addresses what TestNamesLeadToPods connects to.
func TestLookups(t *testing.T) {
	p := newPlan(t)
	n := openNode(t, p, 1)
	h := openHub(t, p, HubOptions{})
	client := addPod(t, n).In("shop")
	f := newFeed(t, h)
	f.service(web("10.96.1.1"))
	for name, spec := range map[string]corev1.ServiceSpec{
		"headless": {ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}},
		"alias":    {Type: corev1.ServiceTypeExternalName, ExternalName: "web.shop.svc.cluster.local"},
		"circle":   {Type: corev1.ServiceTypeExternalName, ExternalName: "circle.shop.svc.cluster.local"},
	} {
		f.service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec})
	}
	one := ready("10.244.1.7")
	one.Hostname = new("db-0")
	slice := webSlice("a", 80, one, ready("10.244.1.8"), notReady("10.244.1.9"))
	slice.Labels["kubernetes.io/service-name"] = "headless"
	f.slice(slice)
	for name, want := range map[string]string{
		"web":                         "10.96.1.1",
		"web.shop.svc.cluster.local.": "10.96.1.1",
		"alias":                       "10.96.1.1",
		"headless":                    "10.244.1.7 10.244.1.8",
		"db-0.headless.shop.svc":      "10.244.1.7",
		"10-244-1-7.shop.pod":         "10.244.1.7",
		"kubernetes.default":          "10.96.0.1",
		"node-1":                      "172.18.0.2",
		"10.96.9.9":                   "10.96.9.9",
		"circle":                      "",
		"none.shop.svc":               "",
		"none.shop.svc.cluster.local": "",
		"a b.svc":                     "",
	} {
		var got []string
		var err error
		eventually(t, name, func() bool {
			got, err = client.LookupHost(t.Context(), name)
			return want == "" || err == nil && len(got) == len(strings.Fields(want))
		})
		slices.Sort(got) // headless Services take turns
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
		var unknown *net.DNSError
		if want == "" && (!errors.As(err, &unknown) || !unknown.IsNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
