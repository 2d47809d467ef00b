package sandbox

import (
	"context"
	"errors"
	"strings"
	"syscall"
)

// Problem is an error that a person can do something about: what is wrong in one line, and what helps in another.
type Problem struct {
	Err  error
	Hint string
}

func (p *Problem) Error() string { return p.Err.Error() }

func (p *Problem) Unwrap() error { return p.Err }

// HintOf is what can be done about an error; empty where nothing is known.
func HintOf(err error) string {
	if p, is := errors.AsType[*Problem](err); is {
		return p.Hint
	}
	return ""
}

// Errors that callers branch on; each comes wrapped in a [Problem].
var (
	// ErrNameTaken: a sandbox of that name is running.
	ErrNameTaken = errors.New("a sandbox of this name is already running")
	// ErrNotRunning: there is no running sandbox of that name.
	ErrNotRunning = errors.New("no sandbox of this name is running")
	// ErrNoBinary: the operator-lab binary, which is also etcd and kube-apiserver, was not found.
	ErrNoBinary = errors.New("the operator-lab binary was not found")
)

const damagedHint = "the saved state may be damaged: start over with --fresh (this deletes what the sandbox held)"

const stateHint = "set OPERATOR_LAB_STATE_DIR to a directory you can write to"

// causes are what the operating system refuses, and what helps.
var causes = []struct {
	errs []error
	hint string
}{
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, "the disk is full: free some space, or " + stateHint},
	{[]error{syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENOTDIR}, stateHint},
	{[]error{syscall.EMFILE, syscall.ENFILE}, "too many open files: raise the limit with 'ulimit -n 4096'"},
}

// explain turns what the operating system refused into a Problem.
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

// knownCause finds in a program's log what the operating system refused it: nobody else can tell. Only what cannot be
// meant otherwise counts.
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
