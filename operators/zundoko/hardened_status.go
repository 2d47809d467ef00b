package zundoko

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

// outcome says how the song is after a pass. The steps set it; conditions translate it.
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

// pass holds what one call of Reconcile has read, and what came of it.
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
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, p.hikawa, &status)
	if err != nil || written == nil {
		return err
	}
	r.written.Remember(written)
	return nil
}
