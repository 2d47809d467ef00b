//go:build go1.23

package taps

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// decodeBody returns the version in a request's or an answer's body, JSON or protobuf.
func decodeBody(body []byte) version {
	if len(body) == 0 {
		return version{}
	}
	if body[0] == '{' {
		return decode(body)
	}
	obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return version{}
	}
	if o, ok := obj.(client.Object); ok {
		return encode(o, *kind)
	}
	return version{}
}

// deletedVersion returns the uid of a deleted object, and its resourceVersion if finalizers keep it for now.
func deletedVersion(body []byte) (uid, rv string) {
	if s := decodeStatus(body); s.Details != nil {
		return string(s.Details.UID), ""
	}
	v := decodeBody(body)
	if !v.deleting { // some kinds answer with the deleted object
		return v.ref.UID, ""
	}
	return v.ref.UID, v.rv
}

// decodeStatus decodes a Status, JSON or protobuf; the result is empty for anything else.
func decodeStatus(body []byte) (s metav1.Status) {
	if len(body) == 0 {
		return s
	}
	if body[0] == '{' {
		if json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
			return metav1.Status{}
		}
		return s
	}
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if p, ok := obj.(*metav1.Status); err == nil && ok {
		return *p
	}
	return s
}

// maxBody bounds how many bytes of a body are read; etcd takes no larger object.
const maxBody = 4 << 20

// requestBody returns a request's body, and the request to send in place of req, whose body it may have consumed. The
// body is nil if there is none, or it is longer than maxBody.
func requestBody(req *http.Request) (*http.Request, []byte) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	if req.GetBody == nil {
		return buffered(req)
	}
	r, err := req.GetBody()
	if err != nil {
		return req, nil
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.LimitReader(r, maxBody))
	if err != nil {
		return req, nil
	}
	return req, plain(b, req.Header)
}

// buffered reads the body of a request that a proxy got, and returns a request that can be read again.
func buffered(req *http.Request) (*http.Request, []byte) {
	raw, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	again := req.WithContext(req.Context()) // the request belongs to the caller
	switch {
	case err != nil:
		again.Body = body{Reader: io.MultiReader(bytes.NewReader(raw), failing{err}), Closer: req.Body}
		return again, nil
	case len(raw) > maxBody:
		again.Body = body{Reader: io.MultiReader(bytes.NewReader(raw), req.Body), Closer: req.Body}
		return again, nil
	}
	again.Body = body{Reader: bytes.NewReader(raw), Closer: req.Body}
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	return again, plain(raw, req.Header)
}

// maxList bounds how many bytes of a list are read.
const maxList = 32 << 20

// peekBody returns an answer's body and leaves it readable.
func peekBody(resp *http.Response) []byte { return peek(resp, maxBody) }

func peek(resp *http.Response, limit int64) []byte {
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	rest := resp.Body
	var again io.Reader = io.MultiReader(bytes.NewReader(b), rest)
	if err != nil {
		again = io.MultiReader(bytes.NewReader(b), failing{err})
	}
	resp.Body = body{Reader: again, Closer: rest}
	return plain(b, resp.Header)
}

// plain returns a body if it can be decoded here: nothing if it is compressed.
func plain(b []byte, h http.Header) []byte {
	if h.Get("Content-Encoding") != "" {
		return nil
	}
	return b
}

type body struct {
	io.Reader
	io.Closer
}

// failing is a reader that returns an error met while peeking.
type failing struct{ err error }

// Read returns the error.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
