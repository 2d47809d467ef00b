package project

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestReadAnsible(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "roles", "site"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "play.yml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANSIBLE_ROLES_PATH", "")
	head := "- group: example.com\n  version: v1\n  kind: Site\n"
	file := filepath.Join(dir, "watches.yaml")
	for name, c := range map[string]struct{ text, wrong string }{
		"a role":               {head + "  role: site\n", ""},
		"a playbook":           {head + "  playbook: play.yml\n", ""},
		"a role elsewhere":     {head + "  role: my.collection.site\n", ""},
		"a variable":           {head + "  playbook: ${PLAYS}/play.yml\n", ""},
		"a finalizer":          {head + "  role: site\n  finalizer: {name: a/b, vars: {gone: true}}\n", ""},
		"keys that are Go's":   {head + "  role: site\n  vars: {a: 1}\n  snakeCaseParameters: false\n", ""},
		"no kind":              {"- {group: example.com, version: v1, role: site}\n", "entry 1 has no version and kind"},
		"no version":           {"- {group: example.com, kind: Site, role: site}\n", "entry 1 has no version and kind"},
		"twice":                {head + "  role: site\n" + head + "  playbook: play.yml\n", "entry 2 is for Site of example.com/v1, as entry 1"},
		"neither":              {head + "  role: site\n" + strings.Replace(head, "Site", "Other", 1), "entry 2 names neither a role nor a playbook"},
		"no role":              {head + "  role: sight\n", "entry 1 names roles/sight, which does not exist"},
		"no playbook":          {head + "  playbook: plays/play.yml\n", "entry 1 names plays/play.yml, which does not exist"},
		"no role to clean up":  {head + "  role: site\n  finalizer: {name: a/b, role: gone}\n", "entry 1 names roles/gone, which does not exist"},
		"no list":              {"role: site\n", "line 1: cannot unmarshal"},
		"no YAML":              {"- {role: site\n", "line 1:"},
		"a kind that is a map": {"- {kind: {a: b}, role: site}\n", "line 1: cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if ansibleFile(dir) != file {
				t.Error("it is not taken for an Ansible operator")
			}
			runs, err := readAnsible(file)
			switch {
			case c.wrong == "" && (err != nil || len(runs) != 1 || runs[0].Kind != "Site" || runs[0].APIVersion != "example.com/v1"):
				t.Errorf("%+v, %v", runs, err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "\n")):
				t.Errorf("the error is %v", err)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if ansibleFile(dir) != "" {
		t.Error("a program that reads watches.yaml itself is taken for an Ansible operator")
	}
}

