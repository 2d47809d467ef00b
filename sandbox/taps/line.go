//go:build go1.23

package taps

import (
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// deepest is how many functions below a call are looked at.
const deepest = 64

// stack is the program counters of a call.
type stack [deepest]uintptr

// lines are the lines of the calls that were made before, by their stack: a program has a limited number of them.
var lines sync.Map

// callLine returns the line of the program's source that makes the current call, as file:line. The file's path is relative
// to the module, however the program was built. Of the module's functions on the stack the first one that was called
// decides for a package, such as that of a reconciler: it is that package's line, not that of a helper which it uses. Empty
// if no function of the module is on the stack.
func callLine() string {
	var at stack
	runtime.Callers(2, at[:])
	if line, known := lines.Load(at); known {
		return line.(string) //nolint:forcetypeassert // it has nothing else
	}
	line := program().line(at)
	lines.Store(at, line)
	return line
}

// ownCode says where a program's own packages are.
type ownCode struct {
	module string // its path
	main   string // the import path of the main package
	taps   string // the import path of this package
}

var program = sync.OnceValue(func() ownCode {
	s := ownCode{taps: reflect.TypeFor[Taps]().PkgPath()}
	if info, ok := debug.ReadBuildInfo(); ok {
		s.module, s.main = info.Main.Path, info.Path
	}
	return s
})

// line does what callLine says for a stack.
func (s ownCode) line(at stack) (line string) {
	var of string // the package of the outermost function so far
	frames := runtime.CallersFrames(at[:])
	for {
		frame, more := frames.Next()
		if pkg, own := s.directory(frame.Function); own && (line == "" || pkg != of) {
			of, line = pkg, path.Join(pkg, path.Base(strings.ReplaceAll(frame.File, `\`, "/")))+":"+strconv.Itoa(frame.Line)
		}
		if !more {
			return line
		}
	}
}

// directory returns the directory, relative to the module, of the package that a function is in, and whether it is one of
// the program's own.
func (s ownCode) directory(function string) (dir string, own bool) {
	function, _, _ = strings.Cut(function, "[") // its type arguments
	slash := strings.LastIndexByte(function, '/') + 1
	dot := strings.IndexByte(function[slash:], '.')
	if dot < 0 || s.module == "" {
		return "", false
	}
	if strings.HasSuffix(function, ".RoundTrip") {
		return "", false // a transport of the program's: it passes on what others call
	}
	pkg := strings.ReplaceAll(function[:slash+dot], "%2e", ".") // as the linker writes dots of the last element
	if pkg == "main" {
		pkg = s.main
	}
	below, own := strings.CutPrefix(pkg+"/", s.module+"/")
	beside := path.Dir(s.taps)
	return strings.TrimSuffix(below, "/"), own && pkg != s.taps && pkg != path.Join(beside, "link")
}
