// Package kubeversion tells the packages of Kubernetes their version, which otherwise only the linker's flags could do.
// They report it in kubectl version, in the API server's /version, as the version of the nodes and in user agents. It is
// the version of the module k8s.io/kubernetes in the binary's build information, so that it is right whatever command
// built the binary.
//
// The variables are set while this package is initialized, for the reason told in the package early. main imports it.
package kubeversion

import (
	"runtime/debug"
	"strings"
	"sync/atomic"
	_ "unsafe" // for go:linkname: no function of Kubernetes sets these variables
)

// What k8s.io/component-base/version has: kubectl and the servers report it.
var (
	//go:linkname componentMajor k8s.io/component-base/version.gitMajor
	componentMajor string
	//go:linkname componentMinor k8s.io/component-base/version.gitMinor
	componentMinor string
	//go:linkname componentVersion k8s.io/component-base/version.gitVersion
	componentVersion string
	//go:linkname componentCommit k8s.io/component-base/version.gitCommit
	componentCommit string
	// componentDynamic is set from componentVersion by an init function, which may already have run.
	//go:linkname componentDynamic k8s.io/component-base/version.dynamicGitVersion
	componentDynamic atomic.Value
)

// What k8s.io/client-go/pkg/version has: the user agent of every client.
var (
	//go:linkname clientMajor k8s.io/client-go/pkg/version.gitMajor
	clientMajor string
	//go:linkname clientMinor k8s.io/client-go/pkg/version.gitMinor
	clientMinor string
	//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
	clientVersion string
	//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
	clientCommit string
)

var _ = set()

// set sets the variables, unless the build information does not name the module or the linker set them. The commit is
// not known: it stays empty instead of a placeholder.
func set() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, module := range info.Deps {
		if module.Path != "k8s.io/kubernetes" || componentMajor != "" {
			continue
		}
		parts := strings.SplitN(strings.TrimPrefix(module.Version, "v"), ".", 3)
		if len(parts) < 3 {
			return false
		}
		componentMajor, componentMinor, componentVersion, componentCommit = parts[0], parts[1], module.Version, ""
		clientMajor, clientMinor, clientVersion, clientCommit = parts[0], parts[1], module.Version, ""
		componentDynamic.Store(module.Version)
		return true
	}
	return false
}
