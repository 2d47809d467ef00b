package zundoko

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// +kubebuilder:rbac:groups=zundokokiyoshi.kaitoy.github.com,resources=hikawas,verbs=get;list;watch
// +kubebuilder:rbac:groups=zundokokiyoshi.kaitoy.github.com,resources=hikawas/status,verbs=patch
// +kubebuilder:rbac:groups=zundokokiyoshi.kaitoy.github.com,resources=hikawas/finalizers,verbs=update
// +kubebuilder:rbac:groups=zundokokiyoshi.kaitoy.github.com,resources=zundokos,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=zundokokiyoshi.kaitoy.github.com,resources=kiyoshis,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=zundoko-operator-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=zundoko-operator-system,resources=events,verbs=create;patch

// These are all the operator may do, and all it does: config/rbac/hardened is generated from them. Of
// hikawas/finalizers it uses nothing, but where OwnerReferencesPermissionEnforcement is on, only who
// may update them may make words that hold up their owner's deletion. The leases and the events in the
// operator's own namespace are those of leader election.

const (
	// fieldOwner owns the fields the operator writes.
	fieldOwner = client.FieldOwner("zundoko-operator")

	// nameTakenRetry is the time to wait before trying a taken name again. What has the name is not
	// ours, so nothing wakes us when it goes; a few seconds cost nothing while a person reads the event.
	nameTakenRetry = 5 * time.Second
)

// hardened sings one word per pass and remembers nothing it could not do without: what is already
// there says what is next.
//
// Its rhythm needs no sleep. The pass that says a word stops without asking to be called again; the
// event of that word wakes the next pass, which by then finds the word in its cache, and asks to be
// called when the pause is over. So no pass of an undisturbed song meets a cache that lacks its last
// word, and if one does because something else woke it, it says the same word under the same name,
// learns that it exists, and has lost nothing.
type hardened struct {
	client  client.Client
	live    client.Reader // past the cache, to see what has a name that should have been free
	events  events.EventRecorder
	score   score
	clock   clock.PassiveClock
	written kit.LastWritten[*v1beta1.Hikawa]
}

// setupHardened watches all three kinds. Changes of a Hikawa other than to its spec are left out,
// most of them being the operator's own to the status.
func setupHardened(mgr ctrl.Manager, o Options) error {
	if err := kit.IndexByController(mgr, &v1beta1.Zundoko{}); err != nil {
		return err
	}
	r := &hardened{
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		events: mgr.GetEventRecorder(string(fieldOwner)),
		score:  score{seed: o.Seed, song: o.Song},
		clock:  o.Clock,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.Hikawa{}, builder.WithPredicates(kit.SpecChanged())).
		Owns(&v1beta1.Zundoko{}).
		Owns(&v1beta1.Kiyoshi{}).
		WithOptions(o.Controller).
		Complete(r)
}

// step is one part of a pass. A nil result goes on to the next step; any other ends the pass.
type step func(context.Context, *pass) (*ctrl.Result, error)

// untilEvent ends a pass that has caused the event that will wake the next one, or has nothing to do.
func untilEvent() *ctrl.Result { return &ctrl.Result{} }

// after ends a pass that has to be called again.
func after(d time.Duration) *ctrl.Result { return &ctrl.Result{RequeueAfter: d} }

// Reconcile brings a song one word further.
func (r *hardened) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	hikawa := &v1beta1.Hikawa{}
	if err := r.client.Get(ctx, req.NamespacedName, hikawa); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the Hikawa: %w", err)
	}
	if !hikawa.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector takes the words away
	}

	p := &pass{hikawa: hikawa, known: r.written.Latest(hikawa).Status}
	if err := r.listen(ctx, p); err != nil {
		return ctrl.Result{}, err // without knowing what was said there is no status to write
	}
	defer func() {
		if statusErr := r.writeStatus(ctx, p); statusErr != nil {
			result, err = ctrl.Result{}, errors.Join(err, statusErr)
		}
	}()
	for _, step := range []step{r.fillGap, r.sing, r.sayKiyoshi, r.bow} {
		end, err := step(ctx, p)
		if err != nil {
			return ctrl.Result{}, err
		}
		if end != nil {
			return *end, nil
		}
	}
	return ctrl.Result{}, nil
}

// listen finds out what has been said. It writes nothing.
func (r *hardened) listen(ctx context.Context, p *pass) error {
	var list v1beta1.ZundokoList
	err := r.client.List(ctx, &list, client.InNamespace(p.hikawa.Namespace), kit.ControlledBy(p.hikawa.UID))
	if err != nil {
		return fmt.Errorf("list the words: %w", err)
	}
	p.hear(list.Items)

	kiyoshi := &v1beta1.Kiyoshi{}
	key := client.ObjectKey{Namespace: p.hikawa.Namespace, Name: kiyoshiName(p.hikawa.Name)}
	switch err := r.client.Get(ctx, key, kiyoshi); {
	case err == nil:
		p.kiyoshi = kiyoshi
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get the Kiyoshi: %w", err)
	}
	return nil
}

// fillGap ensures that no word is missing in the middle. A missing one is said again, at once, and
// under its own number; it is the same word, because a word follows from its number.
func (r *hardened) fillGap(ctx context.Context, p *pass) (*ctrl.Result, error) {
	if !p.gap {
		return nil, nil
	}
	return r.sayWord(ctx, p)
}

