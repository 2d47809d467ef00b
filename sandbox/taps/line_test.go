package taps

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// TestLine checks that a module's root package is one of its own.
func TestLine(t *testing.T) {
	var at stack
	runtime.Callers(1, at[:])
	s := ownCode{module: reflect.TypeFor[Taps]().PkgPath(), taps: "elsewhere/taps"}
	if got := s.line(at); !strings.HasPrefix(got, "line_test.go:") {
		t.Errorf("called at %q", got)
	}
}

// TestDirectory checks which functions on a stack are the program's own.
func TestDirectory(t *testing.T) {
	s := ownCode{module: "example.com/copier", main: "example.com/copier/cmd", taps: "example.com/copier/zz_operator_lab/taps"}
	for function, want := range map[string]string{
		"main.main": "cmd",
		"example.com/copier/internal/controller.(*R).Reconcile":  "internal/controller",
		"example.com/copier/internal/controller.(*R).run.func1":  "internal/controller",
		"example.com/copier.Run":                                 "",
		"example.com/copier/api/v1%2e2.Do":                       "api/v1.2",
		"example.com/copier/x.Each[...].func1":                   "x",
		"example.com/copier/x.Each[example.com/copier/api.Kind]": "x",
	} {
		if dir, own := s.directory(function); !own || dir != want {
			t.Errorf("%s is in %q, %t, not in %q", function, dir, own, want)
		}
	}
	for _, function := range []string{
		"", "runtime.goexit", "example.com/copier/internal/transport.carrier.RoundTrip", "example.com/copiers.Run", "example.com/copier/zz_operator_lab/taps.(*Taps).do",
		"example.com/copier/zz_operator_lab/link.(*origin).RoundTrip", "sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start",
	} {
		if dir, own := s.directory(function); own {
			t.Errorf("%s is the program's own, in %s", function, dir)
		}
	}
	if _, own := (ownCode{taps: "x/taps"}).directory("main.main"); own {
		t.Error("without a module nothing is its own")
	}
}
