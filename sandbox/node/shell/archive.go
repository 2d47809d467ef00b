package shell

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// tarOptions are what tar knows. Owner and time of an extracted file are those of any new file.
const tarOptions = "c,create x,extract,get t,list f,file: C,directory: v,verbose z,gzip,gunzip m,touch p,preserve-permissions " +
	"o,no-same-owner no-same-permissions strip-components:"

// archive is a tar at work. Its process is in the directory of -C.
type archive struct {
	*process
	options
	argv  []string
	io    streams
	strip int
	// code is the exit code so far.
	code int
	// broken is the error of writing an archive.
	broken error
}

// archiver is tar: it writes, extracts and lists archives, also compressed with gzip. 'kubectl cp' needs it.
func archiver(p *process, argv []string, s streams) int {
	o, err := parse(withDash(argv), tarOptions)
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	a := &archive{process: p.child(p.ctx), options: o, argv: argv, io: s}
	if dir, given := o.value("C"); given {
		if info, err := p.stat(dir); err != nil || !info.IsDir() {
			return problem(s, argv, "can't change directory to '%s'", dir)
		}
		a.dir = p.path(dir)
	}
	if text, given := o.value("strip-components"); given {
		if a.strip, err = strconv.Atoi(text); err != nil || a.strip < 0 {
			return problem(s, argv, "invalid number '%s'", text)
		}
	}
	file, given := o.value("f")
	if !given {
		file = "-"
	}
	switch {
	case len(o.values["c"])+len(o.values["x"])+len(o.values["t"]) != 1:
		err = errors.New("it needs one of -c (create), -x (extract) and -t (list)")
	case o.has("c"):
		err = a.create(p, file)
	default:
		err = p.input(file, s, a.read)
	}
	switch {
	case p.ctx.Err() != nil:
		return codeKilled
	case err != nil:
		return problem(s, argv, "%s", why(err))
	}
	return a.code
}

// withDash makes options of letters without a dash: of 'tar cfz a.tgz' it makes 'tar -c -f a.tgz -z'.
func withDash(argv []string) []string {
	if len(argv) < 2 || strings.HasPrefix(argv[1], "-") {
		return argv
	}
	all, rest := argv[:1:1], argv[2:]
	for _, letter := range argv[1] {
		all = append(all, "-"+string(letter))
		if strings.ContainsRune("fC", letter) && len(rest) > 0 {
			all, rest = append(all, rest[0]), rest[1:]
		}
	}
	return append(all, rest...)
}

func (a *archive) complain(name string, err error) {
	a.code = problem(a.io, a.argv, "%s: %s", name, why(err))
}

// create writes an archive to a file of the outer process.
func (a *archive) create(outer *process, file string) error {
	if len(a.names) == 0 {
		return errors.New("it needs the names of files")
	}
	to, list := a.io.out, a.io.err
	if file != "-" {
		f, err := outer.create(file, false, a.io)
		if err != nil {
			return fmt.Errorf("can't open '%s': %s", file, why(err))
		}
		defer func() { _ = f.Close() }()
		to, list = f, a.io.out
	}
	compressed := gzip.NewWriter(to)
	if a.has("z") {
		to = compressed
	}
	w := tar.NewWriter(to)
	for _, name := range a.names {
		if stored(name) != name {
			fmt.Fprintf(a.io.err, "%s: removing leading '%s' from member names\n", a.argv[0], strings.TrimSuffix(name, stored(name)))
		}
		err := a.walk(name, func(name string, info rootfs.Info) error { return a.add(w, list, name, info) })
		if a.broken != nil || a.ctx.Err() != nil {
			return a.broken
		}
		if err != nil {
			a.complain(name, err)
		}
	}
	err := w.Close()
	if a.has("z") {
		err = errors.Join(err, compressed.Close())
	}
	return err
}

// stored returns the name of a file in an archive, which never leads out of the directory in which it is extracted.
func stored(name string) string {
	for before := ""; before != name; {
		before, name = name, strings.TrimLeft(strings.TrimPrefix(name, "../"), "/")
	}
	return name
}

