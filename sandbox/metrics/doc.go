// Package metrics reads the metrics of operators and of what they look after, keeps them for a while, and evaluates
// Prometheus' rules over them, with Prometheus' own engine for PromQL.
//
// All it needs is an API server: it reads pods through the API server's proxy, and operators that a lab runs in its own
// process through the lab's API.
package metrics
