package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// patience bounds a call to the cluster, so that a message always comes back.
const patience = 30 * time.Second

// doneMsg says how something that was asked of the cluster went.
type doneMsg struct {
	what string
	err  error
}

// editMsg carries the object that is to be edited, in a file.
type editMsg struct {
	ref    trace.Ref
	file   string
	before []byte // nil for an object that is to be created
	err    error
}

// editedMsg says that the editor has ended.
type editedMsg struct {
	editMsg
	err error
}

func writeTemp(ref trace.Ref, text []byte) (name string, err error) {
	f, err := os.CreateTemp("", "operator-lab-"+fileName(ref.Name)+"-*.yaml")
	if err != nil {
		return "", fmt.Errorf("write the object to a file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(text); err != nil {
		return f.Name(), fmt.Errorf("write the object to a file: %w", err)
	}
	return f.Name(), nil
}

// fileName keeps of a name what any file system accepts.
func fileName(name string) string {
	return string(bytes.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, []byte(name)))
}

// editorCommand returns the command of $VISUAL or $EDITOR, as kubectl edit reads it:
// it may have arguments of its own, so a shell splits it.
func editorCommand(ctx context.Context, getenv func(string) string, file string) *exec.Cmd {
	for _, name := range []string{"KUBE_EDITOR", "VISUAL", "EDITOR"} {
		if v := getenv(name); v != "" {
			return exec.CommandContext(ctx, "sh", "-c", v+` "$1"`, "sh", file)
		}
	}
	return exec.CommandContext(ctx, "vi", file)
}

// act asks something of the cluster, outside of Update.
func (m *Model) act(what string, do func(context.Context) error) tea.Cmd {
	parent := m.ctx
	m.say(what + "...")
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, patience)
		defer cancel()
		return doneMsg{what, do(ctx)}
	}
}

func (m *Model) done(msg doneMsg) {
	if msg.err != nil {
		m.fail(msg.what + ": " + msg.err.Error())
		return
	}
	m.say(msg.what + m.t(": done", ": 完了"))
}

// edit opens the selected object in the user's editor: it is fetched, written
// to a file, edited, read, and written back if it was changed.
func (m *Model) edit() tea.Cmd {
	o, c, parent := m.subject().object, m.controls.Cluster, m.ctx
	ref := o.Ref
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, patience)
		defer cancel()
		text, err := c.Get(ctx, ref)
		if err != nil {
			return editMsg{ref: ref, err: err}
		}
		file, err := writeTemp(ref, text)
		return editMsg{ref, file, text, err}
	}
}

// editor starts the editor on the file; the screen is its own meanwhile.
func (m *Model) editor(msg editMsg) tea.Cmd {
	if msg.err != nil {
		m.fail("e: " + msg.err.Error())
		return nil
	}
	return outside(editorCommand(m.ctx, m.opts.Getenv, msg.file), func(err error) tea.Msg {
		return editedMsg{msg, err}
	})
}

// create opens an object that is not there yet in the user's editor, and creates it then.
func (m *Model) create(ref trace.Ref, text []byte) tea.Cmd {
	return func() tea.Msg {
		file, err := writeTemp(ref, text)
		return editMsg{ref: ref, file: file, err: err}
	}
}

// edited writes back what the editor left.
func (m *Model) edited(msg editedMsg) tea.Cmd {
	what := m.t("edit ", "編集 ") + msg.ref.String()
	if msg.before == nil {
		what = m.t("create ", "作成 ") + msg.ref.String()
	}
	if msg.err != nil {
		_ = os.Remove(msg.file)
		m.fail(what + m.t(": the editor failed, nothing is changed: ", ": エディターが失敗、変更なし: ") + msg.err.Error())
		return nil
	}
	c, kept, same := m.controls.Cluster, m.t("your text is kept in ", "編集内容の保存先 "), m.t("nothing was changed", "変更なし")
	return m.act(what, func(ctx context.Context) error {
		text, err := os.ReadFile(msg.file)
		if err != nil {
			return fmt.Errorf("read what the editor left: %w", err)
		}
		write := c.Update
		if msg.before == nil {
			write = c.Create
		}
		if bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(msg.before)) { // an empty text creates nothing
			_ = os.Remove(msg.file)
			return errors.New(same)
		}
		if err := write(ctx, text); err != nil {
			return fmt.Errorf("%w (%s%s)", err, kept, msg.file)
		}
		_ = os.Remove(msg.file)
		return nil
	})
}
