package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	// proxyInterval is the time between two looks at the requests that proxies take.
	proxyInterval = 2 * time.Second
	// proxyTolerance is how much more than it is to take a proxy may take before there is another one.
	proxyTolerance = 1.1
	// proxyRequests is the counter of the requests that a proxy has taken, by service and method.
	proxyRequests = "grpc_server_started_total"
)

// keepProxies ensures that there are the proxies that spec.proxies asks for, as many as the requests of clients need, or none.
func (r *hardenedClusters) keepProxies(ctx context.Context, p *clusterPass) error {
	policy := p.cluster.Spec.Proxies
	if policy == nil {
		for _, obj := range []client.Object{&p.proxies, &p.proxyService} {
			if !p.mine(obj) {
				continue
			}
			if err := r.delete(ctx, obj); err != nil {
				return err
			}
		}
		return nil
	}
	if !p.birth.Formed {
		return nil // there is nothing to lead to yet
	}
	if err := r.keep(ctx, p, &p.proxyService, wantedProxyService(p.cluster)); err != nil {
		return err
	}
	if there := p.mine(&p.proxies); !there {
		p.lookAgain(proxyInterval)
		return r.keep(ctx, p, &p.proxies, wantedProxies(p, policy.Min))
	}
	has := replicasOf(&p.proxies)
	if err := r.keep(ctx, p, &p.proxies, wantedProxies(p, has)); err != nil {
		return err
	}
	load := &r.members.etcds.of(p).load
	load.look(ctx, p.now, p.proxyPods, r.members.etcds.proxyRequests)
	p.lookAgain(proxyInterval)
	if wants := load.wants(p.now, has, policy); wants != has {
		return r.scaleProxies(ctx, p, wants, load.rate)
	}
	return nil
}

func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// scaleProxies changes the number of proxies.
func (r *hardenedClusters) scaleProxies(ctx context.Context, p *clusterPass, wants int32, rate float64) error {
	has := replicasOf(&p.proxies)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.proxies.UID}, "spec": map[string]any{"replicas": wants}})
	if err != nil {
		return fmt.Errorf("encode the number of proxies: %w", err)
	}
	if err := r.client.Patch(ctx, &p.proxies, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("scale the proxies: %w", err)
	}
	r.note(p, &p.proxies, corev1.EventTypeNormal, "ProxiesScaled", "Scale", "From %d to %d proxies: clients make %.0f requests a second, and each proxy is to take %d",
		has, wants, rate, p.cluster.Spec.Proxies.RequestsPerSecond)
	return nil
}

func wantedProxyService(cluster *v1beta2.EtcdCluster) *unstructured.Unstructured {
	return wantedObject(cluster, "v1", "Service", proxyName(cluster), map[string]any{
		"selector": map[string]any{ProxyLabel: cluster.Name},
		"ports":    []any{servicePort("client", clientPort)},
	})
}

// wantedProxies are etcd's own gRPC proxies in front of the Service for clients, of the version that all members run. Each gives clients
// that ask for the members its own address.
func wantedProxies(p *clusterPass, replicas int32) *unstructured.Unstructured {
	cluster := p.cluster
	labels := map[string]any{ProxyLabel: cluster.Name}
	probe := func(handler string, action map[string]any) map[string]any {
		return map[string]any{handler: action, "periodSeconds": int64(2), "timeoutSeconds": int64(3)}
	}
	at := fmt.Sprintf("%s.%s.svc", clientService(cluster), cluster.Namespace)
	return wantedObject(cluster, "apps/v1", "Deployment", proxyName(cluster), map[string]any{
		"replicas": int64(replicas),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"automountServiceAccountToken":  false,
				"enableServiceLinks":            false,
				"terminationGracePeriodSeconds": int64(2),
				"securityContext":               map[string]any{"runAsNonRoot": true, "runAsUser": nobody, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"containers": []any{map[string]any{
					"name":  "proxy",
					"image": imageOf(cluster, cmp.Or(p.lowestVersion(), versionOf(cluster))),
					"command": []any{
						"/usr/local/bin/etcd", "grpc-proxy", "start",
						"--endpoints=" + memberURL(false, at, clientPort),
						fmt.Sprintf("--listen-addr=0.0.0.0:%d", clientPort),
						fmt.Sprintf("--advertise-client-url=$(POD_IP):%d", clientPort),
					},
					"env":   []any{map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}}},
					"ports": []any{map[string]any{"name": "client", "containerPort": int64(clientPort), "protocol": "TCP"}},
					// Ready is who has a cluster behind it that agrees on things; alive is who answers at all.
					"readinessProbe": probe("httpGet", map[string]any{"path": "/health", "port": int64(clientPort)}),
					"livenessProbe":  probe("tcpSocket", map[string]any{"port": int64(clientPort)}),
					"securityContext": map[string]any{
						"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
					},
				}},
			},
		},
	})
}

