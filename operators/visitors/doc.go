// Package visitors is an operator for a site of three tiers: a frontend that shows who visited it, a backend that counts
// the visits, and a MySQL that keeps them. A VisitorsApp object says how many pods the backend has, and the title of the
// page.
//
// It is ordinary controller-runtime code that runs in any manager: call AddToScheme, install what CRDs returns, call
// SetupWithManager. There are two variants of it.
//
// Classic (classic.go) does what the example operator of the book "Kubernetes Operators" (2020) did, with all of its
// flaws, to learn from. It has one MySQL for all sites of a namespace, without a volume, with a password that is in the
// source; and it puts back nothing but the size and the title.
//
// Hardened (hardened.go) makes the same three tiers by a careful author of today. Every name is derived from the
// VisitorsApp's, the password is generated, the data is on a claim, and status says what is the case.
//
// # The order
//
// Hardened makes the backend once MySQL is rolled out, and the frontend once the backend is. It does not wait for
// either: a pass ends where something is missing, and the event of a Deployment brings the next one. What exists already is
// kept as it should be in every pass, whatever the tiers before it are like.
//
// # The password
//
// It is in a Secret, of which the file that MySQL reads at every start is made. Whoever writes another password there has
// both MySQL and the backend rolled out with it. Between the two, requests fail: there is one user with one password.
package visitors

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd rbac:roleName=visitors-manager paths=./... output:crd:dir=config/crds/hardened output:rbac:dir=config/rbac/hardened
