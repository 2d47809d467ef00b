package trace

import (
	"fmt"
	"strings"
)

// The sentences in Japanese. Verbs stay in the plain form, as in a log.

func (c cause) japanese() string {
	switch c.kind {
	case causeFound:
		return fmt.Sprintf("オペレーターの起動時に %s がすでにあった", c.object)
	case causeOwn:
		return fmt.Sprintf("%s自分が%sした %s の%sを検知した", inJapanese(c.reconcile), japaneseVerb(c.write), japaneseRef(c.object, c.sub), japaneseChange(c.verb))
	case causeOther:
		return fmt.Sprintf("%s%sした %s の%sを検知した", japaneseSubject(c.reconcile, c.by, "が"), japaneseVerb(c.write), japaneseRef(c.object, c.sub), japaneseChange(c.verb))
	case causeChange:
		return fmt.Sprintf("%s の%sを検知した", c.object, japaneseChange(c.verb))
	case causeTimer:
		if c.reconcile == 0 {
			return fmt.Sprintf("%s のタイマーが切れた", FormatDuration(c.delay))
		}
		return fmt.Sprintf("#%d が設定した %s のタイマーが切れた", c.reconcile, FormatDuration(c.delay))
	case causeBackoff:
		return fmt.Sprintf("#%d が失敗し、バックオフ %s (%d 回目) が明けた", c.reconcile, FormatDuration(c.delay), c.try)
	case causeAgain:
		return fmt.Sprintf("#%d が再キューイングを求めた", c.reconcile)
	}
	return "ウォッチ以外からキーが追加された"
}

func (f reconcileFacts) japanese() string {
	s := fmt.Sprintf("#%d が動いたのは、%sため。", f.id, f.cause.japanese())
	if f.merged > 0 {
		s += fmt.Sprintf("ほかに %d 件のイベントがこの 1 回にまとめられた。", f.merged)
	}
	return s + f.japaneseWork() + f.japaneseEnd()
}

func (f reconcileFacts) japaneseWork() string {
	changed := f.changed()
	var s string
	switch {
	case len(changed) == 0 && len(f.writes) > 0:
		s = "書き込んだ内容は以前と同じなので、これで起こされることはない。"
	case len(changed) == 0 && f.failed == nil && f.held == nil && f.end != nil && f.end.Error == "":
		s = "何も書き込まなかった。"
	case len(changed) > 0:
		s = listed(changed, japaneseWrite, "し、", "し、") + "した。"
		switch {
		case len(f.woke) > 0:
			s += fmt.Sprintf("これが %s を起こした。", numbers(f.woke, "、", "、"))
		case f.pending > 0:
			s += "その変更はまだウォッチに届いていない。"
		}
	}
	if e := f.held; e != nil {
		s += fmt.Sprintf("%sする直前で保留している。", japaneseWrite(e))
	}
	return s
}

func (f reconcileFacts) japaneseEnd() string {
	e := f.end
	if e == nil {
		if f.held != nil {
			return "まだ何も送信していない。"
		}
		return "まだ実行中。"
	}
	switch e.Outcome {
	case OutcomeDone:
		if len(f.woke) > 0 {
			return "この回はこれで完了。"
		}
		return "次に何かが変わるまで動かない。"
	case OutcomeRequeueAfter:
		return fmt.Sprintf("RequeueAfter により %s 後にまた動く。", FormatDuration(e.Delay))
	case OutcomeRequeue:
		return fmt.Sprintf("再キューイングを求めたので %s 後にまた動く。", FormatDuration(e.Delay))
	case OutcomeError:
		return fmt.Sprintf("%sため、%s 後に再試行する (%d 回目)。", f.japaneseError(), FormatDuration(e.Delay), e.Try)
	case OutcomePanic:
		return fmt.Sprintf("パニック (%s) を起こしたため、%s 後に再試行する (%d 回目)。", cut(e.Error, 80), FormatDuration(e.Delay), e.Try)
	case OutcomeTerminal:
		return fmt.Sprintf("%sが、再試行はしない。", f.japaneseError())
	}
	return "終わる前にワーカーが停止した。"
}

func (f reconcileFacts) japaneseError() string {
	if f.failed != nil && f.failed.Reason == "Conflict" {
		return fmt.Sprintf("%s への書き込みが競合した", f.failed.Object)
	}
	return fmt.Sprintf("エラー (%s) が起きた", cut(f.end.Error, 120))
}

