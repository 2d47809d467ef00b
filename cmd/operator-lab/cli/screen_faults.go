package cli

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// held is the time for which the break menu holds a write, or an older view.
var held = &metav1.Duration{Duration: 5 * time.Second}

// away is the time for which the break menu switches a node off: long enough for Kubernetes to notice.
var away = &metav1.Duration{Duration: 20 * time.Second}

// arming arms a fault.
type arming func(context.Context, v1alpha1.FaultSpec) error

// arming returns how faults are armed: as Fault objects, as 'kubectl apply' would make them, or in the lab itself, in a
// cluster where that kind does not exist.
func (s *liveOperator) arming() arming {
	if s.cluster != nil {
		return func(_ context.Context, spec v1alpha1.FaultSpec) error { return s.lab.Arm(spec) }
	}
	return asObjects(s.you)
}

// asObjects arms faults as Fault objects.
func asObjects(c client.Client) arming {
	return func(ctx context.Context, spec v1alpha1.FaultSpec) error {
		return c.Create(ctx, &v1alpha1.Fault{ObjectMeta: metav1.ObjectMeta{GenerateName: "break-"}, Spec: spec})
	}
}

// faultMenu returns the faults of the break menu.
func faultMenu(how arming, operator string, lang trace.Language, nodes bool) []tui.Fault {
	spec := func(change func(*v1alpha1.FaultSpec)) v1alpha1.FaultSpec {
		s := v1alpha1.FaultSpec{Operator: operator}
		change(&s)
		return s
	}
	reply := func(r v1alpha1.APIReply) v1alpha1.FaultSpec {
		return spec(func(s *v1alpha1.FaultSpec) { s.API = &v1alpha1.APIFault{Reply: r} })
	}
	crash := func(when v1alpha1.When) v1alpha1.FaultSpec {
		return spec(func(s *v1alpha1.FaultSpec) { s.Crash = &v1alpha1.CrashFault{When: when} })
	}
	kill := func(program string) v1alpha1.FaultSpec {
		return v1alpha1.FaultSpec{ControlPlane: &v1alpha1.ControlPlaneFault{Program: program}}
	}
	say := lang.Choose
	of := func(about aim, likely bool, text, more string, s v1alpha1.FaultSpec) tui.Fault {
		return tui.Fault{Text: text, More: more, Likely: likely, Do: func(ctx context.Context, ref trace.Ref) error { return how(ctx, aimed(about, ref, s)) }}
	}
	menu := []tui.Fault{
		of(nothing, true, say("crash the operator now", "今すぐオペレーターを落とす"),
			say("Its process ends. The lab starts it again, and it begins with a list of everything.", "プロセスが終了する。ラボが再起動し、オペレーターはすべての list から始める。"),
			crash(v1alpha1.After)),
		of(write, true, say("crash the operator after its next write", "次の書き込みの直後にオペレーターを落とす"),
			say("The write is stored, and its answer is lost: does the next life write it again?", "書き込みは保存されるが、応答は届かない。次の起動で同じ書き込みを繰り返すか。"),
			crash(v1alpha1.After)),
		of(nothing, true, say("kill the API server", "API サーバーを強制終了する"),
			say("Calls fail and watches end until the sandbox has started it again; client-go lists anew.", "再起動まで呼び出しは失敗し、watch は切れる。その後 client-go が list し直す。"),
			kill("kube-apiserver")),
	}
	menu[0].Running = true
	if nodes {
		menu = append(menu,
			of(containers, true, say("kill its containers, or those of its namespace", "そのコンテナか、その namespace のコンテナを強制終了する"),
				say("The kubelet starts them again, each time a little later (CrashLoopBackOff).", "kubelet が再起動する。繰り返すと間隔が延びる (CrashLoopBackOff)。"), v1alpha1.FaultSpec{}),
			of(nothing, true, say("take the power of node-1 away for 20 s", "node-1 の電源を 20 秒間切る"),
				say("Its pods stop at once; Kubernetes notices when the node's lease is not renewed.", "Pod はすぐに止まる。Kubernetes はノードの lease が更新されないことで気づく。"),
				v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: sandbox.NodeName(1), For: away}}),
		)
	}
	return append(menu,
		of(write, false, say("crash the operator before its next write", "次の書き込みの直前にオペレーターを落とす"),
			say("Nothing was stored: the next life has to find out by itself what is missing.", "何も保存されない。次の起動で、足りないものを自力で見つける必要がある。"),
			crash(v1alpha1.Before)),
		of(write, false, say("fail the operator's next write", "オペレーターの次の書き込みを失敗させる"),
			say("The API server answers 500; the key comes back after a back-off.", "API サーバーが 500 を返す。キーはバックオフの後に戻る。"), reply(v1alpha1.ReplyInternalError)),
		of(write, false, say("lose the answer to its next write", "次の書き込みの応答を失わせる"),
			say("It is stored, but the operator is told that it failed, and tries again.", "保存されるが、オペレーターには失敗と伝わり、再試行する。"), reply(v1alpha1.ReplyLost)),
		of(object, false, say("write it between the operator's read and write", "読み取りと書き込みの間に割り込んで変更する"),
			say("The operator's resourceVersion is too old: its write is a Conflict, and it reads again.", "resourceVersion が古くなり、書き込みは Conflict になる。読み直して再試行する。"),
			spec(func(s *v1alpha1.FaultSpec) { s.Conflict = &v1alpha1.ConflictFault{} })),
		of(write, false, say("hold the operator at its next write for 5 s", "次の書き込みで 5 秒間止める"),
			say("Others go on meanwhile: is what it writes still right afterwards?", "その間も周りは動く。その後の書き込みはまだ正しいか。"),
			spec(func(s *v1alpha1.FaultSpec) { s.Hold = &v1alpha1.HoldFault{For: held} })),
		of(kind, false, say("cut its watches of this kind at the next event", "この種類の watch を次のイベントで切る"),
			say("client-go opens the watch again where it ended, or lists anew.", "client-go が途切れた位置から watch を開き直すか、list し直す。"),
			spec(func(s *v1alpha1.FaultSpec) { s.Watch = &v1alpha1.WatchFault{Action: v1alpha1.WatchCut} })),
		of(kind, false, say("hide changes of this kind from it for 5 s, from the next event on", "次のイベントから 5 秒間、この種類の変更を見せない"),
			say("Its cache is behind: does it act on what is no longer so?", "キャッシュが古いままになる。もう正しくない情報で動いてしまわないか。"),
			spec(func(s *v1alpha1.FaultSpec) { s.Stale = &v1alpha1.StaleFault{For: held} })),
		of(nothing, false, say("kill the control plane's etcd", "コントロールプレーンの etcd を強制終了する"),
			say("The API server cannot read or write until etcd runs again; nothing stored is lost.", "etcd が戻るまで API サーバーは読み書きできない。保存済みのものは失われない。"), kill("etcd")),
		of(nothing, false, say("kill the controllers", "コントローラーを強制終了する"),
			say("Deployments, ReplicaSets and the garbage collector stand still until they run again.", "戻るまで Deployment、ReplicaSet、ガベージコレクションが止まる。"), kill("kube-controller-manager")),
	)
}

// aim says how a fault uses the object that is chosen on the screen.
type aim int

const (
	nothing    aim = iota // it happens at once
	write                 // the operator's next write of anything
	object                // its next write of the object
	kind                  // everything of its kind
	containers            // the containers of the pod that it is, else of all in its namespace
)

// aimed completes a fault with the object that is chosen on the screen. A crash without a match would happen at once.
func aimed(about aim, ref trace.Ref, spec v1alpha1.FaultSpec) v1alpha1.FaultSpec {
	switch about {
	case write:
		spec.Match = &v1alpha1.FaultMatch{}
	case object:
		spec.Match = &v1alpha1.FaultMatch{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	case kind:
		spec.Match = &v1alpha1.FaultMatch{Kind: ref.Kind}
	case containers:
		spec.Pod = &v1alpha1.PodFault{Action: v1alpha1.PodKill, Namespace: ref.Namespace}
		if ref.Kind == "Pod" {
			spec.Pod.Name = ref.Name
		}
	}
	return spec
}
