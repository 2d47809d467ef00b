package metering

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// TestPrometheus takes samples of a counter of an endpoint: the increase counts, and when it begins anew, what it has since.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	value := 100
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE asked_total counter\nasked_total{code=\"200\"} %d\nasked_total{code=\"500\"} 7\n", value)
	}))
	defer endpoint.Close()
	w := newWorld(t)
	source := &v1.ReportDataSource{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "asked", UID: "asked", Generation: 1}}
	source.Spec.PrometheusMetricsImporter = &v1.PrometheusMetricsImporter{
		Query: `asked_total{code="200"}`, PrometheusConfig: v1.PrometheusConfig{URL: endpoint.URL},
	}
	w.create(source)
	for _, next := range []int{100, 160, 190, 30, 30} { // 60, 30, it begins anew: 30, 0
		value = next
		w.now = w.now.Add(time.Minute)
		w.settle("asked")
	}
	var sum float64
	var n int
	err := w.store.db.QueryRowContext(t.Context(), "SELECT sum(amount * timeprecision), count(*) FROM samples WHERE owner = 'asked'").Scan(&sum, &n)
	if err != nil || sum != 120 || n != 4 {
		t.Errorf("there are %d samples of %v in all (error: %v), want 4 of 120", n, sum, err)
	}
	for query, want := range map[string]string{"rate(asked_total[1m])": "is not a metric's name", "a 1\nb": "is not a metric's name", "": "is not a metric's name"} {
		if _, _, err := selector(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the query %q: %v", query, err)
		}
	}
	if _, err := series(strings.NewReader("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n"), "h", nil); err == nil {
		t.Error("a histogram is sampled")
	}
}
