package tui

import (
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// pageOf is the page of a lesson in the language it is read in.
func pageOf(l trace.Language) Page {
	if l == trace.Japanese {
		return Page{
			Lesson: "9/31  監視と所有", Task: "2/3  消えた単語", Serial: 1,
			Text: "オペレーターは作成した `Zundoko` を監視しています。誰かが無断で削除すると、watch イベントが届き、" +
				"所有者である Hikawa のキーがキューに入ります。\n\n単語を一つ削除して、3 のペインで何が起きるか見てください。" +
				"`1` で単語を選び `x` を押すか、シェル (`!`) で次を実行します。\n\n```sh\nkubectl delete zundoko demo-002\n```\n\n" +
				"- 調整は**もう一度**動きます\n- 理由は `w` で読めます\n\n詳しくは [監視の設定](../../operators/zundoko/README.ja.md) を参照してください。",
			Checks:  []Task{{"単語が一つ消えて、戻ってきた", false}, {"歌い終わった Kiyoshi がちょうど一つある", false}},
			Missing: "単語が一つ消えて、戻ってきた", More: true, Next: "3/3  所有者を消す",
		}
	}
	return Page{
		Lesson: "9/31  Watches and owners", Task: "2/3  A word is gone", Serial: 1,
		Text: "The operator watches the `Zundoko` objects it made. When somebody deletes one behind its back, a watch event " +
			"arrives, and the key of the owner, a Hikawa, goes into the queue.\n\nDelete a word and look at pane 3. Choose one with `1` " +
			"and press `x`, or type this in the shell (`!`):\n\n```sh\nkubectl delete zundoko demo-002\n```\n\n" +
			"- The loop runs **once more**\n- `w` tells why\n\nSee [how it watches](../../operators/zundoko/README.md).",
		Checks:  []Task{{"A word went away and came back", false}, {"There is exactly one Kiyoshi when the song is over", false}},
		Missing: "A word went away and came back", More: true, Next: "3/3  Delete the owner",
	}
}

// pages are the states of a lesson that the goldens show.
func pages(l trace.Language) map[string]Page {
	say := func(english, japanese string) string { th := theme{lang: l}; return th.t(english, japanese) }
	with := func(change func(*Page)) Page {
		p := pageOf(l)
		change(&p)
		return p
	}
	hints := []string{
		say("Which pane lists the objects?", "オブジェクトの一覧はどのペインですか。"),
		say("Press `1`, go down to a *Zundoko*, press `x` and then `enter`.", "`1` を押して Zundoko を選び、`x`、`enter` の順に押します。"),
	}
	return map[string]Page{
		"reading": pageOf(l),
		"half":    halfTicked(l),
		"wrong": with(func(p *Page) {
			p.Notice = say("The Hikawa itself is gone, and the garbage collector took its words with it. This task is about **one** word.",
				"Hikawa そのものが削除され、ガベージコレクションが単語もすべて削除しました。このタスクで消すのは単語**一つ**だけです。")
		}),
		"hints": with(func(p *Page) { p.Hints, p.More = hints, false }),
		"answered": with(func(p *Page) {
			p.Question, p.Answer = say("How many reconciles will run?", "調整は何回動くでしょうか。"), "13"
			p.Missing = say("13 is not it; the journal counts fewer", "13 回ではない。ジャーナルの記録はもっと少ない")
		}),
		"done": with(func(p *Page) {
			p.Checks[0].Done, p.Checks[1].Done, p.Missing, p.Done = true, true, "", true
			p.DoneText = say("The event of the deletion woke the loop: it is marked *own*, since the operator had made the word.\n\nNothing remembers that a word was there. The loop **compares and repairs**, each time it runs.",
				"削除のイベントでループが起きました。単語があったことは、どこにも覚えられていません。\n\n調整ループは動くたびに、あるべき状態と**比べて直す**だけです。")
		}),
		"stuck": {
			Lesson: say("10/31  Ownership is a uid", "10/31  所有は uid で決まる"), Serial: 1, Done: true, Last: true, Next: say("Ownership is a uid", "所有は uid で決まる"),
			Notice: say("the lesson \"Ownership is a uid\" could not be opened: no space left on device", "レッスン「所有は uid で決まる」を開けませんでした: no space left on device"),
			Text:   say("'next' tries again, 'quit' leaves; on the screen n and q do", "next で再試行、quit で終了します (画面では n と q)"),
		},
		"solved": with(func(p *Page) {
			p.Hints, p.More = hints, false
			p.Solution = say("Delete any word:\n\n```sh\nkubectl delete zundoko demo-002\n```\n\nIts owner is woken.", "単語を一つ削除します。\n\n```sh\nkubectl delete zundoko demo-002\n```\n\n所有者が起こされます。")
		}),
	}
}

func halfTicked(l trace.Language) Page {
	p := pageOf(l)
	p.Checks[0].Done = true
	p.Missing = p.Checks[1].Text
	return p
}

// hostilePage has texts that try to break the screen.
func hostilePage(text string, n int) Page {
	md := "# " + text + "\n\n" + strings.Repeat("**"+text+"** `"+text+"` [x]("+text+")\n\n- "+text+"\n", 1+n%5) + "\n```\n" + text + strings.Repeat("x", 100) + "\n```\n" + text
	return Page{
		Lesson: orElse(text, "x"), Task: text, Text: md, Question: md, Answer: text, Checks: []Task{{text, n%2 == 0}, {md, true}}, Missing: text,
		Notice: md[:len(md)*(n%2)], Hints: []string{text, md}, More: n%3 == 0, Solution: md, Done: n%4 == 0, DoneText: md, Last: n%8 == 0, Next: text,
	}
}
