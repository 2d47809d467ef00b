package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
)

func ocCommand(io streams, programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "oc [--name sandbox] [oc arguments…]",
		Short: "Run the commands of OpenShift's oc that work on any Kubernetes",
		Long: `Take a command that was written for OpenShift's oc, against a sandbox. What oc has from kubectl
is kubectl's own, linked into this binary. A project is a namespace:

  new-project NAME   create it, and make it the one that later commands are about
  project [NAME]     say which one that is, or choose another
  projects           list all
  whoami             say who you are
  login, logout      nothing: you are the sandbox's administrator

The chosen project is noted in the sandbox's own kubeconfig, never in yours; 'operator-lab
kubectl' follows it too. What only OpenShift has, such as routes and builds, is refused.`,
		Example: `  operator-lab oc new-project maintpage-operator
  operator-lab oc create -f deploy/role.yaml
  operator-lab oc edit maintpage example -n maintpage-operator
  operator-lab oc --name demo get pod`,
		DisableFlagsInUseLine: true,
		DisableFlagParsing:    true, // all flags but a leading --name are oc's
		ValidArgsFunction:     completeOc(programs),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, args, err := leadingName(args)
			if err != nil {
				return err
			}
			if len(args) == 0 || slices.Contains([]string{"help", "-h", "--help"}, args[0]) && len(args) == 1 {
				return cmd.Help()
			}
			return runOc(cmd.Context(), io, programs, name, args)
		},
	}
}

// completeOc completes oc's own verbs and, with kubectl, all others.
func completeOc(programs Programs) cobra.CompletionFunc {
	kubectl := completeLinked(programs.Kubectl, "kubectl")
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		words, directive := kubectl(cmd, projectsAreNamespaces(args), typed)
		if _, rest, err := leadingName(args); err == nil && len(rest) == 0 {
			for _, verb := range slices.Sorted(maps.Keys(ocVerbs)) {
				if strings.HasPrefix(verb, typed) {
					words = append(words, verb)
				}
			}
		}
		return words, directive
	}
}

// runOc carries out a command line of oc.
func runOc(ctx context.Context, io streams, programs Programs, name string, args []string) error {
	verb := args[0]
	if hint, ok := openShiftOnly[verb]; ok {
		return usageError(hint, "%q needs OpenShift, and a sandbox is plain Kubernetes", "oc "+verb)
	}
	run, ok := ocVerbs[verb]
	if !ok {
		return programs.kubectl(name, projectsAreNamespaces(args))
	}
	record, err := running(name)
	if err != nil {
		return err
	}
	o := &oc{streams: io, record: record}
	if o.client, err = o.connect(); err != nil {
		return err
	}
	return run(o, ctx, args[1:])
}

// oc is one command of oc that kubectl does not have.
type oc struct {
	streams
	record *sandbox.Record
	client client.Client
}

// ocVerbs are the verbs that kubectl does not have.
var ocVerbs = map[string]func(*oc, context.Context, []string) error{
	"new-project": (*oc).newProject,
	"project":     (*oc).project,
	"projects":    (*oc).projects,
	"whoami":      (*oc).whoami,
	"login":       (*oc).login,
	"logout":      (*oc).login,
}

// Why a verb of OpenShift's cannot be followed, and what helps.
const (
	insteadOfApp    = "create a Deployment: 'operator-lab oc create deployment web --image=…'"
	insteadOfBuild  = "there is nothing to build: images are programs that the lab knows by their names"
	insteadOfPolicy = "use roles and bindings: see 'operator-lab oc create rolebinding --help'"
	insteadOfRoute  = "ask a Service by its name: 'operator-lab traffic http://web.default.svc.cluster.local:8080'"
)

// openShiftOnly maps verbs that need OpenShift to a hint.
var openShiftOnly = map[string]string{
	"adm":             insteadOfPolicy,
	"cancel-build":    insteadOfBuild,
	"deploy":          "use 'operator-lab oc rollout'",
	"extract":         "use 'operator-lab oc get secret NAME -o yaml'",
	"idle":            "use 'operator-lab oc scale --replicas=0'",
	"image":           insteadOfBuild,
	"import-image":    insteadOfBuild,
	"new-app":         insteadOfApp,
	"new-build":       insteadOfBuild,
	"policy":          insteadOfPolicy,
	"process":         insteadOfApp,
	"registry":        insteadOfBuild,
	"request-project": "use 'operator-lab oc new-project'",
	"rollback":        "use 'operator-lab oc rollout undo'",
	"route":           insteadOfRoute,
	"rsh":             "use 'operator-lab oc exec -it POD -- sh'",
	"rsync":           "use 'operator-lab oc exec POD -- cat FILE'",
	"sa":              "use 'operator-lab oc create token'",
	"secrets":         "use 'operator-lab oc create secret'",
	"serviceaccounts": "use 'operator-lab oc create token'",
	"start-build":     insteadOfBuild,
	"status":          "see 'operator-lab oc get all'",
	"tag":             insteadOfBuild,
}

// connect returns an administrator's client.
func (o *oc) connect() (client.Client, error) {
	access, err := o.record.Open()
	if err != nil {
		return nil, sandboxError(err)
	}
	config := access.Config()
	config.UserAgent = "oc"
	return client.New(config, client.Options{})
}

// The annotations in which OpenShift keeps what a project is called and is for.
const (
	displayName = "openshift.io/display-name"
	description = "openshift.io/description"
)

