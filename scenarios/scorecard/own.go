package scorecard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// What a scenario made of samples needs from its run to show anything: without it the run neither passes nor fails.
const (
	needsNothing = iota
	needsObject  // the operator creates an object
	needsWrite   // it writes something
)

// sampled are the scenarios that are made of the samples of an operator, by name.
var sampled = map[string]struct {
	description    string
	habits, phases string
	needs          int
	steps          func(s samples) []any
}{
	"samples": {
		"The manifests are applied, and the operator serves. Each sample is applied; it reconciles at least one, and none of its loops ends in an error.",
		"1, 2", "1", needsNothing, func(s samples) []any { return []any{s.apply(), step("settled", s.settled(""))} },
	},
	"operator-away": {
		"The operator is killed and stays away for a while. What the samples and the operator have made is there meanwhile, and the same when it is back.",
		"4", "", needsObject, samples.away,
	},
	"crash-before-writes": {
		"The operator is killed just before each of its first three writes. Each time it is started again, and the samples settle.",
		"7", "", needsWrite, func(s samples) []any { return s.crashes(v1alpha1.Before) },
	},
	"crash-after-writes": {
		"The operator is killed just after each of its first three writes. Each time it is started again, and the samples settle.",
		"7", "", needsWrite, func(s samples) []any { return s.crashes(v1alpha1.After) },
	},
}

// Samples returns scenarios that are made of the samples of an operator: files by name, each in a folder of its own. Without
// samples of a kind that the manifests define there are none. The lab must see the operator's loops, because they ask for them.
func Samples(operator string, plan *project.Plan) (map[string][]byte, error) {
	s := samples{operator: operator}
	own := map[string]bool{}
	for _, o := range plan.Objects {
		if o.GetKind() == "CustomResourceDefinition" {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			own[kind+"."+group] = true
		}
	}
	for _, sample := range plan.Samples {
		for _, o := range sample.Objects {
			s.objects = append(s.objects, o)
			if gvk := o.GroupVersionKind(); own[gvk.Kind+"."+gvk.Group] {
				s.names = append(s.names, o.GetName())
			}
		}
	}
	if len(s.names) == 0 {
		return nil, nil
	}
	files := map[string][]byte{}
	for name, kind := range sampled {
		annotations := map[string]any{"operator-lab.dev/operator": operator, "operator-lab.dev/habits": kind.habits}
		if kind.phases != "" {
			annotations["operator-lab.dev/phase"] = kind.phases
		}
		raw, err := yaml.Marshal(object("chainsaw.kyverno.io/v1alpha1", "Test", map[string]any{"name": name, "annotations": annotations}, map[string]any{"spec": map[string]any{
			"description": kind.description,
			"timeouts":    map[string]any{"apply": "20s", "assert": "1m", "exec": "2m", "delete": "30s", "cleanup": "30s"},
			"steps":       kind.steps(s),
		}}))
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", name, err)
		}
		files[name+"/chainsaw-test.yaml"] = raw
	}
	return files, nil
}

// Shows reports whether a run of a scenario of [Samples] shows anything, by the journal of the run; the reason has no full
// stop. Other scenarios always do.
func Shows(scenario, operator string, journal *trace.Journal) (reason string, shows bool) {
	needs := sampled[scenario].needs
	for _, e := range journal.Since(0) {
		wrote := e.Kind == trace.KindCall && e.Error == "" || e.Kind == trace.KindFault && e.ResourceVersion != ""
		if e.Operator == operator && wrote && trace.IsWriteVerb(e.Verb) && (needs == needsWrite || e.Verb == trace.VerbCreate || e.Verb == trace.VerbApply) {
			return "", true
		}
	}
	return map[int]string{
		needsObject: "with the samples the operator creates no object", needsWrite: "with the samples the operator writes nothing",
	}[needs], needs == needsNothing
}

// samples are what the scenarios are made of.
type samples struct {
	operator string
	objects  []*unstructured.Unstructured
	// names are those of the objects of kinds that the manifests define.
	names []string
}

func object(apiVersion, kind string, metadata, rest map[string]any) map[string]any {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(o, rest)
	return o
}

func step(name string, operations ...any) any { return map[string]any{"name": name, "try": operations} }

func operation(kind string, resource map[string]any) any {
	return map[string]any{kind: map[string]any{"resource": resource}}
}

// ofLab returns an object of the lab.
func (s samples) ofLab(kind string, metadata, rest map[string]any) map[string]any {
	return object(v1alpha1.GroupVersion.String(), kind, metadata, rest)
}

// apply applies the samples.
func (s samples) apply() any {
	var all []any
	for _, o := range s.objects {
		all = append(all, operation("apply", o.Object))
	}
	return step("apply", all...)
}

