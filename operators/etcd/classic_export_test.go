package etcd

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// ClassicSeed is a seed by which classic, after a start, first picks the member of an index out of several in the order of
// their names.
func ClassicSeed(index, of int) int64 {
	for seed := int64(1); ; seed++ {
		if classicRandom(seed, "choices").IntN(of) == index {
			return seed
		}
	}
}

// ClassicSeedForFirst is a seed by which classic, having named the two members of a cluster, picks the first of them.
func ClassicSeedForFirst(namespace, cluster string) int64 {
	for seed := int64(1); ; seed++ {
		c := &classicCluster{
			naming: classicRandom(seed, fmt.Sprintf("names of %s/%s", namespace, cluster)),
			choice: classicRandom(seed, "choices"),
		}
		c.cluster = newTestCluster(namespace, cluster)
		first, second := c.memberName(), c.memberName()
		if c.pick(classicMembers{first: 0, second: 1}) == first {
			return seed
		}
	}
}

// ClassicTurns is how often the loops of periodic backups have turned.
func ClassicTurns() float64 {
	var m dto.Metric
	if err := prometheus.Metric(classicBackupTurns).Write(&m); err != nil {
		panic(err) // it has nowhere to fail
	}
	return m.GetCounter().GetValue()
}
