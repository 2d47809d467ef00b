package link

import "embed"

// Files holds the files of this package, for [github.com/operator-lab/operator-lab/sandbox/portable].
//
//go:embed *.go
var Files embed.FS
