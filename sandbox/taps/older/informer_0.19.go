//go:build ignore

// Before v0.21 informers have no AddEventHandlerWithOptions.
package taps
