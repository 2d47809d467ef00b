package cli

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestListen checks that what a background process tells of its sandbox gets to the lab here, and that it goes on when nobody
// listens any more.
func TestListen(t *testing.T) {
	messages, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Open(t.Context(), lab.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	f := upFlags{listener: &lab.Listener{}}
	f.listener.Set(l)
	go f.listen(json.NewDecoder(messages), messages)

	tell := &teller{to: report}
	const written = `{"verb":"create","userAgent":"kubectl/v1","objectRef":{"resource":"subscriptions","apiGroup":"operators.coreos.com","apiVersion":"v1alpha1"},
	  "responseObject":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"cafe","uid":"s"}}}` + "\n"
	for _, m := range []message{{Audit: json.RawMessage(written)}, {Exit: &sandbox.Exit{Program: "etcd", LogEnd: "bye"}}} {
		if err := tell.say(m); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.Eventually(t, "the journal to have both", func() error {
		var got []string
		for _, e := range l.Journal().Since(0) {
			got = append(got, e.Actor+" "+e.Verb+e.Message)
		}
		if all := strings.Join(got, "\n"); !strings.Contains(all, "you "+trace.VerbCreate) || !strings.Contains(all, "etcd etcd died") {
			return errors.New("it has " + all)
		}
		return nil
	})

	unread, again, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = unread.Close()
	tell = &teller{to: again}
	for range 2 {
		if err := tell.say(message{Ready: true}); err == nil {
			t.Error("it does not notice that nobody reads")
		}
	}
}
