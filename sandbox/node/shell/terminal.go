package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/syntax"
)

// Interrupt is returned by [Terminal.ReadLine] if Ctrl-C was pressed.
const Interrupt = "\x03"

const (
	keyCtrlC    = 3
	endLine     = "\x05\x15\r" // to the end of the line, remove it, enter
	typedAhead  = 64 << 10
	interrupted = 130
)

// Size of a terminal in characters.
type Size struct{ Width, Height int }

// Terminal is the container's side of a terminal: it echoes and edits lines, and converts line ends.
type Terminal struct {
	// editor is replaced after each Ctrl-D, see renew.
	editor atomic.Pointer[term.Terminal]
	screen io.Writer
	size   atomic.Pointer[Size]

	mu    sync.Mutex
	typed []byte
	// some receives a value when typed has text, or when no more will come.
	some, room chan struct{}
	ended      bool
	// interruptible ends what runs in the foreground.
	interruptible context.CancelFunc
	// reading is set while a reader waits for a line, pressed if an interrupt ended that line.
	reading, pressed bool
	// turn counts the turns to read, which the prompt and commands in the foreground take. A command that has ended
	// must not read in a later turn.
	turn int

	line sync.Mutex // one reads at a time
}

// NewTerminal starts to read the stream; it ends with the stream.
func NewTerminal(stream io.ReadWriter) *Terminal {
	t := &Terminal{screen: stream, some: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	t.renew()
	go t.listen(stream)
	return t
}

// renew replaces the editor, because one that has seen the end of its input goes on seeing it.
func (t *Terminal) renew() {
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys{t}, t.screen}, "")
	if before := t.editor.Load(); before != nil {
		editor.History = before.History
	}
	if size := t.size.Load(); size != nil {
		_ = editor.SetSize(size.Width, size.Height) // writes to the screen; who is gone needs no size
	}
	t.editor.Store(editor)
}

