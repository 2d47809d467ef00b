package tui

import (
	"cmp"
	"encoding/json"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// containerState is why a container of a pod does not run, or ended before.
type containerState struct {
	name     string
	init     bool
	ended    bool // it has ended; else it waits
	before   bool // it runs; that is how its last life ended
	reason   string
	message  string
	restarts int64
}

// containerStates returns those of a pod that have a reason, in the order of the pod: init containers first.
func containerStates(o *trace.Object) []containerState {
	if o == nil || o.Ref.Kind != "Pod" || o.Ref.APIVersion != "v1" {
		return nil
	}
	type end struct {
		Reason   string `json:"reason"`
		Message  string `json:"message"`
		ExitCode int64  `json:"exitCode"`
	}
	type state struct {
		Waiting    *end `json:"waiting"`
		Terminated *end `json:"terminated"`
	}
	type status struct {
		Name         string `json:"name"`
		State        state  `json:"state"`
		LastState    state  `json:"lastState"`
		RestartCount int64  `json:"restartCount"`
	}
	var in struct {
		Status struct {
			Init       []status `json:"initContainerStatuses"`
			Containers []status `json:"containerStatuses"`
		} `json:"status"`
	}
	if json.Unmarshal(o.Raw, &in) != nil {
		return nil
	}
	var out []containerState
	add := func(all []status, init bool) {
		for _, c := range all {
			s := containerState{name: c.Name, init: init, restarts: c.RestartCount}
			e := c.State.Waiting
			switch {
			case e != nil:
			case c.State.Terminated != nil:
				e, s.ended = c.State.Terminated, true
			case c.LastState.Terminated != nil:
				e, s.ended, s.before = c.LastState.Terminated, true, true
			default:
				continue
			}
			s.reason, s.message = e.Reason, e.Message
			if s.ended {
				s.reason = cmp.Or(s.reason, "ended") + " (" + itoa(e.ExitCode) + ")"
			}
			if s.reason != "" && (!init || !s.ended || e.ExitCode != 0) {
				out = append(out, s)
			}
		}
	}
	add(in.Status.Init, true)
	add(in.Status.Containers, false)
	return out
}

// containerRows say below a pod's conditions why its containers do not run.
func (s detailPane) containerRows(o *trace.Object, w int) []row {
	var rows []row
	for _, c := range containerStates(o) {
		what := s.t("waits", "待機中")
		switch {
		case c.before:
			what = s.t("ended before", "前回の終了")
		case c.ended:
			what = s.t("has ended", "終了")
		}
		kind := s.t("container ", "コンテナ ")
		if c.init {
			kind = s.t("init container ", "init コンテナ ")
		}
		line := kind + c.name + " " + what + ": " + c.reason
		if c.restarts > 0 {
			line += s.t(", restarts ", "、再起動 ") + itoa(c.restarts)
		}
		rows = append(rows, wrapped(bad, "  ", line, max(10, w-3))...)
		if c.message != "" {
			rows = append(rows, wrapped(dim, "    ", c.message, max(10, w-5))...)
		}
	}
	return rows
}
