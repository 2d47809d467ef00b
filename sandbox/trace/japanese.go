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
		if c.verb == Deleted || c.verb == marked {
			return fmt.Sprintf("%s自分が行った %sの%sを検知した", c.within.japanese(), japaneseOf(c.object, c.sub), japaneseChange(c.verb))
		}
		return fmt.Sprintf("%s自分が%sした %sの%sを検知した", c.within.japanese(), japaneseVerb(c.write), japaneseOf(c.object, c.sub), japaneseChange(c.verb))
	case causeOther:
		return fmt.Sprintf("%s %sの%sを検知した", japaneseBy(c.within, c.by)+"による", japaneseOf(c.object, c.sub), japaneseChange(c.verb))
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
	case causeRetry:
		return fmt.Sprintf("#%d が失敗した", c.reconcile)
	}
	return "watch 以外からキーが追加された"
}

func (f reconcileFacts) japanese() string {
	s := fmt.Sprintf("#%d が動いたのは、%sため。", f.id, f.cause.japanese())
	switch {
	case f.cause.kind == causeUnknown:
		s = fmt.Sprintf("#%d が動いた理由は分からない。", f.id)
	case f.probably:
		s = fmt.Sprintf("#%d が動いたのは、おそらく%sため。", f.id, f.cause.japanese())
	}
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
	case len(changed) == 0 && f.failed == nil && f.end != nil && f.end.Outcome == OutcomeAborted:
		s = "書き込みへの応答は一つも届かなかった。" // one may have been stored
	case len(changed) == 0 && f.failed == nil && f.held == nil && f.end != nil && f.end.Error == "":
		s = "何も書き込まなかった。"
		if f.logged {
			s = "この回のものと分かる書き込みはない。"
		}
	case len(changed) > 0:
		s = listed(changed, ofReconcile(japaneseWrite, "おそらく "), "し、", "し、") + "した。"
		for _, e := range changed {
			s += japaneseLost(e)
		}
		switch {
		case len(f.woke) > 0 && f.logged:
			s += fmt.Sprintf("おそらくこれが %s を起こした。", numbers(f.woke, "、", "、"))
		case len(f.woke) > 0:
			s += fmt.Sprintf("これが %s を起こした。", numbers(f.woke, "、", "、"))
		case f.pending > 0:
			s += "その変更はまだ watch に届いていない。"
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
	if f.logged { // its queue is not known
		switch e.Outcome {
		case OutcomeRequeue:
			return "再キューイングを求めた。"
		case OutcomeError:
			return f.japaneseError() + "。"
		case OutcomePanic:
			return fmt.Sprintf("パニック (%s) を起こした。", said(e.Error))
		}
	}
	if f.again {
		const next = "キーがまたキューに入ったので、すぐにもう一度動く。"
		switch e.Outcome {
		case OutcomeError, OutcomeTerminal:
			return f.japaneseError() + "。" + next
		case OutcomePanic:
			return fmt.Sprintf("パニック (%s) を起こした。%s", said(e.Error), next)
		}
		return next
	}
	if e.QueueEnded() {
		const ended = "オペレーターが終了するところだったので、次はない。"
		switch e.Outcome {
		case OutcomeError:
			return f.japaneseError() + "。" + ended
		case OutcomePanic:
			return fmt.Sprintf("パニック (%s) を起こした。%s", said(e.Error), ended)
		}
		return "再実行を求めた。" + ended
	}
	switch e.Outcome {
	case OutcomeDone:
		if len(f.woke) > 0 || f.pending > 0 {
			return "次の実行は求めていない。"
		}
		return "次に何かが変わるまで動かない。"
	case OutcomeRequeueAfter:
		return fmt.Sprintf("RequeueAfter により %s 後にまた動く。", FormatDuration(e.Delay))
	case OutcomeRequeue:
		return fmt.Sprintf("再キューイングを求めたので %s 後にまた動く。", FormatDuration(e.Delay))
	case OutcomeError:
		return fmt.Sprintf("%sため、%s 後に再試行する (%d 回目)。", f.japaneseError(), FormatDuration(e.Delay), e.Try)
	case OutcomePanic:
		return fmt.Sprintf("パニック (%s) を起こしたため、%s 後に再試行する (%d 回目)。", said(e.Error), FormatDuration(e.Delay), e.Try)
	case OutcomeTerminal:
		return fmt.Sprintf("%sが、再試行はしない。", f.japaneseError())
	}
	return "終わる前にワーカーが停止した。"
}

func (f reconcileFacts) japaneseError() string {
	if f.failed != nil && f.failed.Reason == "Conflict" {
		return fmt.Sprintf("%s への書き込みが競合した", f.failed.Object)
	}
	return fmt.Sprintf("エラー (%s) が起きた", said(f.end.Error))
}

func (n eventFacts) japanese() string {
	switch n.Kind {
	case KindWatch:
		return n.japaneseWatch()
	case KindFound:
		return fmt.Sprintf("%s は、オペレーターが起動したときにはもうあった。オペレーターが読んだのではなく、ラボが関連オブジェクトとして一覧から見つけたもの。", n.Object)
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
		who := n.Actor
		if n.Reconcile != 0 {
			who = fmt.Sprintf("#%d", n.Reconcile)
		}
		if n.Reason == ReasonPaused {
			return fmt.Sprintf("%s のリクエスト: 一時停止中なので、%s はゲートで待っている。まだ送信されていない。", who, shortCall(n.Event, Japanese))
		}
		return fmt.Sprintf("%s は %sする直前で保留している。送信すれば、その変更は %s を watch しているところへイベントとして届く。",
			who, japaneseWrite(n.Event), n.Object.Kind)
	case KindCall:
		return n.japaneseCall()
	case KindLog:
		return fmt.Sprintf("%s%s のログ: %s", withinOf(n.Event).japanese(), n.controllerName("オペレーター"), said(logText(n.Event)))
	case KindHook:
		return ended(fmt.Sprintf("%s%s が %s についてフック %s に尋ねた: %s", withinOf(n.Event).japanese(), n.controllerName("オペレーター"), n.Object, n.Verb, HookText(n.Event, Japanese)), Japanese)
	case KindControl:
		return ActorText(orElse(n.Actor, person), Japanese) + "の操作: " + controlText(n.Verb, Japanese) + "。"
	case KindOperator:
		return fmt.Sprintf("オペレーター %s が%sした。", n.Operator, operatorText(n.Verb, Japanese))
	case KindFault:
		return ended(faultText(n.Event, Japanese), Japanese)
	case KindTraffic:
		return japaneseTraffic(n.Event)
	case KindMembers, KindWrites:
		return fmt.Sprintf("%s: %s", n.Object, storeText(n.Event, Japanese))
	case KindPackage:
		return ended(packageText(n.Event, Japanese), Japanese)
	case KindNote:
		return ended(oneLine(n.Message), Japanese)
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
	case len(n.woke) > 0:
		return fmt.Sprintf("%sおそらく %s が処理した。", s, numbers(n.woke, "、", "、"))
	case n.drops > 0:
		return s + "キーは作られなかった。"
	}
	return s
}

func (n eventFacts) japaneseCall() string {
	if n.Via == ViaRecorder {
		return fmt.Sprintf("%s %s についてイベントを記録した: %s: %s", japaneseSubject(within{}, n.Actor), n.Object, n.Reason, said(n.Message))
	}
	who := japaneseSubject(withinOf(n.Event), n.Actor)
	switch {
	case n.Failed():
		return fmt.Sprintf("%s %sしようとしたが、失敗した: %s", who, japaneseWrite(n.Event), said(n.Error))
	case n.Verb == VerbWatch:
		return fmt.Sprintf("%s %s の watch を開いた。", who, n.Object.Kind)
	case !n.IsWrite() && n.Verb == VerbList:
		return fmt.Sprintf("%s%s %s の一覧を取得し、%d 件を得た。", who, japaneseSource(n.Source), n.Object.Kind, n.Count)
	case n.Reason == "NotFound":
		return fmt.Sprintf("%s%s %s を探したが、なかった。", who, strings.Replace(japaneseSource(n.Source), "から", "で", 1), n.Object)
	case !n.IsWrite():
		return fmt.Sprintf("%s%s %s を読んだ (rv %s)。", who, japaneseSource(n.Source), n.Object, n.ResourceVersion)
	case n.NoOp:
		return fmt.Sprintf("%s %sしたが、内容は変わらなかった。watch イベントは起きない。", who, japaneseWrite(n.Event))
	case len(n.woke) > 0 && n.guess:
		return fmt.Sprintf("%s %sし、おそらくそれが %s を起こした。", who, japaneseWrite(n.Event), numbers(n.woke, "、", "、"))
	case len(n.woke) > 0:
		return fmt.Sprintf("%s %sし、それが %s を起こした。", who, japaneseWrite(n.Event), numbers(n.woke, "、", "、")) + japaneseLost(n.Event)
	}
	return fmt.Sprintf("%s %sした。", who, japaneseWrite(n.Event)) + japaneseLost(n.Event)
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
	case t.initial && t.created.actor == "":
		s += "オペレーターの起動前からある"
	case t.found && t.created.actor == "":
		s += "最初に記録される前からある"
	case t.created.actor == "":
		s += "この記録の対象外のだれかが作成した"
	default:
		s = t.Ref.String() + " は、" + japaneseSubject(t.created.within, t.created.actor) + "作成した"
	}
	if t.owner != "" {
		s += fmt.Sprintf("もので、owner は %s", t.owner)
	}
	s += "。"
	switch {
	case t.Deleted:
		if t.deleted.actor != "" {
			s += japaneseSubject(t.deleted.within, t.deleted.actor) + "削除し、"
		}
		if t.changed.actor != "" && t.changed != t.deleted {
			s += japaneseSubject(t.changed.within, t.changed.actor) + "取り除き、"
		}
		s += "もうない。"
	case t.Meta().Deleting && len(t.Meta().Finalizers) == 0:
		s += fmt.Sprintf("削除中で、終了までの猶予は %d 秒。", t.Meta().Grace)
	case t.Meta().Deleting:
		s += "削除中で、ファイナライザーが外れるのを待っている: " + strings.Join(t.Meta().Finalizers, ", ") + "。"
	case t.changed.actor != "":
		s += "最後に変更したのは、" + strings.TrimSpace(japaneseBy(t.changed.within, t.changed.actor)) + "。"
	}
	if t.Lagging() && !t.Deleted {
		s += fmt.Sprintf("ステータスは世代 %d のもので、spec は世代 %d。", t.Meta().ObservedGeneration, t.Generation)
	}
	return s
}

