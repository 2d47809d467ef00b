package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// ErrPanic is returned when the UI itself failed. The terminal is restored
// before, and what went wrong is on standard error.
var ErrPanic = errors.New("the terminal UI failed")

// Run shows a journal until the user quits, the context ends or a signal
// comes, and returns when the terminal is as it was. Quitting is no error, nor
// is a signal; the caller stops what it started. A loop that is held is left
// held, and a held write unsent: it is for the caller's stopping to end them. If
// the boot failed its error is returned.
func Run(ctx context.Context, o Options) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(inner, o)
	booted, starting := make(chan struct{}), m.booting
	go func() {
		defer close(booted)
		if starting != nil {
			starting.run(inner, o.Boot)
		}
	}()
	err := runProgram(ctx, m, m.opts)
	cancel()
	<-booted
	m.works.Wait()
	if err != nil {
		return err
	}
	return m.bootErr
}

// Screen returns what [Run] shows of the end of a recorded journal on a screen of w by h cells, without colours.
func Screen(o Options, w, h int) string {
	o.Replay, o.NoMotion = true, true
	m := newModel(context.Background(), o)
	m.w, m.h = w, h
	return ansi.Strip(m.frame())
}

// untilSignal ends with the signals that ask a program of a terminal to leave it.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
}

// runProgram runs a model on the terminal until it quits or the context ends.
func runProgram(ctx context.Context, m tea.Model, o Options) error {
	settings := []tea.ProgramOption{tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler()}
	if o.ForceColor {
		settings = append(settings, tea.WithEnvironment(colorful(os.Environ())))
	}
	defer log.SetOutput(log.Writer()) // Helm logs there, across what is drawn
	log.SetOutput(io.Discard)
	p := tea.NewProgram(m, settings...)
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			p.Quit()
		case <-ended:
		}
	}()
	_, err := p.Run()
	close(ended)
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("%w: %w", ErrPanic, err)
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// colorful returns an environment in which colours are wanted.
func colorful(environ []string) []string {
	environ = slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") })
	return append(environ, "CLICOLOR_FORCE=1")
}
