package network_test

import (
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/network"
)

var _ images.Network = (*network.Pod)(nil)