// ansibleEvent is a line as ansible-operator prints it for an event of a job.
func ansibleEvent(job, event string, data map[string]any) string {
	raw, err := json.Marshal(map[string]any{
		"level": "info", "logger": "logging_event_handler", "msg": "", "name": "ex", "namespace": "ns",
		"gvk": "example.com/v1, Kind=Site", "event_type": event, "job": job, "EventData": data,
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestAnsibleLog(t *testing.T) {
	j := trace.New(trace.Options{})
	home := t.TempDir()
	l := newAnsibleLog("site", home, j)
	loop := trace.Event{Operator: "site", Controller: "site-v1-controller", Key: trace.Key{Namespace: "ns", Name: "ex"}}
	begin := func() *trace.Event {
		e := loop
		e.Kind, e.Reconcile = trace.KindStart, j.NewReconcile()
		return j.Get(j.Append(e))
	}
	end := func(of *trace.Event) {
		e := loop
		e.Kind, e.Reconcile, e.Cause = trace.KindEnd, of.Reconcile, of.Seq
		j.Append(e)
	}
	task := func(name string, more map[string]any) map[string]any {
		data := map[string]any{"task": name, "role": "site", "task_action": "kubernetes.core.k8s", "task_path": filepath.Join(home, "roles", "site", "tasks", "main.yml") + ":7"}
		maps.Copy(data, more)
		return data
	}
	first := begin()
	l.line(ansibleEvent("1", "playbook_on_start", map[string]any{}))
	l.line(ansibleEvent("1", "playbook_on_task_start", task("the database", nil)))
	l.line(ansibleEvent("1", ansibleOK, task("the database", map[string]any{"res": map[string]any{"changed": true}})))
	l.line("--------------------------- Ansible Task StdOut -------------------------------")
	l.line(`{"level":"info","msg":"Read object from cache"}`)
	l.line(ansibleEvent("1", ansibleOK, task("the page", map[string]any{"res": map[string]any{"changed": false, "msg": []any{"all", "as it was"}}})))
	l.line(ansibleEvent("1", ansibleSkipped, task("more", nil)))
	l.line(ansibleEvent("1", ansibleFailed, task("a guess", map[string]any{"ignore_errors": true, "res": map[string]any{"msg": "no"}})))
	l.line(ansibleEvent("1", ansibleFailed, task("the end", map[string]any{"res": map[string]any{"msg": "could not find it"}})))
	end(first)
	second := begin()
	l.line(ansibleEvent("1", ansibleStats, map[string]any{"ok": map[string]int{"localhost": 2}, "changed": map[string]int{"localhost": 1}, "failures": map[string]int{"localhost": 1}, "skipped": map[string]int{"localhost": 1}})) // late
	l.line(ansibleEvent("2", ansibleOK, task("the database", nil)))
	l.line(`{"level":"error","logger":"runner","msg":"\u001b[0;34mNo config file found\u001b[0m\r\n\u001b[0;31mERROR! couldn't resolve module/action 'a.b'.\u001b[0m\r\nmore","job":"3","name":"ex","namespace":"ns"}`)
	l.line(`{"level":"info","logger":"runner","msg":"Ansible-runner exited successfully","job":"2","name":"ex","namespace":"ns"}`)
	type line struct {
		of                   int64
		message, err, source string
	}
	var got []line
	for _, e := range j.Since(0) {
		if e.Kind == trace.KindLog {
			got = append(got, line{e.Reconcile, e.Message, e.Error, e.Line})
			if e.Cause == 0 || e.Controller != loop.Controller || e.Key != loop.Key {
				t.Errorf("the event is %+v", e)
			}
		}
	}
	const at = "roles/site/tasks/main.yml:7"
	want := []line{
		{first.Reconcile, "changed: site : the database", "", at},
		{first.Reconcile, "ok: site : the page", "", at},
		{first.Reconcile, "skipping: site : more", "", at},
		{first.Reconcile, "failed, ignored: site : a guess", "", at},
		{first.Reconcile, "failed: site : the end", "could not find it", at},
		{first.Reconcile, "run: ok=2 changed=1 failed=1 skipped=1", "", ""},
		{second.Reconcile, "ok: site : the database", "", at},
		{second.Reconcile, "ansible-playbook", "couldn't resolve module/action 'a.b'.", ""},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the journal has\n%+v\nwant\n%+v", got, want)
	}
}

func FuzzAnsibleLine(f *testing.F) {
	f.Add(ansibleEvent("1", ansibleOK, map[string]any{"task": "a", "task_path": "/a:1", "res": map[string]any{"changed": true}}))
	f.Add(ansibleEvent("1", ansibleStats, map[string]any{"ok": map[string]int{"localhost": 2}}))
	f.Add(`{"event_type":"runner_on_ok","job":"1","gvk":", Kind=","EventData":{"task_path":":1"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		j := trace.New(trace.Options{})
		newAnsibleLog("site", t.TempDir(), j).line(text)
		for _, e := range j.Since(0) {
			if e.Message == "" || e.Reconcile != 0 || e.Line != "" && !filepath.IsLocal(e.Line) {
				t.Errorf("the event is %+v", e)
			}
		}
	})
}
