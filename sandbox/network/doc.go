// Package network is the pod network of a sandbox: the addresses of pods, the Services and their names, and the ways in
// from outside.
//
// There are no network namespaces and no packet filters. A pod's address is an address of this machine's loopback
// device that only the nodes know, and every connection is made by asking for it: a [Node], in the process of the
// node's kubelet, connects to its own pods; the [Hub], in the process of the sandbox, knows the Services and asks the
// nodes. Both are asked with HTTP CONNECT on a unix socket in the sandbox's directory.
//
// What a person, or a program that is not part of the lab, reaches the network with is the hub's HTTP proxy.
//
// Of what kube-proxy and the cluster's DNS do, this is done: ready endpoints in turn, and terminating ones that still
// serve when there are no others; session affinity, where the client's address is known, which it is for pods and
// nodes; headless and external-name Services; node ports. Not done: UDP, traffic policies, topology, external addresses.
package network
