package tui

import (
	"os/exec"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// inspectMenu lists kubectl commands that tell more about the selected object.
func inspectMenu(s *state) popup {
	ref := s.subject().object.Ref
	return &menu{heading: s.t("Look at ", "調べる: ") + ref.String(), choices: inspections(s, ref)}
}

func inspections(s *state, ref trace.Ref) []choice {
	name, namespace := ref.Name, ref.KubectlNamespace()
	var choices []choice
	add := func(command, help string) {
		choices = append(choices, choice{text: command, help: help, do: func(m *Model) tea.Cmd { return runCommand(m.controls.Command, command) }})
	}
	add("kubectl describe "+ref.KubectlKind()+" "+name+namespace, s.t("What it is and how it is, in words, with its latest events.", "内容と状態の説明。最近のイベントも表示する。"))
	add("kubectl events --for "+ref.KubectlKind()+"/"+name+namespace, s.t("What happened to it, as controllers and kubelets told.", "コントローラーや kubelet が記録した出来事。"))
	add("kubectl get "+ref.KubectlKind()+" "+name+namespace+" -o yaml", s.t("All its fields, as the API server has them now.", "API サーバーが今持っている全フィールド。"))
	if ref.Kind == "Pod" && ref.APIVersion == "v1" {
		add("kubectl logs "+name+namespace+" --all-containers --tail 200", s.t("What its containers have printed.", "コンテナの出力。"))
		add("kubectl logs "+name+namespace+" --all-containers --tail 200 --previous", s.t("What they printed in their life before, if one was started again.", "再起動した場合、その前の出力。"))
		add("kubectl exec -it "+name+namespace+" -- sh", s.t("A shell in it; exit comes back.", "Pod の中のシェル。exit で戻る。"))
	}
	if name := packageOf(s.object(ref)); name != "" && s.controls.Sandbox != "" {
		add("operator-lab channels "+name+" --name "+s.controls.Sandbox, s.t("The channels of its package, and where it stands in them.", "パッケージのチャンネルと、その中での現在位置。"))
	}
	return choices
}

// runCommand runs a command in the user's shell, while the screen steps aside.
func runCommand(open func(command string) (*exec.Cmd, error), command string) tea.Cmd {
	return func() tea.Msg {
		cmd, err := open(command)
		return shellMsg{cmd, err}
	}
}

func noInspect(s *state) string {
	if r := noEdit(s); r != "" {
		return r
	}
	if s.controls.Command == nil {
		return s.t("there is no shell here", "ここにはシェルがない")
	}
	return ""
}
