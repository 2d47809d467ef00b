// Package project finds out what a directory of somebody's own holds: the operator's main package, the release of
// controller-runtime, the manifests it is deployed with and the samples. It builds the operator with the taps, and plans
// what is to be applied before the operator runs.
//
// Nothing is written to the user's tree. What is made lies in the private directory Options.WorkDir.
//
// A program is built with the flags and the environment that the user's own 'go build' has, so that both share a build
// cache. With -trimpath its file names begin with the path of their module: those that begin with Project.Module and a
// slash are below Project.Root.
package project
