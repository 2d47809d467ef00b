package early

import (
	"os"
	"path/filepath"
)

// HelpSuffix ends the name of a file that a sandbox puts beside a link to the binary. A process that is started by that
// link with --help alone prints the file and exits.
//
// envtest starts etcd and kube-apiserver that way before each start, to see whether they have one certain flag. An answer
// from the programs themselves costs an initialization of all packages each.
const HelpSuffix = ".help"

func answerHelp() {
	if len(os.Args) != 2 || os.Args[1] != "--help" || !filepath.IsAbs(os.Args[0]) {
		return
	}
	if help, err := os.ReadFile(os.Args[0] + HelpSuffix); err == nil {
		_, _ = os.Stdout.Write(help)
		os.Exit(0) //nolint:forbidigo // main is not to begin
	}
}
