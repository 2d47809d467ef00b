package format

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// annotated is a test with annotations and steps.
func annotated(annotations, spec string) string {
	return "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: t\n  annotations:\n" + annotations + "spec:\n" + spec
}

func TestLint(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		with  Discovery
		want  []string
	}{
		"everything of everyone": {
			files: map[string]string{
				"a/chainsaw-test.yaml": head + "  foo: 1\n  steps: []\n---\n" + test("one", "size: big"),
				"b/chainsaw-test.yaml": operation + "script: {contnt: x}\n",
			},
			with: Discovery{Selectors: []string{"size=small"}, Include: "nothing"},
			want: []string{
				`a/chainsaw-test.yaml:5:3: unknown field "foo" in spec`,
				`b/chainsaw-test.yaml:7:16: unknown field "contnt" in spec.steps[0].try[0].script | did you mean "content"?`,
			},
		},
		"names twice": {
			files: map[string]string{"chainsaw-test.yaml": test("a", "") + "---\n" + test("a", ""), "b/chainsaw-test.yaml": head + "  steps: [{name: a}, {name: b}, {name: a}]\n"},
			want: []string{
				`warning: b/chainsaw-test.yaml:5:33: a second step "a" | the first is in line 5`,
				`warning: chainsaw-test.yaml:6: a second test "a" in this folder | the first is in line 1 of chainsaw-test.yaml; reports cannot tell them apart`,
			},
		},
		"files": {
			files: map[string]string{
				"chainsaw-test.yaml": operation + "apply: {file: confg.yaml}\n    - assert: {file: bad.yaml}\n    - apply: {file: bad.yaml, template: false}\n    - script: {content: make > made.yaml}\n    - apply: {file: made.yaml}\n    - apply: {file: ($namespace)}\n    - apply: {file: 'https://127.0.0.1:1/x.yaml'}\n    - delete: {file: config.yaml}\n",
				"config.yaml":        "kind: A\n",
				"bad.yaml":           "kind: A\na: (b c)\na: 1\n",
			},
			want: []string{
				"bad.yaml:2:4: (b c) is not an expression: unexpected token at the end of the expression: a name | what is in parentheses is an expression; if it is a text, write a backslash before and after it",
				`warning: bad.yaml:3:1: "a" is written twice | the first is in line 2`,
				`chainsaw-test.yaml:7:7: confg.yaml: there is no such file | did you mean "config.yaml"?`,
			},
		},
		"numbers": {
			files: map[string]string{"chainsaw-test.yaml": operation + "assert: {resource: {kind: A, (a.b == `2`): true, \"(length(a) == `2` && a >= `2` && a == `0.5` && a == 'x')\": true, \"(l[?a != `3`])\": []}}\n"},
			want: []string{
				"warning: chainsaw-test.yaml:7:7: a field that is compared with `2` by == or != is never equal to it | Chainsaw tells whole numbers of objects from those of expressions; write the number as the value of the field, or use <= and >=",
				"warning: chainsaw-test.yaml:7:7: a field that is compared with `3` by == or != is never equal to it | Chainsaw tells whole numbers of objects from those of expressions; write the number as the value of the field, or use <= and >=",
			},
		},
		"variables": {
			files: map[string]string{
				"chainsaw-test.yaml": head + `  bindings: [{name: song, value: x}]
  scenarios: [{bindings: [{name: row, value: 1}]}]
  steps:
  - bindings: [{name: a, value: ($songs)}, {name: b, value: ($a)}]
    try:
    - script: {content: "echo $nothing ($nothing)", env: [{name: X, value: ($b)}], check: {(length($stdout)): 1}, outputs: [{name: o, value: (trim($stdout))}]}
    - assert: {resource: {kind: A, "(spec) -> s": {($s): 1}, "~i.(list)": {($i): 2}, (let $l = $b in $l): 3, x: ($o), y: ($row), z: ($p)}}
    - apply: {resource: {kind: A, b: ($q)}, template: false}
    - command: {entrypoint: x, args: [($nothing)]}
    - apply: {file: f.yaml}
    finally:
    - script: {content: x, check: {($o): 1}}
  - try:
    - script: {content: x, check: {($o): 1}}
  - try:
    - {compiler: cel, script: {content: x, check: {($undefined): 1}}}
  - bindings: [{name: ($song), value: 1}]
    try:
    - script: {content: x, check: {($anything): 1}}
`,
				"f.yaml": "kind: A\na: ($valuse.x)\n",
			},
			want: []string{
				"chainsaw-test.yaml:8:16: $songs is not defined here | did you mean $song?",
				"chainsaw-test.yaml:11:7: $p is not defined here | bindings of a test and a step are seen in all of it, outputs only later in the same step",
				"chainsaw-test.yaml:18:7: $o is not defined here | bindings of a test and a step are seen in all of it, outputs only later in the same step",
				"f.yaml:1:1: $valuse is not defined here | did you mean $values?",
			},
		},
		"programs": {
			files: map[string]string{"chainsaw-test.yaml": operation + "command: {entrypoint: kubectl get pods}\n    - script: {shell: bash -e, content: x}\n    - wait: {apiVersion: v1, kind: Pod, for: {condition: {name: Ready}, deletion: {}}}\n"},
			want: []string{
				`chainsaw-test.yaml:7:7: there is no program "kubectl get pods" | its arguments belong in args`,
				`chainsaw-test.yaml:8:7: there is no shell "bash -e" | its arguments belong in shellArgs`,
				"warning: chainsaw-test.yaml:9:7: waits only for the deletion | make a wait of its own of condition",
			},
		},
		"annotations": {
			files: map[string]string{"chainsaw-test.yaml": annotated(`    operator-lab.dev/operater: zundoko
    operator-lab.dev/operator: zundoko, B
    operator-lab.dev/parameters: "song=Zun,Doko;seed"
    operator-lab.dev/oracle.hotloop: "off: x"
    operator-lab.dev/oracle.leak: "off"
    operator-lab.dev/stays.kep: 5s
    operator-lab.dev/stays.made: 5s
    operator-lab.dev/stays.kept: soon
    operator-lab.dev/title: ""
    operator-lab.dev/give-up: soon
    example.com/other: x
`, "  steps:\n  - {name: kept, try: [{assert: {resource: {kind: A}}}]}\n  - {name: made, try: [{sleep: {duration: 1s}}]}\n")},
			want: []string{
				`chainsaw-test.yaml:6:5: annotation operator-lab.dev/operater: is not one of the lab's | did you mean "operator"?`,
				`chainsaw-test.yaml:7:5: annotation operator-lab.dev/operator: "B" is not the name of an operator | write names with commas between them`,
				`chainsaw-test.yaml:8:5: annotation operator-lab.dev/parameters: "seed" is not a parameter | write name=value, without dashes before the name, and ; between them`,
				`chainsaw-test.yaml:9:5: annotation operator-lab.dev/oracle.hotloop: there is no oracle "hotloop" | did you mean "hot-loop"?`,
				`chainsaw-test.yaml:10:5: annotation operator-lab.dev/oracle.leak: an oracle is only switched off with a reason | write "off: " and why`,
				`chainsaw-test.yaml:11:5: annotation operator-lab.dev/stays.kep: there is no step with the name "kep" | did you mean "kept"?`,
				`chainsaw-test.yaml:12:5: annotation operator-lab.dev/stays.made: the step "made" asserts nothing`,
				`chainsaw-test.yaml:13:5: annotation operator-lab.dev/stays.kept: "soon" is not a duration | write it with its unit, such as 5s or 1m30s`,
				`chainsaw-test.yaml:14:5: annotation operator-lab.dev/title: is empty`,
				`chainsaw-test.yaml:15:5: annotation operator-lab.dev/give-up: "soon" is not when an assertion can give up | write at-rest, or leave it out`,
			},
		},
		"other files": {
			files: map[string]string{"c.yaml": configuration("v1alpha2", "{foo: 1}"), "t.yaml": "kind: StepTemplate\n"},
			with:  Discovery{Paths: []string{"c.yaml", "t.yaml"}},
			want: []string{
				`c.yaml:4:8: unknown field "foo" in spec`,
				"t.yaml:1:1: apiVersion is missing | apiVersion: chainsaw.kyverno.io/v1alpha1 and kind: StepTemplate are wanted",
			},
		},
		"no path": {with: Discovery{Paths: []string{"x"}}, want: []string{"x: file does not exist | name folders that have tests in them, or files of tests"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.with.FS = tree(c.files)
			if diff := cmp.Diff(c.want, tell(Lint(c.with))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReadLab(t *testing.T) {
	l := load(annotated(`    operator-lab.dev/operator: zundoko, hikawa
    operator-lab.dev/variant: hardened
    operator-lab.dev/parameters: "song=Zun,Zun,Doko; seed=7;"
    operator-lab.dev/oracle.hot-loop: "off: it counts on purpose"
    operator-lab.dev/stays.the-song-is-kept: 5s
    operator-lab.dev/finding: Z-01
    operator-lab.dev/give-up: at-rest
`, "  steps: [{name: the song is kept, try: [{assert: {resource: {kind: A}}}]}]\n"))
	got, err := ReadLab(l[0].Test)
	if err != nil || l[0].Err != nil {
		t.Fatal(err, l[0].Err)
	}
	want := Lab{
		Operators: []string{"zundoko", "hikawa"}, Variant: "hardened",
		Parameters: []Parameter{{Name: "song", Value: "Zun,Zun,Doko"}, {Name: "seed", Value: "7"}},
		Off:        map[string]string{"hot-loop": "it counts on purpose"},
		Stays:      map[string]time.Duration{"the song is kept": 5 * time.Second},
		Japanese:   map[string]string{},
		Toil:       map[string]string{},
		ByHand:     map[string]time.Duration{},
		Decisions:  map[string]string{},
		Finding:    "Z-01",
		GiveUp:     true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStarter(t *testing.T) {
	for name, o := range map[string]StarterOptions{
		"nothing":  {},
		"operator": {Name: "zundoko-sings", Operator: "zundoko"},
		"sample":   {Name: "serves", Operator: "zundoko", Sample: []byte("# one\napiVersion: example.com/v1\nkind: Song\nmetadata:\n  name: zun\nspec:\n  times: 4\n")},
		"odd":      {Name: "A {{ b }}: \"c\"\n" + string(make([]byte, 100)), Operator: "x\ny: z"},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(Starter(o))
			d := Discovery{FS: tree(map[string]string{"s/chainsaw-test.yaml": text})}
			if got := tell(Lint(d)); len(got) > 0 {
				t.Errorf("%q\n%s", got, text)
			}
			found, err := Discover(d)
			if err != nil || len(found) != 1 || len(found[0].Test.Spec.Steps) != 3 {
				t.Fatal(found, err)
			}
			lab, err := ReadLab(found[0].Test)
			if err != nil || (len(lab.Operators) == 1) != (o.Operator != "") {
				t.Error(lab, err)
			}
		})
	}
}
