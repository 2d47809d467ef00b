package shell

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// encode is base64.
func encode(p *process, argv []string, s streams) int {
	o, err := parse(argv, "d,decode i,ignore-garbage w,wrap:")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	width := 76
	if text, given := o.value("w"); given {
		if width, err = strconv.Atoi(text); err != nil || width < 0 {
			return problem(s, argv, "invalid number '%s'", text)
		}
	}
	return p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
		if o.has("d") {
			err := p.copy(s.out, base64.NewDecoder(base64.StdEncoding, &base64Text{in, o.has("i")}))
			if _, wrong := errors.AsType[base64.CorruptInputError](err); wrong || errors.Is(err, io.ErrUnexpectedEOF) {
				return errors.New("it is not base64")
			}
			return err
		}
		out := &wrapped{to: bufio.NewWriter(s.out), width: width}
		encoder := base64.NewEncoder(base64.StdEncoding, out)
		if err := errors.Join(p.copy(encoder, in), encoder.Close()); err != nil {
			return err
		}
		return out.end()
	})
}

// base64Text reads without white space and, if lax, without anything else that is not of base64.
type base64Text struct {
	in  io.Reader
	lax bool
}

func (t *base64Text) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	kept := p[:0]
	for _, b := range p[:n] {
		isOf := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("+/=", b) >= 0
		if isOf || !t.lax && strings.IndexByte(" \t\r\n", b) < 0 {
			kept = append(kept, b)
		}
	}
	return len(kept), err
}

// wrapped breaks what is written to it into lines of a width; 0: it does not.
type wrapped struct {
	to        *bufio.Writer
	width, at int
}

func (w *wrapped) Write(p []byte) (int, error) {
	for _, b := range p {
		if w.width > 0 && w.at == w.width {
			_ = w.to.WriteByte('\n') // Flush returns its error
			w.at = 0
		}
		_ = w.to.WriteByte(b) // as above
		w.at++
	}
	return len(p), w.to.Flush()
}

// end ends the last line, if lines are broken.
func (w *wrapped) end() error {
	if w.width > 0 && w.at > 0 {
		_ = w.to.WriteByte('\n') // as in Write
	}
	return w.to.Flush()
}

// sha256sum prints digests, or with -c compares files with them.
func sha256sum(p *process, argv []string, s streams) int {
	o, err := parse(argv, "c,check b,binary t,text quiet")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	if !o.has("c") {
		return p.inputs(argv, o.names, s, func(name string, in io.Reader) error {
			sum, err := p.digest(in)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s  %s\n", sum, name)
			return err
		})
	}
	failed := 0
	code := p.inputs(argv, o.names, s, func(_ string, in io.Reader) error {
		return p.lines(in, func(line string) (bool, error) {
			want, name, ok := strings.Cut(line, " ")
			if name = strings.TrimLeft(name, " *"); !ok || len(want) != 2*sha256.Size {
				return false, errors.New("a line has no digest and name")
			}
			sum := ""
			err := p.input(name, s, func(_ string, in io.Reader) (err error) {
				sum, err = p.digest(in)
				return err
			})
			switch {
			case err != nil:
				failed++
				problem(s, argv, "%s: %s", name, why(err))
			case sum != strings.ToLower(want):
				failed++
				fmt.Fprintf(s.out, "%s: FAILED\n", name)
			case !o.has("quiet"):
				fmt.Fprintf(s.out, "%s: OK\n", name)
			}
			return true, nil
		})
	})
	if failed > 0 {
		return problem(s, argv, "%d of the files are not as their digests say", failed)
	}
	return code
}

func (p *process) digest(in io.Reader) (string, error) {
	hash := sha256.New()
	err := p.copy(hash, in)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}
