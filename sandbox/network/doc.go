// Package network is the pod network of a sandbox: the addresses of pods, the Services and their names, and the ways in
// from outside.
//
// There are no network namespaces and no packet filters. A pod's address is mapped to an address of this machine's
// loopback device that only the nodes know, and every connection is made on request: a [Node], in the process of the
// node's kubelet, connects to its own pods; the [Hub], in the process of the sandbox, knows the Services and asks the
// nodes. Both serve HTTP CONNECT on a unix socket in the sandbox's directory.
//
// People, and programs that are not part of the lab, reach the network through the hub's HTTP proxy.
//
// These features of kube-proxy and the cluster's DNS are supported: ready endpoints in turn, and terminating ones that
// still serve when there are no others; session affinity, where the client's address is known, which it is for pods and
// nodes; headless and external-name Services; node ports. Not supported: UDP, traffic policies, topology, external
// addresses.
package network
