package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/packages"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// runByOLM runs a project that OLM installs: by a Subscription to a catalog with a bundle of it, as 'bundle' makes it, and in pods that
// run what its source is built to.
func runByOLM(cmd *cobra.Command, streams streams, f *ownFlags, dir string) error {
	for _, flag := range append([]string{"env", "watch", "images", "catalog"}, notWithHooks...) {
		if cmd.Flags().Changed(flag) {
			return usageError("leave it out: OLM makes the operator's pod of the bundle, and the source is its image", "--%s is not for a project that OLM installs", flag)
		}
	}
	if err := f.checkPods(); err != nil {
		return err
	}
	own := &ownOperator{flags: f}
	defer own.close()
	if err := own.find(cmd.Context(), dir); err != nil {
		return err
	}
	if own.project.Module == "" {
		return usageError("run it without --olm; 'bundle' makes its bundle", "%s has no Go module, of which the image of its pod could be built", dir)
	}
	b, err := (&bundleFlags{manifests: f.manifests}).make(own)
	if err != nil {
		return err
	}
	if len(b.checked.Wrong) > 0 {
		return usageError("operator-lab bundle "+shellQuote(dir)+" says all of it", "OLM would not take the bundle: %s", oneLine(b.checked.Wrong[0]))
	}
	files, err := b.files(own, dir)
	if err != nil {
		return err
	}
	made := filepath.Join(own.work.Dir, "olm")
	if err := errors.Join(os.RemoveAll(made), writeFolder(made, files)); err != nil {
		return err
	}
	source, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p := &inPod{
		flags: f, name: images.OperatorName(filepath.ToSlash(source)), examples: own.toApply, offered: own.plan.Samples, wrong: lasting(notInstalled),
	}
	if slices.Contains(f.apply, allSamples) {
		p.examples, p.offered = slices.Concat(p.examples, p.offered), nil
	}
	f.nodes.olm, f.nodes.catalog, f.nodes.images = true, filepath.Join(made, catalogFolder), filepath.Join(made, imagesFile)
	objects, err := project.ReadManifests([]string{filepath.Join(made, subscriptionFile)})
	if err != nil {
		return err
	}
	p.plan = &project.Plan{Objects: objects, Namespace: objects[len(objects)-1].GetNamespace()}
	if f.dryRun {
		b.describe(streams.out)
		p.describe(streams.out)
		return nil
	}
	return p.run(cmd.Context(), streams, "OLM")
}

// stuckFor is how long OLM must not get on before that is an error: on its way some things are wrong for a moment.
const stuckFor = 10 * time.Second

// lasting makes of a question why something is wrong one that answers when it has been asked for stuckFor, and it was wrong each time.
func lasting(why func(context.Context, *rest.Config) error) func(context.Context, *rest.Config) error {
	var since time.Time
	return func(ctx context.Context, config *rest.Config) error {
		err := why(ctx, config)
		switch {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= stuckFor:
			return err
		}
		return nil
	}
}

// notInstalled returns why OLM does not install what a Subscription asks for; nil if it does, or has not got so far.
func notInstalled(ctx context.Context, config *rest.Config) error {
	const hint = "with --keep, 'operator-lab kubectl get subscriptions,installplans,csvs -A -o yaml' shows the rest"
	olm, err := packages.List(ctx, config)
	if err != nil {
		return nil //nolint:nilerr // the API server may answer the next time
	}
	for i := range olm.Subscriptions.Items {
		s := &olm.Subscriptions.Items[i]
		if failed := s.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed); failed.Status == corev1.ConditionTrue {
			return &sandbox.Problem{Err: fmt.Errorf("OLM cannot resolve the Subscription %s: %s", s.Name, failed.Message), Hint: hint}
		}
	}
	for i := range olm.Plans.Items {
		if p := &olm.Plans.Items[i]; p.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
			var why []string
			for _, c := range p.Status.Conditions {
				if c.Message != "" {
					why = append(why, c.Message)
				}
			}
			return &sandbox.Problem{Err: fmt.Errorf("the InstallPlan %s failed: %s", p.Name, strings.Join(why, "; ")), Hint: hint}
		}
	}
	for i := range olm.Versions.Items {
		v := &olm.Versions.Items[i]
		lacks := v.Status.Phase == v1alpha1.CSVPhasePending && v.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet
		if lacks || v.Status.Phase == v1alpha1.CSVPhaseFailed {
			return &sandbox.Problem{Err: fmt.Errorf("the ClusterServiceVersion %s is %s, %s: %s", v.Name, v.Status.Phase, v.Status.Reason, v.Status.Message), Hint: hint}
		}
	}
	return nil
}
