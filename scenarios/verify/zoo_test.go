package verify_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/scenarios/zoo"
)

// keeper is an operator with at most one bug. For each ConfigMap with the label keep it makes two more, and says in the
// first one that it is ready.
type keeper struct {
	client.Client
	live client.Reader
	bug  string
	// made is progress kept in memory.
	made map[client.ObjectKey]bool
	// errors counts those of writes, reconciles its reconciles.
	errors, reconciles int
	// flagged are the objects whose label was seen to change.
	flagged sync.Map
}

// The bugs of keeper; each is of a class of its own.
const (
	mended = ""
	// madeInTheMiddle makes the second object only right after it has made the first one, as in K8SPXC-896 and K8SPSMDB-578.
	madeInTheMiddle = "made in the middle"
	// statusFirst says that all is ready before it is.
	statusFirst = "status before the deed"
	// existsIsFatal takes an object that is there already for a failure for ever.
	existsIsFatal = "already exists is fatal"
	// inMemory remembers in its memory what it has made.
	inMemory = "progress in memory"
	// swallowed ignores errors, and says that all is ready.
	swallowed = "error swallowed"
	// counted makes an object with a generated name unless its cache has one already.
	counted = "generated name, counted in the cache"
	// countedLive asks the API server instead.
	countedLive = "generated name, counted live"
	// named and namedLive do the same with a name that they make up themselves.
	named, namedLive = "a name of its own, counted in the cache", "a name of its own, counted live"
	// unwatched does not hear of what happens to the objects that it makes.
	unwatched = "child not restored"
	// notCompared takes an object that is there for the one that it wants.
	notCompared = "child not compared"
	// stamped writes the time of its first reconcile in each of its lives.
	stamped = "time of the start written"
	// leftBehind makes an object for each value of a label, and leaves those for earlier values, as labels are left in
	// minio/operator#2038.
	leftBehind = "left behind by an earlier spec"
	// oneForAll gives what it makes for all objects the same name.
	oneForAll = "one name for all"
	// firstOfAll leaves it to the first.
	firstOfAll = "one name for all, of the first"
	// labelsReplaced writes all labels of the objects that it makes, as in operator-framework/operator-sdk#2383.
	labelsReplaced = "others' labels removed"
	// twiceIsFatal gives up for ever at the second error.
	twiceIsFatal = "gives up at the second error"
	// updatedInTheMiddle changes the second object only right after it has changed the first one, as in
	// rabbitmq/cluster-operator#782.
	updatedInTheMiddle = "changed in the middle"
	// flagInPredicate changes objects only if a predicate has seen the change that asks for it.
	flagInPredicate = "memory of a predicate"
	// finalizerFirst removes its finalizer, and then what the finalizer is for.
	finalizerFirst = "finalizer dropped before the clean-up"
	// finalizerLast does so the other way round.
	finalizerLast = "finalizer dropped after the clean-up"
	// cleansUnseen deletes what it made for an object that its cache does not have, as in yugabyte/yugabyte-operator#35.
	cleansUnseen = "orphans judged by a stale view"
	// cleansGone looks past the cache before.
	cleansGone = "orphans judged by a live view"
	// counts writes how often it has reconciled.
	counts = "reconciles counted"
	// panics takes it that a label has a value.
	panics = "panic at an empty value"
	// stuck changes only what is as it is to be, so that a value that makes no sense stays, as in
	// k8ssandra/cass-operator#334 and cloudnative-pg/cloudnative-pg#3541.
	stuck = "stuck after a bad value"
	// notStuck changes it in any case.
	notStuck = "not stuck after a bad value"
	// goneIsFatal takes an object that it has deleted already for a failure, as in Orange-OpenSource/casskop#370.
	goneIsFatal = "not found is fatal"
	// goneIsDone takes it for deleted.
	goneIsDone = "not found is fine"
	// markedOnce writes what it has done in two steps, only right after it has done it, as in konpyutaika/nifikop#79.
	markedOnce = "done is written once"
	// markedAgain writes it whenever it is not there.
	markedAgain = "done is written when it is missing"
	// deletesStale deletes what an older view does not ask for, as in rabbitmq/cluster-operator#653.
	deletesStale = "not asked for by a stale view"
	// deletesLive looks past the cache before.
	deletesLive = "not asked for by a live view"
	// endsByName deletes with an object what has the name of what it made for it, as in datastax/cass-operator#412.
	endsByName = "another's deleted by its name"
	// endsByOwner deletes it only if it belongs to that object.
	endsByOwner = "its own deleted by its owner"
	// generationOnly leaves out updates without another generation, and so an object that was made again under its name.
	generationOnly = "made again, of the same generation"
	// generationAndUID does not leave out one with another UID.
	generationAndUID = "made again, with another UID"
)

