package tui

import (
	"encoding/json"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// This file is what is shown of a hook: a webhook that was asked in a reconcile.

// hookRow is the line of a hook among the steps of a reconcile, which has begun with r.
func (s loopPane) hookRow(r row, e *trace.Event, c stepWidths, w int) row {
	st := plain
	if e.Error != "" {
		st = bad
	}
	r.cell(&s.theme, accent, "hook", c.verb).cell(&s.theme, plain, e.Verb, 9)
	r.add(st, trace.HookText(e, s.lang))
	if took := trace.FormatDuration(e.Duration); r.width()+width(took)+2 <= w-1 {
		r.to(w-1-width(took)).add(dim, took)
	}
	return r
}

// hookDiff shows what a hook wants to be different from what is there.
func (s detailPane) hookDiff(e *trace.Event, in Rect) []row {
	if e.Error != "" {
		return wrapped(bad, "  ", e.Error, in.W-3)
	}
	if e.After == nil {
		return []row{text(dim, s.t("  it answered; y: the request and the answer", "  応答あり。y: リクエストと応答"))}
	}
	rows := []row{text(dim, s.t("  - what is there   + what the hook wants    y: the request and the answer",
		"  - 現在の状態   + フックの希望    y: リクエストと応答"))}
	diff := s.diffText(e.Before, e.After)
	if len(diff) > in.H-1 && s.focus != DetailPane {
		diff = changedFirst(diff)
	}
	return append(rows, diff...)
}

// hookBodies shows what a hook was sent and what it answered.
func (s detailPane) hookBodies(e *trace.Event) []row {
	payload := e.Hook()
	var rows []row
	for _, part := range []struct{ head, body string }{
		{s.t("answer of ", "応答: ") + payload.URL, payload.Response}, {s.t("request", "リクエスト"), payload.Request},
	} {
		rows = append(rows, text(bold, "  "+part.head))
		lines := yamlLines(json.RawMessage(part.body))
		if len(lines) == 0 {
			rows = append(rows, text(dim, "    "+orElse(part.body, s.t("none", "なし"))))
		}
		for _, l := range lines {
			rows = append(rows, yamlRow("  "+l))
		}
	}
	return rows
}
