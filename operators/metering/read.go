package metering

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// reading is what one look found of one series.
type reading struct {
	labels map[string]string
	value  float64
	// counter says that the value only grows, so that its increase counts.
	counter bool
}

// read returns what a source says now.
func (r *sources) read(ctx context.Context, source *v1.ReportDataSource) ([]reading, error) {
	if p := source.Spec.PrometheusMetricsImporter; p != nil {
		return r.fetch.read(ctx, p)
	}
	switch c := source.Spec.ClusterMetricsImporter; {
	case c == nil:
		return nil, errors.New("there is no importer")
	case c.Metric == v1.PodRequest:
		return r.requests(ctx, corev1.ResourceName(c.Resource))
	case c.Metric == v1.PodUsage:
		return r.usage(ctx, corev1.ResourceName(c.Resource))
	default:
		return r.reconciles(ctx)
	}
}

// requests returns what the pods that are on a node, and have not ended, request.
func (r *sources) requests(ctx context.Context, resource corev1.ResourceName) (all []reading, err error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		if q, has := requests[resource]; has {
			all = append(all, reading{labels: map[string]string{
				"namespace": pod.Namespace, "pod": pod.Name, "node": pod.Spec.NodeName,
			}, value: q.AsApproximateFloat64()})
		}
	}
	return all, nil
}

// usage returns what the kubelets have measured, as the resource metrics API tells it.
func (r *sources) usage(ctx context.Context, resource corev1.ResourceName) (all []reading, err error) {
	var pods metricsv1beta1.PodMetricsList
	if err := r.list(ctx, metricsv1beta1.SchemeGroupVersion.WithKind("PodMetricsList"), &pods); err != nil {
		return nil, fmt.Errorf("list what pods use: %w", err)
	}
	for _, pod := range pods.Items {
		used := reading{labels: map[string]string{"namespace": pod.Namespace, "pod": pod.Name}}
		for _, container := range pod.Containers {
			q := container.Usage[resource]
			used.value += q.AsApproximateFloat64()
		}
		all = append(all, used)
	}
	return all, nil
}

// reconciles returns how many reconciles each operator has ended for each object.
func (r *sources) reconciles(ctx context.Context) (all []reading, err error) {
	var loops struct {
		Items []struct {
			Spec   struct{ Operator, Controller, Key string }
			Status struct{ Reconciles int64 }
		}
	}
	if err := r.list(ctx, schema.GroupVersionKind{Group: "operator-lab.dev", Version: "v1alpha1", Kind: "LoopList"}, &loops); err != nil {
		return nil, fmt.Errorf("list the loops of operators: %w", err)
	}
	for _, loop := range loops.Items {
		all = append(all, reading{labels: map[string]string{
			"operator": loop.Spec.Operator, "controller": loop.Spec.Controller, "key": loop.Spec.Key,
		}, value: float64(loop.Status.Reconciles), counter: true})
	}
	return all, nil
}

// list reads a list that nothing in the scheme is for.
func (r *sources) list(ctx context.Context, kind schema.GroupVersionKind, into any) error {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind)
	if err := r.live.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster does not serve %s", kind.GroupVersion())
		}
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), into)
}

// fetcher reads endpoints of Prometheus' text format.
type fetcher struct{ client *http.Client }

const (
	fetchPatience = 10 * time.Second
	fetchBytes    = 16 << 20
)

// newFetcher connects as the machine does without a dial function.
func newFetcher(dial func(ctx context.Context, address string) (net.Conn, error)) fetcher {
	transport := &http.Transport{DisableKeepAlives: true}
	if dial != nil {
		transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
	}
	return fetcher{&http.Client{Transport: transport, Timeout: fetchPatience}}
}

// read fetches an endpoint and returns the series of one metric that have the labels of the query.
func (f fetcher) read(ctx context.Context, p *v1.PrometheusMetricsImporter) ([]reading, error) {
	name, labels, err := selector(p.Query)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.PrometheusConfig.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(response.Body, fetchBytes+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", p.PrometheusConfig.URL, response.Status)
	case len(text) > fetchBytes:
		return nil, fmt.Errorf("%s answers with more than %d bytes", p.PrometheusConfig.URL, fetchBytes)
	}
	return series(bytes.NewReader(text), name, labels)
}

// selector reads a query: a metric's name, with or without labels. It is a line of the text format without its value.
func selector(query string) (name string, labels map[string]string, err error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(strings.TrimSpace(query) + " 0\n"))
	if err != nil || len(families) != 1 {
		return "", nil, fmt.Errorf("the query %q is not a metric's name with or without labels, such as up{job=\"a\"}", query)
	}
	for name, family := range families {
		return name, labelsOf(family.GetMetric()[0]), nil
	}
	return "", nil, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// series returns the counters, gauges and untyped values of a name that have the labels.
func series(text io.Reader, name string, labels map[string]string) (all []reading, err error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("what it answers is not in Prometheus' text format: %w", err)
	}
	family, has := families[name]
	if !has {
		return nil, nil
	}
next:
	for _, m := range family.GetMetric() {
		found := labelsOf(m)
		for key, value := range labels {
			if found[key] != value {
				continue next
			}
		}
		switch r := (reading{labels: found}); family.GetType() {
		case dto.MetricType_COUNTER:
			r.value, r.counter = m.GetCounter().GetValue(), true
			all = append(all, r)
		case dto.MetricType_GAUGE:
			r.value = m.GetGauge().GetValue()
			all = append(all, r)
		case dto.MetricType_UNTYPED:
			r.value = m.GetUntyped().GetValue()
			all = append(all, r)
		default:
			return nil, fmt.Errorf("%s is a %s: only counters, gauges and untyped values can be sampled", name, strings.ToLower(family.GetType().String()))
		}
	}
	return all, nil
}
