//go:build ignore

package taps

import "sigs.k8s.io/controller-runtime/pkg/client/interceptor"

// withSubApply adds nothing: clients have no method for server-side apply of subresources before v0.23.
func (tappedClient) withSubApply(f interceptor.Funcs) interceptor.Funcs { return f }
