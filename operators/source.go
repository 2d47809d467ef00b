package operators

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// sources has the code but for tests, whose names end in st.go, and what is generated, whose names begin with z.
//
//go:embed */*[^t].go */*[^s]t.go */*/[^z]*[^t].go */*/[^z]*[^s]t.go metacontroller/examples
var sources embed.FS

// Source returns a file of the bundled operators by its path in this module, such as operators/zundoko/hardened.go; also one of
// their manifests, which are below config, or of the examples of hooks.
func Source(file string) (string, error) {
	inside := strings.TrimPrefix(file, "operators/")
	raw, err := sources.ReadFile(inside)
	if name, manifest, is := strings.Cut(inside, "/config/"); is {
		if op, known := Find(name); known {
			raw, err = fs.ReadFile(op.Manifests, manifest)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s is no source of a bundled operator", file)
	}
	return string(raw), nil
}
