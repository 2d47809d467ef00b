package format

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// ResourceFiles names files of resources.
type ResourceFiles struct {
	// FS is the file system of the files; nil: the operating system's.
	FS fs.FS
	// Folder is the directory that File is relative to.
	Folder string
	// File is a path, a pattern such as manifests/*.yaml, or a URL of http or https.
	File string
	// Manifest is true for objects to write, each of which needs a kind, and false for objects to assert.
	Manifest bool
	// Client downloads files; default: a client with a time limit of one minute.
	Client *http.Client
}

// Resource is one object of a file.
type Resource struct {
	// Object is the decoded object, with numbers as int64 or float64.
	Object map[string]any
	// Position is the place at which the object begins.
	Position Position
}

// LoadResources reads resource files: YAML or JSON, with several documents in each. A list is replaced by its items.
// The error is [Problems], or the error of ctx.
func LoadResources(ctx context.Context, f ResourceFiles) ([]Resource, error) {
	r := &resourceReader{ResourceFiles: f, source: source{f.FS}}
	if u := remote(f.File); u != nil {
		return r.download(ctx, u)
	}
	out, wrong := r.load()
	return out, wrong.asError()
}

type resourceReader struct {
	ResourceFiles
	source

	// strict rejects keys that are written twice, which Chainsaw accepts.
	strict bool
	// check makes what sees the texts, to check the expressions; nil: they are not checked.
	check func(r *reader) func(*yaml.Node, string, bool)
}

// load reads local files.
func (r *resourceReader) load() ([]Resource, Problems) {
	pattern := r.join(r.ResourceFiles.Folder, r.File)
	files, err := r.glob(pattern)
	if err != nil {
		return nil, Problems{{File: pattern, Message: "is not a pattern of files: " + err.Error()}}
	}
	if len(files) == 0 {
		return nil, Problems{{File: pattern, Message: "there is no such file", Hint: r.near(pattern)}}
	}
	var (
		out   []Resource
		wrong Problems
	)
	for _, file := range files {
		data, err := r.read(file)
		if err != nil {
			wrong = append(wrong, problems(file, err)...)
			continue
		}
		found, p := r.parse(file, data)
		out, wrong = append(out, found...), append(wrong, p...)
	}
	if len(out) == 0 && len(wrong) == 0 {
		wrong = append(wrong, Problem{File: pattern, Message: "there is no resource in it"})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

// remote parses the URL of a file; nil if it is a path. A scheme of one letter is a Windows drive.
func remote(file string) *url.URL {
	u, err := url.ParseRequestURI(file)
	if err != nil || len(u.Scheme) < 2 {
		return nil
	}
	return u
}

// near returns a hint for a missing file.
func (r *resourceReader) near(file string) string {
	if strings.ContainsAny(file, "*?[") {
		return ""
	}
	entries, err := r.readDir(r.dir(file))
	if err != nil {
		return "paths are relative to the folder of the test"
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if n := nearest.Name(filepath.Base(file), names); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return "paths are relative to the folder of the test"
}

// parse reads the objects of one file.
func (r *resourceReader) parse(file string, data []byte) ([]Resource, Problems) {
	docs, wrong := parse(file, data)
	var out []Resource
	for _, doc := range docs {
		if doc.root == nil {
			continue
		}
		d := newDecoder(file, doc, false)
		d.lastWins = !r.strict
		out = append(out, r.objects(d, doc.root)...)
		wrong = append(wrong, d.problems...)
	}
	return out, wrong
}

// objects returns the object of one document, or the items if it is a list.
func (r *resourceReader) objects(d *decoder, root *yaml.Node) []Resource {
	if root.Kind != yaml.MappingNode {
		d.wrong(root, nil, "an object")
		return nil
	}
	var see func(*yaml.Node, string, bool)
	if r.check != nil {
		see = r.check(d.reader)
	}
	object, ok := d.any(root, see).(map[string]any)
	if !ok || d.stopped {
		return nil
	}
	items, list := object["items"].([]any)
	if !list {
		r.kind(d, root, "the object", object)
		return []Resource{{Object: object, Position: d.position(root)}}
	}
	nodes := lookup(root, "items")
	out := make([]Resource, 0, len(items))
	for i, item := range items {
		n := root
		if nodes != nil && i < len(target(nodes).Content) {
			n = target(nodes).Content[i]
		}
		child, ok := item.(map[string]any)
		if !ok {
			d.problem(n, "", "items[%d] must be an object", i)
			continue
		}
		r.kind(d, n, fmt.Sprintf("items[%d]", i), child)
		out = append(out, Resource{Object: child, Position: d.position(n)})
	}
	return out
}

// kind checks that an object to write has a kind.
func (r *resourceReader) kind(d *decoder, n *yaml.Node, name string, object map[string]any) {
	if kind, _ := object["kind"].(string); r.Manifest && kind == "" {
		d.problem(n, "it needs apiVersion, kind and metadata.name", "%s has no kind", name)
	}
}

// Limits of a download.
const (
	downloadTimeout  = time.Minute
	downloadAttempts = 3
	downloadPause    = time.Second
)

// download reads a resource from the network, and retries after errors that may pass.
func (r *resourceReader) download(ctx context.Context, u *url.URL) ([]Resource, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, Problems{{File: r.File, Message: fmt.Sprintf("files cannot be had by %s", u.Scheme), Hint: "by http and https they can"}}
	}
	var wrong error
	for attempt := range downloadAttempts {
		if attempt > 0 {
			pause := time.NewTimer(downloadPause << (attempt - 1))
			select {
			case <-ctx.Done():
				pause.Stop()
				return nil, context.Cause(ctx)
			case <-pause.C:
			}
		}
		data, again, err := r.get(ctx, u)
		if err == nil {
			return r.downloaded(data)
		}
		wrong = err
		if !again || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, problems(r.File, wrong)
}

func (r *resourceReader) downloaded(data []byte) ([]Resource, error) {
	out, wrong := r.parse(r.File, data)
	if len(out) == 0 && len(wrong) == 0 {
		wrong = append(wrong, Problem{File: r.File, Message: "there is no resource in it"})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

// get makes one request, and reports whether a retry may help.
func (r *resourceReader) get(ctx context.Context, u *url.URL) (data []byte, again bool, err error) {
	client := r.Client
	if client == nil {
		client = &http.Client{Timeout: downloadTimeout}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, true, Problem{File: r.File, Message: "cannot be downloaded: " + unwrapURL(err)}
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		again := response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests
		return nil, again, Problem{File: r.File, Message: "cannot be downloaded: " + response.Status}
	}
	data, err = readAll(response.Body, r.File)
	return data, false, err
}

// unwrapURL returns the text of a request's error without the URL, which the message names anyway.
func unwrapURL(err error) string {
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // it is what Do returns
		return u.Err.Error()
	}
	return err.Error()
}
