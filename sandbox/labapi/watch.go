package labapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// remembered is the number of changes of a kind that a watch can catch up on.
	remembered = 1024
	// pace is the minimum time between two reads of the backend while somebody watches.
	pace = 20 * time.Millisecond
	// bookmarkEvery is the interval of bookmarks for watches that asked for them.
	bookmarkEvery = time.Minute
)

// change is a change of an object: was is nil for a new one, is for a deleted one (then watchers get last).
type change struct {
	version uint64
	key     string
	was, is object
	last    object
}

// history holds the newest changes of a kind, and wakes watchers. The memory's mu guards it.
type history struct {
	version  uint64
	forgot   uint64 // version of the newest change that was dropped
	changes  []change
	grew     chan struct{} // closed at the next change
	watchers int
	watched  chan struct{} // closed while there are watchers
	over     bool
}

func newHistory(version uint64) history {
	return history{version: version, forgot: version, grew: make(chan struct{}), watched: make(chan struct{})}
}

// add records a change and gives the object its version.
func (h *history) add(key string, was, is object) {
	h.version++
	c := change{version: h.version, key: key, was: was, is: is}
	told := is
	if is == nil {
		c.last = was.DeepCopyObject().(object)
		told = c.last
	}
	_ = storage.APIObjectVersioner{}.UpdateObject(told, h.version) // cannot fail: our objects have a version
	if len(h.changes) == remembered {
		h.forgot = h.changes[0].version
		h.changes = slices.Delete(h.changes, 0, 1)
	}
	h.changes = append(h.changes, c)
	h.wake()
}

func (h *history) wake() {
	close(h.grew)
	h.grew = make(chan struct{})
}

// notNewer parses a client's version, which must not be newer than ours; 0 if it gave none.
func (h *history) notNewer(resourceVersion string) (uint64, error) {
	version, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if version > h.version {
		return 0, storage.NewTooLargeResourceVersionError(version, h.version, 0)
	}
	return version, nil
}

// Watch implements [storage.Interface].
func (m *memory) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	version, err := m.notNewer(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		m: m, selection: selection{key, opts.Recursive, opts.Predicate},
		at: version, result: make(chan watch.Event),
	}
	// By default the state comes first only if the client gave no version; sendInitialEvents overrides that.
	initial := version == 0
	if opts.SendInitialEvents != nil {
		initial = *opts.SendInitialEvents
	}
	if initial {
		if w.initial, err = m.find(w.selection); err != nil {
			return nil, err
		}
		w.announce = opts.SendInitialEvents != nil && opts.Predicate.AllowWatchBookmarks
	}
	if initial || version == 0 {
		w.at = m.version
	}
	ctx, w.stop = context.WithCancel(ctx)
	m.count(1)
	go w.run(ctx)
	return w, nil
}

// count changes the number of watchers. The caller holds mu.
func (m *memory) count(more int) {
	was := m.watchers
	m.watchers += more
	switch {
	case was == 0 && m.watchers > 0:
		close(m.watched)
	case was > 0 && m.watchers == 0:
		m.watched = make(chan struct{})
	}
}

// follow reads the backend whenever it changed, while somebody watches, until ctx ends. Then it ends all watches.
func (m *memory) follow(ctx context.Context) {
	defer m.end()
	for {
		m.mu.Lock()
		wanted := (<-chan struct{})(m.watched)
		if m.watchers > 0 {
			m.look()
			wanted = m.changed
		}
		m.mu.Unlock()
		for _, next := range []<-chan struct{}{after(ctx, pace), wanted} {
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	m.wake()
}

// watcher sends the events of a watch to one client. It reads the history at its own speed.
type watcher struct {
	m *memory
	selection
	initial  []runtime.Object
	announce bool   // the end of the initial events is announced
	at       uint64 // everything up to this version was sent
	result   chan watch.Event
	stop     context.CancelFunc
}

// Stop implements [watch.Interface].
func (w *watcher) Stop() { w.stop() }

// ResultChan implements [watch.Interface].
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context) {
	defer close(w.result)
	defer w.stop()
	defer func() {
		w.m.mu.Lock()
		w.m.count(-1)
		w.m.mu.Unlock()
	}()
	for _, o := range w.initial {
		if !w.send(ctx, watch.Added, o) {
			return
		}
	}
	w.initial = nil
	if w.announce && !w.bookmark(ctx, storage.AnnotateInitialEventsEndBookmark) {
		return
	}
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	for {
		changes, grew, err := w.m.since(w.at)
		if err != nil {
			status := apierrors.NewResourceExpired(err.Error()).Status()
			w.send(ctx, watch.Error, &status)
			return
		}
		for _, c := range changes {
			if !w.tell(ctx, c) {
				return
			}
		}
		if len(changes) > 0 {
			continue
		}
		if grew == nil {
			return
		}
		select {
		case <-grew:
		case <-bookmarks.C:
			if w.predicate.AllowWatchBookmarks && !w.bookmark(ctx, nil) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// since returns the changes after a version, and a channel that is closed when there are more; nil if there will be
// none.
func (m *memory) since(version uint64) ([]change, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return nil, nil, nil
	}
	if version < m.forgot {
		return nil, nil, fmt.Errorf("too old resource version: %d (%d)", version, m.forgot)
	}
	next, _ := slices.BinarySearchFunc(m.changes, version+1, func(c change, v uint64) int {
		return int(int64(c.version - v))
	})
	return slices.Clone(m.changes[next:]), m.grew, nil
}

// tell sends a change as an event relative to what the client's selection contains.
func (w *watcher) tell(ctx context.Context, c change) bool {
	w.at = c.version
	if !w.has(c.key) {
		return true
	}
	was, is := w.matches(c.was), w.matches(c.is)
	switch {
	case was && is:
		return w.send(ctx, watch.Modified, c.is.DeepCopyObject())
	case is:
		return w.send(ctx, watch.Added, c.is.DeepCopyObject())
	case was && c.is == nil:
		return w.send(ctx, watch.Deleted, c.last.DeepCopyObject())
	case was: // it exists, but is no longer selected
		last := c.was.DeepCopyObject().(object)
		last.SetResourceVersion(c.is.GetResourceVersion())
		return w.send(ctx, watch.Deleted, last)
	default:
		return true
	}
}

func (w *watcher) matches(o object) bool {
	if o == nil {
		return false
	}
	match, err := w.predicate.Matches(o)
	return match && err == nil
}

// bookmark sends the version that the watch has reached.
func (w *watcher) bookmark(ctx context.Context, mark func(runtime.Object) error) bool {
	o := w.m.fresh()
	if err := w.m.UpdateObject(o, w.at); err != nil {
		return false
	}
	if mark != nil && mark(o) != nil {
		return false
	}
	return w.send(ctx, watch.Bookmark, o)
}

func (w *watcher) send(ctx context.Context, event watch.EventType, o runtime.Object) bool {
	select {
	case w.result <- watch.Event{Type: event, Object: o}:
		return true
	case <-ctx.Done():
		return false
	}
}

// after returns a channel that is closed after a time or when ctx ends.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(ctx, d)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}
