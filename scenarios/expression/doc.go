// Package expression evaluates what Chainsaw's files write in parentheses: JMESPath and CEL expressions, templates made
// of them, and assertion trees. A [Scope] holds the values that expressions see by name.
//
// The interpreters and the assertion trees are kyverno-json's, as in Chainsaw. This package adds Chainsaw's functions,
// and limits, so that no expression can hang the program or fill its memory.
package expression
