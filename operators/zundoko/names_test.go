package zundoko

import "testing"

func TestWordName(t *testing.T) {
	for n, want := range map[int]string{1: "h-zundoko-001", 42: "h-zundoko-042", 999: "h-zundoko-999", 1000: "h-zundoko-1000"} {
		if got := wordName("h", n); got != want {
			t.Errorf("wordName(h, %d) = %q, want %q", n, got, want)
		}
	}
}

func TestWordNumber(t *testing.T) {
	for name, want := range map[string]int{
		"h-zundoko-001":                  1,
		"h-zundoko-999":                  999,
		"h-zundoko-1000":                 1000,
		"h-zundoko-000":                  0,
		"h-zundoko-1":                    0, // not the name that would be given
		"h-zundoko-0001":                 0,
		"h-zundoko-+01":                  0,
		"h-zundoko--01":                  0,
		"h-zundoko-":                     0,
		"h-zundoko-001-more":             0,
		"h-zundoko-99999999999999999999": 0,
		"other-zundoko-001":              0,
		"h-kiyoshi":                      0,
		"":                               0,
	} {
		if got, ok := wordNumber("h", name); got != want || ok != (want > 0) {
			t.Errorf("wordNumber(h, %q) = %d, %v, want %d", name, got, ok, want)
		}
	}
	// A Hikawa may have a name that looks like a word of another.
	if n, ok := wordNumber("h-zundoko-001", "h-zundoko-001-zundoko-002"); !ok || n != 2 {
		t.Errorf("got %d, %v, want 2", n, ok)
	}
}

func FuzzWordNumber(f *testing.F) {
	f.Add("h", "h-zundoko-001", 1)
	f.Add("", "-zundoko-1000", 1000)
	f.Add("h-zundoko-001", "h-zundoko-001", -1)
	f.Add("h", "h-zundoko-٣٣٣", 0)
	f.Fuzz(func(t *testing.T, hikawa, name string, n int) {
		if got, ok := wordNumber(hikawa, name); ok && (got < 1 || wordName(hikawa, got) != name) {
			t.Errorf("%q is word %d of %q, whose name would be %q", name, got, hikawa, wordName(hikawa, got))
		}
		got, ok := wordNumber(hikawa, wordName(hikawa, n))
		if n >= 1 && (!ok || got != n) {
			t.Errorf("word %d of %q came back as %d, %v", n, hikawa, got, ok)
		}
		if n < 1 && ok {
			t.Errorf("there is a word number %d", n)
		}
	})
}
