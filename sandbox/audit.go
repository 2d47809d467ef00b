package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
)

// auditPolicy makes the API server report every write with the resulting object, and nothing else. Leases, Events and
// reviews are left out: there are too many.
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

// auditPipe returns the pipe that the API server gets as its standard output for the audit log, which is not written to
// a disk.
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
