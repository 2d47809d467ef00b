//go:build go1.23

package taps

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// What controller-runtime logs about reconciles at verbosity 5, from v0.16 to v0.24. The ends with a time have it in the
// message only.
const (
	messageBegun       = "Reconciling"
	messageDone        = "Reconcile successful"
	messageAgain       = "Reconcile done, requeueing"
	messageAgainAfter  = "Reconcile done, requeueing after "
	levelOfBoundaries  = 5
	suffixOfRecovered  = " [recovered]"
	fieldKind          = "controllerKind"
	fieldGroup         = "controllerGroup"
	mostLevels         = 128 // zap's levels are bytes
	prefixOfOtherLevel = "Level("
)

// logLine is a line of a program's log, if that is in JSON as zap or klog write it.
type logLine struct {
	message string
	// level is the verbosity: 0 is always shown.
	level      int
	err        string
	controller string
	// kind and group are those of the objects that the controller reconciles.
	kind, group string
	key         trace.Key
	reconcileID string
	// values are the other fields, by name.
	values map[string]string
}

// parseLogLine reads a line of a log; false if it is not a JSON object with a message.
func parseLogLine(line string) (l logLine, ok bool) {
	var fields map[string]json.RawMessage
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &fields) != nil {
		return l, false
	}
	take := func(name string) string {
		text := fieldText(fields[name])
		delete(fields, name)
		return text
	}
	if l.message = take("msg"); l.message == "" {
		return l, false
	}
	l.level = levelOf(take("level"), take("v"))
	if l.err = take("error"); l.err == "" {
		l.err = take("err")
	}
	l.controller, l.kind, l.group = take(keyController), take(fieldKind), take(fieldGroup)
	l.key = trace.Key{Namespace: take(keyNamespace), Name: take(keyName)}
	l.reconcileID = take(keyReconcileID)
	for _, known := range []string{"ts", "time", "caller", keyStack, l.kind} {
		delete(fields, known)
	}
	if name := take("logger"); name != "" {
		l.message = name + ": " + l.message
	}
	l.values = map[string]string{}
	for name, raw := range fields {
		l.values[name] = fieldText(raw)
	}
	return l, true
}

// fieldText returns a string's content, and any other value as JSON; empty without a value.
func fieldText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// levelOf returns the verbosity that zap writes as a level, such as debug or Level(-5), and klog as a number.
func levelOf(level, v string) int {
	if n, err := strconv.Atoi(v); err == nil {
		return min(max(n, 0), mostLevels)
	}
	if number, is := strings.CutPrefix(level, prefixOfOtherLevel); is {
		if n, err := strconv.Atoi(strings.TrimSuffix(number, ")")); err == nil {
			return min(max(-n, 0), mostLevels)
		}
	}
	if strings.EqualFold(level, "debug") {
		return 1
	}
	return 0
}

// begins reports whether the line begins a reconcile. An operator's own line may have the same words, but has another level.
func (l logLine) begins() bool {
	return l.message == messageBegun && l.level == levelOfBoundaries && l.reconcileID != "" && l.controller != "" && l.key.Name != ""
}

// end completes a reconcile with how it ended; false if the line does not end one.
func (l logLine) end(r *runningReconcile) bool {
	switch {
	case l.message == messageFailed && l.err != "":
		text, panicked := strings.CutSuffix(l.err, suffixOfRecovered)
		if panicked {
			r.panic()
		}
		r.fail(fmt.Errorf("%s", text))
		return true
	case l.level != levelOfBoundaries:
		return false
	case l.message == messageDone:
		r.succeeded()
		return true
	case l.message == messageAgain:
		r.again(admission{reason: trace.ReasonRequeue})
		return true
	}
	after, is := strings.CutPrefix(l.message, messageAgainAfter)
	delay, err := time.ParseDuration(after)
	if !is || err != nil {
		return false
	}
	r.again(admission{reason: trace.ReasonDelayed, after: delay})
	return true
}

// event returns the line as an event of the journal.
func (l logLine) event() trace.Event {
	e := trace.Event{
		Kind: trace.KindLog, Message: l.message, Level: l.level, Error: l.err, Controller: l.controller, Key: l.key,
	}
	for _, name := range slices.Sorted(maps.Keys(l.values)) {
		e.Values = append(e.Values, name, l.values[name])
	}
	return e
}
