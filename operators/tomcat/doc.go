// Package tomcat is an operator that nobody wrote: a Helm chart and a file that says which kind it is for. Each Tomcat object
// is a release of the chart, a Deployment with a Service before it.
//
// The article that it comes from made it in 2018 with the Helm App Operator Kit. Here the reconciler is that of today,
// helm-operator-plugins, which package helm wires to a manager. The chart in config/chart is written for the lab from the
// article's description of its own. It keeps what the article is about: two containers, of which one brings the
// application to the other, a liveness probe that looks at its file, and a port of the node, which only one pod on each
// node can have.
//
// There is one variant, hardened. The definition of the kind in config/crds and the role in config/rbac are what
// [helm.Files] makes of the chart; a test compares them.
//
// # What it does
//
// The release has the name of the object, so Helm limits that to 53 characters. Helm keeps each revision of it in a Secret,
// which the object owns, as it owns all that the chart renders. A changed spec is an upgrade, and what somebody else
// changes about the objects is put back, as soon as it is seen. A deleted object is uninstalled: its finalizer
// is uninstall-helm-release.
package tomcat
