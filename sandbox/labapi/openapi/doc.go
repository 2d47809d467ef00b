// Package openapi holds the schemas of the lab's API types and of what they are made of. All of it is generated: see
// the package v1alpha1.
package openapi
