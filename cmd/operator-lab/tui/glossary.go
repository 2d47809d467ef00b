package tui

import (
	"slices"
	"strings"
	"unicode"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// term is a word of the screen that somebody who knows kubectl may have to look up.
type term struct {
	// english and japanese are the ways it is written on the screen, separated by |; the first one is its name.
	english, japanese string
	// help and jhelp say in a line what it means.
	help, jhelp string
}

// glossary has the terms in the order in which they are met: from the watch event to the next reconcile.
var glossary = []term{
	{
		"reconcile|reconciles|RECONCILE", "reconcile|RECONCILE",
		"one call of the operator's Reconcile, which compares what is with what should be; #N numbers them",
		"オペレーターの Reconcile の 1 回の呼び出し。あるべき姿と現状を比べる。#N はその番号",
	},
	{
		"watch|events seen|event seen|WATCH", "watch|件のイベント|WATCH",
		"the API server tells the operator of each change of an object: ADDED, MODIFIED or DELETED",
		"API サーバーがオブジェクトの変更を 1 件ずつ知らせるしくみ。ADDED、MODIFIED、DELETED がある",
	},
	{
		"key|keys|made no key|FILTER|DROPPED", "キー|フィルター|破棄",
		"namespace/name of what to reconcile; an event of which the operator makes no key wakes nothing",
		"処理対象の namespace/name。キーにならなかったイベントは何も起こさない",
	},
	{
		"queue|QUEUE|Queue|waiting", "キュー|件待機",
		"the keys that wait for a worker; it holds each key once, however many events there were",
		"ワーカーを待つキーの列。イベントが何件あっても、同じキーは 1 つだけ入る",
	},
	{
		"READY|RUN|TIMED", "待機|予約",
		"how a key in the queue is: READY waits for a worker, RUN is with one, TIMED comes back at a time",
		"キューのキーの状態。待機はワーカーを待つもの、実行は処理中のもの、予約は時間が来たら戻るもの",
	},
	{
		"controller", "コントローラー|controller",
		"the part of an operator that reconciles one kind, with a queue of its own",
		"オペレーターのうち、1 つの種類を担当する部分。キューを 1 つ持つ",
	},
	{
		"worker|workers", "ワーカー",
		"it takes a key from the queue and reconciles it; a key is never with two workers",
		"キューからキーを取り出して reconcile する。同じキーを同時に 2 つは扱わない",
	},
	{
		"merged", "件統合|まとめられた",
		"the key was in the queue already: one reconcile answers all of these events",
		"キーがすでにキューにあったので、1 回の reconcile がまとめて応える",
	},
	{
		"own|(own)", "自分",
		"the operator's own write came back to it as a watch event",
		"オペレーター自身の書き込みが、watch イベントとして戻ってきた",
	},
	{
		"found:|found at start", "開始時",
		"it was there when the operator started: the first list of a watch, not a change",
		"起動時の最初の list で見つかったもの。変更ではない",
	},
	{
		"cache", "cache|キャッシュ",
		"a read that the operator's memory of earlier watch events answered; the API server was not asked",
		"watch で受け取った内容のメモリ上のコピー。ここからの読み取りは API サーバーに届かない",
	},
	{
		"server", "server",
		"a call that the API server answered",
		"API サーバーが応答した呼び出し",
	},
	{
		"apply", "apply|適用",
		"server-side apply: the fields that are sent are set, and then belong to the operator",
		"サーバーサイド適用 (server-side apply)。送ったフィールドを設定し、その管理者になる",
	},
	{
		"status|STATUS", "status|STATUS|ステータス",
		"what the operator says of an object; kubectl get -o yaml shows it below the spec",
		"オペレーターが書く、オブジェクトの現状。spec の下にある",
	},
	{
		"gen|obs|generation", "gen|obs|世代",
		"gen counts changes of the spec; obs is the one that the status speaks of: less means it is behind",
		"gen は spec の変更回数、obs は status が見ていた回。obs が小さければ status は遅れている",
	},
	{
		"CSV", "CSV",
		"ClusterServiceVersion: one version of an operator, with what OLM installs for it",
		"ClusterServiceVersion。オペレーターの 1 つの版と、そのために OLM がインストールするもの",
	},
	{
		"rv", "rv",
		"resourceVersion: it grows with each change of an object; a write of an older one is a Conflict",
		"resourceVersion。変更のたびに増える。古い値で書くと Conflict になる",
	},
	{
		"changed nothing|no change", "変化なし",
		"the write was the same as what was there: no new resourceVersion, and no event follows",
		"書いた内容が同じだった。resourceVersion は変わらず、イベントも起きない",
	},
	{
		"dry run", "ドライラン",
		"the API server checked it as if it were sent, and stored nothing",
		"API サーバーが検証だけ行い、保存はしない書き込み",
	},
	{
		"done", "完了",
		"it asked for no other run: the next one needs a change",
		"次の実行を求めずに終わった。何かが変わるまで動かない",
	},
	{
		"woke #", "次は #",
		"it asked for no other run, but its own write came back as an event that woke the reconcile of that number",
		"次の実行は求めなかったが、自分の書き込みがイベントになり、その番号の reconcile を起こした",
	},
	{
		"again in|RequeueAfter|requeue in|AGAIN|requeued", "後に再実行|RequeueAfter|再キュー|次の実行",
		"it asked to run again after a time (RequeueAfter), or at once (Requeue)",
		"一定時間後 (RequeueAfter)、またはすぐに (Requeue) もう一度動くことを求めた",
	},
	{
		"again at once|at once|dirty", "直ちに再実行|直ちに",
		"its key was queued again while it ran, so it runs once more right after",
		"実行中にキーがまたキューに入ったので、終わってすぐもう一度動く",
	},
	{
		"timer|on a timer", "タイマー",
		"a key that comes back to the queue when its time is over",
		"時間が来るとキューに戻るキー",
	},
	{
		"retry|backoff|error, retry in|try", "再試行|バックオフ",
		"after an error the key comes back by itself; each time in a row it waits twice as long",
		"エラーの後、キーは自動で戻る。続けて失敗するたびに待ち時間は 2 倍になる",
	},
	{
		"no retry", "再試行なし",
		"the operator said that trying again does not help (TerminalError)",
		"オペレーターが、再試行しても無駄だと伝えた (TerminalError)",
	},
	{
		"aborted", "中断",
		"the operator's process ended before this reconcile did",
		"reconcile が終わる前に、オペレーターのプロセスが終了した",
	},
	{
		"HELD|held|NOT SENT YET|planned", "保留|保留中|未送信|予定",
		"the write waits in the operator and was not sent: S goes on, space sends it and resumes",
		"書き込みは送信前で止まっている。S で次へ、space で送信して再開",
	},
	{
		"LIVE", "ライブ",
		"the screen shows what happens now",
		"現在を表示している",
	},
	{
		"follow|follow off", "追従|追従なし",
		"the newest reconcile is selected by itself (f)",
		"最新の reconcile が自動で選択される (f)",
	},
	{
		"QUIET", "静止",
		"nothing runs, nothing waits: nothing happens until something changes",
		"何も動かず、何も待っていない。何かが変わるまでこのまま",
	},
	{
		"REPLAY|REWIND|as of|later than this", "再生|巻き戻し|時点|これより後",
		"the screen shows an earlier moment; in the cluster nothing is undone",
		"過去の時点を表示している。クラスターは何も巻き戻らない",
	},
	{
		"PAUSED|STEPPING", "一時停止|ステップ実行中",
		"workers take no keys; s lets one take one, S goes to the next write, space resumes",
		"ワーカーはキーを取り出さない。s で 1 つ、S で次の書き込みまで、space で再開",
	},
	{
		"CRASHED|STOPPED", "クラッシュ|停止中",
		"the operator's process does not run; the cluster goes on without it",
		"オペレーターのプロセスは動いていない。クラスターは動き続ける",
	},
	{
		"hardened|classic", "hardened|classic",
		"variants of a bundled operator: classic as it was published, hardened as it should be",
		"同梱オペレーターのバリアント。classic は公開当時のまま、hardened はあるべき形に直したもの",
	},
	{
		"HEAT", "頻度",
		"how often each key was reconciled in the last seconds",
		"直近の数秒に各キーが reconcile された回数",
	},
	{
		"conditions|conds", "conditions|conds",
		"what the status says as yes or no: Ready, Available… with a reason",
		"status にある Ready や Available などの真偽値と、その理由",
	},
	{
		"wrote|1w|2w", "書込|1w|2w",
		"how many writes of this reconcile succeeded",
		"この reconcile で成功した書き込みの数",
	},
	{
		"fault|Fault", "fault|Fault",
		"something that was broken on purpose, such as a crash at a write",
		"わざと起こした障害。書き込みの瞬間のクラッシュなど",
	},
	{
		"healed|Healed|repeated", "回復|繰り返した",
		"nothing fails, nothing is missing any more; a repeated write was already carried out before",
		"失敗も欠けているものもなくなった。繰り返しは、実行済みだった書き込みの再実行",
	},
	{
		"not seen|level 2|level 3|probably", "見えない|レベル 2|レベル 3|おそらく",
		"of a program without taps only requests (3) and its log (2) are known; the rest is concluded",
		"taps のないプログラムは、リクエスト (3) とログ (2) だけが分かる。残りは推定",
	},
	{
		"gate", "ゲート",
		"the proxy between a program and the API server, at which its requests are seen and held",
		"プログラムと API サーバーの間のプロキシ。リクエストを記録し、止める",
	},
	{
		"HTTP", "HTTP",
		"the answer to a real request to the URL; an arrow marks one that has just changed",
		"URL への本物のリクエストへの応答。矢印は、内容が変わった直後の印",
	},
	{
		"gap|acknowledged", "途絶",
		"of the writes to etcd, 20 a second beside the demo: how long none of them succeeded",
		"デモの裏で毎秒 20 回行う etcd への書き込みが、1 件も成功しなかった時間",
	},
	{
		"quorum|voter|learner|leader|voters|QUORUM|leaderless", "quorum|voter|learner|leader|クォーラム|リーダー",
		"of etcd: more than half of the voters (the quorum) must answer; a learner does not count yet",
		"etcd の用語。voter の過半数 (quorum) の応答が必要。learner はまだ数に入らない",
	},
	{
		"term|index|raft", "term|index|raft",
		"of etcd: term counts elections of a leader, index counts what was written",
		"etcd の用語。term は leader の選出回数、index は書き込みの通し番号",
	},
}

// names returns how a term is written in a language.
func (g *term) names(l trace.Language) []string {
	if l == trace.Japanese {
		return strings.Split(g.japanese, "|")
	}
	return strings.Split(g.english, "|")
}

// in reports whether the term stands in a text.
func (g *term) in(shown string, l trace.Language) bool {
	for _, name := range g.names(l) {
		for rest := shown; ; {
			before, after, found := strings.Cut(rest, name)
			if !found {
				break
			}
			if !touches(before, name) && !touches(name, after) {
				return true
			}
			rest = after
		}
	}
	return false
}

// touches reports whether two texts are parts of one word: letters of the Latin script on both sides of where they meet.
func touches(left, right string) bool {
	if left == "" || right == "" {
		return false
	}
	latin := func(b byte) bool { return b < 0x80 && (unicode.IsLetter(rune(b)) || b == '-') }
	return latin(left[len(left)-1]) && latin(right[0])
}

// words are rows that say what all terms mean, those on the screen first.
func (th *theme) words(shown string, l trace.Language, w int) []row {
	var on, other []row
	for i := range glossary {
		if g := &glossary[i]; g.in(shown, th.lang) {
			on = append(on, th.wordRows(g, l, w)...)
		} else {
			other = append(other, th.wordRows(g, l, w)...)
		}
	}
	return slices.Concat(on, []row{{}, text(bold, l.Choose(" Words that are not on the screen now", " 今の画面にはない用語"))}, other)
}

// wordRows are rows that say what one term means.
func (th *theme) wordRows(g *term, l trace.Language, w int) []row {
	name, help := g.names(l)[0], l.Choose(g.help, g.jhelp)
	var rows []row
	for _, line := range wrap(help, max(20, w-18)) {
		r := text(plain, " ")
		rows = append(rows, *r.cell(th, tool, name, 16).add(plain, line))
		name = ""
	}
	return rows
}
