// Package expression evaluates what Chainsaw's files write in parentheses: JMESPath and CEL expressions, templates made
// of them, and assertion trees. The values that expressions see by name are in a [Scope].
//
// It is not a language of its own: the interpreters and the assertion trees are kyverno-json's, as in Chainsaw. What it
// adds are Chainsaw's functions, and limits, so that no expression can hang the program or fill its memory.
package expression
