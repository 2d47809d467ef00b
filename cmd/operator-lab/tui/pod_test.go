package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestPodReasons checks that the tree has the reason for which a pod does not run, as kubectl get pods has, and that its
// conditions tell it whole.
func TestPodReasons(t *testing.T) {
	for name, c := range map[string]struct {
		statuses, tree string
		tab            []string
	}{
		"an image that is not there": {
			`"containerStatuses":[{"name":"web","state":{"waiting":{"reason":"ErrImagePull","message":"no program is named web:9"}}}]`,
			"ErrImagePull",
			[]string{"container web waits: ErrImagePull", "no program is named web:9"},
		},
		"one that ends again and again": {
			`"containerStatuses":[{"name":"web","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"reason":"Error","exitCode":1}}}]`,
			"CrashLoopBackOff",
			[]string{"container web waits: CrashLoopBackOff, restarts 3"},
		},
		"one that has ended before": {
			`"phase":"Running","containerStatuses":[{"name":"web","restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"exitCode":137}}}]`,
			"Running",
			[]string{"container web ended before: ended (137), restarts 1"},
		},
		"an init container": {
			`"phase":"Pending","initContainerStatuses":[{"name":"dns","state":{"terminated":{"reason":"Error","exitCode":2}}}]`,
			"Error (2)",
			[]string{"init container dns has ended: Error (2)"},
		},
		"one that runs": {`"phase":"Running","initContainerStatuses":[{"name":"dns","state":{"terminated":{"reason":"Completed"}}}],"containerStatuses":[{"name":"web","state":{"running":{}}}]`, "Running", nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTold(t)
			raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default","uid":"u"},"status":{%s}}`, c.statuses)
			d.of("", trace.Event{
				Kind: trace.KindWatch, Verb: trace.Added, ResourceVersion: "1", After: json.RawMessage(raw),
				Object: trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "a", UID: "u"},
			})
			d.want(d.at(time.Second, "objects"), true, c.tree)
			d.nav().setFocus(ObjectsPane)
			d.nav().showTab(ConditionsTab)
			tab := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "┃", " ").Replace(d.at(time.Second, "detail"))), " ")
			d.want(tab, c.tab != nil, "container ")
			for _, want := range c.tab {
				d.want(tab, true, want)
			}
		})
	}
}
