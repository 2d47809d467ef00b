// Package format reads the files of Chainsaw: tests, step templates, configurations, values, and the resources they
// name. It knows where everything is written, finds what is wrong with it, and says so all at once.
//
// It knows no cluster: package runner runs what this one has read. One way in is Discover, another is Lint.
package format
