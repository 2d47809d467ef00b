package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files of credentials, which are also the keys of a Secret.
const (
	CredentialsFile = "credentials"
	ConfigFile      = "config"
)

// Credentials are who asks an S3 server. The zero value is nobody: anonymous.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	// Region of the bucket.
	Region string
}

// ParseCredentials reads the two files that the AWS command line has: credentials and config. The section default
// counts, and what is above any section. Either file may be empty.
func ParseCredentials(credentials, config []byte) (Credentials, error) {
	var c Credentials
	known := map[string]*string{
		"aws_access_key_id":     &c.AccessKeyID,
		"aws_secret_access_key": &c.SecretAccessKey,
		"aws_session_token":     &c.SessionToken,
		"region":                &c.Region,
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{ConfigFile, config}, {CredentialsFile, credentials}} { // the later one counts more, as with AWS
		if err := parseINI(file.content, known); err != nil {
			return Credentials{}, fmt.Errorf("read the file %s: %w", file.name, err)
		}
	}
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		return Credentials{}, errors.New("of aws_access_key_id and aws_secret_access_key there must be both, or none")
	}
	return c, nil
}

// parseINI sets the known keys of the section default. What a line says never gets into an error: it may be a secret.
func parseINI(content []byte, known map[string]*string) error {
	counts := true
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			if !ok {
				return fmt.Errorf("line %d begins a section and does not end it", number)
			}
			counts = strings.TrimSpace(name) == "default"
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return fmt.Errorf("line %d is not key = value", number)
			}
			if field, ok := known[strings.ToLower(strings.TrimSpace(key))]; ok && counts {
				*field = strings.TrimSpace(value)
			}
		}
	}
	return lines.Err()
}

// ReadCredentials reads the files of a directory, such as a mounted Secret. An empty name of a directory, like a
// directory without the files, means anonymous.
func ReadCredentials(dir string) (Credentials, error) {
	if dir == "" {
		return Credentials{}, nil
	}
	var contents [2][]byte
	for i, name := range []string{CredentialsFile, ConfigFile} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Credentials{}, fmt.Errorf("read the credentials of S3: %w", err)
		}
		contents[i] = content
	}
	return ParseCredentials(contents[0], contents[1])
}
