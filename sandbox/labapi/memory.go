package labapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage"
)

// object is an API object of the lab.
type object interface {
	runtime.Object
	metav1.Object
}

// origin is the source of the objects of one kind, and takes their writes. Keys are those of the memory.
type origin interface {
	// seen returns the backend's objects for the given keys and others: a key that is not in the result has no object.
	seen(keys []string) map[string]object
	// overlay returns the stored object with its current state: a changed copy, or the stored one itself if nothing
	// changed.
	overlay(stored, seen object) object
	// write passes a write to the backend: was is nil for a new object, is for a deleted one.
	write(was, is object) error
	// changed is [Backend.Changed].
	changed() <-chan struct{}
}

// memory stores the objects of one kind: what clients wrote, combined with the backend's state, which is read when
// somebody reads and while somebody watches. Stored objects are never changed, only replaced.
type memory struct {
	storage.APIObjectVersioner
	origin origin
	fresh  func() runtime.Object

	writing sync.Mutex // held during a write, which may take the backend a while

	mu      sync.Mutex
	objects map[string]object
	history
	// busy is the key that is being written; look skips it.
	busy string
	// changed is closed when the backend must be read again; nil means at once.
	changed <-chan struct{}
}

var _ storage.Interface = (*memory)(nil)

func newMemory(origin origin, fresh func() runtime.Object) *memory {
	// Versions grow from one lab to the next, so that a client that outlives a lab is told that its version is too old.
	return &memory{
		origin: origin, fresh: fresh,
		objects: map[string]object{}, history: newHistory(uint64(time.Now().UnixMicro())),
	}
}

// look updates the objects from the backend. The caller holds mu.
func (m *memory) look() {
	if m.changed != nil {
		select {
		case <-m.changed:
		default:
			return
		}
	}
	m.changed = m.origin.changed()
	seen := m.origin.seen(slices.Collect(maps.Keys(m.objects)))
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		stored, known := m.objects[key]
		switch {
		case key == m.busy:
		case !known:
			m.put(key, begun(seen[key]))
		default:
			if is := m.origin.overlay(stored, seen[key]); is != stored {
				m.put(key, is)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if _, there := seen[key]; !there && key != m.busy {
			m.remove(key)
		}
	}
}

// begun sets the metadata that every object has on an object from the backend.
func begun(o object) object {
	if o.GetUID() == "" {
		o.SetUID(types.UID(uuid.NewUUID()))
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.Now())
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
	return o
}

// put stores an object that nobody else holds.
func (m *memory) put(key string, o object) {
	m.add(key, m.objects[key], o)
	m.objects[key] = o
}

func (m *memory) remove(key string) {
	m.add(key, m.objects[key], nil)
	delete(m.objects, key)
}

// begin starts an exclusive write, and returns the stored object. The returned function ends the write.
func (m *memory) begin(key string) (object, func()) {
	m.writing.Lock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	m.busy = key
	return m.objects[key], func() {
		m.mu.Lock()
		m.busy, m.changed = "", nil
		m.mu.Unlock()
		m.writing.Unlock()
	}
}

// commit passes a write to the backend and stores the result.
func (m *memory) commit(key string, was, is object) (object, error) {
	if err := m.origin.write(was, is); err != nil {
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			return nil, err
		}
		return nil, apierrors.NewInternalError(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if is == nil {
		last := was.DeepCopyObject().(object)
		m.remove(key)
		return last, m.UpdateObject(last, m.version)
	}
	if seen, ok := m.origin.seen([]string{key})[key]; ok {
		is = m.origin.overlay(is, seen)
	}
	m.put(key, is)
	return is, nil
}

// Versioner implements [storage.Interface].
func (m *memory) Versioner() storage.Versioner { return m.APIObjectVersioner }

// Create implements [storage.Interface].
func (m *memory) Create(_ context.Context, key string, obj, out runtime.Object, _ uint64) error {
	was, end := m.begin(key)
	defer end()
	if was != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	is := obj.DeepCopyObject().(object)
	if is.GetResourceVersion() != "" {
		return storage.ErrResourceVersionSetOnCreate
	}
	stored, err := m.commit(key, nil, is)
	if err != nil {
		return err
	}
	return copyInto(out, stored)
}

// Delete implements [storage.Interface].
func (m *memory) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	was, end := m.begin(key)
	defer end()
	if was == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	if err := preconditions.Check(key, was); err != nil {
		return err
	}
	if err := validate(ctx, was.DeepCopyObject()); err != nil {
		return err
	}
	last, err := m.commit(key, was, nil)
	if err != nil {
		return err
	}
	return copyInto(out, last)
}

// GuaranteedUpdate implements [storage.Interface]. Writes are serialized, so it never retries.
func (m *memory) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object,
) error {
	was, end := m.begin(key)
	defer end()
	if was == nil && !ignoreNotFound {
		return storage.NewKeyNotFoundError(key, 0)
	}
	current, response := m.fresh(), storage.ResponseMeta{}
	if was != nil {
		if err := preconditions.Check(key, was); err != nil {
			return err
		}
		current = was.DeepCopyObject()
		response.ResourceVersion, _ = m.ObjectResourceVersion(was)
	}
	updated, _, err := try(current, response)
	if err != nil {
		return err
	}
	is := updated.DeepCopyObject().(object)
	if was != nil {
		is.SetResourceVersion(was.GetResourceVersion())
		if equality.Semantic.DeepEqual(was, is) {
			return copyInto(out, was)
		}
	}
	stored, err := m.commit(key, was, is)
	if err != nil {
		return err
	}
	return copyInto(out, stored)
}

