package report_test

import (
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

func TestWhatIsSaidIsUnderstood(t *testing.T) {
	whole := report.Result{Location: "b/k", Revision: 7, TotalKeys: 3, SizeBytes: 9, SHA256: "ab", Endpoint: "http://m:2379", EtcdVersion: "3.6.8", Kept: 2, Pruned: 1, Warning: "w"}
	for _, r := range []report.Result{whole, {Error: "e", Reason: report.ReasonTimeout}} {
		data, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := report.Decode(string(data) + "\n"); err != nil || got != r {
			t.Errorf("got %+v, %v, want %+v", got, err, r)
		}
	}
	for _, message := range []string{"", "panic: oh", "{}", `{"revision":1}`, `{"sha256":"ab"}`, `{"revision":-1,"sha256":"ab"}`, "[]", "{"} {
		if got, err := report.Decode(message); err == nil {
			t.Errorf("%q is understood as %+v", message, got)
		}
	}
}

func TestAnErrorIsOneShortLine(t *testing.T) {
	data, err := report.Result{Error: "a\n b\t" + strings.Repeat(`"`, 1500), Warning: strings.Repeat(`"`, 900)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > report.MaxLength {
		t.Errorf("it has %d bytes, of which a kubelet keeps %d", len(data), report.MaxLength)
	}
	if got, err := report.Decode(string(data)); err != nil || !strings.HasPrefix(got.Error, `a b "`) || strings.Contains(got.Error, "\n") {
		t.Errorf("got %q, %v", got.Error, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"error":"e","reason":"Timeout"}`)
	f.Add(`{"revision":7,"sha256":"ab"} {"error":"e"}`)
	f.Fuzz(func(t *testing.T, message string) {
		r, err := report.Decode(message)
		if err == nil && r.Error == "" && (r.SHA256 == "" || r.Revision <= 0) {
			t.Errorf("%q is taken for a backup: %+v", message, r)
		}
	})
}
