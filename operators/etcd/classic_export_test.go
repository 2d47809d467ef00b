package etcd

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// ClassicTurns is how often the loops of periodic backups have turned.
func ClassicTurns() float64 {
	var m dto.Metric
	if err := prometheus.Metric(classicBackupTurns).Write(&m); err != nil {
		panic(err) // it has nowhere to fail
	}
	return m.GetCounter().GetValue()
}