// settle waits a minute and a half until the operator runs, the newest reconcile of a sample came to its end, with a number
// above $LAST, and that of no loop ended in an error. A new life may have to wait for the lease of the last one.
const settle = `
loops() {
  kubectl get loops --all-namespaces \
    --output 'jsonpath={range .items[*]}{.spec.operator} {.spec.key} {.status.last.reconcile} {.status.last.outcome} {.status.last.error}{"\n"}{end}'
}
end=$(($(date +%s) + 90))
while :; do
  state=$(kubectl get operator "$OPERATOR" --output 'jsonpath={.status.state}')
  said=$(loops | awk -v operator="$OPERATOR" -v state="$state" -v names=" $NAMES " -v last="$LAST" '
    $1 != operator || $4 == "" { next }
    $4 == "error" || $4 == "panic" { wrong = $0; next }
    $4 == "aborted" { next }
    { name = $2; sub(".*/", "", name); if (index(names, " " name " ") && $3 > last + 0) done = 1 }
    END {
      if (state != "Running") print "operator " operator " is " state
      else if (wrong) print wrong
      else if (!done) print "no reconcile of a sample came to its end" (last ? " since then" : "")
    }')
  [ -z "$said" ] && exit 0
  [ "$(date +%s)" -lt "$end" ] || break
  sleep 0.2
done
echo "$said" >&2
exit 1
`

// settled waits until the samples have settled; with after, a binding, after the reconcile of that number.
func (s samples) settled(after string) any {
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	env := []any{variable("OPERATOR", s.operator), variable("NAMES", strings.Join(s.names, " "))}
	if after != "" {
		env = append(env, variable("LAST", "($"+after+")"))
	}
	return map[string]any{"script": map[string]any{"content": settle, "env": env}}
}

// crash kills the operator.
func (s samples) crash(crash map[string]any, match map[string]any) any {
	spec := map[string]any{"operator": s.operator, "crash": crash}
	if match != nil {
		spec["match"] = match
	}
	return operation("apply", s.ofLab("Fault", map[string]any{"name": "crash"}, map[string]any{"spec": spec}))
}

// crashes kills the operator at its first writes, and waits for the samples to settle.
func (s samples) crashes(when v1alpha1.When) []any {
	return []any{
		step("arm", s.crash(map[string]any{"when": string(when)}, map[string]any{"nth": 1, "times": 3})),
		s.apply(),
		step("settled", s.settled("")),
	}
}

// listed prints the objects in the namespace of the test, without those that come and go by themselves.
const listed = `
kinds=$(kubectl api-resources --namespaced --verbs=list --output name |
  grep -vE '^(events|endpoints|leases\.coordination\.k8s\.io|.*\.(events\.k8s\.io|discovery\.k8s\.io|metrics\.k8s\.io|operator-lab\.dev))$' | tr '\n' ',')
all() {
  kubectl get "${kinds%,}" --namespace "$NAMESPACE" --ignore-not-found \
    --output 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}' | sort
}
`

// same prints which of the objects $BEFORE are no more, or are others. newest prints the number of the newest reconcile.
const (
	same = `
now=$(all)
printf '%s\n' "$BEFORE" | while read -r object; do
  printf '%s\n' "$now" | grep -qxF "$object" || echo "$object"
done
`
	newest = `kubectl get loops --all-namespaces --output 'jsonpath={range .items[*]}{.status.last.reconcile}{"\n"}{end}' | sort -n | tail -n 1`
)

// away kills the operator when the samples have settled, and compares what is there.
func (s samples) away() []any {
	script := func(content string, more map[string]any) any {
		more["content"] = "set -e" + listed + content
		return map[string]any{"script": more}
	}
	binding := func(name string) map[string]any {
		return map[string]any{"name": name, "value": "(trim_space($stdout))"}
	}
	compare := func() any {
		return script(same, map[string]any{
			"env":   []any{map[string]any{"name": "BEFORE", "value": "($before)"}},
			"check": map[string]any{"(trim_space($stdout))": ""},
		})
	}
	const pause = 3 * time.Second
	return []any{s.apply(), step("settled", s.settled("")), step("away",
		script("all", map[string]any{"outputs": []any{binding("before")}}),
		map[string]any{"script": map[string]any{"content": newest, "outputs": []any{binding("last")}}},
		s.crash(map[string]any{"restartAfter": pause.String()}, nil),
		operation("assert", s.ofLab("Operator", map[string]any{"name": s.operator}, map[string]any{"status": map[string]any{"state": "Crashed"}})),
		compare(),
		s.settled("last"),
		compare(),
	)}
}

// running are the kinds of objects that let programs run.
var running = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Pod", "Job", "CronJob"}

// Manifests returns what the manifests of an operator of somebody's own show without a run: whether one Deployment is all
// that runs of them. They show nothing if nothing does.
func (s Scope) Manifests(plan *project.Plan, now time.Time) (result Result, shows bool) {
	var found []string
	for _, o := range plan.Objects {
		if slices.Contains(running, o.GetKind()) {
			found = append(found, o.GetKind()+" "+o.GetName())
		}
	}
	for _, o := range plan.LeftOut {
		if slices.Contains(running, o.Kind) {
			found = append(found, o.Kind+" "+o.Name)
		}
	}
	tag := Tag{Name: "manifests", Operator: s.Operator, Description: "Of the manifests one Deployment runs, and nothing else.", Habits: within([]int{1}, s.Habits)}
	if len(found) == 0 || len(tag.Habits) == 0 {
		return Result{}, false
	}
	op := &report.Operation{Type: "read", Name: strings.Join(plan.Sources, ", ")}
	if len(found) > 1 || !strings.HasPrefix(found[0], "Deployment ") {
		op.Failure = &report.Failure{Message: "what runs of them: " + strings.Join(found, ", ")}
	}
	run := &report.Test{Name: tag.Name, Started: now, Ended: now, Steps: []*report.Step{{Name: "manifests", Operations: []*report.Operation{op}}}}
	return Result{Tag: tag, Runs: []*report.Test{run}}, true
}
