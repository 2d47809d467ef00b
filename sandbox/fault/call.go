package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// maxBody bounds how many bytes of a body are read; etcd takes no larger object.
const maxBody = 4 << 20

type outsideKey struct{}

// Outside marks the requests of a context as the lab's own: no fault matches them.
func Outside(ctx context.Context) context.Context { return context.WithValue(ctx, outsideKey{}, true) }

// head holds the fields that the injector reads of any object's JSON.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		GenerateName    string `json:"generateName"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Details struct {
		UID string `json:"uid"`
	} `json:"details"` // of a Status
}

// call is a request that faults may match.
type call struct {
	apirequest.Target
	req  *http.Request
	verb string

	read bool   // the body was read
	body []byte // as JSON; nil if there is none or it cannot be read
	head head   // of the body
}

// newCall describes a request. It returns nil if faults never apply to it.
func newCall(req *http.Request) *call {
	t, ok := apirequest.Parse(req.URL.Path)
	if !ok || exempt(t) {
		return nil
	}
	verb := verbOf(req, t)
	if verb == "" || verb != trace.VerbGet && verb != trace.VerbList && strings.Contains(req.URL.RawQuery, "dryRun=") {
		return nil
	}
	if outside, _ := req.Context().Value(outsideKey{}).(bool); outside {
		return nil
	}
	return &call{Target: t, req: req, verb: verb}
}

// content returns the body as JSON; it is read when it is first needed.
func (c *call) content() []byte {
	if c.read {
		return c.body
	}
	c.read = true
	raw := c.take()
	if len(raw) == 0 || c.req.Header.Get("Content-Encoding") != "" {
		return nil
	}
	c.body = asJSON(raw)
	if c.verb != trace.VerbPatch || len(c.body) > 0 && c.body[0] == '{' {
		_ = json.Unmarshal(c.body, &c.head) // on an error no name is known
	}
	return c.body
}

// take returns the raw body without consuming it. If that needs a new body, the request is copied first, because it
// belongs to the caller.
func (c *call) take() []byte {
	if c.req.Body == nil || c.req.Body == http.NoBody {
		return nil
	}
	if c.req.GetBody != nil {
		r, err := c.req.GetBody()
		if err != nil {
			return nil
		}
		defer func() { _ = r.Close() }()
		raw, err := io.ReadAll(io.LimitReader(r, maxBody))
		if err != nil {
			return nil
		}
		return raw
	}
	raw, again := peek(c.req.Body)
	c.req = c.req.WithContext(c.req.Context())
	c.req.Body = again
	return raw
}

// peek reads up to maxBody bytes of a body and returns them with a body that still yields everything.
func peek(b io.ReadCloser) ([]byte, io.ReadCloser) {
	raw, err := io.ReadAll(io.LimitReader(b, maxBody))
	rest := io.Reader(b)
	if err != nil {
		rest = failing{err}
	}
	return raw, body{Reader: io.MultiReader(bytes.NewReader(raw), rest), Closer: b}
}

type body struct {
	io.Reader
	io.Closer
}

// failing is a reader that hands on an error met while peeking.
type failing struct{ err error }

// Read returns the error.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// asJSON converts an object from JSON, YAML or protobuf to JSON; nil if it cannot.
func asJSON(raw []byte) []byte {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == '{' || raw[0] == '[':
		return raw
	case bytes.HasPrefix(raw, []byte("k8s\x00")):
		obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			return nil
		}
		obj.GetObjectKind().SetGroupVersionKind(*kind)
		return marshal(obj)
	}
	out, err := yaml.ToJSON(raw)
	if err != nil {
		return nil
	}
	return out
}

func marshal(obj runtime.Object) []byte {
	out, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	return out
}

// name returns the object's name. If the API server generates the name, it is the prefix followed by a star.
func (c *call) name() string {
	if c.Name != "" || c.verb != trace.VerbCreate {
		return c.Name
	}
	c.content()
	if c.head.Metadata.Name == "" && c.head.Metadata.GenerateName != "" {
		return c.head.Metadata.GenerateName + "*"
	}
	return c.head.Metadata.Name
}

// ref names the call's object for the journal.
func (c *call) ref(kind string) trace.Ref {
	version := c.Version
	if c.Group != "" {
		version = c.Group + "/" + c.Version
	}
	return trace.Ref{APIVersion: version, Kind: kind, Namespace: c.Namespace, Name: c.name(), Subresource: c.Subresource}
}
