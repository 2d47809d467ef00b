package trace

import (
	"fmt"
	"strings"
)

// The kinds of faults in a [FaultPayload], and what Detail then says.
const (
	FaultCrash        = "crash"        // detail: Before or After the call
	FaultHold         = "hold"         // detail: Before or After the call
	FaultAPI          = "api"          // detail: the reply
	FaultWatch        = "watch"        // detail: Cut, Delay, Coalesce or Gone
	FaultStale        = "stale"        // detail: Began, Restart or Over
	FaultConflict     = "conflict"     // no detail
	FaultControlPlane = "controlPlane" // detail: the program
	FaultPod          = "pod"          // detail: Kill or OOMKill, of containers; Unready, Crash, StartLate or Slow, of pods
	FaultNode         = "node"         // detail: Lost or Restart; of nodes
	FaultImage        = "image"        // detail: Error or Delay; of images
)

// machineFault describes a fault of pods, nodes or images with the form for its kind and detail; empty for other
// faults.
func machineFault(e *Event, forms map[string]string) string {
	f := e.Fault()
	form, known := forms[f.Kind+"/"+f.Detail]
	if !known {
		return ""
	}
	return strings.Replace(form, "%s", strings.Join(f.Of, ", "), 1)
}

var englishForms = map[string]string{
	"pod/Kill":      "killed %s",
	"pod/OOMKill":   "killed %s for want of memory",
	"pod/Unready":   "lets readiness probes of pods %s fail",
	"pod/Crash":     "lets containers of pods %s end when they start",
	"pod/StartLate": "lets containers of pods %s start late",
	"pod/Slow":      "makes containers of pods %s slow",
	"node/Lost":     "took the power of %s away",
	"node/Restart":  "restarted %s",
	"image/Error":   "lets pulls of %s fail",
	"image/Delay":   "lets pulls of %s take longer",
}

var japaneseForms = map[string]string{
	"pod/Kill":      "%s を強制終了した",
	"pod/OOMKill":   "%s をメモリ不足 (OOM) として強制終了した",
	"pod/Unready":   "Pod %s の readiness プローブを失敗させている",
	"pod/Crash":     "Pod %s のコンテナを起動のたびに終了させている",
	"pod/StartLate": "Pod %s のコンテナの起動を遅らせている",
	"pod/Slow":      "Pod %s のコンテナを遅くしている",
	"node/Lost":     "ノード %s を停止させた",
	"node/Restart":  "ノード %s を再起動した",
	"image/Error":   "イメージ %s の取得を失敗させている",
	"image/Delay":   "イメージ %s の取得を遅らせている",
}

// FaultText describes a KindFault event in a sentence without a full stop.
func FaultText(e *Event, l Language) string { return faultText(e, l) }

// faultText describes a KindFault event in a sentence without a full stop.
func faultText(e *Event, l Language) string {
	if e.Error == "" {
		return l.pick(englishFault(e), japaneseFault(e))
	}
	fault, at := l.pick(orElse(e.Reason, "a fault"), "fault "+e.Reason), ""
	if e.Verb != "" {
		call := e.Verb + " " + e.Object.String()
		at = l.pick(" at "+call+withinOf(e).english(), " "+call+" で")
	}
	return l.pick(fault+" failed"+at+": ", fault+" は"+at+"失敗した: ") + said(e.Error)
}

func englishFault(e *Event) string {
	what, detail := e.Fault().Kind, e.Fault().Detail
	fault := orElse(e.Reason, "a fault")
	whose := orElse(e.Operator, "the operator")
	call := e.Verb + " " + e.Object.String() + withinOf(e).english()
	side := "before"
	if detail == "After" {
		side = "after"
	}
	switch {
	case what == FaultCrash && e.Verb == "":
		return fmt.Sprintf("%s ended %s", fault, whose)
	case what == FaultCrash:
		return fmt.Sprintf("%s ended %s %s %s", fault, whose, side, call)
	case what == FaultHold:
		return fmt.Sprintf("%s holds %s %s %s", fault, whose, side, call)
	case what == FaultAPI && detail == "True":
		return fmt.Sprintf("%s delays the answer to %s", fault, call)
	case what == FaultAPI && detail == "Lost":
		return fmt.Sprintf("%s lost the answer to %s; it was carried out", fault, call)
	case what == FaultAPI && detail == "Timeout":
		return fmt.Sprintf("%s let %s time out; it was not carried out", fault, call)
	case what == FaultAPI:
		return fmt.Sprintf("%s answered %s with %s", fault, call, detail)
	case what == FaultWatch && detail == "Cut" && e.Verb == "":
		return fmt.Sprintf("%s cut all watches of %s", fault, whose)
	case what == FaultWatch && detail == "Cut":
		return fmt.Sprintf("%s cut %s's watches of %s after %s %s", fault, whose, e.Object.Kind, e.Object, e.Verb)
	case what == FaultWatch && detail == "Delay":
		return fmt.Sprintf("%s holds %s's watch of %s up from %s %s on", fault, whose, e.Object.Kind, e.Object, e.Verb)
	case what == FaultWatch && detail == "Gone":
		return fmt.Sprintf("%s ended %s's watch of %s with 410 Gone after %s %s", fault, whose, e.Object.Kind, e.Object, e.Verb)
	case what == FaultWatch:
		return fmt.Sprintf("%s left out %s %s, which %s does not see", fault, e.Object, e.Verb, whose)
	case what == FaultStale && detail == "Over":
		return fmt.Sprintf("%s is over: %s sees %s as it is", fault, whose, e.Object.Kind)
	case what == FaultStale && detail == "Restart":
		return fmt.Sprintf("%s ended %s after %s; it starts again with %s as it was", fault, whose, call, strings.Join(e.Fault().Of[1:], ""))
	case what == FaultStale:
		return fmt.Sprintf("%s shows %s %s as it was before %s %s", fault, whose, e.Object.Kind, e.Verb, e.Object)
	case what == FaultConflict:
		return fmt.Sprintf("%s had somebody else change %s just before %s%s", fault, Ref{Kind: e.Object.Kind, Name: e.Object.Name}, e.Verb, withinOf(e).english())
	case what == FaultControlPlane && e.Verb == "":
		return fmt.Sprintf("%s killed %s", fault, detail)
	case what == FaultControlPlane:
		return fmt.Sprintf("%s killed %s just before %s", fault, detail, call)
	}
	if text := machineFault(e, englishForms); text != "" {
		switch {
		case e.Verb == "":
		case strings.HasPrefix(text, "lets "):
			text += " from " + call + " on"
		default:
			text += " just before " + call
		}
		return fault + " " + text
	}
	return fault + ": " + oneLine(e.Message)
}

