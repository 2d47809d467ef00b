package tomcat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"
	helmclient "github.com/operator-framework/helm-operator-plugins/pkg/client"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/helm"
)

const (
	// finalizer keeps a Tomcat until its release is uninstalled.
	finalizer = "uninstall-helm-release"
	// resync is the time after which the kit's operator looked at each object again.
	resync = 5 * time.Second
)

// classic behaves as the operator of the Helm App Operator Kit of November 2018 did, but for Helm itself: that was
// version 2, whose server was linked into the operator; here it is version 3. Its flaws are marked where they sit, and none
// of them is to be repaired.
type classic struct {
	client  client.Client
	cache   client.Reader
	chart   *chart.Chart
	actions helmclient.ActionClientGetter
	clock   clock.PassiveClock
}

// setupClassic watches Tomcats, and nothing of what their releases consist of (H-03).
func setupClassic(mgr ctrl.Manager, c *chart.Chart, o controller.Options) error {
	// What Helm knows of releases is in memory. Its driver is told the namespace before each use, so there is one worker.
	memory := driver.NewMemory()
	o.MaxConcurrentReconciles = 1
	actions, err := helm.NewActions(mgr, helmclient.StorageDriverMapper(
		func(_ context.Context, obj client.Object, _ *rest.Config) (driver.Driver, error) {
			memory.SetNamespace(obj.GetNamespace())
			return memory, nil
		}))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("tomcat-controller").
		For(newTomcat()).
		WithOptions(o).
		Complete(&classic{client: mgr.GetClient(), cache: mgr.GetCache(), chart: c, actions: actions, clock: clock.RealClock{}})
}

func newTomcat() *unstructured.Unstructured {
	tomcat := &unstructured.Unstructured{}
	tomcat.SetGroupVersionKind(Kind)
	return tomcat
}

// Reconcile installs the release of a Tomcat, upgrades it if its manifest would be another one, and else applies all of it
// again, every five seconds, whether anything has changed or not (H-03). What goes wrong is in the operator's log only
// (H-01).
func (r *classic) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	tomcat := newTomcat()
	if err := r.cache.Get(ctx, req.NamespacedName, tomcat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if tomcat.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(tomcat, finalizer) {
		// The whole object, as it was in the cache (H-04).
		return ctrl.Result{}, r.client.Update(ctx, tomcat)
	}
	if err := checkReleaseName(tomcat); err != nil {
		if tomcat.GetDeletionTimestamp() != nil { // there is nothing to uninstall
			err = r.letGo(ctx, tomcat)
		}
		return ctrl.Result{}, err
	}
	helm, err := r.actions.ActionClientFor(ctx, tomcat)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.remember(helm, tomcat); err != nil {
		return ctrl.Result{}, err
	}
	if tomcat.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, r.uninstall(ctx, helm, tomcat)
	}
	if err := r.apply(ctx, helm, tomcat); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: resync}, nil
}

// remember gives Helm the release that is in a Tomcat's status, if it knows none: after a restart.
func (r *classic) remember(helm helmclient.ActionInterface, tomcat *unstructured.Unstructured) error {
	_, err := helm.Get(ReleaseName(tomcat))
	if !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}
	written, is, _ := unstructured.NestedMap(tomcat.Object, "status", "release")
	if !is {
		return nil
	}
	raw, err := json.Marshal(written)
	if err != nil {
		return err
	}
	rel := &release.Release{}
	if err := json.Unmarshal(raw, rel); err != nil {
		return fmt.Errorf("read the release in the status: %w", err)
	}
	return helm.Config().Releases.Create(rel)
}

func (r *classic) apply(ctx context.Context, helm helmclient.ActionInterface, tomcat *unstructured.Unstructured) error {
	name, namespace := ReleaseName(tomcat), tomcat.GetNamespace()
	values, _, err := unstructured.NestedMap(tomcat.Object, "spec")
	if err != nil {
		return err
	}
	owned := helmclient.PostRendererFunc(func(manifest *bytes.Buffer) (*bytes.Buffer, error) {
		return own(helm.Config().KubeClient, tomcat, manifest)
	})
	current, err := helm.Get(name)
	if err == nil && current.Info.Status != release.StatusDeployed {
		// A half of an installation would be in the way of the next one.
		if _, err := helm.Config().Releases.Delete(name, current.Version); err != nil {
			return err
		}
		current, err = helm.Get(name)
	}
	switch {
	case errors.Is(err, driver.ErrReleaseNotFound):
		installed, err := helm.Install(name, namespace, r.chart, values, helmclient.WithInstallPostRenderer(owned))
		if err != nil {
			return err
		}
		return r.note(ctx, tomcat, installed, "Installed")
	case err != nil:
		return err
	}
	candidate, err := helm.Upgrade(name, namespace, r.chart, values, helmclient.WithUpgradePostRenderer(owned),
		func(u *action.Upgrade) error {
			u.DryRun = true
			return nil
		})
	if err != nil {
		return err
	}
	if candidate.Manifest == current.Manifest {
		log.FromContext(ctx).Info("Reconciled release", "release", name)
		return put(helm.Config().KubeClient, current.Manifest)
	}
	upgraded, err := helm.Upgrade(name, namespace, r.chart, values, helmclient.WithUpgradePostRenderer(owned))
	if err != nil {
		return err
	}
	return r.note(ctx, tomcat, upgraded, "Updated")
}

