package tui

// footerBar is one line of the keys that matter most.
type footerBar struct{ *state }

// lastRank is the rank of the keys that leave the footer first.
const lastRank = 15

func (s footerBar) draw(r Rect) []row {
	keys, texts := []string{"q"}, []string{s.t("quit", "終了")}
	switch {
	case s.busy != nil && s.busy.shown:
	case s.flash != "":
		return []row{text(note, " "+s.flash)}
	case s.typing:
		return []row{typingKeys(&s.theme)}
	case s.popup != nil:
		keys, texts = s.popup.keys(s.state)
	default:
		keys, texts = s.mostUseful(r.W)
	}
	return []row{keyRow(keys, texts)}
}

// mostUseful chooses the keys that can be used now and fit, those of the lowest
// rank first, and returns them in the order of the key map.
func (s footerBar) mostUseful(w int) (keys, texts []string) {
	chosen := map[*command]bool{}
	used := 1
	for rank := 1; rank <= lastRank; rank++ {
		for _, c := range s.keys.commands {
			n := width(c.Help().Key) + width(s.shortText(c)) + 3
			if c.rank == rank && used+n <= w+1 && c.refuse(s.state) == "" {
				chosen[c] = true
				used += n
			}
		}
	}
	for _, c := range s.keys.commands {
		if chosen[c] {
			keys, texts = append(keys, c.Help().Key), append(texts, s.shortText(c))
		}
	}
	return keys, texts
}

// shortText returns what a key does now, in a word or two.
func (s footerBar) shortText(c *command) string {
	if mode := s.snapshot.Mode(); c.Help().Key == "space" && (mode.Paused || mode.HoldWrites) {
		return s.t("resume", "再開")
	}
	if c.Help().Key == "L" && s.replay {
		return s.t("end", "末尾")
	}
	if c.Help().Key == "s" && s.queueless() {
		return s.t("step", "1件")
	}
	short, _ := c.words(s.lang)
	return short
}

// typingKeys are the keys while a filter is being typed.
func typingKeys(th *theme) row {
	return keyRow([]string{th.t("type", "入力"), "enter", "esc"},
		[]string{th.t("to filter", "で絞り込み"), th.t("keep it", "確定"), th.t("clear it", "解除")})
}

// keyRow is a row of keys and what they do.
func keyRow(keys, texts []string) row {
	r := text(plain, " ")
	for i := range keys {
		if i > 0 {
			r.add(plain, "  ")
		}
		r.add(tool, keys[i]).add(plain, " "+texts[i])
	}
	return r
}