// bugs are the bugs, each with the fault that finds it, without the bug, and with the scenario that it is found with.
var bugs = []struct{ name, by, mended, scenario string }{
	{counted, "stale-restart", countedLive, keep},
	{named, "stale-restart", namedLive, keep},
	{madeInTheMiddle, "crash-after", mended, keep},
	{statusFirst, "crash-after", mended, keep},
	{existsIsFatal, "lost-reply", mended, keep},
	{inMemory, "error", mended, keep},
	{inMemory, "remake", mended, keep},
	{swallowed, "timeout", mended, keep},
	{unwatched, "delete-child", mended, keep},
	{notCompared, "change-child", mended, keep},
	{stamped, "restart", mended, keep},
	{leftBehind, "change-back", mended, keep},
	{oneForAll, "beside", firstOfAll, keep},
	{labelsReplaced, "label-child", mended, keep},
	{twiceIsFatal, "error", mended, keep},
	{updatedInTheMiddle, "crash-after", mended, changes},
	{flagInPredicate, "crash-before", mended, changes},
	{finalizerFirst, "crash-after", finalizerLast, ends},
	{cleansUnseen, "time-travel", cleansGone, keep},
	{notCompared, "change-or-make", mended, keep},
	{panics, "spoil", mended, keep},
	{stuck, "spoil", notStuck, keep},
	{goneIsFatal, "crash-after", goneIsDone, keep},
	{markedOnce, "crash-after", markedAgain, keep},
	{deletesStale, "time-travel", deletesLive, onAndOff},
	{endsByName, "time-travel", endsByOwner, again},
	{generationOnly, "missed-remake", generationAndUID, sign},
}

// reader reads past the cache, which is behind at times, unless the bug is about that: what an operator does next is to
// depend on the fault alone.
func (k *keeper) reader() client.Reader {
	switch k.bug {
	case counted, named, cleansUnseen, cleansGone, deletesStale, deletesLive, endsByName, endsByOwner:
		return k.Client
	}
	return k.live
}

// asks reports whether an object asks for others.
func (k *keeper) asks(parent *corev1.ConfigMap) bool {
	value, has := parent.Labels["keep"]
	if k.bug == panics && has {
		return value[0] != ' '
	}
	return value != "" || has && (k.bug == stuck || k.bug == notStuck)
}

