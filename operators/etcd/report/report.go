// Package report is what the agent tells the operator: one JSON object, which the kubelet takes over into the status of
// the agent's pod as the last words of its container.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The reasons of failures, which become those of conditions.
const (
	// ReasonBadRequest: what was asked for makes no sense, such as an endpoint that is no URL.
	ReasonBadRequest = "BadRequest"
	// ReasonNoEndpoint: no member answers.
	ReasonNoEndpoint = "NoEndpoint"
	// ReasonSnapshotFailed: a member answers, but sends no whole snapshot.
	ReasonSnapshotFailed = "SnapshotFailed"
	// ReasonStorageFailed: the place for backups is not there, or does not let us in.
	ReasonStorageFailed = "StorageFailed"
	// ReasonBackupMissing: there is no such backup.
	ReasonBackupMissing = "BackupMissing"
	// ReasonBackupUnreadable: what is there is no backup, or no longer.
	ReasonBackupUnreadable = "BackupUnreadable"
	// ReasonBackupChanged: the backup is not the one that was checked.
	ReasonBackupChanged = "BackupChanged"
	// ReasonTimeout: it took too long.
	ReasonTimeout = "Timeout"
	// ReasonFailed is any other.
	ReasonFailed = "Failed"
)

// MaxLength is the length, in bytes, of a termination message that a kubelet keeps.
const MaxLength = 4096

// Result of a job. Of one that failed there is the error, and nothing that could be taken for a backup.
type Result struct {
	// Error in one line, and its reason. They are empty when all went well.
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Location of the backup.
	Location string `json:"location,omitempty"`
	// Revision of the data, and how many keys they have.
	Revision  int64 `json:"revision,omitempty"`
	TotalKeys int   `json:"totalKeys,omitempty"`
	// SizeBytes and SHA256 (hexadecimal) of the whole file.
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	SHA256    string `json:"sha256,omitempty"`

	// Endpoint that the backup was taken from, and the version that it said it is.
	Endpoint    string `json:"endpoint,omitempty"`
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// Kept is how many backups there are now, Pruned how many were deleted.
	Kept   int `json:"kept,omitempty"`
	Pruned int `json:"pruned,omitempty"`
	// Warning tells of a failure that did not keep the work from being done: a member that did not answer, an old backup that stays.
	Warning string `json:"warning,omitempty"`
}

// Encode returns the result as JSON that is short enough for a kubelet.
func (r Result) Encode() ([]byte, error) {
	r.Error, r.Warning = oneLine(r.Error), oneLine(r.Warning)
	return json.Marshal(r)
}

// oneLine also cuts what is too long: 1000 characters need 4 bytes each at most, and so two of them would not fit, but
// nobody writes errors in such letters. The escapes of JSON are longer, and there are none in a line but of quotes.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if letters := []rune(s); len(letters) > 1000 {
		s = string(letters[:999]) + "…"
	}
	return s
}

// Decode reads what an agent said.
func Decode(message string) (Result, error) {
	var r Result
	decoder := json.NewDecoder(strings.NewReader(message))
	if err := decoder.Decode(&r); err != nil {
		return Result{}, fmt.Errorf("read what the agent said: %w", err)
	}
	if r.Error == "" && (r.SHA256 == "" || r.Revision <= 0) {
		return Result{}, errors.New("read what the agent said: it tells of no backup")
	}
	return r, nil
}
