package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// lost is what a client gets for an answer that does not come.
type lost struct {
	text    string
	timeout bool
	cause   error
}

// errLost is a connection that broke before the answer. It reads as io.ErrUnexpectedEOF does, and wraps it, but is another
// error: client-go would send a read again behind the operator's back.
var errLost = &lost{text: io.ErrUnexpectedEOF.Error(), cause: io.ErrUnexpectedEOF}

// errTimeout is a call that took too long.
var errTimeout = &lost{text: "net/http: timeout awaiting response headers", timeout: true, cause: context.DeadlineExceeded}

// Error is part of error.
func (e *lost) Error() string { return e.text }

// Timeout is part of net.Error.
func (e *lost) Timeout() bool { return e.timeout }

// Temporary is part of net.Error.
func (e *lost) Temporary() bool { return e.timeout }

// Unwrap returns the error that it stands for.
func (e *lost) Unwrap() error { return e.cause }

// fake returns the answer of an API server that did not do what it was asked to.
func fake(c *call, reply v1alpha1.APIReply) *http.Response {
	status := statusOf(c, reply)
	raw, err := json.Marshal(status)
	if err != nil {
		raw = nil // a Status can always be marshalled
	}
	return answerWith(c.req, int(status.Code), raw)
}

func answerWith(req *http.Request, code int, raw []byte) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {"no-cache, private"}, "Content-Length": {strconv.Itoa(len(raw))},
		},
		Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)), Request: req,
	}
}

// statusOf returns what the API server says with a reply.
func statusOf(c *call, reply v1alpha1.APIReply) metav1.Status {
	resource := c.resource()
	var err *apierrors.StatusError
	switch reply {
	case v1alpha1.ReplyConflict:
		err = apierrors.NewConflict(resource, c.name(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case v1alpha1.ReplyForbidden:
		err = apierrors.NewForbidden(resource, c.name(),
			fmt.Errorf("cannot %s resource %q in API group %q in the namespace %q", requestVerb(c.verb), c.Resource, c.Group, c.Namespace))
	case v1alpha1.ReplyTooManyRequests:
		// Without a time to wait: client-go would wait, and try again behind the operator's back.
		err = apierrors.NewTooManyRequestsError("the server has received too many requests and has asked us to try again later")
	case v1alpha1.ReplyServiceUnavailable:
		err = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	case v1alpha1.ReplyTimeout:
		err = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	default:
		err = apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	}
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// requestVerb is a verb as the API server's authorization calls it.
func requestVerb(verb string) string {
	if verb == trace.VerbApply {
		return trace.VerbPatch
	}
	return verb
}

// describe adds to an event what the API server answered, and leaves the answer to be read.
func describe(e *trace.Event, c *call, resp *http.Response) {
	if resp == nil {
		return
	}
	e.Status = resp.StatusCode
	if resp.StatusCode >= http.StatusMultipleChoices || resp.Body == nil || resp.Header.Get("Content-Encoding") != "" || c.verb == trace.VerbList {
		return
	}
	var raw []byte
	raw, resp.Body = peek(resp.Body)
	var h head
	if json.Unmarshal(asJSON(raw), &h) != nil || h.Kind == "Status" {
		return
	}
	e.ResourceVersion, e.Object.UID = h.Metadata.ResourceVersion, h.Metadata.UID
	if h.Metadata.Name != "" && h.Metadata.Name != e.Object.Name {
		_, words, _ := bytes.Cut([]byte(e.Message), []byte(objectText(e.Object)))
		e.Object.Name = h.Metadata.Name // the API server made it up
		e.Message = e.Verb + " " + objectText(e.Object) + string(words)
	}
}
