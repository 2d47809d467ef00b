package metacontroller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// The names of hooks.
const (
	hookSync      = "sync"
	hookFinalize  = "finalize"
	hookCustomize = "customize"
)

const (
	// defaultTimeout is how long an answer may take.
	defaultTimeout = 10 * time.Second
	// mostAnswer is how many bytes an answer may have. An object in the API server has at most about a tenth of them.
	mostAnswer = 16 << 20
	// mostQuoted is how much of an answer that is no JSON is quoted in an error.
	mostQuoted = 200
)

// hook is a webhook that can be asked.
type hook struct {
	name       string
	controller string
	url        string
	version    v1alpha1.HookVersion
	strict     bool
	timeout    time.Duration
	transport  http.RoundTripper
	called     func(context.Context, Call)
}

// problem is an error about an object of the API that its author has to mend: trying again does not help.
type problem struct {
	reason  string
	message string
}

// Error returns the message.
func (p *problem) Error() string { return p.message }

func invalid(format string, args ...any) error {
	return &problem{v1alpha1.ReasonInvalid, fmt.Sprintf(format, args...)}
}

func notSupported(format string, args ...any) error {
	return &problem{v1alpha1.ReasonNotSupported, fmt.Sprintf(format, args...) + " is not supported by this program"}
}

// newHook returns a hook of a controller; nil if there is none.
func (m *meta) newHook(controller, name string, h *v1alpha1.Hook) (*hook, error) {
	if h == nil {
		return nil, nil
	}
	field := "spec.hooks." + name
	if h.Webhook == nil {
		return nil, invalid("%s has no webhook", field)
	}
	field += ".webhook"
	address, err := webhookURL(field, h.Webhook)
	if err != nil {
		return nil, err
	}
	w := h.Webhook
	for _, unsupported := range []struct {
		name string
		set  bool
	}{
		{"caBundle", w.CABundle != nil},
		{"clientTLS", w.ClientTLS != nil},
		{"authorization", w.Authorization != nil},
		{"basicAuth", w.BasicAuth != nil},
		{"etag", w.Etag != nil && w.Etag.Enabled != nil && *w.Etag.Enabled},
	} {
		if unsupported.set {
			return nil, notSupported("%s.%s", field, unsupported.name)
		}
	}
	out := &hook{
		name: name, controller: controller, url: address, version: v1alpha1.V1, timeout: defaultTimeout,
		transport: m.options.Transport, called: m.options.Called,
	}
	if h.Version != nil && *h.Version != "" {
		out.version = *h.Version
	}
	switch out.version {
	case v1alpha1.V1, v1alpha1.V2:
	default:
		return nil, invalid("spec.hooks.%s.version is %q, and can be v1 or v2", name, out.version)
	}
	out.strict = out.version == v1alpha1.V2
	if w.ResponseUnmarshallMode != nil {
		out.strict = *w.ResponseUnmarshallMode == v1alpha1.Strict
	}
	if w.Timeout != nil && w.Timeout.Duration > 0 {
		out.timeout = w.Timeout.Duration
	}
	return out, nil
}

// webhookURL returns the URL of a webhook, and an error if it has none.
func webhookURL(field string, w *v1alpha1.Webhook) (string, error) {
	if w.URL != nil {
		u, err := url.Parse(*w.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", invalid("%s.url %q is no URL of http or https", field, *w.URL)
		}
		return *w.URL, nil
	}
	if w.Service == nil || w.Path == nil || w.Service.Name == "" || w.Service.Namespace == "" {
		return "", invalid("%s has neither a url nor a service with name, namespace and path", field)
	}
	port, protocol := int32(80), "http"
	if w.Service.Port != nil {
		port = *w.Service.Port
	}
	if w.Service.Protocol != nil {
		protocol = *w.Service.Protocol
	}
	return fmt.Sprintf("%s://%s.%s:%d%s", protocol, w.Service.Name, w.Service.Namespace, port, *w.Path), nil
}

// tooMany is the answer of a hook that wants to be left alone for a while.
type tooMany struct{ after time.Duration }

// Error says so.
func (t *tooMany) Error() string {
	return fmt.Sprintf("it has too many requests; again in %v", t.after)
}

// answer is what a hook answers, which can be checked.
type answer interface {
	// check returns what is wrong with the answer about an object; it may fill in defaults.
	check() error
	// objects are those that should be there.
	objects() []*unstructured.Unstructured
	// status is the status that the object should have; nil if it is to stay as it is.
	status() map[string]any
}

// ask asks the hook about an object and reads the answer.
func (h *hook) ask(ctx context.Context, object *unstructured.Unstructured, request any, observed objects, into answer) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("write the request for the %s hook: %w", h.name, err)
	}
	call := Call{Hook: h.name, Controller: h.controller, URL: h.url, Object: object, Request: body, Observed: observed.list()}
	began := time.Now()
	call.Status, call.Response, call.Err = h.post(ctx, body)
	if call.Err == nil {
		call.Err = h.read(call.Response, into)
	}
	if call.Err == nil {
		call.Err = into.check()
	}
	if call.Err == nil {
		call.Desired, call.DesiredStatus = into.objects(), into.status()
	}
	call.Took = time.Since(began)
	h.called(ctx, call)
	if call.Err != nil {
		return fmt.Errorf("%s hook: %w", h.name, call.Err)
	}
	return nil
}

// post sends a request and returns the answer to it, or why there is none that can be read.
func (h *hook) post(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("no answer in %v", h.timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(WithHook(ctx, h.name), http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.transport.RoundTrip(req) // a redirect is no answer
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	switch {
	case ctx.Err() != nil:
		return resp.StatusCode, nil, context.Cause(ctx)
	case err != nil:
		return resp.StatusCode, nil, fmt.Errorf("read its answer: %w", err)
	case len(answer) > mostAnswer:
		return resp.StatusCode, nil, fmt.Errorf("its answer has more than %d MiB", mostAnswer>>20)
	case resp.StatusCode == http.StatusTooManyRequests:
		return resp.StatusCode, answer, &tooMany{retryAfter(resp.Header.Get("Retry-After"))}
	case resp.StatusCode != http.StatusOK:
		return resp.StatusCode, answer, fmt.Errorf("it answered %s, want 200 OK: %s", statusText(resp.StatusCode), quoted(answer))
	}
	return resp.StatusCode, answer, nil
}

func statusText(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// retryAfter reads a header: seconds or a time. Without one it is a second.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(time.Second, time.Until(at))
	}
	return time.Second
}

// read reads an answer.
func (h *hook) read(raw []byte, into answer) error {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		if len(bytes.TrimSpace(raw)) == 0 {
			return errors.New("its answer is empty, want JSON")
		}
		return fmt.Errorf("its answer is not the JSON of a %s hook: %w: %s", h.name, err, quoted(raw))
	}
	if h.strict {
		if err := errors.Join(strict...); err != nil {
			return fmt.Errorf("its answer is not as %s hooks have it: %s", h.version, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return nil
}

// quoted returns the beginning of an answer on one line.
func quoted(raw []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(raw), "?")), " ")
	if len(text) > mostQuoted {
		text = strings.ToValidUTF8(text[:mostQuoted], "") + "…"
	}
	return cmp.Or(text, "(nothing)")
}

type hookKey struct{}

// WithHook returns a context of the request to a hook.
func WithHook(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, hookKey{}, name)
}

// HookOf returns the name of the hook that a request is for, sync, finalize or customize, by the request's context.
func HookOf(ctx context.Context) string {
	name, _ := ctx.Value(hookKey{}).(string)
	return name
}
