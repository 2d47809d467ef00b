//go:build ignore

package taps

import ctrl "sigs.k8s.io/controller-runtime"

// tapControllerLogger does nothing: controllers have no logger of their own before v0.21.
func (*Taps) tapControllerLogger(*ctrl.Options) {}
