package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// inPod is the subject of a run of an operator of the images file in its pod. It has no hooks, but what --manifests and --apply name
// is applied as for those.
type inPod struct {
	*hooked
	name string
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
	if f.nodes.nodes == 0 {
		return usageError("leave out --nodes", "without a node there are no pods")
	}
	p := &inPod{hooked: &hooked{flags: f}, name: name}
	var err error
	if p.before, err = project.ReadManifests(f.manifests); err != nil {
		return usageOf(err)
	}
	if f.dryRun {
		p.describe(streams.out)
		return nil
	}
	title := name + " / pod"
	run := &liveRun{
		io: streams, name: name, title: title, flags: f.runFlags, subject: p, step: noStep,
		journal: trace.New(trace.Options{Product: version(), Title: title}),
	}
	return run.run(cmd.Context())
}

// describe prints what would be applied, for --dry-run.
func (p *inPod) describe(w io.Writer) {
	line := func(name, text string) { fmt.Fprintf(w, "%-12s %s\n", name, text) }
	line("operator", p.name+", in a pod, as "+p.flags.nodes.images+" says")
	for _, u := range p.before {
		line("applies", u.GetKind()+" "+filepath.Join(u.GetNamespace(), u.GetName()))
	}
	for _, name := range p.flags.apply {
		line("sample", name)
	}
}

func (p *inPod) sandbox(*sandbox.Options) error { return nil }

func (p *inPod) lab(context.Context, *target, *lab.Options) error { return nil }

// install applies what makes the pod. The context that it returns ends when a pod cannot have its image, and stop ends the watch for
// that.
func (p *inPod) install(ctx context.Context, s *liveOperator) (_ context.Context, stop func(), err error) {
	if err := project.ApplyAll(ctx, s.target, p.before, metav1.NamespaceDefault); err != nil {
		return ctx, nil, err
	}
	reader, err := client.New(s.target.Config(), client.Options{}) // not the person's: nobody asked
	if err != nil {
		return ctx, nil, err
	}
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		for watched.Err() == nil {
			if err := p.notPulled(watched, reader); err != nil {
				cancel(err)
			}
			select {
			case <-watched.Done():
			case <-time.After(pullPause):
			}
		}
	}()
	return watched, func() { cancel(nil) }, nil
}

// pullPause is how often to look whether a pod can have its image.
const pullPause = 500 * time.Millisecond

// notPulled returns why a pod cannot have its image, which is what the compiler says of a project that does not compile.
func (p *inPod) notPulled(ctx context.Context, reader client.Reader) error {
	var pods corev1.PodList
	if reader.List(ctx, &pods) != nil {
		return nil // the next time
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil && w.Reason == "ErrImagePull" {
				return usageError("mend it, or look at "+p.flags.nodes.images, "pod %s/%s cannot have the image %s: %s", pod.Namespace, pod.Name, c.Image, w.Message)
			}
		}
	}
	return nil
}
