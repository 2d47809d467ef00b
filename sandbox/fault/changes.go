package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// changes reports whether a call changes a field, as the package comment defines it. The error says why that could not
// be determined.
func (t *transport) changes(c *call, field fieldPath) (bool, error) {
	if c.Subresource == "status" && field[0] != "status" {
		return false, nil // the API server ignores all other fields
	}
	body := c.content()
	switch c.verb {
	case trace.VerbCreate:
		return field.in(decoded(body)), nil
	case trace.VerbApply:
		return field.inMerge(decoded(body)), nil
	case trace.VerbPatch:
		if strings.HasPrefix(c.req.Header.Get("Content-Type"), "application/json-patch") {
			return field.inOperations(body), nil
		}
		return field.inMerge(decoded(body)), nil
	case trace.VerbUpdate:
		now, err := t.ask(c.req.Context(), c.req, c.req.URL.Path, nil)
		if err != nil {
			return false, fmt.Errorf("not known whether an update changes %s: %w", strings.Join(field, "."), err)
		}
		return field.differs(now, decoded(body)), nil
	}
	return false, nil
}

// ask reads an object or a list with the operator's credentials; nil if it does not exist. The request reaches the API
// server's audit log but not the journal.
func (t *transport) ask(ctx context.Context, as *http.Request, path string, query url.Values) (any, error) {
	address := *as.URL
	address.Path, address.RawPath, address.RawQuery = path, "", query.Encode()
	req, err := http.NewRequestWithContext(Outside(ctx), http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Authorization", "User-Agent", "Impersonate-User", "Impersonate-Group"} {
		if values := as.Header.Values(name); len(values) > 0 {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	req.Header.Set("Accept", "application/json")
	req.Host = as.Host
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer drop(resp)
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, nil //nolint:nilnil // nil: the object does not exist
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("get %s: %s", path, resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, err
	}
	return decoded(raw), nil
}

// eventChanges reports whether a watch event changes a field.
func (t *transport) eventChanges(s *stream, e *event, frame []byte, field fieldPath) (bool, error) {
	if e.Type == trace.Deleted || e.Object.Kind == "PartialObjectMetadata" && field[0] != "metadata" {
		return false, nil
	}
	var now struct{ Object any }
	if err := json.Unmarshal(frame, &now); err != nil {
		return false, nil //nolint:nilerr // the operator will find out
	}
	if e.Type == trace.Added {
		return field.in(now.Object), nil
	}
	before, err := t.previous(s, e)
	if err != nil {
		return false, fmt.Errorf("not known whether an event changes %s: %w", strings.Join(field, "."), err)
	}
	return field.differs(before, now.Object), nil
}

// previous asks for an object as it was one resourceVersion before an event.
func (t *transport) previous(s *stream, e *event) (any, error) {
	version, err := strconv.ParseUint(e.Object.Metadata.ResourceVersion, 10, 64)
	if err != nil || version == 0 {
		return nil, fmt.Errorf("resourceVersion %q has none before it", e.Object.Metadata.ResourceVersion)
	}
	list, err := t.ask(s.ctx, s.req, s.Path(e.Object.Metadata.Namespace), url.Values{
		"fieldSelector":        {"metadata.name=" + e.Object.Metadata.Name},
		"resourceVersion":      {strconv.FormatUint(version-1, 10)},
		"resourceVersionMatch": {"Exact"},
	})
	if err != nil {
		return nil, err
	}
	return fieldPath{"items", "0"}.of(list), nil
}
