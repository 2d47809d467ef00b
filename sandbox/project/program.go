package project

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// LogArguments make a program with controller-runtime's zap flags log when its reconciles begin and end.
var LogArguments = []string{"--zap-log-level=5", "--zap-encoder=json"}

// zapFlags is the function that adds these flags to a program's.
const zapFlags = "sigs.k8s.io/controller-runtime/pkg/log/zap.(*Options).BindFlags"

// firstLogged is the first release of controller-runtime that logs both.
const firstLogged = "v0.16.0"

// TakesLogArguments reports whether a program takes the [LogArguments], by what is in its file: it is not run.
func TakesLogArguments(program string) bool {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return false // it is not in Go
	}
	for _, dep := range info.Deps {
		if dep.Path == "sigs.k8s.io/controller-runtime" && semver.Compare(dep.Version, firstLogged) >= 0 {
			raw, err := os.ReadFile(program)
			return err == nil && bytes.Contains(raw, []byte(zapFlags))
		}
	}
	return false
}

// HasLogArguments reports whether the [LogArguments] are among the arguments of a program.
func HasLogArguments(args []string) bool {
	return !slices.ContainsFunc(LogArguments, func(want string) bool {
		return !slices.ContainsFunc(args, func(arg string) bool { return strings.TrimLeft(arg, "-") == strings.TrimLeft(want, "-") })
	})
}
