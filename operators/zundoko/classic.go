package zundoko

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// classic behaves as the operator published in 2019 did. Its flaws are the reason it is here, each is
// marked where it sits, and none of them is to be repaired: hardened is the repaired one.
type classic struct {
	client  client.Client
	streams *streams
	clock   clock.Clock
}

// setupClassic watches Hikawas and the Zundokos they control, but no Kiyoshis: one that is deleted is
// not missed (Z-08).
func setupClassic(mgr ctrl.Manager, o Options) error {
	seed := o.Seed
	if seed == 0 {
		seed = o.Clock.Now().UnixNano()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.Hikawa{}).
		Owns(&v1beta1.Zundoko{}).
		WithOptions(o.Controller).
		Complete(&classic{client: mgr.GetClient(), streams: newStreams(seed, o.Song), clock: o.Clock})
}

// Reconcile takes the first of seven branches that applies and leaves everything else to the event
// its write will cause. It counts on each write causing one: where the API server keeps status apart,
// updateStatus changes nothing, nothing happens, and the song stops after one word (Z-07).
func (r *classic) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	hikawa := &v1beta1.Hikawa{}
	if err := r.client.Get(ctx, req.NamespacedName, hikawa); err != nil {
		if apierrors.IsNotFound(err) {
			r.streams.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the Hikawa: %w", err)
	}
	if hikawa.Status.Kiyoshied { // for ever, whatever becomes of the Kiyoshi (Z-08)
		logger.Info("Kiyoshi was said already")
		return ctrl.Result{}, nil
	}
	words, err := r.words(ctx, hikawa)
	if err != nil {
		return ctrl.Result{}, err
	}

	// Spec says what to do next, and the operator itself writes it there: setting it back, as applying
	// the sample again does, makes the last two branches run until they have caught up (Z-06).
	switch said := len(words); {
	case hikawa.Spec.NumZundokos > said:
		return ctrl.Result{}, r.sayWord(ctx, hikawa, said+1)
	case hikawa.Status.NumZundokosSaid != said:
		logger.Info("Counting the words", "said", said)
		hikawa.Status.NumZundokosSaid = said
	case hikawa.Spec.SayKiyoshi: // even if it was ordered by the user, with no word said (Z-10)
		if err := r.sayKiyoshi(ctx, hikawa); err != nil {
			return ctrl.Result{}, err
		}
		// From here to the end of the update a failure is final: the next pass comes by sayKiyoshi
		// again, which finds its Kiyoshi there and gives up (Z-05).
		hikawa.Status.Kiyoshied = true
	case lastWordsMatch(words):
		logger.Info("Time for Kiyoshi")
		hikawa.Spec.SayKiyoshi = true
	default:
		logger.Info("One more word")
		hikawa.Spec.NumZundokos++
	}
	// The whole object, status and spec alike, is written over whatever the user changed (Z-06, Z-07).
	if err := r.client.Update(ctx, hikawa); err != nil {
		return ctrl.Result{}, fmt.Errorf("update the Hikawa: %w", err)
	}
	return ctrl.Result{}, nil
}

// words returns every Zundoko of the namespace with an owner of that name: it reads all of them
// (Z-15), and believes an owner of any kind and of any time (Z-02).
func (r *classic) words(ctx context.Context, hikawa *v1beta1.Hikawa) ([]v1beta1.Zundoko, error) {
	var all v1beta1.ZundokoList
	if err := r.client.List(ctx, &all, client.InNamespace(hikawa.Namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the words of", hikawa.Name) // a key without a value (Z-13)
		return nil, fmt.Errorf("list Zundokos: %w", err)
	}
	var words []v1beta1.Zundoko
	for _, word := range all.Items {
		for _, owner := range word.OwnerReferences {
			if owner.Name == hikawa.Name {
				words = append(words, word)
			}
		}
	}
	return words, nil
}

// sayWord creates the next Zundoko, numbered by how many there are: with one missing in the middle,
// that number is taken, and every later attempt fails (Z-03).
func (r *classic) sayWord(ctx context.Context, hikawa *v1beta1.Hikawa, n int) error {
	r.pause(hikawa)
	return r.say(ctx, hikawa, &v1beta1.Zundoko{
		ObjectMeta: metav1.ObjectMeta{Namespace: hikawa.Namespace, Name: wordName(hikawa.Name, n)},
		Spec:       v1beta1.ZundokoSpec{Say: r.streams.next(hikawa)},
	})
}

func (r *classic) sayKiyoshi(ctx context.Context, hikawa *v1beta1.Hikawa) error {
	r.pause(hikawa)
	return r.say(ctx, hikawa, &v1beta1.Kiyoshi{
		ObjectMeta: metav1.ObjectMeta{Namespace: hikawa.Namespace, Name: kiyoshiName(hikawa.Name)},
		Spec:       v1beta1.KiyoshiSpec{Say: v1beta1.KiyoshiCry},
	})
}

// say creates obj for the Hikawa as it was read before the pause, even if it is gone since (Z-11).
func (r *classic) say(ctx context.Context, hikawa *v1beta1.Hikawa, obj client.Object) error {
	if err := ctrl.SetControllerReference(hikawa, obj, r.client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", obj.GetName(), err)
	}
	log.FromContext(ctx).Info("Creating Zundoko", "name", obj.GetName()) // a Kiyoshi as well (Z-13)
	if err := r.client.Create(ctx, obj); err != nil {
		return fmt.Errorf("create %s: %w", obj.GetName(), err)
	}
	return nil
}

// pause holds up the only worker, and with it every other Hikawa (Z-01). A negative interval is no
// pause at all, and nothing limits a long one (Z-12).
func (r *classic) pause(hikawa *v1beta1.Hikawa) {
	r.clock.Sleep(time.Duration(hikawa.Spec.IntervalMillis) * time.Millisecond)
}

// lastWordsMatch looks at the last words only, so a match further up, skipped because the user asked
// for many words at once, does not count (Z-09).
func lastWordsMatch(words []v1beta1.Zundoko) bool {
	inCreationOrder(words)
	said := make([]v1beta1.Word, len(words))
	for i, word := range words {
		said[i] = word.Spec.Say
	}
	// One word more than the pattern has: a fifth Zun in front of it spoils it.
	last := said[max(0, len(said)-zunsBeforeDoko-2):]
	return len(last) > zunsBeforeDoko && endOfSong(last) == len(last)
}

// inCreationOrder sorts by a time in whole seconds, which leaves the words of one second in the order
// in which the cache returned them: any (Z-04).
func inCreationOrder(words []v1beta1.Zundoko) {
	slices.SortFunc(words, func(a, b v1beta1.Zundoko) int {
		return cmp.Compare(a.CreationTimestamp.Unix(), b.CreationTimestamp.Unix())
	})
}
