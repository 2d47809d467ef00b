package format

import "testing"

func TestCountsThatAreNone(t *testing.T) {
	for _, text := range []string{"create Zundoko", "create=5", "make Zundoko=5", "create Zundoko=-1", "create Zundoko=x", "five words"} {
		if _, err := ParseCounts(text); err == nil {
			t.Errorf("%q is taken for counts", text)
		}
	}
	if got, err := ParseCounts("create Zundoko=5, delete Kiyoshi = 0,"); err != nil || len(got) != 2 || got[1] != (Count{"delete Kiyoshi", 0}) {
		t.Errorf("%v, %v", got, err)
	}
}
