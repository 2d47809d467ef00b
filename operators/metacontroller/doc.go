// Package metacontroller is an operator that runs controllers which are written as webhooks, in any language: for each
// object it asks a webhook, in JSON, which other objects should be there, and makes it so. It is a program of this project
// with the contract that Metacontroller publishes at https://metacontroller.github.io/metacontroller: the kinds and fields
// of [v1alpha1], the requests and answers of the hooks, who owns what, and how children are updated. What differs is
// listed in README.md of the directory above.
//
// A controller for CompositeControllers and one for DecoratorControllers each start another controller for every object of
// theirs, and end it when the object is changed or deleted. So each has a work queue, workers and a name of its own.
// Children are written by server-side apply.
//
// It is ordinary controller-runtime code and knows nothing of the lab. [Options.Called] tells of each hook that was asked,
// and [Options.Transport] may answer in the place of a webhook.
package metacontroller

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd paths=./... output:crd:dir=config/crds/hardened
