// Package translations keeps kubectl's translations from being read by processes that do not show them.
//
// kubectl's packages translate their help texts while they are initialized, which is a fifth of what a process of the binary
// does before main. This package is initialized before them for the reason told in the package early. main imports it.
package translations

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

var _ = skip()

// skip has texts stay as they are, in English, unless this process is kubectl or oc, by its name or its first argument, and
// the language is another one.
func skip() error {
	is := func(arg string) bool { return slices.Contains([]string{"kubectl", "oc"}, filepath.Base(arg)) }
	// As kubectl looks for it; it is followed by an encoding, as in C.UTF-8.
	language, _, _ := strings.Cut(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"), "C"), ".")
	if slices.ContainsFunc(os.Args[:min(2, len(os.Args))], is) && language != "C" && language != "POSIX" && !strings.HasPrefix(language, "en") {
		return nil
	}
	return i18n.SetLoadTranslationsFunc(func() error { return nil })
}
