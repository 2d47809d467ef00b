package sandbox

import (
	"context"
	"errors"
	"strings"
	"syscall"
)

// Problem is an error that a person can do something about.
type Problem struct {
	// Err says in one line what is wrong.
	Err error
	// Hint says in one line what helps.
	Hint string
}

// Error returns what is wrong, without the hint.
func (p *Problem) Error() string { return p.Err.Error() }

// Unwrap returns Err.
func (p *Problem) Unwrap() error { return p.Err }

// HintOf returns what can be done about an error, or nothing.
func HintOf(err error) string {
	if p, is := errors.AsType[*Problem](err); is {
		return p.Hint
	}
	return ""
}

// Errors that callers distinguish. Each comes wrapped in a [Problem].
var (
	// ErrNameTaken says that a sandbox of that name is running.
	ErrNameTaken = errors.New("a sandbox of this name is already running")
	// ErrNotRunning says that there is no running sandbox of that name.
	ErrNotRunning = errors.New("no sandbox of this name is running")
	// ErrNoBinary says that the operator-lab binary, which is also etcd and kube-apiserver, was not found.
	ErrNoBinary = errors.New("the operator-lab binary was not found")
)

const damagedHint = "the saved state may be damaged: start over with --fresh (this deletes what the sandbox held)"

const stateHint = "set OPERATOR_LAB_STATE_DIR to a directory you can write to"

// causes are errors of the operating system, each with a hint.
var causes = []struct {
	errs []error
	hint string
}{
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, "the disk is full: free some space, or " + stateHint},
	{[]error{syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENOTDIR}, stateHint},
	{[]error{syscall.EMFILE, syscall.ENFILE}, "too many open files: raise the limit with 'ulimit -n 4096'"},
}

// explain turns an error of the operating system into a Problem.
func explain(err error) error {
	if err == nil || isProblem(err) || errors.Is(err, context.Canceled) {
		return err
	}
	for _, cause := range causes {
		for _, no := range cause.errs {
			if errors.Is(err, no) {
				return &Problem{err, cause.hint}
			}
		}
	}
	return err
}

// knownCause finds an error of the operating system in a program's log, where the program reports it to nobody else.
// Only what cannot mean anything else counts.
func knownCause(log string) error {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE} {
		if strings.Contains(log, no.Error()) {
			return no
		}
	}
	return nil
}

func isProblem(err error) bool {
	var p *Problem
	return errors.As(err, &p)
}
