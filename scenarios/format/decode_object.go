package format

import (
	"fmt"
	"reflect"
)

// Decode reads the only object of a file into a struct, as strictly as tests are read: it reports unknown keys, wrong
// types and violated check tags, all at once. It fills in what it could read even if there are problems.
func Decode(file string, data []byte, into any) Problems {
	if len(data) > MaxFileSize {
		return Problems{{File: file, Message: fmt.Sprintf("is larger than %d MiB", MaxFileSize>>20)}}
	}
	docs, wrong := parse(file, data)
	switch {
	case len(wrong) > 0:
		return wrong
	case len(docs) == 0:
		return Problems{{File: file, Message: "is empty"}}
	case len(docs) > 1:
		return Problems{{File: file, Line: docs[1].line, Message: "a second document: one is wanted"}}
	}
	d := newDecoder(file, docs[0], false)
	d.value(docs[0].root, reflect.ValueOf(into).Elem(), nil, scope{}, nil)
	return d.problems.sorted()
}

// Suggest returns a hint for an unknown name: the nearest known one, or all if they are few. It may be empty.
func Suggest(name string, known []string) string { return suggest(name, known) }

// Sorted puts them in the order of the files, and each only once.
func (p Problems) Sorted() Problems { return p.sorted() }