// own makes a Tomcat the owner of all objects of a manifest. It cannot be that of what is cluster-scoped or in another
// namespace: the garbage collector finds no such owner there, and deletes what is in another namespace (H-05).
func own(c kube.Interface, tomcat *unstructured.Unstructured, manifest *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := c.Build(manifest, false)
	if err != nil {
		return nil, err
	}
	owned := &bytes.Buffer{}
	err = objects.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		object, err := meta.Accessor(info.Object)
		if err != nil {
			return err
		}
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(tomcat, Kind)})
		raw, err := yaml.Marshal(info.Object)
		fmt.Fprintf(owned, "---\n%s", raw)
		return err
	})
	return owned, err
}

// note writes the whole release into the Tomcat's status: what Helm needs to go on after a restart, and with it the chart,
// and all values, for everybody who may read Tomcats (H-02). Only what went well is noted (H-01).
func (r *classic) note(ctx context.Context, tomcat *unstructured.Unstructured, rel *release.Release, did string) error {
	log.FromContext(ctx).Info(did+" release", "release", rel.Name)
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rel)
	if err != nil {
		return err
	}
	now := r.clock.Now().UTC().Format(time.RFC3339)
	tomcat.Object["status"] = map[string]any{
		"phase": "Applied", "reason": "ApplySuccessful", "message": rel.Info.Notes,
		"lastUpdateTime": now, "lastTransitionTime": now,
		"release": known,
	}
	return r.client.Update(ctx, tomcat)
}

// put applies a manifest again: what is missing is created, and what is there gets all of it as a merge patch. So a list is
// replaced, and fields of others stay.
func put(c kube.Interface, manifest string) error {
	objects, err := c.Build(strings.NewReader(manifest), false)
	if err != nil {
		return err
	}
	return objects.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		helper := resource.NewHelper(info.Client, info.Mapping)
		_, err = helper.Create(info.Namespace, true, info.Object)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		patch, err := json.Marshal(info.Object)
		if err == nil {
			_, err = helper.Patch(info.Namespace, info.Name, types.MergePatchType, patch, &metav1.PatchOptions{})
		}
		return err
	})
}

func (r *classic) uninstall(ctx context.Context, helm helmclient.ActionInterface, tomcat *unstructured.Unstructured) error {
	if !controllerutil.ContainsFinalizer(tomcat, finalizer) {
		return nil
	}
	name := ReleaseName(tomcat)
	if _, err := helm.Uninstall(name); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return err
	}
	log.FromContext(ctx).Info("Uninstalled release", "release", name)
	return r.letGo(ctx, tomcat)
}

// letGo takes the finalizer from a Tomcat that is being deleted.
func (r *classic) letGo(ctx context.Context, tomcat *unstructured.Unstructured) error {
	if !controllerutil.RemoveFinalizer(tomcat, finalizer) {
		return nil
	}
	return r.client.Update(ctx, tomcat)
}

// ReleaseName returns the name of the release of a Tomcat with the variant classic: its own, and its UID as a number to the
// base 36, so that two of one name in different namespaces do not collide.
func ReleaseName(tomcat client.Object) string {
	var number big.Int
	if uid, err := uuid.Parse(string(tomcat.GetUID())); err == nil {
		number.SetBytes(uid[:])
	}
	return tomcat.GetName() + "-" + number.Text(36)
}

// checkReleaseName reports that the name of a Tomcat's release is longer than Helm takes: a Tomcat may have 27 characters,
// or one or two more if its UID is a small number.
func checkReleaseName(tomcat client.Object) error {
	over := len(ReleaseName(tomcat)) - helm.LongestRelease
	if over <= 0 {
		return nil
	}
	return fmt.Errorf("its name may have %d characters, as Helm takes %d with a dash and the UID",
		len(tomcat.GetName())-over, helm.LongestRelease)
}
