package verify

import "github.com/operator-lab/operator-lab/sandbox/trace"

// Journals returns those of the play of a finding that went wrong first, and of the one that did not in the same way; each may be nil.
func (f Finding) Journals() (wrong, then *trace.Journal) {
	if f.then != nil {
		then = f.then.journal
	}
	return f.Journal(), then
}
