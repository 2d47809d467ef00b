package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// told is a journal of a test, at a time of the test's choice, and the screen that shows it.
type told struct {
	*testing.T
	*Model
	journal *trace.Journal
	after   time.Duration
}

func newTold(t *testing.T) *told {
	d := &told{T: t}
	d.journal = trace.New(trace.Options{Now: func() time.Time { return time.Unix(0, 0).Add(d.after) }})
	d.Model = modelOf(t, Options{Journal: d.journal}, 160, 50)
	return d
}

// of appends an event of a controller of the operator.
func (d *told) of(controller string, e trace.Event) {
	e.Operator, e.Actor, e.Controller = "keeper", "keeper", controller
	d.journal.Append(e)
}

// reconcile appends a reconcile of a key.
func (d *told) reconcile(controller string) {
	key := trace.Key{Namespace: "default", Name: "a"}
	id := d.journal.NewReconcile()
	d.of(controller, trace.Event{Kind: trace.KindEnqueue, Key: key})
	d.of(controller, trace.Event{Kind: trace.KindDequeue, Key: key, Reconcile: id})
	d.of(controller, trace.Event{Kind: trace.KindEnd, Key: key, Reconcile: id, Outcome: trace.OutcomeDone})
}

// watch appends a watch event of an object, which an owner may have.
func (d *told) watch(verb, name, owner string, rv int) {
	raw := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"default","uid":"u-` + name + `"`
	if owner != "" {
		raw += `,"ownerReferences":[{"kind":"ConfigMap","name":"` + owner + `","uid":"u-` + owner + `","controller":true}]`
	}
	raw += `},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Fine"}]}}`
	d.of("", trace.Event{
		Kind: trace.KindWatch, Verb: verb, ResourceVersion: fmt.Sprint(rv), After: json.RawMessage(raw),
		Object: trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name, UID: "u-" + name},
	})
}

// at goes to a time, and returns a part of the screen.
func (d *told) at(after time.Duration, name string) string {
	d.after = after
	d.refresh(true)
	d.objects().settle()
	lines, _ := part(d.Model, name)
	return ansi.Strip(strings.Join(lines, "\n"))
}

func (d *told) want(text string, has bool, want string) {
	d.Helper()
	if strings.Contains(text, want) != has {
		d.Errorf("it is %t that it has %q:\n%s", !has, want, text)
	}
}

// TestHeatCools checks that the heat is that of the last seconds, also when nothing happens.
func TestHeatCools(t *testing.T) {
	d := newTold(t)
	d.reconcile("configmap")
	d.want(d.at(time.Second, "queue"), true, "HEAT")
	d.want(d.at(time.Minute, "queue"), false, "HEAT")
}

// TestGoneObjects checks that conditions of what is gone are said to be its last ones, and that the last line of a tree ends it.
func TestGoneObjects(t *testing.T) {
	d := newTold(t)
	d.watch(trace.Added, "a", "", 1)
	d.watch(trace.Added, "a-1", "a", 2)
	d.watch(trace.Added, "a-2", "a", 3)
	d.watch(trace.Deleted, "a-2", "a", 4)
	for range 3 {
		d.reconcile("configmap")
	}
	tree := d.at(time.Second, "objects")
	d.want(tree, false, "├─")
	d.want(tree, true, "└─ ConfigMap a-1")
	d.watch(trace.Deleted, "a-1", "a", 5)
	d.watch(trace.Deleted, "a", "", 6)
	d.nav().setFocus(ObjectsPane)
	d.nav().showTab(ConditionsTab)
	d.want(d.at(2*time.Second, "detail"), true, "it is gone; these were its last conditions")
}

