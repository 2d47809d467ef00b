package zundoko

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// outcome is what a pass has to say about the song. The steps set it; conditions translate it.
type outcome int

const (
	singing outcome = iota
	sung
	nameTaken
)

// conditions are all that a Hikawa can show, by outcome.
var conditions = map[outcome][]metav1.Condition{
	singing: {
		{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonSinging, Message: "The song is not over"},
		{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonSinging, Message: "There is something left to say"},
	},
	sung: {
		{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonSung, Message: "Kiyoshi was said"},
		{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonSung, Message: "There is nothing left to say"},
	},
	nameTaken: {
		{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonNameTaken, Message: "Delete what has the name and belongs to somebody else"},
		{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonNameTaken, Message: "The song waits for a name"},
	},
}

// pass is what one call of Reconcile knows.
type pass struct {
	hikawa *v1beta1.Hikawa // from the cache, never changed

	words   []v1beta1.Word // what was said, from the first word to the last one before a gap
	saidAt  time.Time      // when the last of these was said
	said    int            // how many words exist, with those after a gap
	gap     bool           // whether there are words after the first missing one
	kiyoshi *v1beta1.Kiyoshi

	outcome  outcome
	inTheWay string // the name of a foreign object, with the outcome nameTaken

	known v1beta1.HikawaStatus // the status as it is now
}

// hear puts words in order by the number in their name. Objects with another name are no part of the
// song, whoever owns them.
func (p *pass) hear(words []v1beta1.Zundoko) {
	byNumber := make(map[int]*v1beta1.Zundoko, len(words))
	for i := range words {
		if n, ok := wordNumber(p.hikawa.Name, words[i].Name); ok {
			byNumber[n] = &words[i]
		}
	}
	p.said = len(byNumber)
	for word := byNumber[1]; word != nil; word = byNumber[len(p.words)+1] {
		p.words = append(p.words, word.Spec.Say)
		p.saidAt = word.CreationTimestamp.Time
		if word.Spec.SaidAt != nil {
			p.saidAt = word.Spec.SaidAt.Time
		}
	}
	p.gap = p.said > len(p.words)
}

// kiyoshied tells whether the Kiyoshi of this song has been said.
func (p *pass) kiyoshied() bool {
	return p.kiyoshi != nil && metav1.IsControlledBy(p.kiyoshi, p.hikawa)
}

// wasTaken tells whether the status says already that a name is taken.
func (p *pass) wasTaken() bool {
	ready := meta.FindStatusCondition(p.known.Conditions, v1beta1.ConditionReady)
	return ready != nil && ready.Reason == v1beta1.ReasonNameTaken
}

// pause returns how long the song has to rest before the next word, and 0 if it need not.
func (p *pass) pause(now time.Time) time.Duration {
	// With nothing said there is nothing to rest from, and a word from the future means a clock that
	// was set back since, which must not stop the song until it gets there again.
	if len(p.words) == 0 || p.saidAt.After(now) {
		return 0
	}
	next := p.saidAt.Add(time.Duration(p.hikawa.Spec.IntervalMillis) * time.Millisecond)
	return max(0, next.Sub(now))
}

// status returns what the status should be.
func (p *pass) status() v1beta1.HikawaStatus {
	status := *p.known.DeepCopy()
	status.NumZundokosSaid = p.said
	status.Kiyoshied = p.kiyoshied()
	status.ObservedGeneration = p.hikawa.Generation
	for _, condition := range conditions[p.outcome] {
		condition.ObservedGeneration = p.hikawa.Generation
		if p.inTheWay != "" {
			condition.Message += ": " + p.inTheWay
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// writeStatus applies the status if it differs from what it was. The patch carries the UID, so that
// it cannot reach a later Hikawa of the same name.
func (r *hardened) writeStatus(ctx context.Context, p *pass) error {
	status := p.status()
	if equality.Semantic.DeepEqual(status, p.known) {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("convert the status: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.HikawaKind))
	u.SetNamespace(p.hikawa.Namespace)
	u.SetName(p.hikawa.Name)
	u.SetUID(p.hikawa.UID)
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		return nil // deleted while we sang
	}
	if err != nil {
		return fmt.Errorf("apply the status: %w", err)
	}
	// The answer of the API server is the whole object.
	written := &v1beta1.Hikawa{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, written); err != nil {
		return fmt.Errorf("read the status back: %w", err)
	}
	r.written.remember(written)
	return nil
}

// writtenStatuses remember the last status written to each Hikawa until the cache has it. With short
// pauses the next pass can come before it has, and would write the same again: harmless, but then
// the number of writes would depend on the speed of the machine. The zero value is ready.
type writtenStatuses struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*v1beta1.Hikawa
}

// latest returns the status as it is, as far as we know: the cached one, or the one we wrote since.
func (w *writtenStatuses) latest(cached *v1beta1.Hikawa) v1beta1.HikawaStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	written, ok := w.byKey[key]
	if !ok {
		return cached.Status
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion)
	if written.UID != cached.UID || err != nil || order >= 0 {
		delete(w.byKey, key)
		return cached.Status
	}
	return written.Status
}

// remember keeps the status of a Hikawa as the API server returned it.
func (w *writtenStatuses) remember(written *v1beta1.Hikawa) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = map[types.NamespacedName]*v1beta1.Hikawa{}
	}
	w.byKey[client.ObjectKeyFromObject(written)] = written
}

// forget drops what is known about a Hikawa that is gone.
func (w *writtenStatuses) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey, key)
}
