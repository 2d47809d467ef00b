// Package maintpage is an operator that shows a maintenance page in place of an application. A MaintPage
// object names an application and a page; the operator runs both, a Deployment and a Pod, behind one
// Service, and turns the Service from the one to the other on request.
//
// It is ordinary controller-runtime code that runs in any manager: call AddToScheme, install what
// CRDs returns, call SetupWithManager. There are two variants of it.
//
// Classic (classic.go) is the operator as it was published in 2019, with all of its flaws, to learn from.
// It turns the Service without looking whether the page is there, and looks at little of what it made
// ever again.
//
// Hardened (hardened.go) shows the same pages by a careful author of today. The Service is turned when the
// page is Ready and not before, whatever anybody changes about the three objects is put back, and status
// says what is the case.
//
// # How many writes it takes
//
// Nothing else touching the objects, what it takes from a MaintPage to its served application is the same
// every time: 3 creations, and status updates. Classic writes the status in every pass, and to maintenance
// the Service too; hardened writes the status when it changes: twice, with the page not Ready and Ready.
// Turning the Service takes hardened 2 writes, or 3 if it has to wait for the page.
//
// # What the maintenance page's Pod cannot do
//
// It has a name of its own, by which people know it, so there is never a second one beside it: while it is
// published, another image means a moment without a page. An author who is free to choose would use a
// Deployment, here as for the application.
package maintpage

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd rbac:roleName=maintpage-manager paths=./... output:crd:dir=config/crds/hardened output:rbac:dir=config/rbac/hardened
