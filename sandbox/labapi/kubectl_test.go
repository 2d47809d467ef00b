package labapi_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// rows returns the lines of a table, with one blank between cells.
func rows(table string) []string {
	var rows []string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return rows
}

func TestColumns(t *testing.T) {
	l := newLab()
	hot := loop("default", "columns", "zundoko")
	hot.Status.Hot, hot.Status.HotField, hot.Status.Quiet = true, "Hikawa.status.said", false
	hot.Status.Writes.Total, hot.Status.Errors = 18, 2
	hot.Status.Last.Again = true
	failed := loop("kube-system", "columns", "other")
	failed.Status.Last.Outcome, failed.Status.Last.Error, failed.Status.Last.Again = "error", "conflict", true
	l.loops = []v1alpha1.Loop{hot, failed}
	serve(t, l)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"get operators -o wide", []string{
			"NAME VARIANT STATE RESTARTS AGE CONTROLLERS MESSAGE", "zundoko hardened Running 0 AGE hikawa",
		}},
		{"get loop hikawa.columns", []string{
			"NAME OPERATOR RECONCILES WRITES ERRORS QUIET HOT LAST", "hikawa.columns zundoko 1 18 2 false Hikawa.status.said again at once",
		}},
		{"get loops -A --no-headers", []string{
			"default hikawa.columns zundoko 1 18 2 false Hikawa.status.said again at once", "kube-system hikawa.columns other 1 0 0 true error, again at once",
		}},
		{"get loops -A --no-headers --field-selector spec.operator=other", []string{"kube-system hikawa.columns other 1 0 0 true error, again at once"}},
		{"get loops -A --no-headers --field-selector metadata.namespace=default", []string{
			"default hikawa.columns zundoko 1 18 2 false Hikawa.status.said again at once",
		}},
		{"get lab -A -o name", []string{
			"loop.operator-lab.dev/hikawa.columns", "loop.operator-lab.dev/hikawa.columns", "operator.operator-lab.dev/zundoko",
		}},
		{"api-resources --api-group operator-lab.dev --no-headers -o wide", []string{
			"faults operator-lab.dev/v1alpha1 false Fault create,delete,deletecollection,get,list,patch,update,watch lab",
			"loops operator-lab.dev/v1alpha1 true Loop get,list,watch lab",
			"operators operator-lab.dev/v1alpha1 false Operator create,delete,deletecollection,get,list,patch,update,watch lab",
		}},
	} {
		t.Run(test.args, func(t *testing.T) {
			got := rows(kubectl(t, strings.Fields(test.args)...))
			for i := range got {
				if strings.HasPrefix(got[i], "zundoko ") {
					fields := strings.Fields(got[i])
					fields[4] = "AGE"
					got[i] = strings.Join(fields, " ")
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaultColumns(t *testing.T) {
	serve(t, newLab())
	for _, test := range []struct{ name, spec, want string }{
		{"crash", "match: {verbs: [create, update], kind: Zundoko, nth: 3}, crash: {}", "crash create,update Zundoko #3 Armed 0"},
		{"reply", "match: {namespace: default, name: hikawa-*}, api: {reply: Lost}", "api/Lost default/hikawa-* Armed 0"},
		{"cut", "match: {kind: Hikawa, subresource: status, field: status.said}, watch: {action: Cut}", "watch/Cut Hikawa/status status.said Armed 0"},
		{"plane", "controlPlane: {program: etcd}", "controlPlane etcd Armed 0"},
		{"hold", "hold: {}", "hold Armed 0"},
		{"pod", "pod: {action: OOMKill, namespace: default, name: web-*, container: page, selector: {tier: front, app: web}}", "pod/OOMKill default/web-*/page app=web,tier=front Armed 0"},
		{"pods", "pod: {action: Unready}, match: {kind: Zundoko}", "pod/Unready * Armed 0"},
		{"node", "node: {action: Lost, for: 5s}", "node/Lost * Armed 0"},
		{"node-1", "node: {action: Restart, name: node-1}", "node/Restart node-1 Armed 0"},
		{"image", "image: {name: 'nginx:1.*', delay: 2s}", "image nginx:1.* Armed 0"},
		{"conflict", "conflict: {patch: {metadata: {labels: {a: b}}}}", "conflict Armed 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			apply(t, fault(test.name, test.spec))
			got := rows(kubectl(t, "get", "fault", test.name, "--no-headers"))
			if diff := cmp.Diff([]string{test.name + " " + test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func fault(name, spec string) string {
	return fmt.Sprintf("{apiVersion: operator-lab.dev/v1alpha1, kind: Fault, metadata: {name: %s}, spec: {%s}}", name, spec)
}

func apply(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	said, err := try(t, manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return said
}

func TestRefusals(t *testing.T) {
	serve(t, newLab())
	apply(t, fault("refused", "match: {kind: Zundoko}, crash: {}"))
	for _, test := range []struct{ name, input, args, want string }{
		{"unknown field of stale", fault("new", "stale: {kind: Zundoko}"), "apply --server-side --validate=ignore -f -", "spec.stale.kind: field not declared in schema"},
		{"wrong duration", fault("new", "node: {action: Lost, for: long}"), "apply --validate=ignore -f -", "invalid duration"},
		{"nothing", fault("new", ""), "apply -f -", "spec: Required value: one of crash, hold"},
		// The server says "spec.crsh"; kubectl says "crsh" until it has learned that the server validates.
		{"unknown field", fault("new", "crsh: {}"), "apply -f -", `crsh"`},
		// Without kubectl's own validation, because its knowledge of the schema depends on the state of the aggregator.
		{"unknown field, server-side", fault("new", "crsh: {}"), "apply --server-side --validate=ignore -f -", "spec.crsh: field not declared in schema"},
		{"wrong type", fault("new", "match: {nth: three}, crash: {}"), "apply --validate=ignore -f -", "cannot unmarshal string into Go struct field FaultMatch.spec.match.nth"},
		{"wrong name", fault("New", "crash: {}"), "apply -f -", "a lowercase RFC 1123 subdomain must consist of"},
		{
			"other spec", fault("refused", "match: {kind: Kiyoshi}, crash: {}"), "apply -f -",
			"spec: Forbidden: cannot be changed but for released: delete the fault, and create another",
		},
		{
			"unknown operator", "{apiVersion: operator-lab.dev/v1alpha1, kind: Operator, metadata: {name: nobody}}", "apply -f -",
			`metadata.name: Unsupported value: "nobody": supported values: "zundoko", "other"`,
		},
		{
			"unknown variant", "{apiVersion: operator-lab.dev/v1alpha1, kind: Operator, metadata: {name: zundoko}, spec: {variant: new}}",
			"apply --server-side -f -", `spec.variant: Unsupported value: "new"`,
		},
		{"loop", "{apiVersion: operator-lab.dev/v1alpha1, kind: Loop, metadata: {name: mine}}", "create -f -", "the server does not allow this method"},
		{"field selector", "", "get loops --field-selector status.quiet=true", `loops cannot be selected by the field "status.quiet"`},
		{"not there", "", "get fault nobody", `faults.operator-lab.dev "nobody" not found`},
		{"there", fault("refused", "crash: {}"), "create -f -", `faults.operator-lab.dev "refused" already exists`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if said := refused(t, test.input, strings.Fields(test.args)...); !strings.Contains(said, test.want) {
				t.Errorf("kubectl says %q, not %q", said, test.want)
			}
		})
	}
}

func TestLifeOfAFault(t *testing.T) {
	l := newLab()
	serve(t, l)
	manifest := fault("life", "match: {kind: Zundoko}, crash: {}")
	if said := apply(t, manifest, "--dry-run=server"); !strings.Contains(said, "created (server dry run)") {
		t.Error(said)
	}
	if phase := l.phaseOf("life"); phase != "" {
		t.Fatalf("the dry run armed it: %s", phase)
	}
	apply(t, manifest)
	kubectl(t, "wait", "--for=jsonpath={.status.phase}=Armed", "fault/life", "--timeout=30s")
	waited := make(chan string)
	go func() {
		said, _ := try(t, "", "wait", "--for=condition=Injected", "fault/life", "--timeout=30s")
		waited <- said
	}()
	l.change(func() {
		l.faults["life"] = v1alpha1.FaultStatus{Phase: v1alpha1.FaultInjected, Times: 1, Conditions: conditions("Injected")}
	})
	if said := <-waited; !strings.Contains(said, "condition met") {
		t.Error(said)
	}
	kubectl(t, "patch", "fault", "life", "--type=merge", "-p", `{"spec":{"released":true}}`)
	if phase := l.phaseOf("life"); phase != v1alpha1.FaultReleased {
		t.Errorf("it is %s", phase)
	}
	said := refused(t, "", "patch", "fault", "life", "--type=merge", "-p", `{"spec":{"released":false}}`)
	if !strings.Contains(said, "spec.released: Forbidden: cannot be taken back") {
		t.Error(said)
	}
	if said := kubectl(t, "describe", "fault", "life"); !strings.Contains(said, "Phase:") || !strings.Contains(said, "Injected") {
		t.Error(said)
	}
	kubectl(t, "delete", "fault", "life")
	if phase := l.phaseOf("life"); phase != "" {
		t.Errorf("it is %s after it was deleted", phase)
	}
}

func TestLifeOfAnOperator(t *testing.T) {
	l := newLab()
	serve(t, l)
	apply(t, "{apiVersion: operator-lab.dev/v1alpha1, kind: Operator, metadata: {name: other, labels: {mine: sure}}}", "--server-side")
	if got := kubectl(t, "get", "operator", "other", "-o", "jsonpath={.spec.variant} {.metadata.labels.mine} {.metadata.generation}"); got != "hardened sure 1" {
		t.Errorf("it is %q", got)
	}
	kubectl(t, "patch", "operator", "other", "--type=json", "-p", `[{"op":"add","path":"/spec/paused","value":true}]`)
	if o, _ := l.loaded("other"); !o.Spec.Paused {
		t.Error("it is not paused")
	}
	if got := kubectl(t, "get", "operator", "other", "-o", "jsonpath={.metadata.generation} {.status.observedGeneration} {.status.restarts}"); got != "2 2 1" {
		t.Errorf("it is %q", got)
	}
	kubectl(t, "annotate", "operator", "other", "note=kept")
	if o, _ := l.loaded("other"); o.Status.Restarts != 1 {
		t.Errorf("an annotation restarted it: %d", o.Status.Restarts)
	}
	l.change(func() { // as from the terminal UI
		o := l.operators["other"]
		o.Spec.Paused, o.Generation = false, 3
		l.operators["other"] = o
	})
	if got := kubectl(t, "get", "operator", "other", "-o", "jsonpath={.spec.paused} {.metadata.generation} {.metadata.annotations.note}"); got != " 3 kept" {
		t.Errorf("it is %q", got)
	}
	apply(t, "{apiVersion: operator-lab.dev/v1alpha1, kind: Operator, metadata: {name: zundoko}, spec: {variant: classic}}", "--server-side")
	if o, _ := l.loaded("zundoko"); o.Spec.Variant != "classic" {
		t.Errorf("what the lab loaded is %s after it was applied", o.Spec.Variant)
	}
	kubectl(t, "delete", "operator", "other")
	if _, there := l.loaded("other"); there {
		t.Error("it is there after it was deleted")
	}
}

func TestExplain(t *testing.T) {
	serve(t, newLab())
	sandboxtest.Eventually(t, "the schemas to arrive", func(context.Context) error {
		said, err := try(t, "", "explain", "loop.status.writes.noOp")
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		if !strings.Contains(said, "NoOp are those among them that changed nothing.") {
			t.Error(said)
		}
		return nil
	})
	if said := kubectl(t, "explain", "fault.spec"); !strings.Contains(said, "Crash ends the operator in the middle.") {
		t.Error(said)
	}
	if said := kubectl(t, "explain", "fault.spec.pod.after"); !strings.Contains(said, "After is how long a container runs") {
		t.Error(said)
	}
	if said := kubectl(t, "explain", "operators.operator-lab.dev"); !strings.Contains(said, "Operator is an operator that the lab runs.") {
		t.Error(said)
	}
}

func TestWatchWithKubectl(t *testing.T) {
	l := newLab()
	l.loops = []v1alpha1.Loop{loop("default", "watched", "zundoko")}
	serve(t, l)
	cmd := command(t, "get", "loops", "-w", "--no-headers")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for i := range 3 {
		if !lines.Scan() {
			t.Fatal("the watch ended")
		}
		want := fmt.Sprintf("hikawa.watched zundoko %d 0 0 true done", i+1)
		if got := strings.Join(strings.Fields(lines.Text()), " "); got != want {
			t.Errorf("kubectl prints %q, not %q", got, want)
		}
		l.change(func() { l.loops[0].Status.Reconciles++ })
	}
}
