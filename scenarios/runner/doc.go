// Package runner runs tests in Chainsaw's format against a cluster, with Chainsaw's semantics: it makes the namespaces,
// carries the steps out, waits for what is asserted, and removes what was made, also after an interrupt. What came of
// it is told as it goes on, and returned, in the terms of package report.
//
// Where it does better than Chainsaw it does not change what a test means: it looks sooner and more often, ends what a
// script leaves behind, and says more about what failed. One way in is [Run].
package runner
