package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames(t *testing.T) {
	web := name{service: "web", namespace: "shop"}
	first := name{endpoint: "web-0", service: "web", namespace: "shop"}
	for _, test := range []struct {
		host    string
		names   []name
		outside bool
	}{
		{"web", []name{web}, true},
		{"WEB", []name{web}, true},
		{"web.shop", []name{{endpoint: "web", service: "shop", namespace: "shop"}, web}, true},
		{"web.shop.svc", []name{{endpoint: "web", service: "shop", namespace: "svc"}, web}, false},
		{"web.shop.svc.cluster.local", []name{web}, false},
		{"web.shop.svc.cluster.local.", []name{web}, false},
		{"Web.Shop.SVC.Cluster.Local", []name{web}, false},
		{"web-0.web", []name{first, {service: "web-0", namespace: "web"}}, true},
		{"web-0.web.shop", []name{first}, true},
		{"web-0.web.shop.svc", []name{first}, false},
		{"web-0.web.shop.svc.cluster.local", []name{first}, false},
		{"10-244-1-5.shop.pod.cluster.local", []name{{address: netip.MustParseAddr("10.244.1.5")}}, false},
		{"example.com", []name{
			{endpoint: "example", service: "com", namespace: "shop"}, {service: "example", namespace: "com"},
		}, true},
		{"www.example.com", []name{{endpoint: "www", service: "example", namespace: "com"}}, true},
		{"a.b.example.com", nil, true},
		{"example.com.", nil, true},
		{"web.", nil, true},
		{"web.shop.svc.", nil, true},
		{"cluster.local", []name{
			{endpoint: "cluster", service: "local", namespace: "shop"}, {service: "cluster", namespace: "local"},
		}, false},
		{"no.such.thing.cluster.local", nil, false},
		{"a.b.c.d.svc", nil, false},
		{"", nil, true},
		{".", nil, true},
		{"web..svc", nil, true},
	} {
		names, outside := meanings(test.host, "shop")
		if diff := cmp.Diff(test.names, names, cmp.AllowUnexported(name{}), cmp.Comparer(sameAddr)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.host, diff)
		}
		if outside != test.outside {
			t.Errorf("%q: outside is %v", test.host, outside)
		}
	}
}

func sameAddr(a, b netip.Addr) bool { return a == b }

func FuzzNames(f *testing.F) {
	for _, host := range []string{"web", "web.shop.svc.cluster.local.", "10-244-1-5.shop.pod", "a.b.c.d.e.f", "..", "\x00.svc"} {
		f.Add(host, "shop")
	}
	f.Fuzz(func(t *testing.T, host, namespace string) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			t.Skip("no namespace")
		}
		names, outside := meanings(host, namespace)
		if len(names) > 3 {
			t.Errorf("%q has %d meanings", host, len(names))
		}
		for _, n := range names {
			if n.address.IsValid() == (n.service != "") {
				t.Errorf("%q: %+v is both or neither", host, n)
			}
			if strings.Contains(n.service, ".") || strings.Contains(n.endpoint, ".") {
				t.Errorf("%q: %+v", host, n)
			}
		}
		if outside && strings.HasSuffix(strings.ToLower(host), ".svc.cluster.local") && !strings.Contains(host, "..") && host[0] != '.' {
			t.Errorf("%q is looked for outside", host)
		}
		// The whole name means the same to everybody.
		for _, n := range names {
			if !n.address.IsValid() && n.endpoint == "" && n.namespace != "" && !strings.Contains(n.namespace, ".") {
				full, _ := meanings(n.service+"."+n.namespace+".svc.cluster.local.", "elsewhere")
				if len(full) != 1 || full[0] != n {
					t.Errorf("%q: the whole name of %+v means %+v", host, n, full)
				}
			}
		}
	})
}