func (o *oc) newProject(ctx context.Context, args []string) error {
	annotations := map[string]string{}
	flags := pflag.NewFlagSet("new-project", pflag.ContinueOnError)
	display := flags.String("display-name", "", "what people call it")
	about := flags.String("description", "", "what it is for")
	skip := flags.Bool("skip-config-write", false, "stay in the project you are in")
	name, err := oneName(flags, args, true)
	if err != nil {
		return err
	}
	for key, text := range map[string]string{displayName: *display, description: *about} {
		if text != "" {
			annotations[key] = text
		}
	}
	project := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	err = o.client.Create(ctx, project)
	if apierrors.IsAlreadyExists(err) {
		return &sandbox.Problem{
			Err:  fmt.Errorf("project %q already exists", name),
			Hint: "use it with 'operator-lab oc project " + name + "'",
		}
	}
	if err != nil {
		return err
	}
	if *skip {
		return nil
	}
	return o.enter(name)
}

func (o *oc) project(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("project", pflag.ContinueOnError)
	short := flags.BoolP("short", "q", false, "print the name only")
	name, err := oneName(flags, args, false)
	if err != nil {
		return err
	}
	now, err := o.current()
	switch {
	case err != nil:
		return err
	case name == "" && *short:
		fmt.Fprintln(o.out, now)
		return nil
	case name == "":
		return o.say("Using", now)
	case name == now:
		return o.say("Already on", now)
	}
	err = o.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return &sandbox.Problem{
			Err:  fmt.Errorf("a project named %q does not exist on %q", name, o.record.URL()),
			Hint: "see 'operator-lab oc projects', or create it with 'operator-lab oc new-project " + name + "'",
		}
	}
	if err != nil {
		return err
	}
	return o.enter(name)
}

func (o *oc) projects(ctx context.Context, args []string) error {
	if _, err := oneName(pflag.NewFlagSet("projects", pflag.ContinueOnError), args, false); err != nil {
		return err
	}
	var all corev1.NamespaceList
	if err := o.client.List(ctx, &all); err != nil {
		return err
	}
	now, err := o.current()
	if err != nil {
		return err
	}
	fmt.Fprint(o.out, "You have access to the following projects and can switch between them with 'oc project <projectname>':\n\n")
	for _, project := range all.Items {
		mark := " "
		if project.Name == now {
			mark = "*"
		}
		line := "  " + mark + " " + project.Name
		if called := project.Annotations[displayName]; called != "" {
			line += " - " + called
		}
		fmt.Fprintln(o.out, line)
	}
	fmt.Fprintln(o.out)
	return o.say("Using", now)
}

func (o *oc) whoami(ctx context.Context, args []string) error {
	if _, err := oneName(pflag.NewFlagSet("whoami", pflag.ContinueOnError), args, false); err != nil {
		return err
	}
	var me authenticationv1.SelfSubjectReview
	if err := o.client.Create(ctx, &me); err != nil {
		return err
	}
	fmt.Fprintln(o.out, me.Status.UserInfo.Username)
	return nil
}

// login does nothing and is no error: articles begin with it.
func (o *oc) login(context.Context, []string) error {
	fmt.Fprintln(o.err, "there is nothing to log in to: you are the administrator of sandbox "+o.record.Name)
	now, err := o.current()
	if err != nil {
		return err
	}
	return o.say("Using", now)
}

// enter makes a project the current one of the sandbox's own kubeconfig.
func (o *oc) enter(name string) error {
	if err := setNamespace(o.record.Kubeconfig(), name); err != nil {
		return err
	}
	return o.say("Now using", name)
}

// say prints which project it is as oc does.
func (o *oc) say(what, project string) error {
	_, err := fmt.Fprintf(o.out, "%s project %q on server %q.\n", what, project, o.record.URL())
	return err
}

// current returns the current project: the namespace of commands without --namespace.
func (o *oc) current() (string, error) {
	k, err := clientcmd.LoadFromFile(o.record.Kubeconfig())
	if err != nil {
		return "", err
	}
	if c := k.Contexts[k.CurrentContext]; c != nil {
		return cmp.Or(c.Namespace, metav1.NamespaceDefault), nil
	}
	return metav1.NamespaceDefault, nil
}

// setNamespace makes a namespace the current one of a kubeconfig, which others may be reading: a complete file is
// renamed into its place.
func setNamespace(path, namespace string) error {
	k, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	c := k.Contexts[k.CurrentContext]
	if c == nil {
		return &sandbox.Problem{Err: fmt.Errorf("%s has no current context", path), Hint: "restart the sandbox: it writes the file anew"}
	}
	c.Namespace = namespace
	text, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	return replaceFile(path, text)
}

// oneName parses what follows a verb: flags and a name, which may be required.
func oneName(flags *pflag.FlagSet, args []string, required bool) (string, error) {
	flags.SetOutput(io.Discard) // the error says it
	hint := "see 'operator-lab oc --help'"
	if err := flags.Parse(args); err != nil {
		return "", usageError(hint, "oc %s: %w", flags.Name(), err)
	}
	switch rest := flags.Args(); {
	case len(rest) > 1:
		return "", usageError(hint, "oc %s takes one name, got %q too", flags.Name(), rest[1])
	case len(rest) == 1:
		return rest[0], nil
	case required:
		return "", usageError(hint, "oc %s needs a name", flags.Name())
	}
	return "", nil
}

// projectsAreNamespaces puts the kind that Kubernetes has in the place of OpenShift's.
func projectsAreNamespaces(args []string) []string {
	if len(args) < 2 || !slices.Contains([]string{"get", "describe", "delete", "edit", "label", "annotate"}, args[0]) {
		return args
	}
	kind, name, slash := strings.Cut(args[1], "/")
	if kind != "project" && kind != "projects" {
		return args
	}
	args = slices.Clone(args)
	args[1] = "namespaces"
	if slash {
		args[1] += "/" + name
	}
	return args
}