// TestCrashedIsNotLive checks that the header says that an operator is crashed, and when it comes back.
func TestCrashedIsNotLive(t *testing.T) {
	d := newTold(t)
	d.of("", trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
	d.reconcile("configmap")
	d.want(d.at(time.Millisecond, "header"), true, "LIVE")
	crash := trace.FaultPayload{Kind: trace.FaultCrash, Detail: "After", Of: []string{"5s"}}
	d.of("configmap", trace.Event{Kind: trace.KindDequeue, Key: trace.Key{Namespace: "default", Name: "a"}, Reconcile: d.journal.NewReconcile()})
	d.of("", trace.Event{Kind: trace.KindFault, Reason: "f", Values: crash.Values()})
	d.of("", trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
	d.want(d.at(2*time.Second, "header"), true, "CRASHED, back in 3s")
	d.want(d.at(2*time.Second, "strip"), true, "#2 aborted")
	d.want(d.at(2*time.Second, "strip"), true, "on restart")
	d.want(d.at(6*time.Second, "header"), true, "CRASHED, starts again")
	d.of("", trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
	d.want(d.at(6*time.Second, "header"), true, "LIVE")
	d.of("", trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
	d.want(d.at(6*time.Second, "header"), true, "STOPPED")
}

// TestFilterOfEachController checks that what a controller made of the events is not added to what another one did.
func TestFilterOfEachController(t *testing.T) {
	d := newTold(t)
	d.watch(trace.Added, "a", "", 1)
	for _, e := range []struct {
		controller string
		kind       trace.Kind
	}{{"one", trace.KindDrop}, {"two", trace.KindDrop}, {"two", trace.KindEnqueue}, {"two", trace.KindDrop}} {
		d.of(e.controller, trace.Event{Kind: e.kind, Cause: 1, Key: trace.Key{Name: "a"}})
	}
	d.reconcile("two")
	strip := d.at(time.Second, "strip")
	d.want(strip, true, "FILTER two")
	d.want(strip, true, "2 made no key")
	queue := d.at(time.Second, "queue")
	d.want(queue, true, "one: 1 event made no key")
	d.want(queue, true, "DROPPED  two: 2 ") // there is no room for more
}

// TestFaultsAreNoVictims checks that a Fault that was made on the screen is no object that can be broken.
func TestFaultsAreNoVictims(t *testing.T) {
	d := newTold(t)
	d.watch(trace.Added, "a", "", 1)
	d.journal.Append(trace.Event{
		Kind: trace.KindCall, Actor: "you", Operator: "you", Verb: trace.VerbCreate, ResourceVersion: "7", After: []byte(`{"status":{"phase":"Armed"}}`),
		Object: trace.Ref{APIVersion: "operator-lab.dev/v1alpha1", Kind: "Fault", Name: "break-1", UID: "f"},
	})
	d.want(d.at(time.Second, "objects"), false, "Fault")
}

// TestNothingIsLeft checks that the objects' pane says why it lists none: nothing was seen, nothing matches, or all are gone.
func TestNothingIsLeft(t *testing.T) {
	d := newTold(t)
	d.want(d.at(time.Second, "objects"), true, "nothing seen yet")
	d.watch(trace.Added, "a", "", 1)
	press(d.Model, "1 / x y z enter")
	d.want(d.at(2*time.Second, "objects"), true, "no object matches the filter")
	press(d.Model, "esc")
	d.watch(trace.Deleted, "a", "", 2)
	for range 4 { // until it is not listed any more
		d.reconcile("configmap")
	}
	d.want(d.at(3*time.Second, "objects"), true, "nothing is left")
}

// TestFoundIsNotNew checks that what was there when the operator started is not marked as if it had been made just now.
func TestFoundIsNotNew(t *testing.T) {
	for _, initial := range []bool{false, true} {
		d := newTold(t)
		d.of("", trace.Event{
			Kind: trace.KindWatch, Verb: trace.Added, Initial: initial, ResourceVersion: "1", After: json.RawMessage(`{"metadata":{"name":"a"}}`),
			Object: trace.Ref{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "a", UID: "u"},
		})
		objects := d.at(time.Second, "objects")
		d.want(objects, true, "Service a")
		d.want(objects, !initial, "+")
	}
}

// TestWritesAreOver checks that no rate is told of writes to a store that is gone.
func TestWritesAreOver(t *testing.T) {
	for _, height := range []int{24, 50} { // one line, and the large form
		d := newTold(t)
		d.Update(tea.WindowSizeMsg{Width: 160, Height: height})
		store := trace.Ref{APIVersion: "example.com/v1", Kind: "EtcdCluster", Namespace: "default", Name: "a"}
		write := func(verb string) {
			d.of("", trace.Event{Kind: trace.KindWrites, Verb: verb, Object: store, Count: 20, Delay: time.Second})
		}
		members, _ := json.Marshal(trace.Membership{Voters: 1, Need: 1, Up: 1, Members: []trace.Member{{Name: "a-1", Role: trace.RoleLeader}}}) // plain data
		d.of("", trace.Event{Kind: trace.KindMembers, Verb: trace.VerbSwitch, Object: store, After: members})
		write(trace.VerbSwitch)
		d.want(d.at(time.Second, "store"), true, "20/s")
		gone, _ := json.Marshal(trace.Membership{Gone: true}) // plain data
		d.of("", trace.Event{Kind: trace.KindMembers, Verb: trace.VerbSwitch, Object: store, Before: members, After: gone})
		write(trace.VerbStop)
		over := d.at(2*time.Second, "store")
		d.want(over, true, "the cluster is gone")
		d.want(over, true, "0 failed")
		d.want(over, false, "/s")
	}
}

// TestConditionsOfALowPane checks that the conditions are not left out below what a reconcile did where they have little room.
func TestConditionsOfALowPane(t *testing.T) {
	d := newTold(t)
	d.watch(trace.Added, "a", "", 1)
	d.refresh(true)
	o := d.snapshot.Objects()[0]
	for height, want := range map[int]int{2: 0, 3: 2, 4: 2, 5: 3, 9: 3} { // without and with a blank line before them
		if rows := (detailPane{&d.state}).objectRows(subject{object: o}, Rect{W: 80, H: height}); len(rows) != want {
			t.Errorf("%d rows of %d", len(rows), height)
		}
	}
}

// TestFilterOfWhatRuns checks that a filter finds a reconcile that ends only while it is there, and one by what it called.
func TestFilterOfWhatRuns(t *testing.T) {
	d := newTold(t)
	d.filter[LoopPane] = "retry"
	key := trace.Key{Namespace: "default", Name: "a"}
	id := d.journal.NewReconcile()
	d.of("configmap", trace.Event{Kind: trace.KindDequeue, Key: key, Reconcile: id})
	d.want(d.at(time.Second, "loop"), true, "no reconcile matches the filter")
	d.of("configmap", trace.Event{Kind: trace.KindCall, Verb: trace.VerbDelete, Object: trace.Ref{Kind: "Secret", Name: "s"}, Key: key, Reconcile: id})
	d.of("configmap", trace.Event{Kind: trace.KindEnd, Key: key, Reconcile: id, Outcome: trace.OutcomeError, Error: "no luck", Delay: time.Second, Try: 1})
	d.reconcile("configmap")
	loop := d.at(2*time.Second, "loop")
	d.want(loop, true, "#1")
	d.want(loop, false, "#2")
	for filter, want := range map[string]bool{"delete secret": true, "create": false} {
		d.filter[LoopPane] = typed(filter)
		d.want(d.at(3*time.Second, "loop"), want, "#1")
	}
}