// sing ensures that the words go on until the pattern has come, anywhere among them, and there are as
// many as the user asked for.
func (r *hardened) sing(ctx context.Context, p *pass) (*ctrl.Result, error) {
	if len(p.words) >= p.hikawa.Spec.NumZundokos && endOfSong(p.words) > 0 {
		return nil, nil
	}
	if wait := p.pause(r.clock.Now()); wait > 0 {
		return after(wait), nil
	}
	return r.sayWord(ctx, p)
}

// sayKiyoshi ensures that there is a Kiyoshi. Applying it says no more than that it should be there,
// so saying it twice is no error; one that somebody deleted comes back.
func (r *hardened) sayKiyoshi(ctx context.Context, p *pass) (*ctrl.Result, error) {
	if p.kiyoshied() {
		return nil, nil
	}
	if p.kiyoshi != nil {
		return r.nameTaken(p, p.kiyoshi), nil
	}
	if wait := p.pause(r.clock.Now()); wait > 0 {
		return after(wait), nil
	}
	kiyoshi := newKiyoshi(p.hikawa)
	log.FromContext(ctx).Info("Saying Kiyoshi", "name", kiyoshi.GetName())
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(kiyoshi), fieldOwner, client.ForceOwnership)
	if err != nil {
		return unlessNamespaceGoes(fmt.Errorf("apply Kiyoshi %s: %w", kiyoshi.GetName(), err))
	}
	reason := "KiyoshiSaid"
	if p.known.Kiyoshied {
		reason = "KiyoshiSaidAgain"
	}
	r.events.Eventf(p.hikawa, kiyoshi, corev1.EventTypeNormal, reason, "SayKiyoshi",
		"Said %s after %d words", v1beta1.KiyoshiCry, len(p.words))
	return untilEvent(), nil
}

// bow ends the song. Only a deleted word or Kiyoshi, or a new wish, wakes the operator again.
func (r *hardened) bow(_ context.Context, p *pass) (*ctrl.Result, error) {
	p.outcome = sung
	return untilEvent(), nil
}

// sayWord says the first word that is missing. It creates rather than applies: what was said is
// never said differently. Only the first word of a song and a word in a gap are worth an event.
//
// A Hikawa deleted a moment ago may still be in the cache; then the word gets an owner that is gone,
// and the garbage collector takes it. Asking the API server first would make that rarer, not impossible.
func (r *hardened) sayWord(ctx context.Context, p *pass) (*ctrl.Result, error) {
	n := len(p.words) + 1
	saidAt := metav1.NewMicroTime(r.clock.Now())
	word := &v1beta1.Zundoko{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.hikawa.Namespace, Name: wordName(p.hikawa.Name, n)},
		Spec:       v1beta1.ZundokoSpec{Say: r.score.word(p.hikawa, n), SaidAt: &saidAt},
	}
	if err := ctrl.SetControllerReference(p.hikawa, word, r.client.Scheme()); err != nil {
		return nil, fmt.Errorf("set the owner of Zundoko %s: %w", word.Name, err)
	}
	log.FromContext(ctx).Info("Saying a word", "name", word.Name, "say", word.Spec.Say)
	err := r.client.Create(ctx, word, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return r.wordExists(ctx, p, word)
	}
	if err != nil {
		return unlessNamespaceGoes(fmt.Errorf("create Zundoko %s: %w", word.Name, err))
	}
	switch {
	case p.gap:
		r.events.Eventf(p.hikawa, word, corev1.EventTypeNormal, "WordSaidAgain", "SayWord",
			"Said word %d, %s, which was missing", n, word.Spec.Say)
	case n == 1:
		r.events.Eventf(p.hikawa, word, corev1.EventTypeNormal, "SongStarted", "SayWord", "The first word is %s", word.Spec.Say)
	}
	return untilEvent(), nil
}

// wordExists looks at what has the name of the word. If it is the word itself, an earlier attempt
// worked without our knowing, and its event is on the way. The cache was asked first and did not
// have it, so it is the API server that is asked now.
func (r *hardened) wordExists(ctx context.Context, p *pass, word *v1beta1.Zundoko) (*ctrl.Result, error) {
	there := &v1beta1.Zundoko{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(word), there); err != nil {
		return nil, fmt.Errorf("get Zundoko %s, which exists: %w", word.Name, err)
	}
	if metav1.IsControlledBy(there, p.hikawa) {
		return untilEvent(), nil
	}
	return r.nameTaken(p, there), nil
}

// nameTaken gives way to an object of somebody else, or of an earlier Hikawa of the same name, and
// says so once. Words of an earlier Hikawa vanish soon, which wakes us before the time is up.
func (r *hardened) nameTaken(p *pass, there client.Object) *ctrl.Result {
	p.outcome, p.inTheWay = nameTaken, there.GetName()
	if !p.wasTaken() {
		r.events.Eventf(p.hikawa, there, corev1.EventTypeWarning, v1beta1.ReasonNameTaken, "Wait",
			"%s belongs to somebody else: the song waits until it is deleted", there.GetName())
	}
	return after(nameTakenRetry)
}

// unlessNamespaceGoes drops the error of a write into a namespace that is being deleted: no retry
// can help, and the Hikawa is about to go with it.
func unlessNamespaceGoes(err error) (*ctrl.Result, error) {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return untilEvent(), nil
	}
	return nil, err
}

// newKiyoshi names the fields of the Kiyoshi that are ours, and no others.
func newKiyoshi(hikawa *v1beta1.Hikawa) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"say": v1beta1.KiyoshiCry}}}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.KiyoshiKind))
	u.SetNamespace(hikawa.Namespace)
	u.SetName(kiyoshiName(hikawa.Name))
	u.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(hikawa, v1beta1.GroupVersion.WithKind(v1beta1.HikawaKind)),
	})
	return u
}
