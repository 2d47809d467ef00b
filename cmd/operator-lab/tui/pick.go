package tui

import (
	"context"
	"io"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// PickOptions are the options of [Pick]. Only Items are required.
type PickOptions struct {
	// Items are the items to pick from, in order; those of a module are adjacent.
	Items []PickItem
	// All names the items as a whole. Default: "all".
	All string
	// Tracks are ways through some of the items. Default: none.
	Tracks []PickTrack
	// Track is the name of the track that is shown at first. Default: all items are.
	Track string
	// Suggested is the ID of the item the cursor is on at first. Default: the first that is not done.
	Suggested string
	// Language, look and terminal, as in [Options].
	Language   trace.Language
	ASCII      bool
	NoColor    bool
	ForceColor bool
	In         io.Reader
	Out        io.Writer
	Getenv     func(string) string
}

// PickItem is a lesson that can be picked.
type PickItem struct {
	ID     string
	Number int
	Title  string
	// Module is the heading the item is listed under.
	Module string
	// Done of Total tasks are done.
	Done, Total int
	// Tags such as "P1" and "H2".
	Tags []string
	// About says what the tags mean. Default: empty.
	About string
	// Tracks are the names of the tracks it belongs to.
	Tracks []string
	// Note is shown while the cursor is on the item. Default: empty.
	Note string
}

// PickTrack is a way through some of the items.
type PickTrack struct {
	// Name identifies the track in [PickItem.Tracks].
	Name string
	// Title is shown to the user.
	Title string
}

// Pick lets one item be picked on the terminal. It returns its ID, and the name of the track that was shown: "" if it was
// none. The ID is "" if the user leaves, the context ends or a signal comes.
func Pick(ctx context.Context, o PickOptions) (id, track string, err error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	p := newPicker(o)
	err = runProgram(ctx, p, p.look)
	return p.picked, p.trackName(), err
}
