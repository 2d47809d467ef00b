package network_test

import (
	"github.com/operator-lab/operator-lab/sandbox/network"
	"github.com/operator-lab/operator-lab/sandbox/program"
)

var _ program.Network = (*network.Pod)(nil)