// listen reads all keys, so that Ctrl-C works even if nothing reads.
func (t *Terminal) listen(in io.Reader) {
	defer t.Close()
	buffer := make([]byte, 1024)
	for {
		n, err := in.Read(buffer)
		for _, key := range buffer[:n] {
			if !t.press(key) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (t *Terminal) press(key byte) (goOn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case key == keyCtrlC && t.interruptible != nil:
		t.typed = nil
		t.interruptible()
		t.nextTurn()
	case key == keyCtrlC:
		t.pressed = true
		t.typed = append(t.typed, endLine...)
	default:
		t.typed = append(t.typed, key)
	}
	tell(t.some)
	for len(t.typed) > typedAhead && !t.ended {
		t.mu.Unlock()
		<-t.room
		t.mu.Lock()
	}
	return !t.ended
}

// nextTurn ends the line of a waiting reader.
func (t *Terminal) nextTurn() {
	t.turn++
	if t.reading && !t.pressed {
		t.pressed = true
		t.typed = append([]byte(endLine), t.typed...)
		tell(t.some)
	}
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close ends the input.
func (t *Terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	tell(t.some)
	tell(t.room)
}

// keys is a reader of the typed keys.
type keys struct{ t *Terminal }

func (k keys) Read(p []byte) (int, error) {
	for {
		k.t.mu.Lock()
		n := copy(p[:min(1, len(p))], k.t.typed) // one by one: the rest after a Ctrl-D is for the next editor
		k.t.typed = k.t.typed[n:]
		ended := k.t.ended
		tell(k.t.room)
		k.t.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if ended {
			tell(k.t.some) // for whoever reads next
			return 0, io.EOF
		}
		<-k.t.some
	}
}

// Write writes to the screen.
func (t *Terminal) Write(p []byte) (int, error) { return t.editor.Load().Write(p) }

// ReadLine reads a line, or [Interrupt]. The error is io.EOF after Ctrl-D.
func (t *Terminal) ReadLine(prompt string) (string, error) {
	return t.readLine(prompt, func() bool { return true })
}

// readLine reads a line if still reports that it is the caller's turn. It calls still while no turn can begin or end.
func (t *Terminal) readLine(prompt string, still func() bool) (string, error) {
	t.line.Lock()
	defer t.line.Unlock()
	t.mu.Lock()
	t.reading = still()
	mine := t.reading
	t.mu.Unlock()
	if !mine {
		return "", io.EOF
	}
	editor := t.editor.Load()
	editor.SetPrompt(prompt)
	line, err := editor.ReadLine()
	editor.SetPrompt("")
	switch {
	case errors.Is(err, term.ErrPasteIndicator):
		err = nil
	case err != nil:
		t.renew()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading = false
	if t.pressed {
		t.pressed = false
		return Interrupt, nil
	}
	return line, err
}

// Resize sets the width of the screen, until there are no more sizes. It ignores 1x1, because clients first send a size
// that is larger by one than theirs to force a redraw, and 0x0, which means an unknown size.
func (t *Terminal) Resize(sizes <-chan Size) {
	for s := range sizes {
		if s.Width > 1 && s.Height > 1 {
			t.size.Store(&s)
			_ = t.editor.Load().SetSize(s.Width, s.Height) // as in renew
		}
	}
}

// foreground runs a command that reads the terminal and that Ctrl-C ends.
func (t *Terminal) foreground(ctx context.Context, run func(ctx context.Context, in io.Reader) int) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.mu.Lock()
	pressed := false
	t.turn++
	in, around := &typedLines{t: t, turn: t.turn}, t.interruptible
	t.interruptible = func() {
		pressed = true
		cancel()
		tell(t.some)
	}
	t.mu.Unlock()
	code := run(ctx, in)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interruptible = around
	t.nextTurn() // also for input that the command left waiting
	if pressed {
		return interrupted
	}
	return code
}

// typedLines is a reader of the lines that are typed for a command.
type typedLines struct {
	t    *Terminal
	turn int
	rest []byte
}

func (l *typedLines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.t.readLine("", func() bool { return l.t.turn == l.turn })
		if err != nil {
			return 0, err
		}
		if line == Interrupt {
			return 0, io.EOF
		}
		l.rest = []byte(line + "\n")
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// RunOnTerminal runs a command on a terminal, and returns its exit code. A shell without a script asks
// for commands.
func (w *Container) RunOnTerminal(ctx context.Context, argv []string, stream io.ReadWriter, sizes <-chan Size) int {
	t := NewTerminal(stream)
	defer t.Close()
	stop := context.AfterFunc(ctx, t.Close)
	defer stop()
	go t.Resize(sizes)
	return t.foreground(ctx, func(ctx context.Context, in io.Reader) int { return w.Run(ctx, argv, in, t, t) })
}

// typing returns the reader of what is typed for a command, if that is what the command reads.
func typing(in io.Reader) (lines *typedLines, ok bool) {
	for {
		p, is := in.(*patient)
		if !is {
			lines, ok = in.(*typedLines)
			return lines, ok
		}
		in = p.in
	}
}

// interact asks for commands until exit, or Ctrl-D. Meanwhile Ctrl-C does not end the command that runs the shell, and
// afterwards that command reads on.
func (s *session) interact(lines *typedLines) int {
	t := lines.t
	t.mu.Lock()
	around := t.interruptible
	t.interruptible = nil
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.interruptible = around
		t.turn++
		lines.turn = t.turn
	}()
	status := 0
	for !s.exited && s.ctx.Err() == nil {
		file, err := s.ask(t)
		switch {
		case errors.Is(err, errInterrupted):
			status = interrupted
			s.setStatus(status)
		case errors.Is(err, io.EOF):
			return s.end(status)
		case err != nil:
			fmt.Fprintf(s.err, "sh: %v\n", err)
			status = 2
			s.setStatus(status)
		default:
			status = s.statements(file, status, func(run func(context.Context) int) int {
				return t.foreground(s.ctx, func(ctx context.Context, in io.Reader) int {
					s.feed(interruptible(ctx, in))
					return run(ctx)
				})
			})
		}
	}
	return status
}

func (s *session) prompt() string {
	if s.process.container.UID != 0 {
		return s.runner.Dir + " $ "
	}
	return s.runner.Dir + " # "
}

var errInterrupted = errors.New("interrupted")

// ask reads a command, which may have several lines.
func (s *session) ask(t *Terminal) (*syntax.File, error) {
	prompt := s.prompt()
	var script strings.Builder
	for {
		line, err := t.ReadLine(prompt)
		if err != nil {
			return nil, io.EOF
		}
		if line == Interrupt {
			return nil, errInterrupted
		}
		script.WriteString(line + "\n")
		file, err := s.parse(script.String())
		if !isIncomplete(err) {
			return file, err
		}
		prompt = "> "
	}
}
