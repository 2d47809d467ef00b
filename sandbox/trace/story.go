package trace

import (
	"fmt"
	"slices"
	"strings"
)

// Story tells in four lines what happened until now: how often it ran, what it wrote, what was broken, and how it stands. What some
// operators did is left out.
func (s *State) Story(l Language, except ...string) []string {
	var operators Counters
	aborted := 0
	for k, c := range s.byCtl {
		if k.Operator != person && k.Operator != Demo && !slices.Contains(except, k.Operator) {
			operators.add(c)
		}
	}
	for _, reconcile := range s.finished {
		if reconcile.Outcome() == OutcomeAborted {
			aborted++
		}
	}
	took := FormatDuration(s.at)
	ran := l.pick(
		fmt.Sprintf("ran        %s in %s: %d failed, %d cut off, %s seen",
			plural(operators.Reconciles, "reconcile"), took, operators.Errors, aborted, plural(operators.Watched, "event")),
		fmt.Sprintf("実行       reconcile %d 回 (%s): 失敗 %d、中断 %d、イベント %d 件", operators.Reconciles, took, operators.Errors, aborted, operators.Watched))
	var kinds []string
	for verb, n := range operators.ByVerb {
		kinds = append(kinds, fmt.Sprintf("%s %d", verb, n))
	}
	slices.Sort(kinds)
	wrote := fmt.Sprintf(l.pick("wrote      %d: %s; %d changed nothing", "書き込み   %d 件: %s。変化なし %d 件"), operators.Writes, orElse(strings.Join(kinds, ", "), "-"), operators.NoOps)
	broke := l.pick("broken     nothing", "fault      なし")
	if a := s.Aftermath(); a != nil {
		broke = l.pick("broken     ", "fault      ") + a.Text(l)
	}
	story := []string{ran, wrote, broke, s.standing(l)}
	for i, line := range story {
		story[i] = strings.Join(fold(line, storyWidth-storyLabel), "\n"+strings.Repeat(" ", storyLabel))
	}
	return story
}

// The story is folded for the smallest terminal of the screen, in cells; what goes on begins below its text.
const (
	storyWidth = 80
	storyLabel = 11
)

// standing says whether anything ran or waited at the end.
func (s *State) standing(l Language) string {
	head := l.pick("at the end ", "終了時     ")
	for operator, mode := range s.modes {
		if mode.Down {
			return head + fmt.Sprintf(l.pick("%s did not run", "%s は動いていなかった"), operator)
		}
	}
	if n := len(s.running); n > 0 {
		return head + l.pick(plural(n, "reconcile")+" under way", fmt.Sprintf("reconcile %d 回が実行中だった", n))
	}
	switch n := len(s.queue); {
	case n > 0 && s.Mode().Paused:
		return head + l.pick(plural(n, "key")+" in the queue of a loop that is paused", fmt.Sprintf("一時停止したループのキューに %d 件", n))
	case n > 0:
		return head + l.pick(plural(n, "key")+" in the queue: there was more to come", fmt.Sprintf("キューに %d 件: まだ続きがあった", n))
	}
	return head + l.pick("nothing ran and nothing waited", "何も動いておらず、キューも空だった")
}
