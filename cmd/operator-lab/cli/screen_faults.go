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

// held is the time for which the break menu holds a write.
var held = &metav1.Duration{Duration: 5 * time.Second}

// away is the time for which the break menu switches a node off: long enough for Kubernetes to notice.
var away = &metav1.Duration{Duration: 20 * time.Second}

// faultMenu returns the faults of the break menu. Each is made as a Fault object, as 'kubectl apply' would make it.
func faultMenu(c client.Client, operator string, lang trace.Language, nodes bool) []tui.Fault {
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
	of := func(about aim, en, ja string, s v1alpha1.FaultSpec) tui.Fault {
		text := en
		if lang == trace.Japanese {
			text = ja
		}
		return tui.Fault{Text: text, Do: func(ctx context.Context, ref trace.Ref) error { return arm(ctx, c, about, ref, s) }}
	}
	menu := []tui.Fault{
		of(write, "crash the operator before its next write", "次の書き込みの直前にオペレーターを落とす", crash(v1alpha1.Before)),
		of(write, "crash the operator after its next write", "次の書き込みの直後にオペレーターを落とす", crash(v1alpha1.After)),
		of(write, "fail the operator's next write", "オペレーターの次の書き込みを失敗させる", reply(v1alpha1.ReplyInternalError)),
		of(write, "lose the answer to its next write", "次の書き込みの応答を失わせる", reply(v1alpha1.ReplyLost)),
		of(object, "write it between the operator's read and write", "読み取りと書き込みの間に割り込んで変更する",
			spec(func(s *v1alpha1.FaultSpec) { s.Conflict = &v1alpha1.ConflictFault{} })),
		of(write, "hold the operator at its next write for 5 s", "次の書き込みで 5 秒間止める",
			spec(func(s *v1alpha1.FaultSpec) { s.Hold = &v1alpha1.HoldFault{For: held} })),
		of(kind, "cut its watches of this kind at the next event", "この種類のウォッチを次のイベントで切る",
			spec(func(s *v1alpha1.FaultSpec) { s.Watch = &v1alpha1.WatchFault{Action: v1alpha1.WatchCut} })),
		of(nothing, "crash the operator now", "今すぐオペレーターを落とす", crash(v1alpha1.After)),
		of(nothing, "kill the control plane's etcd", "コントロールプレーンの etcd を強制終了する", kill("etcd")),
		of(nothing, "kill the API server", "API サーバーを強制終了する", kill("kube-apiserver")),
		of(nothing, "kill the controllers", "コントローラーを強制終了する", kill("kube-controller-manager")),
	}
	if !nodes {
		return menu
	}
	return append(menu,
		of(containers, "kill its containers, or those of its namespace", "そのコンテナか、名前空間のコンテナを強制終了する", v1alpha1.FaultSpec{}),
		of(nothing, "take the power of node-1 away for 20 s", "node-1 の電源を 20 秒間切る",
			v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: sandbox.NodeName(1), For: away}}),
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

// arm creates a Fault. A crash without a match would happen at once.
func arm(ctx context.Context, c client.Client, about aim, ref trace.Ref, spec v1alpha1.FaultSpec) error {
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
	return c.Create(ctx, &v1alpha1.Fault{ObjectMeta: metav1.ObjectMeta{GenerateName: "break-"}, Spec: spec})
}
