// Package labapi serves the lab's own API, operator-lab.dev/v1alpha1, to everybody who talks to the cluster: Operator,
// Loop and Fault objects that plain kubectl can get, describe, explain, apply, wait for and watch.
//
// It is an aggregated API server: [Start] registers it with kube-apiserver, which hands on to it all requests for the
// group. Nothing of it is in etcd but the registration, so that looking at a loop writes nothing into the cluster that
// is looked at; the objects come from the lab's [Backend] and are kept in memory. Only kube-apiserver, by its front
// proxy's client certificate, gets an answer; it has asked RBAC before.
package labapi
