package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Traffic sums up the requests to one URL.
type Traffic struct {
	// URL is the address of the requests.
	URL string
	// OK is the number of requests that got an answer, Failed of those that got an error.
	OK, Failed int
	// Switches is how often the answer differed from the one before.
	Switches int
	// Last is the newest answer.
	Last *Event
	// Since is the first of the newest answers that are all the same.
	Since *Event
	// Same is the number of those answers.
	Same int
	// Before is the last answer before those; nil if there was no other one.
	Before *Event
	// Replaced is how often Before had come in a row.
	Replaced int
	// Texts counts the answers by their [AnswerText].
	Texts map[string]int
}

// manyAnswers bounds how many different answers are counted separately.
const manyAnswers = 32

// traffic is the traffic to each URL.
type traffic []Traffic

// Traffic returns the traffic to each URL, in the order of the first requests.
func (t *traffic) Traffic() []Traffic { return *t }

// apply folds an answer in.
func (t *traffic) apply(e *Event) {
	if e.Kind != KindTraffic {
		return
	}
	url := e.URL()
	i := slices.IndexFunc(*t, func(u Traffic) bool { return u.URL == url })
	if i < 0 {
		i = len(*t)
		*t = append(*t, Traffic{URL: url, Texts: map[string]int{}})
	}
	u := &(*t)[i]
	if e.Verb == VerbSwitch || u.Since == nil {
		if u.Last != nil {
			u.Switches++
		}
		u.Before, u.Replaced, u.Since, u.Same = u.Last, u.Same, e, 0
	}
	u.Last = e
	u.Same++
	if e.Error != "" {
		u.Failed++
	} else {
		u.OK++
	}
	text := AnswerText(e)
	if _, known := u.Texts[text]; known || len(u.Texts) < manyAnswers {
		u.Texts[text]++
	}
}

func (t *traffic) clone() traffic {
	c := slices.Clone(*t)
	for i := range c {
		c[i].Texts = maps.Clone(c[i].Texts)
	}
	return c
}

// AnswerText returns the text of an answer, or in brackets what is wrong.
func AnswerText(e *Event) string {
	if e.Error != "" {
		return "(" + oneLine(e.Error) + ")"
	}
	return oneLine(e.Message)
}

// AskedAt returns the time of day, on the recording machine, at which the request of an answer began.
func (s *State) AskedAt(e *Event) time.Time {
	return s.timeline.journal.Header().Start.Add(e.At - e.Duration)
}

// TrafficLine returns an answer with its time, as in 23:55:59: Maintenance Page !
func (s *State) TrafficLine(e *Event) string {
	return s.AskedAt(e).Format(time.TimeOnly) + ": " + AnswerText(e)
}

// switchText describes which answer was replaced, and how often that had come; empty for the first answer.
func (t Traffic) switchText(l Language) string {
	if t.Before == nil {
		return ""
	}
	return fmt.Sprintf(l.pick("after %d times %s", "それまで %d 回は %s"), t.Replaced, AnswerText(t.Before))
}

// summary returns the totals of a URL's answers in lines, the most frequent first.
func (t Traffic) summary(l Language) []string {
	texts := slices.SortedFunc(maps.Keys(t.Texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Texts[b], t.Texts[a]), cmp.Compare(a, b))
	})
	lines := []string{fmt.Sprintf(l.pick("%s: %d requests, %d failed", "%s: リクエスト %d 件 (失敗 %d 件)"), t.URL, t.OK+t.Failed, t.Failed)}
	for _, text := range texts {
		lines = append(lines, fmt.Sprintf("  %6d %s", t.Texts[text], text))
	}
	return lines
}

// englishTraffic describes the answer to a request.
func englishTraffic(e *Event) string {
	if e.Verb != VerbSwitch {
		return fmt.Sprintf("%s answered as before: %s.", e.URL(), AnswerText(e))
	}
	return fmt.Sprintf("From here on %s answered: %s.", e.URL(), AnswerText(e))
}

func japaneseTraffic(e *Event) string {
	if e.Verb != VerbSwitch {
		return fmt.Sprintf("%s の応答はそれまでと同じ: %s", e.URL(), AnswerText(e))
	}
	return fmt.Sprintf("ここから %s の応答が変わった: %s", e.URL(), AnswerText(e))
}
