package images

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// received reads a whole body before it is passed on: one that is incomplete, or differs from what was signed, changes
// nothing. It joins bodies that clients send in signed chunks.
type received struct {
	// spool is a directory for bodies that are being received.
	spool string
	next  http.Handler
}

// ServeHTTP implements [http.Handler].
func (s received) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut && r.Method != http.MethodPost {
		s.next.ServeHTTP(w, r)
		return
	}
	f, err := os.CreateTemp(s.spool, ".upload-*")
	if err != nil {
		refuseS3(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	size, err := receive(f, r)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	wrong := bodyError{}
	switch {
	case errors.As(err, &wrong):
		refuseS3(w, http.StatusBadRequest, wrong.code, wrong.message)
		return
	case err != nil:
		refuseS3(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.TransferEncoding = f, size, nil
	r.Header.Set("Content-Length", strconv.FormatInt(size, 10))
	if isChunked(r) {
		r.Header.Set(payloadHeader, unsignedPayload)
		r.Header.Del("X-Amz-Trailer")
		encoding := strings.Trim(strings.Replace(r.Header.Get("Content-Encoding"), "aws-chunked", "", 1), ", ")
		r.Header.Del("Content-Encoding")
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
	}
	s.next.ServeHTTP(w, r)
}

// bodyError is returned for a body that does not match its headers.
type bodyError struct{ code, message string }

func (e bodyError) Error() string { return e.message }

func isChunked(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get(payloadHeader), "STREAMING-")
}

// receive copies a body, and compares it with the request's headers.
func receive(to io.Writer, r *http.Request) (size int64, err error) {
	want, from := r.ContentLength, io.Reader(r.Body)
	if isChunked(r) {
		if want, err = strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err != nil {
			return 0, bodyError{"MissingContentLength", "You must provide the X-Amz-Decoded-Content-Length HTTP header."}
		}
		from = &awsChunks{from: bufio.NewReader(r.Body)}
	}
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(to, sum), from)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && want >= 0 && size != want {
		return 0, bodyError{"IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header."}
	}
	if err != nil {
		return 0, err
	}
	signed := r.Header.Get(payloadHeader)
	if len(signed) == hex.EncodedLen(sha256.Size) && signed != hex.EncodeToString(sum.Sum(nil)) {
		return 0, bodyError{"XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."}
	}
	return size, nil
}

// awsChunks reads a body in chunks, each of which begins with its size, an optional signature, and a line break. The
// last one is empty; checksums may follow it.
type awsChunks struct {
	from *bufio.Reader
	left int64
	// begun is set if the end of a chunk must be read before the next one.
	begun, over bool
}

// Read implements [io.Reader].
func (c *awsChunks) Read(p []byte) (int, error) {
	for c.left == 0 {
		if c.over {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, incomplete(err)
		}
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, incomplete(err)
}

func (c *awsChunks) next() error {
	if c.begun {
		if line, err := c.line(); err != nil || line != "" {
			return errors.Join(err, wrongChunk(line))
		}
	}
	c.begun = true
	line, err := c.line()
	if err != nil {
		return err
	}
	digits, _, _ := strings.Cut(line, ";")
	size, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || size < 0 {
		return wrongChunk(line)
	}
	c.left, c.over = size, size == 0
	return nil
}

func wrongChunk(line string) error {
	if line == "" {
		return nil
	}
	return bodyError{"InvalidRequest", fmt.Sprintf("this is no chunk: %.40q", line)}
}

// line reads one line, which is short.
func (c *awsChunks) line() (string, error) {
	text, err := c.from.ReadSlice('\n')
	return strings.TrimRight(string(text), "\r\n"), err
}

// incomplete replaces the end of a body before its last chunk by an error.
func incomplete(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
