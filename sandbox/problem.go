package sandbox

import (
	"context"
	"errors"
	"os"
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

// explain turns what the operating system refused into a Problem. The log tail is searched too, because a child
// that runs into a full disk says so only there.
func explain(err error, logTail string) error {
	if err == nil || isProblem(err) {
		return err
	}
	said := func(no syscall.Errno) bool {
		return errors.Is(err, no) || strings.Contains(logTail, no.Error())
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case said(syscall.ENOSPC), said(syscall.EDQUOT):
		return &Problem{err, "the disk is full: free some space, or " + stateHint}
	case said(syscall.EROFS), errors.Is(err, os.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return &Problem{err, stateHint}
	case said(syscall.EMFILE), said(syscall.ENFILE):
		return &Problem{err, "too many open files: raise the limit with 'ulimit -n 4096'"}
	}
	return err
}

func isProblem(err error) bool {
	var p *Problem
	return errors.As(err, &p)
}