func japaneseChange(verb string) string {
	switch verb {
	case Added, VerbCreate:
		return "追加"
	case Deleted, VerbDelete:
		return "削除"
	case marked:
		return "削除の開始"
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
	return japaneseOf(Ref{Kind: e.Object.Kind, Name: e.Object.Name}, e.Object.Subresource) + "を" + japaneseVerb(e.Verb)
}

// japaneseLost says of a write whose answer was lost that it was carried out; empty for others.
func japaneseLost(e *Event) string {
	if !e.Lost {
		return ""
	}
	return fmt.Sprintf("%s への書き込みは%s。", e.Object, LostText(Japanese))
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

// japaneseOf is japaneseRef before a particle: a name in Latin letters is followed by a blank.
func japaneseOf(r Ref, sub string) string {
	if sub == "status" {
		return japaneseRef(r, sub)
	}
	return japaneseRef(r, sub) + " "
}

func (w within) japanese() string {
	switch {
	case w.id == 0:
		return ""
	case w.probably:
		return fmt.Sprintf("おそらく #%d で", w.id)
	}
	return fmt.Sprintf("#%d で", w.id)
}

// japaneseBy returns who did something, and in brackets in which reconcile. A name in Latin letters is followed by a blank.
func japaneseBy(in within, actor string) string {
	name := ActorText(actor, Japanese)
	switch {
	case in.id != 0 && in.probably:
		return fmt.Sprintf("%s (おそらく #%d) ", name, in.id)
	case in.id != 0:
		return fmt.Sprintf("%s (#%d) ", name, in.id)
	case name != actor:
		return name
	}
	return name + " "
}

// japaneseSubject returns who did something and in which reconcile, as the subject of a sentence.
func japaneseSubject(in within, actor string) string {
	if name := ActorText(actor, Japanese); name != actor {
		return in.japanese() + name + "が"
	}
	if in.id != 0 {
		return in.japanese() + " " + actor + " が"
	}
	return actor + " が"
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