func (n eventFacts) japanese() string {
	switch n.Kind {
	case KindWatch:
		return n.japaneseWatch()
	case KindDrop:
		s := fmt.Sprintf("%s は %s の %s からキーを作らなかった。", n.controllerName("オペレーター"), n.Object, n.Verb)
		switch n.Reason {
		case "":
			return s + "述語 (Predicate) が除いたか、ハンドラーが対象を見つけなかったため。"
		case "resync":
			return s + "再同期にすぎず、何も変わっていないため。"
		}
		return s + fmt.Sprintf("変わったのはステータスかメタデータだけのため (世代は %d のまま)。", n.Generation)
	case KindEnqueue:
		s := fmt.Sprintf("%sため、%s %s がキューに入った。", n.cause.japanese(), n.Controller, n.Key)
		if n.Running {
			s += "ちょうど処理中なので、終わってからもう一度動く (dirty)。"
		}
		return s + n.japaneseNext()
	case KindMerge:
		return fmt.Sprintf("%sが、%s %s はすでにキューにある。キューが持つのはイベントではなくキーなので、1 つのままになる。%s",
			n.cause.japanese(), n.Controller, n.Key, n.japaneseNext())
	case KindRequeue:
		return fmt.Sprintf("%s %s は %s 後に処理できるようになる。%s。", n.Controller, n.Key, FormatDuration(n.Delay), japaneseRequeue(n.Event))
	case KindReady:
		return fmt.Sprintf("%sため、%s %s が処理できるようになった。%s", n.cause.japanese(), n.Controller, n.Key, n.japaneseNext())
	case KindHold:
		return fmt.Sprintf("#%d は %sする直前で保留している。送信すれば、その変更は %s をウォッチしているところへイベントとして届く。",
			n.Reconcile, japaneseWrite(n.Event), n.Object.Kind)
	case KindCall:
		return n.japaneseCall()
	case KindLog:
		return fmt.Sprintf("%s%s のログ: %s", inJapanese(n.Reconcile), n.controllerName("オペレーター"), cut(logText(n.Event), 160))
	case KindControl:
		return "あなたの操作: " + controlText(n.Verb, Japanese) + "。"
	case KindOperator:
		return fmt.Sprintf("オペレーター %s が%sした。", n.Operator, operatorText(n.Verb, Japanese))
	case KindFault:
		return faultText(n.Event, Japanese) + "。"
	case KindTraffic:
		return japaneseTraffic(n.Event)
	case KindMembers, KindWrites:
		return fmt.Sprintf("%s: %s", n.Object, storeText(n.Event, Japanese))
	case KindNote:
		return oneLine(n.Message)
	}
	return fmt.Sprintf("#%d の %s。記録はすでに失われている。", n.Reconcile, n.Kind)
}

func (n eventFacts) japaneseWatch() string {
	s := fmt.Sprintf("%s (rv %s)。", n.cause.japanese(), n.ResourceVersion)
	switch {
	case len(n.keys) > 0 && len(n.woke) > 0:
		return fmt.Sprintf("%s%s がキューに入り、%s が処理した。", s, keys(n.keys), numbers(n.woke, "、", "、"))
	case len(n.keys) > 0:
		return fmt.Sprintf("%s%s がキューに入った。", s, keys(n.keys))
	case n.drops > 0:
		return s + "キーは作られなかった。"
	}
	return s
}

func (n eventFacts) japaneseCall() string {
	if n.Via == ViaRecorder {
		return fmt.Sprintf("%s %s についてイベントを記録した: %s: %s", japaneseSubject(0, n.Actor, "が"), n.Object, n.Reason, cut(n.Message, 120))
	}
	who := japaneseSubject(n.Reconcile, n.Actor, "が")
	switch {
	case n.Failed():
		return fmt.Sprintf("%s %sしようとしたが、失敗した: %s", who, japaneseWrite(n.Event), cut(n.Error, 160))
	case !n.IsWrite() && n.Verb == VerbList:
		return fmt.Sprintf("%s%s %s の一覧を取得し、%d 件を得た。", who, japaneseSource(n.Source), n.Object.Kind, n.Count)
	case n.Reason == "NotFound":
		return fmt.Sprintf("%s%s %s を探したが、なかった。", who, strings.Replace(japaneseSource(n.Source), "から", "で", 1), n.Object)
	case !n.IsWrite():
		return fmt.Sprintf("%s%s %s を読んだ (rv %s)。", who, japaneseSource(n.Source), n.Object, n.ResourceVersion)
	case n.NoOp:
		return fmt.Sprintf("%s %sしたが、内容は変わらなかった。ウォッチのイベントは起きない。", who, japaneseWrite(n.Event))
	case len(n.woke) > 0:
		return fmt.Sprintf("%s %sし、それが %s を起こした。", who, japaneseWrite(n.Event), numbers(n.woke, "、", "、"))
	}
	return fmt.Sprintf("%s %sした。", who, japaneseWrite(n.Event))
}