// proxyStatus returns what the status says of the proxies; nil without any.
func (p *clusterState) proxyStatus() *v1beta2.ProxyStatus {
	if p.cluster.Spec.Proxies == nil || !p.mine(&p.proxies) {
		return nil
	}
	return &v1beta2.ProxyStatus{ServiceName: proxyName(p.cluster), Replicas: replicasOf(&p.proxies), Ready: p.proxies.Status.ReadyReplicas}
}

// proxyLoad measures the requests that the proxies of a cluster take. It begins anew with each life of the operator, and has it change
// nothing before it has measured: to scale down takes spec.proxies.scaleDownAfter again.
type proxyLoad struct {
	at    time.Time // of the last look; zero if there was none
	taken map[types.UID]float64
	// rate is that of all proxies, in requests a second; known is false if it could not be measured at the last look.
	rate  float64
	known bool
	// needed is how many proxies the rates needed, and when, the oldest first: one that is as old as scaleDownAfter, and those after
	// it.
	needed []needed
}

type needed struct {
	at       time.Time
	replicas int32
}

// look asks the proxies how many requests they have taken. The rate is that since the last look, of those that answered both times.
func (l *proxyLoad) look(ctx context.Context, now time.Time, pods []*corev1.Pod, count func(context.Context, *corev1.Pod) (float64, error)) {
	passed := now.Sub(l.at)
	if !l.at.IsZero() && passed < proxyInterval*9/10 {
		return // an event has brought this pass
	}
	before := l.taken
	l.taken, l.rate, l.known = map[types.UID]float64{}, 0, false
	all := true
	for _, pod := range pods {
		if !podReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		n, err := count(ctx, pod)
		if err != nil {
			all = false
			continue
		}
		l.taken[pod.UID] = n
		if was, knew := before[pod.UID]; knew && n >= was {
			l.rate += (n - was) / passed.Seconds()
			l.known = true
		}
	}
	l.at = now
	l.known = l.known && all
}

// wants returns the number of proxies that the rate needs: more at once, and fewer when the highest number that was needed within
// scaleDownAfter is lower than what there are.
func (l *proxyLoad) wants(now time.Time, has int32, policy *v1beta2.ProxyPolicy) int32 {
	within := func(n int32) int32 { return min(max(n, policy.Min), max(policy.Max, policy.Min)) }
	if !l.known {
		return within(has)
	}
	n := within(int32(min(math.Ceil(l.rate/(float64(policy.RequestsPerSecond)*proxyTolerance)), math.MaxInt16)))
	if len(l.needed) == 0 || l.needed[len(l.needed)-1].at != now {
		l.needed = append(l.needed, needed{now, n})
	}
	since := now.Add(-policy.ScaleDownAfter.Duration)
	for len(l.needed) > 1 && !l.needed[1].at.After(since) {
		l.needed = l.needed[1:]
	}
	switch {
	case n >= has:
		return n
	case l.needed[0].at.After(since):
		return within(has) // it has not been measured for long enough
	}
	highest := slices.MaxFunc(l.needed, func(a, b needed) int { return int(a.replicas - b.replicas) })
	return min(highest.replicas, within(has))
}

// proxyRequests returns how many requests a proxy has taken since it began.
func (e *etcds) proxyRequests(ctx context.Context, pod *corev1.Pod) (n float64, err error) {
	families, err := e.metrics(ctx, "http://"+net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(clientPort))+"/proxy/metrics")
	if err != nil {
		return 0, err
	}
	return total(families[proxyRequests]), nil
}

// total adds up the counters of a family.
func total(family *dto.MetricFamily) (n float64) {
	for _, m := range family.GetMetric() {
		n += m.GetCounter().GetValue()
	}
	return n
}
