package project

import (
	"fmt"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Note is something to tell the user: what is missing, or differs from a pod.
type Note struct {
	// Kind says which.
	Kind NoteKind
	// Values are what it is about, as the texts of the kind take them.
	Values []any
}

// NoteKind is a sort of note.
type NoteKind string

// The kinds of notes.
const (
	NoDefault           NoteKind = "NoDefault"
	NoDefaultForeign    NoteKind = "NoDefaultForeign"
	NoManifests         NoteKind = "NoManifests"
	NoDeployment        NoteKind = "NoDeployment"
	NoDeploymentForeign NoteKind = "NoDeploymentForeign"
	NoSamples           NoteKind = "NoSamples"
	WrongSample         NoteKind = "WrongSample"
	NamespaceMade       NoteKind = "NamespaceMade"
	StubKind            NoteKind = "StubKind"
	OtherContainer      NoteKind = "OtherContainer"
	Unreadable          NoteKind = "Unreadable"
	NoVariables         NoteKind = "NoVariables"
	NoVariable          NoteKind = "NoVariable"
	ShellCommand        NoteKind = "ShellCommand"
	HiddenVolume        NoteKind = "HiddenVolume"
	NoToken             NoteKind = "NoToken"
	NothingToMount      NoteKind = "NothingToMount"
	WebhooksWithout     NoteKind = "WebhooksWithout"
	OneNamespace        NoteKind = "OneNamespace"
	// Those of a run against a cluster of the user's.
	ClusterLacks     NoteKind = "ClusterLacks"
	ClusterWebhooks  NoteKind = "ClusterWebhooks"
	ClusterAccount   NoteKind = "ClusterAccount"
	ClusterNoAccount NoteKind = "ClusterNoAccount"
	ClusterNoToken   NoteKind = "ClusterNoToken"
	ClusterDeployed  NoteKind = "ClusterDeployed"
)

// noteText is a kind of note in one language. A hint may be empty.
type noteText struct{ text, hint string }

var english = map[NoteKind]noteText{
	NoDefault:           {"there is no config/default: the operator runs as the cluster's administrator, without arguments", "name other manifests: --manifests FILE"},
	NoDefaultForeign:    {"there is no config/default: the operator runs with your own permissions, without arguments", "name other manifests: --manifests FILE"},
	NoManifests:         {"no manifests were found: neither config/default nor config/crd", "name them: --manifests FILE"},
	NoDeployment:        {"the manifests have no Deployment: the operator runs as the cluster's administrator, without arguments", ""},
	NoDeploymentForeign: {"the manifests have no Deployment: the operator runs with your own permissions, without arguments", ""},
	NoSamples:           {"no samples were found: there is no config/samples", "apply some yourself: --apply=FILE"},
	WrongSample:         {"%[1]v", "apply others: --apply=FILE"},
	NamespaceMade:       {"namespace %[1]s is made: the manifests do not have it", ""},
	OneNamespace:        {"it is told to watch the namespace %[1]s only: samples without a namespace go there", "--env WATCH_NAMESPACE= may have it watch all"},
	StubKind:            {"kind %[1]s of %[2]s exists without its controller: nothing happens to its objects", ""},
	OtherContainer:      {"container %[1]s of %[2]s is not run, only %[3]s", ""},
	Unreadable:          {"%[1]s %[2]s cannot be read: %[3]v", ""},
	NoVariables:         {"the variables of %[1]s %[2]s are not set: the manifests do not have it", "set them in " + ConfigName + ", or: --env NAME=VALUE"},
	NoVariable:          {"variable %[1]s is not set: the manifests do not have what it is from", "set it in " + ConfigName + ", or: --env %[1]s=VALUE"},
	ShellCommand:        {"the container starts its program by a shell: its arguments are not known", "write them into " + ConfigName + ", or after --"},
	HiddenVolume:        {"volume %[1]s is not at %[2]s, which no argument and no variable names: it is at %[3]s", ""},
	NoToken:             {"the projected token %[1]s is not written", ""},
	NothingToMount:      {"%[1]s %[2]s, which is mounted, is missing: the manifests do not have it", "name manifests that do: --manifests FILE"},
	WebhooksWithout:     {"the webhooks are not installed: no argument of the program says where it takes its certificates from", "give it such an argument after --: --webhook-cert-path=%[1]s"},
	ClusterLacks:        {"the cluster does not have %[1]s", "make install, or run with --install"},
	ClusterWebhooks:     {"webhooks are not installed there: the cluster could not call this machine", ""},
	ClusterAccount:      {"the operator has the permissions of ServiceAccount %[1]s/%[2]s", ""},
	ClusterNoAccount:    {"the operator has your own permissions: ServiceAccount %[1]s/%[2]s does not exist there", ""},
	ClusterNoToken:      {"the operator has your own permissions: you may not get a token for ServiceAccount %[1]s/%[2]s", ""},
	ClusterDeployed:     {"Deployment %[1]s/%[2]s runs in that cluster, too: without leader election both work on the same objects", "kubectl scale -n %[1]s deployment/%[2]s --replicas=0"},
}

var japanese = map[NoteKind]noteText{
	NoDefault:           {"config/defaultがないので、オペレーターはクラスターの管理者として、引数なしで動きます", "ほかのマニフェストは--manifests FILEで渡せます"},
	NoDefaultForeign:    {"config/defaultがないので、オペレーターはあなたの権限で、引数なしで動きます", "ほかのマニフェストは--manifests FILEで渡せます"},
	NoManifests:         {"config/defaultもconfig/crdもなく、マニフェストが見つかりません", "--manifests FILEで渡せます"},
	NoDeployment:        {"マニフェストにDeploymentがないので、オペレーターはクラスターの管理者として、引数なしで動きます", ""},
	NoDeploymentForeign: {"マニフェストにDeploymentがないので、オペレーターはあなたの権限で、引数なしで動きます", ""},
	NoSamples:           {"config/samplesがなく、サンプルが見つかりません", "--apply=FILEで適用できます"},
	WrongSample:         {"%[1]v", "ほかのものを--apply=FILEで適用できます"},
	NamespaceMade:       {"マニフェストにないので、Namespace %[1]sを作ります", ""},
	OneNamespace:        {"Namespace %[1]sだけを見るように指定されているので、Namespaceのないサンプルはそこに置きます", "--env WATCH_NAMESPACE=とすると、すべてを見るかもしれません"},
	StubKind:            {"%[2]sの%[1]sは、コントローラーなしで種類だけがあります。オブジェクトを作っても何も起きません", ""},
	OtherContainer:      {"%[2]sのコンテナ%[1]sは動かしません。動かすのは%[3]sだけです", ""},
	Unreadable:          {"%[1]s %[2]sを読めません: %[3]v", ""},
	NoVariables:         {"マニフェストにないので、%[1]s %[2]sの変数は設定されません", ConfigName + "に書くか、--env NAME=VALUEで設定できます"},
	NoVariable:          {"値の元がマニフェストにないので、変数%[1]sは設定されません", ConfigName + "に書くか、--env %[1]s=VALUEで設定できます"},
	ShellCommand:        {"コンテナはプログラムをシェルから起動するので、引数が分かりません", ConfigName + "に書くか、--の後に書いてください"},
	HiddenVolume:        {"ボリューム%[1]sは%[2]sではなく%[3]sにあります。%[2]sを指す引数も変数もありません", ""},
	NoToken:             {"投影されるトークン%[1]sは書かれません", ""},
	NothingToMount:      {"マウントされる%[1]s %[2]sがマニフェストにありません", "それを含むマニフェストを--manifests FILEで渡してください"},
	WebhooksWithout:     {"証明書の場所を示す引数がプログラムにないので、Webhookは登録しません", "--の後にその引数を書いてください: --webhook-cert-path=%[1]s"},
	ClusterLacks:        {"クラスターに%[1]sがありません", "make installで入れるか、--installを付けて動かしてください"},
	ClusterWebhooks:     {"クラスターからこのマシンを呼べないので、Webhookは登録しません", ""},
	ClusterAccount:      {"オペレーターはServiceAccount %[1]s/%[2]sの権限で動きます", ""},
	ClusterNoAccount:    {"ServiceAccount %[1]s/%[2]sがクラスターにないので、オペレーターはあなたの権限で動きます", ""},
	ClusterNoToken:      {"ServiceAccount %[1]s/%[2]sのトークンを取れないので、オペレーターはあなたの権限で動きます", ""},
	ClusterDeployed:     {"Deployment %[1]s/%[2]sもそのクラスターで動いています。リーダー選出がなければ、同じオブジェクトを両方が操作します", "kubectl scale -n %[1]s deployment/%[2]s --replicas=0"},
}

// Text returns what the note says in a language, without a full stop.
func (n Note) Text(language trace.Language) string { return n.say(n.in(language).text) }

// Hint returns what helps, in a language; it may be empty.
func (n Note) Hint(language trace.Language) string { return n.say(n.in(language).hint) }

func (n Note) in(language trace.Language) noteText {
	if language == trace.Japanese {
		return japanese[n.Kind]
	}
	return english[n.Kind]
}

func (n Note) say(format string) string {
	if !strings.Contains(format, "%[") {
		return format
	}
	return fmt.Sprintf(format, n.Values...)
}

// note adds a note.
func (plan *Plan) note(kind NoteKind, values ...any) {
	plan.Notes = append(plan.Notes, Note{kind, values})
}
