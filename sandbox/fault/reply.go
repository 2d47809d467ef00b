package fault

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

// lost is the error that a client gets in place of an answer.
type lost struct {
	text    string
	timeout bool
	cause   error
}

// errLost stands for a connection that broke before the answer. It wraps io.ErrUnexpectedEOF and has its text, but is
// another error: client-go would repeat a read by itself.
var errLost = &lost{text: io.ErrUnexpectedEOF.Error(), cause: io.ErrUnexpectedEOF}

// errTimeout stands for a call that took too long.
var errTimeout = &lost{text: "net/http: timeout awaiting response headers", timeout: true, cause: context.DeadlineExceeded}

// Error is part of error.
func (e *lost) Error() string { return e.text }

// Timeout is part of net.Error.
func (e *lost) Timeout() bool { return e.timeout }

// Temporary is part of net.Error.
func (e *lost) Temporary() bool { return e.timeout }

// Unwrap returns the error that it stands for.
func (e *lost) Unwrap() error { return e.cause }

// fake returns an error response as the API server would send it, without asking the API server.
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

// statusOf returns the Status that the API server sends with a reply.
func statusOf(c *call, reply v1alpha1.APIReply) metav1.Status {
	resource := c.GroupResource()
	var err *apierrors.StatusError
	switch reply {
	case v1alpha1.ReplyConflict:
		err = apierrors.NewConflict(resource, c.name(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case v1alpha1.ReplyForbidden:
		err = apierrors.NewForbidden(resource, c.name(),
			fmt.Errorf("cannot %s resource %q in API group %q in the namespace %q", requestVerb(c.verb), c.Resource, c.Group, c.Namespace))
	case v1alpha1.ReplyTooManyRequests:
		// RetryAfter is left out: client-go would wait and repeat the request by itself.
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

// requestVerb returns a verb as the API server's authorization calls it.
func requestVerb(verb string) string {
	if verb == trace.VerbApply {
		return trace.VerbPatch
	}
	return verb
}

// describe adds the API server's answer to an event, and leaves the answer readable.
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
	if json.Unmarshal(asJSON(raw), &h) != nil {
		return
	}
	if h.Kind == "Status" {
		e.Object.UID = h.Details.UID // of what was deleted
		return
	}
	e.ResourceVersion, e.Object.UID = h.Metadata.ResourceVersion, h.Metadata.UID
	if h.Metadata.Name != "" && h.Metadata.Name != e.Object.Name {
		_, words, _ := bytes.Cut([]byte(e.Message), []byte(objectText(e.Object)))
		e.Object.Name = h.Metadata.Name // the API server generated it
		e.Message = e.Verb + " " + objectText(e.Object) + string(words)
	}
}
