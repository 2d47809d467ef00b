package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyTree copies a directory with everything in it, also with times and permissions, files that their owner may not
// read, and holes in files. Sockets are left out, because nobody would listen on a copy.
func copyTree(ctx context.Context, from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	return copyEntry(ctx, from, to, info)
}

func copyEntry(ctx context.Context, from, to string, info fs.FileInfo) (err error) {
	switch kind := info.Mode().Type(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case kind == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case kind == fs.ModeNamedPipe:
		err = syscall.Mkfifo(to, 0o600)
	case kind.IsDir():
		err = copyDir(ctx, from, to, info)
	case kind.IsRegular():
		err = copyRegular(from, to, info)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	return errors.Join(os.Chmod(to, mode), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

func copyDir(ctx context.Context, from, to string, info fs.FileInfo) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	return readable(from, info, func(dir *os.File) error {
		entries, err := dir.Readdir(0)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := copyEntry(ctx, filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()), entry); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyRegular(from, to string, info fs.FileInfo) (err error) {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return readable(from, info, func(in *os.File) error {
		if clone(out, in) {
			return nil
		}
		if isSparse(info) && copySparse(out, in, info.Size()) == nil {
			return nil
		}
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(out, in)
		return err
	})
}

// readable opens a file for reading, also one whose permissions forbid that to its owner.
func readable(name string, info fs.FileInfo, read func(*os.File) error) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(name, info.Mode().Perm()|0o500) == nil {
		defer func() { _ = os.Chmod(name, info.Mode().Perm()) }()
		f, err = os.Open(name)
	}
	if err != nil {
		return err
	}
	return errors.Join(read(f), f.Close())
}

// isSparse reports whether a file may have holes, or allocated parts that nothing was written to yet, as etcd makes
// them.
func isSparse(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Blocks*512 < info.Size() || info.Size() >= roomy)
}

// roomy is the size in bytes from which on a file is searched for unwritten parts.
const roomy = 1 << 20

// copySparse copies the parts of a file that hold data. Not every file system can tell which those are.
func copySparse(out, in *os.File, size int64) error {
	for at := int64(0); at < size; {
		begin, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) { // nothing but a hole
			break
		}
		if err != nil {
			return err
		}
		end, err := in.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := in.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, end-begin); err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(size)
}
