package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/store"
)

// place is where a backup is, or goes, as the flags say.
type place struct {
	s3Path, s3Endpoint, s3Credentials string
	s3PathStyle                       bool
	volume, volumePath                string
}

func (p *place) flags(fs *pflag.FlagSet) {
	fs.StringVar(&p.s3Path, "s3-path", "", "<bucket>/<key> of the backup in S3")
	fs.StringVar(&p.s3Endpoint, "s3-endpoint", "", "URL of the S3 server (default: Amazon's)")
	fs.StringVar(&p.s3Credentials, "s3-credentials", "", "folder with the files credentials and config (default: anonymous)")
	fs.BoolVar(&p.s3PathStyle, "s3-force-path-style", false, "put the bucket into the path of URLs")
	fs.StringVar(&p.volume, "volume", "", "folder for backups, instead of S3")
	fs.StringVar(&p.volumePath, "volume-path", "", "file of the backup in that folder")
}

// given tells whether there is a place at all.
func (p *place) given() bool { return p.s3Path != "" || p.volume != "" }

// open returns the store, and the name of the backup there.
func (p *place) open() (store.Store, string, error) {
	switch {
	case p.s3Path != "" && p.volume != "":
		return nil, "", because(report.ReasonBadRequest, errors.New("a backup is in S3 or on a volume, not both"))
	case p.s3Path != "":
		return p.openS3()
	case p.volume != "":
		return p.openVolume()
	}
	return nil, "", because(report.ReasonBadRequest, errors.New("where is the backup? name --s3-path, or --volume and --volume-path"))
}

func (p *place) openS3() (store.Store, string, error) {
	bucket, key, err := store.SplitPath(p.s3Path)
	if err != nil {
		return nil, "", because(report.ReasonBadRequest, err)
	}
	who, err := store.ReadCredentials(p.s3Credentials)
	if err != nil {
		return nil, "", because(report.ReasonStorageFailed, err)
	}
	s3, err := store.NewS3(store.S3Options{
		Bucket: bucket, Endpoint: p.s3Endpoint, ForcePathStyle: p.s3PathStyle, Credentials: who,
	})
	if err != nil {
		return nil, "", because(report.ReasonBadRequest, err)
	}
	return s3, key, nil
}

func (p *place) openVolume() (store.Store, string, error) {
	name := path.Clean(p.volumePath)
	if p.volumePath == "" || strings.HasPrefix(name, "/") || slices.Contains(strings.Split(p.volumePath, "/"), "..") || name == "." {
		return nil, "", because(report.ReasonBadRequest, fmt.Errorf("the path %q is none of a file on the volume", p.volumePath))
	}
	dir, err := store.NewDir(p.volume)
	if err != nil {
		return nil, "", because(report.ReasonStorageFailed, err)
	}
	return dir, name, nil
}

// fetch copies the backup to a file.
func (p *place) fetch(ctx context.Context, to string) (location string, err error) {
	from, name, err := p.open()
	if err != nil {
		return "", err
	}
	content, err := from.Get(ctx, name)
	if err != nil {
		return "", missing(err)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", errors.Join(err, content.Close())
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, content.Close(), f.Close()); err != nil {
		return "", because(report.ReasonStorageFailed, fmt.Errorf("read %s: %w", from.Location(name), err))
	}
	return from.Location(name), nil
}

// scratch makes a folder for what is looked at, and returns what removes it.
func scratch(in string) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(in, "agent-")
	if err != nil {
		return "", nil, fmt.Errorf("make room for the backup: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// sum returns the SHA-256 of a file, and its size.
func sum(file string) (string, int64, error) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, errors.Join(err, f.Close())
}
