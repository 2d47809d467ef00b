//go:build ignore

package taps

import "sigs.k8s.io/controller-runtime/pkg/client/interceptor"

// withApply adds nothing: clients have no method for server-side apply before v0.22.
func (tappedClient) withApply(f interceptor.Funcs) interceptor.Funcs { return f }
