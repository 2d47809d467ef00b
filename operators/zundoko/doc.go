// Package zundoko is an operator that sings Zundoko Kiyoshi. A Hikawa object starts a song; the
// operator says Zun or Doko, one Zundoko object per word, until exactly four Zun are followed by a
// Doko, and then says one Kiyoshi.
//
// It is ordinary controller-runtime code that runs in any manager: call AddToScheme, install what
// CRDs returns, call SetupWithManager. There are two variants of it.
//
// Classic (classic.go) is the operator as it was published in 2019, its seven branches and all of
// its flaws included, to learn from. It sleeps inside Reconcile, takes notes in its own spec and
// counts words by the name of their owner.
//
// Hardened (hardened.go) is the same song by a careful author of today. It never sleeps, writes only
// status, and each word is a function of its number, so that a pass can be repeated at any time.
//
// # How many writes a song takes
//
// Nothing else touching the objects, a song of N words takes the same number of writes every time:
//
//	classic   N words, 1 Kiyoshi, 2N+2 updates of the Hikawa   3N+3
//	hardened  N words, 1 Kiyoshi, N+2 status patches           2N+3
//
// The status patches of hardened are one when the song is first seen, one for each word heard, and
// one for the Kiyoshi heard. Events and leases are not counted. Classic keeps to its number only if
// its words are in order, for which they have to be more than a second apart: otherwise N itself
// varies (see inCreationOrder in classic.go).
package zundoko

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd rbac:roleName=zundoko-manager paths=./... output:crd:dir=config/crds/hardened output:rbac:dir=config/rbac/hardened
