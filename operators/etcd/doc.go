// Package etcd is an operator that keeps clusters of etcd. An EtcdCluster says how many members of which version there
// are to be; the operator makes a pod of each, and has etcd itself agree to every member that comes or goes. An
// EtcdBackup takes the data to a safe place, an EtcdRestore brings it back.
//
// It is ordinary controller-runtime code that runs in any manager: call AddToScheme, install what CRDs returns, call
// SetupWithManager. There are two variants of it.
//
// Classic (classic*.go) is the operator as it was published until 2020, with all of its flaws, to learn from. Every
// period it compares the pods that run with the members it remembers, and does one thing about the difference. It takes
// its memory from the status, adds members that vote at once, upgrades without looking whether the last one is well, and
// deletes a cluster before it has looked at the backup that is to replace it.
//
// Hardened (hardened*.go) keeps the same clusters by a careful author of today. What there is, is asked of the API and of
// etcd; status is only written. The members of a new cluster begin together. One that comes later learns before it votes,
// one at a time; none is taken away, upgraded or replaced unless the others make a quorum without it; and nothing that
// could still have data is given up without a person. How a cluster came into being is noted on three objects that nobody
// else writes to, see birth.
//
// # Why members may begin together
//
// A cluster that grows from one member waits for etcd at each step: it takes the next member only when all have been
// connected for five seconds. Three that are told of each other from the start are a cluster after an election. That is as
// safe, as long as no member comes back that has forgotten what it voted for or what it has acknowledged. So
//
//   - none of their pods may be scheduled before all of them exist: a scheduling gate holds them. An operator that was
//     killed in between, or a quota that is full, leaves pods that have never run, and what is missing is made;
//   - after that, a first member whose data are in a claim comes back with them. One whose data are gone is not made again:
//     if a quorum answers, it is removed from etcd and replaced, as at any other time; if none does, all of them begin anew
//     with another token, which is another cluster to etcd, and what a process on a lost node still has or sends means
//     nothing to it. No client was let in until then, so there is nothing to lose;
//   - clients are let in when a quorum has answered, and all have, or some will not come soon.
//
// A cluster that begins with data, of a backup or of a member, begins with one member, and grows from that.
//
// # On a cluster of your own
//
// Hardened needs etcd 3.5.11 or later (3.4.29 of the older line), for learners and for the probes. In the lab every
// version that is asked for is one etcd, which is new enough.
//
// # Which findings are true
//
// The findings of the published operator were played, on members that are real. Two are not as they were told:
//
//   - E-11, the first member whose ID is not known: it stays in etcd for good when a cluster of two is made smaller and it
//     is chosen. When it dies in a cluster of three, etcd refuses the next member, the refusal makes classic ask for the
//     list, and the list mends it.
//   - E-15, data lost on a definition that drops the status: the book's own also drops the image's repository, so that no
//     cluster ever runs on it. On one that drops the status only, or where somebody wipes it, the data are lost.
package etcd

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd rbac:roleName=etcd-operator paths=./... output:crd:dir=config/crds/hardened output:rbac:dir=config/rbac/hardened
