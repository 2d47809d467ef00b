package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
)

// auditPolicy asks the API server to tell of every write with the object it made, and of nothing else. Leases, Events
// and reviews are the cluster's own noise.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  users: ["system:apiserver"]
- level: None
  resources:
  - {group: coordination.k8s.io}
  - {group: events.k8s.io}
  - {group: authentication.k8s.io}
  - {group: authorization.k8s.io}
  - {group: "", resources: [events, serviceaccounts/token]}
- level: RequestResponse
`

func (l layout) auditPolicy() string { return filepath.Join(l.dir, "audit-policy.yaml") }

// auditPipe is where the API server writes its audit log: a pipe of its own, on its standard output, so that nothing
// of it touches a disk.
func auditPipe(each func(line []byte)) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		defer func() { _ = r.Close() }()
		lines := bufio.NewReaderSize(r, 256<<10)
		for {
			line, err := lines.ReadBytes('\n')
			if bytes.HasPrefix(line, []byte("{")) {
				each(line)
			}
			if err != nil {
				return
			}
		}
	}()
	return w, nil
}
