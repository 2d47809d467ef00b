// Package tomcat is an operator that nobody wrote: a Helm chart and a file that says which kind it is for. Each Tomcat object
// is a release of the chart, a Deployment with a Service before it.
//
// The article that it comes from made it in 2018 with the Helm App Operator Kit. Here the reconciler is that of today,
// helm-operator-plugins, which package helm wires to a manager. The chart in config/chart is written for the lab from the
// article's description of its own. It keeps what the article is about: two containers, of which one brings the
// application to the other, a liveness probe that looks at its file, and a port of the node, which only one pod on each
// node can have.
//
// There are two variants. hardened is upstream's reconciler of today; its definition of the kind in config/crds and its role
// in config/rbac are what [helm.Files] makes of the chart, and a test compares them. classic does what the kit's operator
// did, written from its description; Helm is version 3 in both.
//
// # What hardened does
//
// The release has the name of the object, so Helm limits that to 53 characters. Helm keeps each revision of it in a Secret,
// which the object owns, as it owns all that the chart renders. A changed spec is an upgrade, and what somebody else
// changes about the objects is put back, as soon as it is seen. A deleted object is uninstalled: its finalizer
// is uninstall-helm-release.
//
// # What classic does
//
// The release's name is the object's with its UID as a number to the base 36. Only the object is watched, and each is
// looked at every five seconds. If the chart with the object's spec has another manifest than the release, the release is
// upgraded; if not, all of its objects are written again. What Helm knows is in memory, and for the next start in the
// object's status. A failed installation is uninstalled, and a failed upgrade rolled back. Helm takes 53 characters, so a
// Tomcat may have 27. The published operator had no check of that; here the error of a longer one says so, and it can be
// deleted.
//
// Flaws that are kept, by the numbers of the findings:
//
//	H-01  what fails is in the log only: no phase, no condition, no event
//	H-02  the status has the release with its chart and all values, in an object that etcd limits to 1.5 MB
//	H-03  what the release consists of is not watched: it is written again every five seconds, changed or not
//	H-04  finalizer and status are written by an update of what the cache had, which conflicts with a faster writer: the
//	      finalizer is tried again, a status that is lost so is never written
//	H-05  a Tomcat is made the owner of cluster-scoped objects and of those in other namespaces, which it cannot be: the
//	      garbage collector deletes the latter
//	H-06  the kind has no schema: whatever is written reaches Helm
//	H-07  an upgrade that gives the Deployment another selector fails again and again, and nothing says so
//
// Upstream's reconciler of today adds the finalizer in the same way, with the same conflict, and such an upgrade fails
// there, too; but the conditions say what is the case.
package tomcat