// add adds a file to an archive. What cannot be read is left out, and told.
func (a *archive) add(w *tar.Writer, list io.Writer, name string, file rootfs.Info) error {
	header, err := tar.FileInfoHeader(info{file.Name, file.Mode, file.Size, file.ModTime}, file.Link)
	if err != nil {
		a.complain(name, err)
		return nil
	}
	header.Name = stored(name)
	if file.IsDir() {
		header.Name = strings.TrimSuffix(header.Name, "/") + "/"
	}
	if header.Name == "" || header.Name == "/" { // the root itself
		return nil
	}
	header.Uid, header.Gid = int(a.container.UID), int(a.container.GID)
	var content io.ReadCloser
	if file.Mode.IsRegular() {
		if content, err = a.container.Files.Open(a.path(name)); err != nil {
			a.complain(name, err)
			return nil
		}
		defer func() { _ = content.Close() }()
	}
	if a.has("v") {
		fmt.Fprintln(list, header.Name)
	}
	if a.broken = w.WriteHeader(header); a.broken != nil || content == nil {
		return a.broken
	}
	counted := &counter{}
	if a.broken = a.copy(io.MultiWriter(w, counted), io.LimitReader(content, file.Size)); a.broken == nil && int64(counted.bytes) < file.Size {
		a.broken = fmt.Errorf("%s: it became shorter while it was read", name)
	}
	return a.broken
}

// read extracts or lists an archive.
func (a *archive) read(_ string, in io.Reader) error {
	whole := bufio.NewReader(in)
	in = whole
	if magic, _ := whole.Peek(2); a.has("z") || bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(whole)
		if err != nil {
			return err
		}
		in = plain
	}
	r := tar.NewReader(in)
	for a.ctx.Err() == nil {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return a.copy(io.Discard, whole) // or who writes it could not
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // those are treated below
			return err
		}
		if !a.chosen(header.Name) {
			continue
		}
		if a.has("v") || a.has("t") {
			a.show(header)
		}
		if a.has("t") {
			continue
		}
		if err := a.extract(header, r); err != nil {
			a.complain(header.Name, err)
		}
	}
	return a.ctx.Err()
}

// chosen reports whether a file of an archive is one of those that were asked for, or below one; if there are none, all
// are.
func (a *archive) chosen(name string) bool {
	name = path.Clean(name)
	return len(a.names) == 0 || slices.ContainsFunc(a.names, func(wanted string) bool {
		wanted = path.Clean(stored(wanted))
		return name == wanted || strings.HasPrefix(name, wanted+"/")
	})
}

func (a *archive) show(h *tar.Header) {
	if !a.has("t") || !a.has("v") {
		fmt.Fprintln(a.io.out, h.Name)
		return
	}
	file := h.FileInfo()
	list(a.io, []rootfs.Info{{Name: h.Name, Size: h.Size, Mode: file.Mode(), ModTime: h.ModTime, Link: h.Linkname}},
		options{values: map[string][]string{"l": {""}}})
}

// extract makes one file of an archive.
func (a *archive) extract(h *tar.Header, content io.Reader) error {
	name, left := a.stripped(h.Name)
	if !left {
		return nil
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return errors.New("it is not extracted: its name has '..'")
	}
	files, target := a.container.Files, path.Join(a.dir, name)
	if h.Typeflag == tar.TypeDir {
		return a.mkdirAll(target)
	}
	if err := a.mkdirAll(path.Dir(target)); err != nil {
		return err
	}
	if there, err := files.Lstat(target); err == nil && there.Link != "" {
		if err := files.Remove(target); err != nil { // not the file to which it leads
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := files.Create(target, false)
		if err != nil {
			return err
		}
		if err := errors.Join(a.copy(f, content), f.Close()); err != nil {
			return err
		}
		return files.Chmod(target, h.FileInfo().Mode())
	case tar.TypeSymlink:
		return files.Symlink(h.Linkname, target)
	case tar.TypeLink:
		if from, left := a.stripped(h.Linkname); left && !slices.Contains(strings.Split(from, "/"), "..") {
			return a.copyFile(path.Join(a.dir, from), target)
		}
	}
	return fs.ErrInvalid
}

// stripped returns a name without its first elements; false: nothing is left.
func (a *archive) stripped(name string) (string, bool) {
	name = strings.TrimLeft(name, "/")
	for range a.strip {
		_, rest, more := strings.Cut(name, "/")
		if name = rest; !more || rest == "" {
			return "", false
		}
	}
	return name, true
}
