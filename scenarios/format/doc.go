// Package format reads the files of Chainsaw: tests, step templates, configurations, values, and the resources they
// name. It keeps the position of everything, and reports all problems at once.
//
// It needs no cluster: package runner runs the tests that it has read. The entry points are [Discover] and [Lint].
package format
