package project

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// ConfigName is the name of the optional file beside a project.
const ConfigName = "lab.yaml"

// Config is the content of the file lab.yaml. What is empty is found by itself.
type Config struct {
	// Main is the directory of the main package.
	Main string `yaml:"main,omitempty"`
	// Tags are build tags.
	Tags []string `yaml:"tags,omitempty"`
	// Args replace the arguments that the manifests give to the program.
	Args []string `yaml:"args,omitempty"`
	// Env are variables for the program, besides those of the manifests.
	Env map[string]string `yaml:"env,omitempty"`
	// Manifests are files and directories to apply in place of config/default.
	Manifests []string `yaml:"manifests,omitempty"`
	// Values are files of values for Helm charts among the manifests.
	Values []string `yaml:"values,omitempty"`
	// Samples are files and directories to offer in place of config/samples.
	Samples []string `yaml:"samples,omitempty"`
	// Hook is the program that answers the webhooks of the controllers among the manifests.
	Hook string `yaml:"hook,omitempty"`
	// Nodes is how many simulated nodes run pods.
	Nodes *int `yaml:"nodes,omitempty"`
	// Images is a file that says which programs images are.
	Images string `yaml:"images,omitempty"`
}

var configKeys = []string{"main", "tags", "args", "env", "manifests", "values", "samples", "hook", "nodes", "images"}

// readConfig reads lab.yaml in the directory or else in the module's root, and fills in the options that are empty. Its
// paths are relative to itself.
func (p *Project) readConfig(o *Options) error {
	for _, dir := range []string{o.Dir, p.Root} {
		file := filepath.Join(dir, ConfigName)
		raw, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c, err := parseConfig(file, raw)
		if err != nil {
			return err
		}
		full := func(names []string) []string {
			out := slices.Clone(names)
			for i, name := range out {
				if !filepath.IsAbs(name) {
					out[i] = filepath.Join(dir, name)
				}
			}
			return out
		}
		p.Config, p.config = file, c
		p.Nodes = c.Nodes
		if c.Images != "" {
			p.Images = full([]string{c.Images})[0]
		}
		if o.Main == "" && c.Main != "" {
			o.Main = full([]string{c.Main})[0]
		}
		if len(o.Tags) == 0 {
			o.Tags = c.Tags
		}
		if len(o.Manifests) == 0 {
			o.Manifests = full(c.Manifests)
		}
		if len(o.Values) == 0 {
			o.Values = full(c.Values)
		}
		if len(o.Samples) == 0 {
			o.Samples = full(c.Samples)
		}
		return nil
	}
	return nil
}

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): `)
	unknownKey = regexp.MustCompile(`^field (.*) not found in type `)
)

// parseConfig reads the content of a file lab.yaml. An error names the file and the line.
func parseConfig(file string, content []byte) (Config, error) {
	var c Config
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	err := d.Decode(&c)
	if errors.Is(err, io.EOF) {
		return c, nil
	}
	if err == nil {
		if more := d.Decode(&yaml.Node{}); !errors.Is(more, io.EOF) {
			err = errors.New("the file has more than one document")
		}
	}
	if err == nil {
		err = c.check()
	}
	if err == nil {
		return c, nil
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimSpace(strings.TrimPrefix(text, "unmarshal errors:\n"))
	text, _, _ = strings.Cut(text, "\n")
	at := file
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		at, text = at+":"+m[1], text[len(m[0]):]
	}
	hint := "the keys are " + strings.Join(configKeys, ", ")
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		text = "unknown key " + strconv.Quote(m[1])
		if like := nearest.Name(m[1], configKeys); like != "" {
			hint = "did you mean " + like + "?"
		}
	}
	return Config{}, &sandbox.Problem{Err: fmt.Errorf("%s: %s", at, text), Hint: hint}
}

// check refuses what no process or sandbox can be given.
func (c Config) check() error {
	if c.Nodes != nil && (*c.Nodes < 0 || *c.Nodes > sandbox.MaxNodes) {
		return fmt.Errorf("nodes: %d is not from 0 to %d", *c.Nodes, sandbox.MaxNodes)
	}
	for _, arg := range c.Args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %q has a character that no argument can have", arg)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Env[name], 0) {
			return fmt.Errorf("env: %q is no variable that a process can have", name)
		}
	}
	return nil
}

// WriteConfig writes what was found for a project into the file lab.yaml of its directory, which must not have one, and
// returns its path. With more, what is set there is written too; its arguments are added to those of the plan. Arguments are
// left out if they name private directories, in place of volumes that the Deployment mounts.
func (p *Project) WriteConfig(plan *Plan, more Config) (file string, err error) {
	dir := p.options.Dir
	relative := func(name string) string {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.files().home, name)
		}
		if rel, err := filepath.Rel(dir, name); err == nil {
			return filepath.ToSlash(rel)
		}
		return name
	}
	c := more
	if p.MainDir != "" && p.Ansible == nil {
		c.Main = relative(p.MainDir)
	}
	c.Tags = p.options.Tags
	c.Args = slices.Concat(plan.Args, more.Args)
	if slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, p.options.WorkDir) }) {
		c.Args = nil
	}
	c.Env = map[string]string{}
	maps.Copy(c.Env, p.config.Env)
	maps.Copy(c.Env, more.Env)
	for _, source := range plan.Sources {
		c.Manifests = append(c.Manifests, relative(source))
	}
	for _, values := range p.options.Values {
		c.Values = append(c.Values, relative(absolute(values)))
	}
	for _, sample := range p.samplePaths() {
		c.Samples = append(c.Samples, relative(absolute(sample)))
	}
	if c.Nodes == nil {
		c.Nodes = p.Nodes
	}
	if c.Images = cmp.Or(c.Images, p.Images); c.Images != "" {
		c.Images = relative(absolute(c.Images))
	}
	raw, err := yaml.Marshal(c)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, ConfigName)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as the other files of the project
	if errors.Is(err, os.ErrExist) {
		return "", problem("change it, or move it away first", "%s is there already", file)
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(raw)
	return file, errors.Join(err, f.Close())
}
