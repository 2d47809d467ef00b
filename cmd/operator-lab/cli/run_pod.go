package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/process"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// inPod is the subject of a run of an operator of the images file in its pod.
type inPod struct {
	noDemo
	flags *ownFlags
	name  string
	// plan has what makes the pod, and examples are of the files of --apply.
	plan     *project.Plan
	examples []project.Sample
	// offered are more samples, which are not applied by themselves.
	offered []project.Sample
	// wrong says why what is to make the pod does not; nil: the API server makes it of the plan.
	wrong func(context.Context, *rest.Config) error
}

// checkPods reports flags that leave an operator without its pod.
func (f *ownFlags) checkPods() error {
	if !f.nodes.run() {
		return usageError("leave out --nodes and --fake", "without a node that runs programs there is no operator in a pod")
	}
	return nil
}

// runInPod runs an operator of the images file in the pod that the manifests make.
func runInPod(cmd *cobra.Command, streams streams, f *ownFlags, name string) error {
	for _, flag := range append([]string{"env", "watch"}, notWithHooks...) {
		if cmd.Flags().Changed(flag) {
			return usageError("leave it out: the images file says which program it is, and its manifests have the arguments", "--%s is not for an operator in a pod", flag)
		}
	}
	if len(f.manifests) == 0 {
		return usageError("name what installs it, such as --manifests config/default", "the operator %s of %s runs in a pod, and nothing makes one", name, f.nodes.images)
	}
	if slices.Contains(f.apply, allSamples) {
		return usageError("name it with --apply=FILE", "there is no project whose samples --apply could apply")
	}
	if err := f.checkPods(); err != nil {
		return err
	}
	p := &inPod{flags: f, name: name}
	var err error
	if p.plan, err = project.PlanInPod(f.manifests); err != nil {
		return usageOf(err)
	}
	for _, file := range f.apply {
		samples, err := project.ReadSamples(file)
		if err != nil {
			return usageOf(err)
		}
		p.examples = append(p.examples, samples...)
	}
	if f.dryRun {
		p.describe(streams.out)
		return nil
	}
	return p.run(cmd.Context(), streams, "pod")
}

// run runs it in a sandbox; by says in a word on the screen how it is run.
func (p *inPod) run(ctx context.Context, streams streams, by string) error {
	title := p.name + " / " + by
	run := &liveRun{
		io: streams, name: p.name, title: title, flags: p.flags.runFlags, subject: p, step: noStep,
		journal: trace.New(trace.Options{Product: version(), Title: title}),
	}
	return run.run(ctx)
}

// describe prints what would be applied, for --dry-run.
func (p *inPod) describe(w io.Writer) {
	line := describing(w)
	line("operator", "%s, in a pod, as %s says", p.name, p.flags.nodes.images)
	describeObjects(line, "applies", p.plan)
	describeLeftOut(line, p.plan)
	for _, sample := range slices.Concat(p.examples, p.offered) {
		line("sample", "%s", sample.File)
	}
	describeNotes(line, p.plan.Notes)
}

func (p *inPod) sandbox(*sandbox.Options) error { return nil }

func (p *inPod) kept(*upFlags) {}

func (p *inPod) lab(context.Context, *target, *lab.Options) error { return nil }

// begin applies what --apply names.
func (p *inPod) begin(ctx context.Context, s *liveOperator) error {
	s.tell(p.plan.Notes)
	if err := p.awaitWebhooks(ctx, s); err != nil {
		return err
	}
	for _, sample := range p.examples {
		var wrong error
		_ = wait.PollUntilContextTimeout(ctx, webhookPause, webhookPatience, true, func(ctx context.Context) (bool, error) {
			wrong = sample.Apply(ctx, s.you, lab.Person)
			return !apierrors.IsInternalError(wrong), nil // the network may learn of the Service's endpoints a little later
		})
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// How often to look whether the webhooks can be called, and how long.
const (
	webhookPause    = 200 * time.Millisecond
	webhookPatience = 20 * time.Second
)

// awaitWebhooks waits until the Services of webhooks have endpoints: until then the API server refuses what they are to judge. If
// they get none, it goes on, and the API server says so.
func (p *inPod) awaitWebhooks(ctx context.Context, s *liveOperator) error {
	client, err := kubernetes.NewForConfig(s.target.Config())
	if err != nil {
		return err
	}
	for _, service := range p.plan.WebhookServices() {
		of := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name}
		_ = wait.PollUntilContextTimeout(ctx, webhookPause, webhookPatience, true, func(ctx context.Context) (bool, error) {
			found, err := client.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, of)
			return err == nil && hasReady(found.Items), nil // the API server may answer the next time
		})
	}
	return ctx.Err()
}

// hasReady reports whether an endpoint is ready.
func hasReady(all []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(all, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
	})
}

func (p *inPod) samples(s *liveOperator) []tui.Sample {
	return offer(s, slices.Concat(p.examples, p.offered))
}

func (p *inPod) awaitEnd(ctx context.Context, s *liveOperator) error {
	return awaitOwnEnd(ctx, s, p.flags.until)
}

func (p *inPod) summary(context.Context, *liveOperator) error { return nil }

func (p *inPod) end() error { return nil }

// install applies what makes the pod. The context that it returns ends when the pod cannot serve, and stop ends the watch for that.
func (p *inPod) install(ctx context.Context, s *liveOperator) (_ context.Context, stop func(), err error) {
	if err := project.ApplyAll(ctx, s.target, p.plan.Objects, p.plan.Namespace); err != nil {
		return ctx, nil, err
	}
	client, err := kubernetes.NewForConfig(s.target.Config())
	if err != nil {
		return ctx, nil, err
	}
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		for watched.Err() == nil {
			err := p.trouble(watched, client.CoreV1())
			if err == nil && p.wrong != nil {
				err = p.wrong(watched, s.target.Config())
			}
			if err != nil {
				cancel(err)
			}
			select {
			case <-watched.Done():
			case <-time.After(troublePause):
			}
		}
	}()
	return watched, func() { cancel(nil) }, nil
}

// troublePause is how often to look whether a pod is in trouble.
const troublePause = 500 * time.Millisecond

// lastLines is how many lines of a log are looked at for the last words of its program.
const lastLines = 200

// trouble returns why a pod does not serve: what the compiler says of a project that does not compile, or the last words of a
// program that ends again and again.
func (p *inPod) trouble(ctx context.Context, client corev1client.CoreV1Interface) error {
	pods, err := client.Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		pods = &corev1.PodList{} // the API server may answer the next time
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			w := c.State.Waiting
			switch {
			case w == nil:
			case w.Reason == "ErrImagePull":
				_, why, _ := strings.Cut(w.Message, "desc = ")
				return usageError("mend it, or look at "+p.flags.nodes.images, "pod %s/%s: %s", pod.Namespace, pod.Name, cmp.Or(why, w.Message))
			case w.Reason == "CrashLoopBackOff":
				last, _ := client.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name, Previous: true, TailLines: new(int64(lastLines))}).DoRaw(ctx)
				return &sandbox.Problem{
					Err:  fmt.Errorf("pod %s/%s ends again and again; it printed: %s", pod.Namespace, pod.Name, process.LastWords(strings.Split(string(last), "\n"))),
					Hint: "with --keep, 'operator-lab kubectl logs' shows the rest",
				}
			}
		}
	}
	return nil
}
