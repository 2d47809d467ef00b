package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Save writes each steady finding into a directory of its own below dir, which is made: the journal, to be replayed, and
// the scenario with the fault and what was there without it, which fails until the operator is mended.
func (r *Report) Save(dir string, loaded *format.Loaded) error {
	var errs []error
	for i, f := range r.Steady() {
		if f.outcome == nil {
			continue // there is no fault that shows it
		}
		in := filepath.Join(dir, fmt.Sprintf("finding-%02d", i+1))
		test, err := f.test(loaded, fmt.Sprintf("%s-finding-%02d", loaded.Test.Name, i+1))
		if err == nil {
			err = os.MkdirAll(in, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(in, "chainsaw-test.yaml"), test, 0o600)
		}
		if err == nil {
			err = f.saveJournal(filepath.Join(in, "journal.jsonl"))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (f *Finding) saveJournal(file string) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.outcome.journal.Save(out), out.Close())
}

// object is a part of a YAML document.
type object = map[string]any

// test returns the scenario with the fault at its begin, or when all has settled, and, at its end, what is to be there.
func (f *Finding) test(loaded *format.Loaded, name string) ([]byte, error) {
	document, err := documentOf(loaded)
	if err != nil {
		return nil, err
	}
	metadata, _ := document["metadata"].(object)
	spec, _ := document["spec"].(object)
	steps, _ := spec["steps"].([]any)
	if metadata == nil || steps == nil {
		return nil, fmt.Errorf("%s: the scenario has no steps", loaded.File)
	}
	metadata["name"] = name
	labels, _ := metadata["labels"].(object)
	if labels == nil {
		labels = object{}
		metadata["labels"] = labels
	}
	labels["operator-lab.dev/needs"] = "lab"
	spec["description"] = f.Text
	at := f.outcome.plan
	step, err := at.step(f.outcome)
	if err != nil {
		return nil, err
	}
	all := append([]any{step}, steps...)
	if at.atRest {
		all = append(slices.Clone(steps), step)
	}
	if wanted := f.wanted(); len(wanted) > 0 {
		all = append(all, object{"name": "as-without-the-fault", "try": wanted})
	} else { // an oracle found it: it has to come to that before the test ends
		all = append(all, object{"name": "until-it-has-settled", "try": []any{
			script(versions(f.outcome.state) + settledScript(2*staleFor)),
		}})
	}
	spec["steps"] = all
	return yaml.Marshal(document)
}

// step returns what a play does to an operator as a step of a test.
func (p *Plan) step(o *outcome) (object, error) {
	if p.drift != nil {
		return p.driftStep(o)
	}
	both := p.both
	if both == nil {
		both = []*Plan{p}
	}
	var try []any
	for i, one := range both {
		fault, err := faultObject(one, []string{faultName, faultName + "-second"}[i])
		if err != nil {
			return nil, err
		}
		if p.atRest {
			return restScript(fault, o.state)
		}
		try = append(try, object{"create": object{"template": true, "resource": fault}})
	}
	return object{"name": "fault", "try": try}, nil
}

// driftStep returns a drift as a step of a test. If the operator is not to hear of it before all is done, the fault that sees to that
// lasts until it is deleted.
func (p *Plan) driftStep(o *outcome) (object, error) {
	try := p.operations(o)
	if p.hides() {
		fault, err := faultObject(p, faultName)
		if err != nil {
			return nil, err
		}
		happened := object{"apiVersion": fault["apiVersion"], "kind": fault["kind"], "metadata": fault["metadata"], "status": object{"times": 1}}
		ref := object{"apiVersion": fault["apiVersion"], "kind": fault["kind"], "name": faultName}
		try = slices.Concat([]any{object{"create": object{"template": true, "resource": fault}}}, try, []any{
			object{"assert": object{"resource": happened}}, object{"delete": object{"ref": ref}},
		})
	}
	return object{"name": "drift", "try": try}, nil
}

func script(content string) object {
	return object{"script": object{"timeout": "1m", "content": content}}
}

// operations returns the drift of a play as operations of a test.
func (p *Plan) operations(o *outcome) []any {
	var try []any
	d := p.drift
	for _, deed := range d.deeds[:o.done] {
		switch {
		case deed.make != nil:
			try = append(try, object{"create": object{"template": false, "resource": deed.make.Object}})
		case len(deed.path) == 0 && len(d.deeds) > 1: // an object of the scenario
			remove := object{"ref": object{"apiVersion": deed.role.apiVersion, "kind": deed.role.kind, "name": deed.role.name}}
			if !p.hides() { // what belongs to it goes first; that would be one more change of the object, which the operator hears of
				remove["deletionPropagationPolicy"] = "Foreground"
			}
			try = append(try, object{"delete": remove})
		default:
			try = append(try, script(deed.script(o.names)))
		}
		if deed.then == settles || deed.then == remember || deed.then == compareOthers || d.stays != nil {
			try = append(try, script(versions(o.state)+settledScript(time.Second)))
		}
	}
	return try
}

// script returns a deed on an object that is there as commands for a shell.
func (d *deed) script(names randomNames) string {
	of := trace.Ref{APIVersion: d.role.apiVersion, Kind: d.role.kind}.KubectlKind() + ` --namespace "$NAMESPACE"`
	out, name := "", d.role.name
	if names.byPattern(d.role) {
		out = fmt.Sprintf("set -- $(kubectl get %s --output jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}' | grep -E '%s')\n", of, expressionOf(d.role.name))
		name = `"$1"`
	} else if prefix, generated := strings.CutSuffix(d.role.name, "*"); generated {
		out = fmt.Sprintf("set -- $(kubectl get %s --output jsonpath='{.items[?(@.metadata.generateName==\"%s\")].metadata.name}')\n", of, prefix)
		name = `"$1"`
	}
	if len(d.path) == 0 {
		return out + "kubectl delete " + of + " " + name + "\n"
	}
	kind := "json"
	if d.absent {
		kind = "merge"
	}
	patch, _ := d.patchOf().Data(nil) // it is made already
	return out + "kubectl patch " + of + " " + name + " --type " + kind + " --patch '" + strings.ReplaceAll(string(patch), "'", `'\''`) + "'\n"
}

// versions returns a function of a shell that prints the versions of all objects.
func versions(there state) string {
	var kinds []string
	for r := range there {
		kinds = append(kinds, trace.Ref{APIVersion: r.apiVersion, Kind: r.kind}.KubectlKind())
	}
	slices.Sort(kinds)
	return fmt.Sprintf(`versions() { kubectl get %s --namespace "$NAMESPACE" --output jsonpath='{range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}'; }
`, strings.Join(slices.Compact(kinds), ","))
}

// looks is how often a script looks, in the time that nothing is to change, whether something has.
const looks = 4

// settledScript waits until no object has become another one for some time: a test does not know what the operator has to do.
func settledScript(still time.Duration) string {
	return fmt.Sprintf(`before= same=0
for i in $(seq %d); do
  now=$(versions) || exit 1
  if [ "$now" = "$before" ]; then same=$((same + 1)); else before=$now same=0; fi
  [ $same -lt %d ] || exit 0
  sleep %v
done
echo 'it does not settle'
exit 1
`, looks*30*time.Second/still, looks, (still / looks).Seconds())
}

// restFor is how long an operator that was started again is to write nothing.
const restFor = 5 * time.Second

// restScript returns a step that starts the operator again, and fails if an object becomes another one then.
func restScript(fault object, there state) (object, error) {
	text, err := json.Marshal(fault)
	return object{"name": "restart", "try": []any{script(versions(there) + fmt.Sprintf(`before=$(versions) || exit 1
echo '%s' | kubectl create --filename - || exit 1
for i in $(seq %d); do
  sleep %v
  now=$(versions) || exit 1
  [ "$now" = "$before" ] || { printf 'it wrote although nothing had changed:\n%%s\n' "$now"; exit 1; }
done
`, text, looks, (restFor/looks).Seconds()))}}, err
}

// documentOf reads the document of a scenario once more, with its expressions as they were written.
func documentOf(loaded *format.Loaded) (object, error) {
	text, err := os.ReadFile(loaded.File)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq("\n"+string(text), "\n---") {
		var document object
		if err := yaml.Unmarshal([]byte(part), &document); err != nil {
			return nil, err
		}
		if metadata, is := document["metadata"].(object); is && metadata["name"] == loaded.Test.Name {
			return document, nil
		}
	}
	return nil, fmt.Errorf("%s has no test %s any more", loaded.File, loaded.Test.Name)
}

// faultName is the name of the fault in a test.
const faultName = "finding"

// staleFor is how long an older view lasts in a test, which does not know when the operator has no more to do.
const staleFor = time.Second

// faultObject returns the fault of a plan for a test: in the namespace of the test.
func faultObject(p *Plan, name string) (object, error) {
	fault := p.Fault.DeepCopy()
	if fault.Stale != nil && !p.hides() {
		fault.Stale.For = &metav1.Duration{Duration: staleFor}
	}
	text, err := yaml.Marshal(fault)
	if err != nil {
		return nil, err
	}
	var spec object
	if err := yaml.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	if match, is := spec["match"].(object); is {
		match["namespace"] = "($namespace)"
	}
	return object{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Fault", "metadata": object{"name": name}, "spec": spec,
	}, nil
}

// wanted returns assertions of what is different with the fault.
func (f *Finding) wanted() []any {
	var out []any
	counted := map[role]bool{}
	byRole := map[role]object{}
	for _, d := range f.outcome.differences {
		switch {
		case d.Path == "" && !counted[d.role]:
			counted[d.role] = true
			out = append(out, object{"assert": object{"resource": object{"(" + f.outcome.names.numberOf(d.role) + ")": yamlValue(d.Want)}}})
		case d.Path != "" && !strings.Contains(d.Want, "<") && !strings.Contains(d.role.name, "*"):
			if byRole[d.role] == nil {
				byRole[d.role] = object{"apiVersion": d.role.apiVersion, "kind": d.role.kind, "metadata": object{"name": d.role.name}}
				out = append(out, object{"assert": object{"resource": byRole[d.role]}})
			}
			want := yamlValue(d.Want)
			if d.Want == "" {
				byRole[d.role]["("+d.Path+" == null)"] = true
				continue
			}
			byRole[d.role]["("+d.Path+")"] = want
		}
	}
	return out
}

// numberOf returns an expression for the number of objects with a role.
func (n randomNames) numberOf(r role) string {
	of := fmt.Sprintf("metadata.name == '%s'", r.name)
	if n.byPattern(r) {
		of = fmt.Sprintf("regex_match('%s', metadata.name)", expressionOf(r.name))
	} else if prefix, generated := strings.CutSuffix(r.name, "*"); generated {
		of = fmt.Sprintf("metadata.generateName == '%s'", prefix)
	}
	return fmt.Sprintf("length(x_k8s_list($client, '%s', '%s', $namespace).items[?%s])", r.apiVersion, r.kind, of)
}

// yamlValue returns a value of a difference as data.
func yamlValue(text string) any {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return text
	}
	return value
}

// Sampled returns a scenario that creates objects and lets the operator settle.
func Sampled(operator string, objects []*unstructured.Unstructured) ([]byte, error) {
	var apply []any
	for _, o := range objects {
		resource := o.DeepCopy()
		resource.SetNamespace("") // that of the scenario
		apply = append(apply, object{"apply": object{"resource": resource.Object}})
	}
	return yaml.Marshal(object{
		"apiVersion": "chainsaw.kyverno.io/v1alpha1", "kind": "Test",
		"metadata": object{"name": "samples", "annotations": object{"operator-lab.dev/operator": operator}},
		"spec": object{
			"description": "The samples are applied, and the operator settles.", "template": false,
			"steps": []any{object{"name": "samples", "try": apply}},
		},
	})
}
