// Package runner runs tests in Chainsaw's format against a cluster, with Chainsaw's semantics: it creates the
// namespaces, runs the steps, waits for what is asserted, and removes what was created, also after an interrupt. It
// reports progress and the result with the types of package report. The entry point is [Run].
//
// Improvements on Chainsaw do not change the meaning of a test: the runner looks sooner and more often, ends processes
// that a script leaves behind, and says more about failures.
package runner