func japaneseFault(e *Event) string {
	what, detail := e.Fault().Kind, e.Fault().Detail
	fault := "fault " + e.Reason + ": "
	call := japaneseWrite(e)
	if e.Reconcile != 0 {
		call = withinOf(e).japanese() + " " + call
	}
	side := "する直前"
	if detail == "After" {
		side = "した直後"
	}
	switch {
	case what == FaultCrash && e.Verb == "":
		return fmt.Sprintf("%s%s を強制終了した", fault, e.Operator)
	case what == FaultCrash:
		return fmt.Sprintf("%s%s%sに、%s を強制終了した", fault, call, side, e.Operator)
	case what == FaultHold:
		return fmt.Sprintf("%s%s%sで、%s を止めている", fault, call, side, e.Operator)
	case what == FaultAPI && detail == "True":
		return fmt.Sprintf("%s%sするリクエストへの応答を遅らせている", fault, call)
	case what == FaultAPI && detail == "Lost":
		return fmt.Sprintf("%s%sするリクエストへの応答を失わせた (リクエストは実行済み)", fault, call)
	case what == FaultAPI && detail == "Timeout":
		return fmt.Sprintf("%s%sするリクエストをタイムアウトさせた (リクエストは未実行)", fault, call)
	case what == FaultAPI:
		return fmt.Sprintf("%s%sするリクエストに %s を返した", fault, call, detail)
	case what == FaultWatch && detail == "Cut" && e.Verb == "":
		return fmt.Sprintf("%s%s の watch をすべて切断した", fault, e.Operator)
	case what == FaultWatch && detail == "Cut":
		return fmt.Sprintf("%s%s の%sの後、%s の watch を切断した", fault, e.Object, japaneseChange(e.Verb), e.Object.Kind)
	case what == FaultWatch && detail == "Delay":
		return fmt.Sprintf("%s%s の%sから先、%s の watch を止めている", fault, e.Object, japaneseChange(e.Verb), e.Object.Kind)
	case what == FaultWatch && detail == "Gone":
		return fmt.Sprintf("%s%s の%sの後、%s の watch を 410 Gone で終わらせた", fault, e.Object, japaneseChange(e.Verb), e.Object.Kind)
	case what == FaultWatch:
		return fmt.Sprintf("%s%s の%sを %s に届けなかった", fault, e.Object, japaneseChange(e.Verb), e.Operator)
	case what == FaultStale && detail == "Over":
		return fmt.Sprintf("%s終わった。%s には今の %s が見える", fault, e.Operator, e.Object.Kind)
	case what == FaultStale && detail == "Restart":
		return fmt.Sprintf("%s%sした直後に、%s を強制終了した。再起動後は以前の %s が見える", fault, call, e.Operator, strings.Join(e.Fault().Of[1:], ""))
	case what == FaultStale:
		return fmt.Sprintf("%s%s の%sより前の %s を %s に見せている", fault, e.Object, japaneseChange(e.Verb), e.Object.Kind, e.Operator)
	case what == FaultConflict:
		return fmt.Sprintf("%s%sする直前に、別の書き手が変更した", fault, call)
	case what == FaultControlPlane && e.Verb == "":
		return fmt.Sprintf("%s%s を強制終了した", fault, detail)
	case what == FaultControlPlane:
		return fmt.Sprintf("%s%sする直前に、%s を強制終了した", fault, call, detail)
	}
	if text := machineFault(e, japaneseForms); text != "" {
		if e.Verb != "" {
			text = call + "する直前に、" + text
		}
		return fault + text
	}
	return fault + oneLine(e.Message)
}