func (n eventFacts) japaneseNext() string {
	if n.next == 0 {
		return ""
	}
	return fmt.Sprintf("#%d がこれに応える。", n.next)
}

func japaneseRequeue(e *Event) string {
	switch e.Reason {
	case ReasonRequeueAfter:
		return fmt.Sprintf("#%d が RequeueAfter を返したため", e.Reconcile)
	case ReasonRequeue:
		return fmt.Sprintf("#%d が再キューイングを求めたため (%d 回目)", e.Reconcile, e.Try)
	case ReasonBackoff:
		return fmt.Sprintf("#%d が失敗し、バックオフするため (%d 回目)", e.Reconcile, e.Try)
	}
	return "遅延つきで追加されたため"
}

func (t objectFacts) japanese() string {
	s := t.Ref.String() + " は"
	switch {
	case t.found && t.created.actor == "":
		s += "オペレーターの起動前からある"
	case t.created.actor == "":
		s += "この記録の対象外のだれかが作成した"
	default:
		s = t.Ref.String() + " は、" + japaneseSubject(t.created.reconcile, t.created.actor, "が") + "作成した"
	}
	if t.owner != "" {
		s += fmt.Sprintf("もので、所有者は %s", t.owner)
	}
	s += "。"
	switch {
	case t.Deleted && t.changed.actor != "":
		s += japaneseSubject(t.changed.reconcile, t.changed.actor, "が") + "削除し、もうない。"
	case t.Deleted:
		s += "もうない。"
	case t.Meta().Deleting:
		s += "削除中で、ファイナライザーが外れるのを待っている: " + strings.Join(t.Meta().Finalizers, ", ") + "。"
	case t.changed.actor != "":
		s += "最後の変更は " + japaneseSubject(t.changed.reconcile, t.changed.actor, "による") + "。"
	}
	if t.Lagging() && !t.Deleted {
		s += fmt.Sprintf("ステータスは世代 %d のもので、spec は世代 %d。", t.Meta().ObservedGeneration, t.Generation)
	}
	return s
}

func japaneseChange(verb string) string {
	switch verb {
	case Added:
		return "追加"
	case Deleted:
		return "削除"
	}
	return "変更"
}

func japaneseVerb(verb string) string {
	switch verb {
	case VerbCreate:
		return "作成"
	case VerbUpdate:
		return "更新"
	case VerbPatch:
		return "パッチ"
	case VerbApply:
		return "適用"
	case VerbDelete:
		return "削除"
	case VerbDeleteAll:
		return "一括削除"
	case VerbGet:
		return "取得"
	case VerbList:
		return "一覧"
	}
	return verb
}

// japaneseWrite describes a write, without the ending する or した.
func japaneseWrite(e *Event) string {
	if e.Object.Subresource == "status" { // ends in a Japanese word: no blank
		return japaneseRef(Ref{Kind: e.Object.Kind, Name: e.Object.Name}, "status") + "を" + japaneseVerb(e.Verb)
	}
	return japaneseRef(Ref{Kind: e.Object.Kind, Name: e.Object.Name}, e.Object.Subresource) + " を" + japaneseVerb(e.Verb)
}

func japaneseRef(r Ref, sub string) string {
	switch sub {
	case "":
		return r.String()
	case "status":
		return r.String() + " のステータス"
	}
	return r.String() + " の " + sub
}

func inJapanese(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("#%d で", id)
}

// japaneseSubject returns who did something and in which reconcile, with a particle.
func japaneseSubject(id int64, actor, particle string) string {
	if actor == "you" {
		return inJapanese(id) + "あなた" + particle
	}
	if id != 0 {
		return inJapanese(id) + " " + actor + " " + particle
	}
	return actor + " " + particle
}

func japaneseSource(s Source) string {
	switch s {
	case Cache:
		return "キャッシュから"
	case Server:
		return "API サーバーから"
	}
	return ""
}
