package node

import "testing"

// TestCodeOf checks the exit code of a command whose container ended meanwhile.
func TestCodeOf(t *testing.T) {
	runs, ended := &container{done: make(chan struct{})}, &container{done: make(chan struct{})}
	close(ended.done)
	for name, test := range map[string]struct {
		in        *container
		code      int
		signalled bool
		want      int
	}{
		"it ended by itself":             {runs, 3, false, 3},
		"its signal was ignored":         {runs, 0, true, 0},
		"it was killed":                  {ended, 0, false, 137},
		"it ended the container":         {ended, 0, true, 0},
		"it ended the container, and on": {ended, 137, true, 137},
	} {
		if got := test.in.codeOf(test.code, test.signalled); got != test.want {
			t.Errorf("%s: %d; want %d", name, got, test.want)
		}
	}
}
