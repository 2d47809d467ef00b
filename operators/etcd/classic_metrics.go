package etcd

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The metrics that classic had. They belong to the process, as all metrics of controller-runtime do.
var (
	classicDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "etcd_operator_cluster_reconcile_duration",
		Help:    "How long a pass over a cluster took, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.1, 2, 10),
	}, []string{"ClusterName"})
	classicFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "etcd_operator_cluster_reconcile_failed",
		Help: "Passes that failed, by reason.",
	}, []string{"Reason"})
	classicClustersNumber = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "etcd_operator_controller_clusters", Help: "Clusters that are looked after.",
	})
	classicClustersCreated = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "etcd_operator_controller_clusters_created", Help: "Clusters that were taken on.",
	})
	classicClustersDeleted = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "etcd_operator_controller_clusters_deleted", Help: "Clusters that were let go.",
	})
	classicClustersModified = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "etcd_operator_controller_clusters_modified", Help: "Changes of EtcdClusters.",
	})
	classicClustersFailed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "etcd_operator_controller_clusters_failed", Help: "Events of clusters that have failed.",
	})
	classicBackupTurns = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "etcd_operator_backup_runner_turns_total",
		Help: "Turns of the loops of periodic backups. One per backup would do (B-02).",
	})
)

// classicMetrics registers them, once for all managers of the process.
var classicMetrics = sync.OnceFunc(func() {
	metrics.Registry.MustRegister(classicDuration, classicFailures, classicClustersNumber, classicClustersCreated,
		classicClustersDeleted, classicClustersModified, classicClustersFailed, classicBackupTurns)
})