// Get implements [storage.Interface].
func (m *memory) Get(_ context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	if _, err := m.notNewer(opts.ResourceVersion); err != nil {
		return err
	}
	stored, ok := m.objects[key]
	switch {
	case ok:
		return copyInto(out, stored)
	case opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	default:
		return storage.NewKeyNotFoundError(key, int64(m.version))
	}
}

// GetList implements [storage.Interface]. It returns everything at once and ignores limits, which the API allows.
func (m *memory) GetList(_ context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if opts.Predicate.Continue != "" {
		return apierrors.NewResourceExpired("lists of this API come whole, and cannot be continued")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	version, err := m.notNewer(opts.ResourceVersion)
	if err != nil {
		return err
	}
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact && version != m.version {
		return apierrors.NewResourceExpired(fmt.Sprintf("only the newest resource version can be listed: %d is not %d", version, m.version))
	}
	found, err := m.find(selection{key, opts.Recursive, opts.Predicate})
	if err != nil {
		return err
	}
	if err := meta.SetList(list, found); err != nil {
		return err
	}
	return m.UpdateList(list, m.version, "", nil)
}

// find returns copies of the selected objects, in the order of their keys.
func (m *memory) find(s selection) ([]runtime.Object, error) {
	found := []runtime.Object{}
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if o := m.objects[key]; s.has(key) {
			match, err := s.predicate.Matches(o)
			if err != nil {
				return nil, err
			}
			if match {
				found = append(found, o.DeepCopyObject())
			}
		}
	}
	return found, nil
}

// selection selects the objects of a list or a watch.
type selection struct {
	key       string
	recursive bool
	predicate storage.SelectionPredicate
}

func (s selection) has(key string) bool {
	if s.recursive {
		return strings.HasPrefix(key, strings.TrimSuffix(s.key, "/")+"/")
	}
	return key == s.key
}

// Stats implements [storage.Interface].
func (m *memory) Stats(context.Context) (storage.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return storage.Stats{ObjectCount: int64(len(m.objects))}, nil
}

// ReadinessCheck implements [storage.Interface].
func (m *memory) ReadinessCheck() error { return nil }

// RequestWatchProgress implements [storage.Interface].
func (m *memory) RequestWatchProgress(context.Context) error { return nil }

// GetCurrentResourceVersion implements [storage.Interface].
func (m *memory) GetCurrentResourceVersion(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look()
	return m.version, nil
}

// EnableResourceSizeEstimation implements [storage.Interface].
func (m *memory) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision implements [storage.Interface].
func (m *memory) CompactRevision() int64 { return 0 }

// copyInto copies a stored object for a caller that may change it.
func copyInto(out runtime.Object, stored object) error {
	v, err := conversion.EnforcePtr(out)
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	return nil
}
