// Package labapi serves the lab's own API, operator-lab.dev/v1alpha1, to every client of the cluster: Operator, Loop
// and Fault objects that plain kubectl can get, describe, explain, apply, wait for and watch.
//
// It is an aggregated API server: [Start] registers it with kube-apiserver, which passes all requests for the group on
// to it. Only the registration is in etcd, so that looking at a loop writes nothing into the observed cluster; the
// objects come from the lab's [Backend] and are kept in memory. Only kube-apiserver, authenticated by its front proxy's
// client certificate, gets an answer; it has checked RBAC before.
package labapi