func (k *keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	parent := &corev1.ConfigMap{}
	if err := k.reader().Get(ctx, req.NamespacedName, parent); err != nil {
		if apierrors.IsNotFound(err) && (k.bug == cleansUnseen || k.bug == cleansGone) {
			err = k.cleanUp(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !k.asks(parent) || parent.Data["failed"] != "" || (k.bug == statusFirst || k.bug == swallowed) && parent.Data["ready"] != "" {
		return ctrl.Result{}, nil
	}
	switch k.bug {
	case finalizerFirst, finalizerLast:
		return ctrl.Result{}, k.withFinalizer(ctx, parent)
	case cleansUnseen, cleansGone:
		if err := k.secret(ctx, parent, parent.Name+"-s", "made"); err != nil {
			return ctrl.Result{}, err
		}
	case counts:
		k.reconciles++
		if err := k.secret(ctx, parent, parent.Name+"-n", strconv.Itoa(k.reconciles)); err != nil {
			return ctrl.Result{}, err
		}
	case goneIsFatal, goneIsDone:
		return ctrl.Result{}, k.withTemporary(ctx, parent)
	case deletesStale, deletesLive:
		return ctrl.Result{}, k.onOrOff(ctx, parent)
	case endsByName, endsByOwner:
		return ctrl.Result{}, k.untilItEnds(ctx, parent)
	}
	switch k.bug {
	case counted, countedLive, named, namedLive:
		return ctrl.Result{}, k.atLeastOne(ctx, parent)
	}
	if k.bug == statusFirst {
		if err := k.say(ctx, parent, "ready"); err != nil {
			return ctrl.Result{}, err
		}
	}
	if k.bug == inMemory && k.made[req.NamespacedName] {
		return ctrl.Result{}, k.say(ctx, parent, "ready")
	}
	if k.bug == stamped && !k.made[req.NamespacedName] {
		if err := k.secret(ctx, parent, parent.Name+"-seen", time.Now().Format(time.RFC3339Nano)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if k.bug == oneForAll || k.bug == firstOfAll {
		if err := k.secret(ctx, parent, "of-all", parent.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	if k.bug == leftBehind {
		if _, err := k.child(ctx, parent, "-for-"+parent.Labels["keep"], true); err != nil {
			return ctrl.Result{}, err
		}
	}
	k.made[req.NamespacedName] = true
	fresh, err := k.child(ctx, parent, "-a", true)
	if err == nil && (k.bug == markedOnce && fresh || k.bug == markedAgain) {
		err = k.say(ctx, parent, "begun")
		if err == nil {
			err = k.say(ctx, parent, "done")
		}
	}
	if err == nil && (fresh || k.bug != madeInTheMiddle) {
		_, err = k.child(ctx, parent, "-b", fresh || k.bug != updatedInTheMiddle)
	}
	switch {
	case k.bug == existsIsFatal && apierrors.IsAlreadyExists(err):
		return ctrl.Result{}, k.say(ctx, parent, "failed")
	case k.bug == twiceIsFatal && apierrors.IsInternalError(err):
		if k.errors++; k.errors == 2 {
			return ctrl.Result{}, k.say(ctx, parent, "failed")
		}
		return ctrl.Result{}, err
	case err != nil && k.bug != swallowed:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, k.say(ctx, parent, "ready")
}

// withTemporary makes a Secret that is needed for a while, and deletes it.
func (k *keeper) withTemporary(ctx context.Context, parent *corev1.ConfigMap) error {
	if parent.Data["ready"] != "" {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-t"}}
	if parent.Data["begun"] == "" {
		err := errors.Join(ctrl.SetControllerReference(parent, secret, k.Scheme()), client.IgnoreAlreadyExists(k.Create(ctx, secret)))
		if err != nil {
			return err
		}
		return k.say(ctx, parent, "begun")
	}
	err := k.Delete(ctx, secret)
	if k.bug == goneIsDone {
		err = client.IgnoreNotFound(err)
	}
	if err != nil {
		return err
	}
	return k.say(ctx, parent, "ready")
}

// onOrOff makes a Secret unless the object says off; then it deletes it.
func (k *keeper) onOrOff(ctx context.Context, parent *corev1.ConfigMap) error {
	if parent.Labels["keep"] != "off" {
		if err := k.secret(ctx, parent, parent.Name+"-s", "made"); err != nil {
			return err
		}
		return k.say(ctx, parent, "ready")
	}
	if k.bug == deletesLive {
		if err := k.live.Get(ctx, client.ObjectKeyFromObject(parent), parent); err != nil || parent.Labels["keep"] != "off" {
			return err
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-s"}}
	return client.IgnoreNotFound(k.Delete(ctx, secret))
}

// untilItEnds makes a Secret, and deletes it as soon as the parent is being deleted.
func (k *keeper) untilItEnds(ctx context.Context, parent *corev1.ConfigMap) error {
	if parent.DeletionTimestamp == nil {
		if err := k.secret(ctx, parent, parent.Name+"-s", "made"); err != nil {
			return err
		}
		return k.say(ctx, parent, "ready")
	}
	secret := &corev1.Secret{}
	err := k.live.Get(ctx, client.ObjectKey{Namespace: parent.Namespace, Name: parent.Name + "-s"}, secret)
	if err != nil || k.bug == endsByOwner && !metav1.IsControlledBy(secret, parent) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(k.Delete(ctx, secret))
}

// atLeastOne makes an object with a name that is made up, by the API server or here, unless the parent has one.
func (k *keeper) atLeastOne(ctx context.Context, parent *corev1.ConfigMap) error {
	of := map[string]string{"of": parent.Name}
	var have corev1.ConfigMapList
	if err := k.reader().List(ctx, &have, client.InNamespace(parent.Namespace)); err != nil {
		return err
	}
	i := slices.IndexFunc(have.Items, func(child corev1.ConfigMap) bool { return metav1.IsControlledBy(&child, parent) })
	if i < 0 {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, GenerateName: parent.Name + "-", Labels: of}}
		if k.bug == named || k.bug == namedLive {
			child.GenerateName, child.Name = "", parent.Name+"-"+rand.String(6)+"-child"
		}
		if err := errors.Join(ctrl.SetControllerReference(parent, child, k.Scheme()), k.Create(ctx, child)); err != nil {
			return err
		}
	} else if child := &have.Items[i]; child.Labels["of"] != parent.Name {
		child.Labels = labels.Merge(child.Labels, of)
		if err := k.Update(ctx, child); err != nil {
			return err
		}
	}
	return k.say(ctx, parent, "ready")
}

// say sets a key of the object.
func (k *keeper) say(ctx context.Context, parent *corev1.ConfigMap, key string) error {
	if parent.Data == nil {
		parent.Data = map[string]string{}
	}
	if parent.Data[key] != "" {
		return nil
	}
	parent.Data[key] = "true"
	return k.Update(ctx, parent)
}

// secret writes a value into a Secret, which nobody watches.
func (k *keeper) secret(ctx context.Context, parent *corev1.ConfigMap, name, value string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: name}}
	err := k.live.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if err == nil && k.bug == firstOfAll && !metav1.IsControlledBy(secret, parent) {
		return nil
	}
	secret.Data = map[string][]byte{"is": []byte(value)}
	if apierrors.IsNotFound(err) {
		return errors.Join(ctrl.SetControllerReference(parent, secret, k.Scheme()), k.Create(ctx, secret))
	}
	return errors.Join(err, k.Update(ctx, secret))
}

// withFinalizer makes a Secret that nobody collects, and deletes it with the parent.
func (k *keeper) withFinalizer(ctx context.Context, parent *corev1.ConfigMap) error {
	const finalizer = "example.com/keeper"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-s"}}
	if parent.DeletionTimestamp == nil {
		if controllerutil.AddFinalizer(parent, finalizer) {
			return k.Update(ctx, parent)
		}
		return errors.Join(client.IgnoreAlreadyExists(k.Create(ctx, secret)), k.say(ctx, parent, "ready"))
	}
	if !controllerutil.RemoveFinalizer(parent, finalizer) {
		return nil
	}
	deeds := []func() error{
		func() error { return client.IgnoreNotFound(k.Delete(ctx, secret)) }, func() error { return k.Update(ctx, parent) },
	}
	if k.bug == finalizerFirst {
		slices.Reverse(deeds)
	}
	for _, do := range deeds {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// cleanUp deletes the Secret of an object that is not there.
func (k *keeper) cleanUp(ctx context.Context, of client.ObjectKey) error {
	if k.bug == cleansGone && !apierrors.IsNotFound(k.live.Get(ctx, of, &corev1.ConfigMap{})) {
		return nil
	}
	return k.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name + "-s"}})
}

// child makes an object that belongs to the parent, or changes it if it is not as it is to be and may be changed. It reports
// whether it did.
func (k *keeper) child(ctx context.Context, parent *corev1.ConfigMap, suffix string, mayChange bool) (fresh bool, err error) {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + suffix}}
	want := map[string]string{"of": parent.Name, "keep": parent.Labels["keep"]}
	if k.bug != existsIsFatal {
		err := k.live.Get(ctx, client.ObjectKeyFromObject(child), child)
		if err == nil {
			return k.change(ctx, parent, child, want, mayChange)
		} else if !apierrors.IsNotFound(err) {
			return false, err
		}
	} else if parent.Data["ready"] != "" {
		return false, nil
	}
	child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + suffix}, Data: want}
	if err := ctrl.SetControllerReference(parent, child, k.Scheme()); err != nil {
		return false, err
	}
	err = k.Create(ctx, child)
	if apierrors.IsAlreadyExists(err) && k.bug != existsIsFatal {
		return false, nil
	}
	return err == nil, err
}

// change changes an object that belongs to the parent, if it is not as it is to be.
func (k *keeper) change(ctx context.Context, parent, child *corev1.ConfigMap, want map[string]string, may bool) (changed bool, err error) {
	if k.bug == labelsReplaced && len(child.Labels) > 0 {
		child.Labels = nil
		return false, k.Update(ctx, child)
	}
	_, flagged := k.flagged.Load(client.ObjectKeyFromObject(parent))
	if maps.Equal(child.Data, want) || !may || k.bug == stuck && child.Data["keep"] == "" || k.bug == notCompared || k.bug == flagInPredicate && !flagged {
		return false, nil
	}
	child.Data = want
	err = k.Update(ctx, child)
	return err == nil, err
}

// signed is a kind with a status.
var signed = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Letter"}

func signedCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "letters." + signed.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: signed.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "letters", Kind: signed.Kind, ListKind: signed.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: signed.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// sign writes into the status of a Letter that it is signed.
func (k *keeper) sign(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	letter := &unstructured.Unstructured{}
	letter.SetGroupVersionKind(signed)
	if err := k.Get(ctx, req.NamespacedName, letter); err != nil || letter.Object["status"] != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	letter.Object["status"] = map[string]any{"signed": "yes"}
	return ctrl.Result{}, k.Status().Update(ctx, letter)
}

// keeperWith returns keeper as an operator of the lab.
func keeperWith(bug string) operators.Operator {
	return zoo.Operator("keeper", func(mgr ctrl.Manager, o controller.Options) error {
		k := &keeper{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug, made: map[client.ObjectKey]bool{}}
		b := ctrl.NewControllerManagedBy(mgr).WithOptions(o).Named("keeper")
		letter := &unstructured.Unstructured{}
		letter.SetGroupVersionKind(signed)
		switch bug {
		case generationOnly:
			return b.For(letter, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(reconcile.Func(k.sign))
		case generationAndUID:
			return b.For(letter, builder.WithPredicates(kit.SpecChanged())).Complete(reconcile.Func(k.sign))
		}
		b.For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				if e.ObjectOld.GetLabels()["keep"] != e.ObjectNew.GetLabels()["keep"] {
					k.flagged.Store(client.ObjectKeyFromObject(e.ObjectNew), true)
				}
				return true
			},
		}))
		if bug != unwatched {
			b.Owns(&corev1.ConfigMap{})
		}
		if slices.Contains([]string{cleansUnseen, cleansGone, firstOfAll, deletesLive, endsByOwner}, bug) {
			b.Owns(&corev1.Secret{})
		}
		return b.Complete(k)
	})
}

// leaver makes two objects, and leaves the second one out for ever if it died after it had begun to make it; if it died before, only
// in the first play in which that happens.
type leaver struct {
	keeper
	begun *sync.Map // by the parent's UID, whatever has died since
	left  *atomic.Bool
}

func (l *leaver) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	parent := &corev1.ConfigMap{}
	if err := l.live.Get(ctx, req.NamespacedName, parent); err != nil || !l.asks(parent) || parent.Data["ready"] != "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	fresh, err := l.child(ctx, parent, "-a", true)
	_, begun := l.begun.Load(parent.UID)
	if err == nil && (fresh || !begun && l.left.Swap(true)) {
		l.begun.Store(parent.UID, true)
		_, err = l.child(ctx, parent, "-b", true)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, l.say(ctx, parent, "ready")
}
