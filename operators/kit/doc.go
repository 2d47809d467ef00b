// Package kit has what the hardened operators share: reading embedded manifests, making an object have the fields that
// are wanted, and writing a status once. It is ordinary controller-runtime code that knows nothing of the lab.
package kit
