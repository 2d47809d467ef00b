package scorecard

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// phases are the names of the phases of the capability model, which are the same in every language.
var phases = []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}

// words are the texts of a card in one language.
type words struct {
	// habits are the titles of the habits.
	habits []string
	// theHabits and thePhases are the headings of the two parts; verdicts are the names of the verdicts.
	theHabits, thePhases string
	verdicts             map[Verdict]string
	// shownBy and notShown introduce the evidence.
	shownBy, notShown string
	// theToil, toilLegend and total are the words of the table of toil; faults are the names of faults.
	theToil, toilLegend, noOperator, total string
	faults                                 map[string]string
	// The parts of the summary: the operator and how much is held, with the numbers held and rated.
	holds, and                        string
	allHabits, someHabits, somePhases string
	unknown                           string
	// What the operator is capable of, after those parts or alone.
	then, alone, noPhase, phaseName string
	// toil is how many commands the faults cost, after all that.
	toil string
}

var english = words{
	habits: []string{
		"One Deployment is all there is to install",
		"It defines resources of its own",
		"It builds on what Kubernetes has",
		"What it looks after does not suffer when it dies",
		"What was made for an older version still works",
		"It has a way from one version to the next",
		"It is tested, with chaos too",
	},
	theHabits: "HABITS", thePhases: "PHASES",
	verdicts: map[Verdict]string{Held: "held", NotHeld: "NOT HELD", NotShown: "not shown", Lacking: "lacking"},
	shownBy:  "shown by", notShown: "no scenario shows it",
	theToil: "TOIL", noOperator: "no operator", total: "all",
	toilLegend: "Commands that a person gave until the cluster was whole again, +those by which a person decided something; and the longest time without an acknowledged write. In that is what the scenario waits before a person begins.",
	faults: map[string]string{
		"kill-member": "a member is killed", "kill-operator": "the operator is killed", "lose-node": "a node is lost",
		"fill-quota": "the quota is full", "lose-quorum": "the quorum is lost", "upgrade": "an upgrade",
	},
	holds: "%s holds %s", and: " and ",
	allHabits: "%d of %d habits", someHabits: "%d of %d habits looked at", somePhases: "%d of %d phases looked at",
	unknown: " (%d not shown)",
	then:    "%s; capability: %s", alone: "%s: capability: %s", noPhase: "no phase yet", phaseName: "phase %d (%s)",
	toil: "%s; toil: %d",
}

var japanese = words{
	habits: []string{
		"Deployment 1 つでインストールできる",
		"自分のカスタムリソースを定義する",
		"Kubernetes にあるもので組み立てる",
		"オペレーターが落ちても、世話をしている相手は困らない",
		"古い版のために作られたものが、そのまま使える",
		"次の版へ上げる道がある",
		"カオスも含めてテストされている",
	},
	theHabits: "習慣", thePhases: "フェーズ",
	verdicts: map[Verdict]string{Held: "○", NotHeld: "×", NotShown: "不明", Lacking: "なし"},
	shownBy:  "根拠", notShown: "示すシナリオがありません",
	theToil: "トイル", noOperator: "オペレーターなし", total: "合計",
	toilLegend: "クラスターが元どおりになるまでに人が打ったコマンドの数。+は人が判断した数。\n" +
		"秒は、書き込みが承認されなかった最長の時間。\n" +
		"人が動き出すまでの、シナリオの決めた待ち時間も含む。",
	faults: map[string]string{
		"kill-member": "メンバーが落ちる", "kill-operator": "オペレーターが落ちる", "lose-node": "ノードを失う",
		"fill-quota": "容量の上限に達する", "lose-quorum": "クォーラムを失う", "upgrade": "アップグレード",
	},
	holds: "%s は、%sを満たします", and: "、",
	allHabits: "習慣 %[2]d つのうち %[1]d つ", someHabits: "調べた習慣 %[2]d つのうち %[1]d つ", somePhases: "調べたフェーズ %[2]d つのうち %[1]d つ",
	unknown: " (不明 %d つ) ",
	toil:    "%s。トイル: %d",
	then:    "%s。成熟度: %s", alone: "%s の成熟度: %s", noPhase: "まだどのフェーズにも達していません", phaseName: "フェーズ %d (%s)",
}

// PhaseTitle returns the name of a phase of the capability model, from 1 to [format.Phases].
func PhaseTitle(number int) string { return phases[number-1] }

// HabitTitle returns a habit, from 1 to [format.Habits], in few words; language as in [Scope].
func HabitTitle(number int, language string) string { return wordsOf(language).habits[number-1] }

// wordsOf returns the words of a language; default English.
func wordsOf(language string) words {
	if language == "ja" {
		return japanese
	}
	return english
}

// summary returns the summary of a card.
func (w words) summary(c Card) string {
	text, then := c.name(), w.alone
	if parts := w.held(c); len(parts) > 0 {
		text, then = fmt.Sprintf(w.holds, text, strings.Join(parts, w.and)), w.then
	}
	if c.Capability != nil {
		text = fmt.Sprintf(then, text, w.phase(*c.Capability))
	}
	for _, p := range c.Toil {
		if p.Keeper == cmp.Or(c.Variant, c.Operator) && p.Failed == "" {
			text = fmt.Sprintf(w.toil, text, p.total().Actions)
		}
	}
	return text
}

// name returns the operator with its variant.
func (c Card) name() string {
	if c.Variant == "" {
		return c.Operator
	}
	return c.Operator + " (" + c.Variant + ")"
}

// held says how much is held. It mentions the phases only if they do not result in a capability.
func (w words) held(c Card) []string {
	var parts []string
	habits := w.someHabits
	if len(c.Habits) == format.Habits {
		habits = w.allHabits
	}
	if len(c.Habits) > 0 {
		parts = append(parts, w.share(habits, c.Habits))
	}
	if len(c.Phases) > 0 && c.Capability == nil {
		parts = append(parts, w.share(w.somePhases, c.Phases))
	}
	return parts
}

// share says how many of the rows are held, and for how many there is no evidence.
func (w words) share(words string, rows []Row) string {
	text := fmt.Sprintf(words, count(rows, Held), len(rows))
	if n := count(rows, NotShown); n > 0 {
		text += fmt.Sprintf(w.unknown, n)
	}
	return text
}

func (w words) phase(n int) string {
	if n == 0 {
		return w.noPhase
	}
	return fmt.Sprintf(w.phaseName, n, phases[n-1])
}

func count(rows []Row, v Verdict) (n int) {
	for _, r := range rows {
		if r.Verdict == v {
			n++
		}
	}
	return n
}
