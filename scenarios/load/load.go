// Package load measures what an operator costs with the number of its objects. It makes more and more objects of a sample; at each
// size it changes some of them, has all watches end with 410 Gone, so that the operator lists everything anew and hears of each
// object once more, and starts the operator again. It counts what the operator did, fits how each figure grows, and says what grows
// faster than it has to and from which call.
//
// What is counted comes from the journal, and bytes from the operator's requests. Times are told and nothing is concluded from them.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/usage"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// Options are the options of [Run].
type Options struct {
	// Lab are the options of the lab that runs the operator; its Cluster has nothing else in it that the operator watches.
	Lab lab.Options
	// Operator is the operator's name, Spec its variant and parameters.
	Operator string
	Spec     v1alpha1.OperatorSpec
	// Sample is what is made again and again, and how it is changed.
	Sample Sample
	// Client makes objects and changes.
	Client client.Client
	// Sizes are the numbers of objects, each larger than the one before. Shard is which of them to measure. Default: all.
	Sizes []int
	Shard report.Shard
	// Changes is how many changes are made at each size, Every the time from one to the next. Without any there is no phase change.
	Changes int
	Every   time.Duration
	// Patience is how long the operator may take to come to rest after each phase. Default: 5 minutes, and a tenth of a second more
	// for each object.
	Patience time.Duration
	// Used returns what the operator's process has used. Default: it has none of its own, and that is not measured.
	Used func() (usage.Used, bool)
	// Clean deletes in the end, while the operator serves, what Run made.
	Clean bool
	// Notes are what has to be known of what is measured, for the report.
	Notes []string
	// Progress is told what is being done. Default: nobody is told.
	Progress func(objects int, phase string)
}

// Number stands in a sample for the number of the object, and in a change for the number of the change, from 1.
const Number = "$(N)"

// DefaultChange is the merge patch of a change where nothing else is said.
const DefaultChange = `metadata: {annotations: {operator-lab.dev/change: "` + Number + `"}}`

// Sample is what is made again and again.
type Sample struct {
	// Manifest is one object in YAML. Without a [Number] in its name, it is added to that.
	Manifest string
	// Change is a JSON merge patch of that object, in YAML.
	Change string
}

// object returns the object with a number.
func (s Sample) object(n int, namespace string) (*unstructured.Unstructured, error) {
	number := strconv.Itoa(n)
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(s.Manifest, Number, number)), &o.Object); err != nil {
		return nil, fmt.Errorf("read the sample: %w", err)
	}
	if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "" {
		return nil, errors.New("read the sample: it has no kind, no apiVersion or no name")
	}
	var plain struct{ Metadata struct{ Name string } }
	if err := yaml.Unmarshal([]byte(s.Manifest), &plain); err == nil && !strings.Contains(plain.Metadata.Name, Number) {
		o.SetName(o.GetName() + "-" + number)
	}
	o.SetNamespace(namespace)
	return o, nil
}

// patch returns the change with a number.
func (s Sample) patch(n int) (client.Patch, error) {
	text := s.Change
	if text == "" {
		text = DefaultChange
	}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, Number, strconv.Itoa(n))))
	if err != nil || !bytes.HasPrefix(raw, []byte("{")) {
		return nil, errors.New("read the change: it is no JSON merge patch, which is an object")
	}
	return client.RawPatch(types.MergePatchType, raw), nil
}

// Check returns what is wrong with the sample.
func (s Sample) Check() error {
	_, err := s.object(1, "")
	if err == nil {
		_, err = s.patch(1)
	}
	if err != nil {
		return &sandbox.Problem{Err: err, Hint: "a sample is one object, and a change is a merge patch such as " + DefaultChange}
	}
	return nil
}

// CheckSizes returns what is wrong with sizes.
func CheckSizes(sizes []int) error {
	for i, n := range sizes {
		if n < 1 || i > 0 && n <= sizes[i-1] {
			return &sandbox.Problem{Err: fmt.Errorf("sizes have to increase, from 1 on: %v", sizes), Hint: "such as 1,10,100,1000"}
		}
	}
	if len(sizes) == 0 {
		return &sandbox.Problem{Err: errors.New("no sizes"), Hint: "such as 1,10,100,1000"}
	}
	return nil
}

// errNotSettled ends a run at a size at which the operator does not come to rest.
var errNotSettled = errors.New("the operator does not come to rest")

// Run measures. It returns what was measured also when the context ends, beside the context's error, and when the operator does not
// settle at a size; then that is a finding. What it made stays, in a namespace with a name that begins with "load-", unless Clean is set.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := errors.Join(CheckSizes(o.Sizes), o.Sample.Check()); err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(int, string) {}
	}
	r := &run{Options: o, wire: newWire(o.Operator), report: &Report{Operator: o.Operator, Variant: o.Spec.Variant, OwnProcess: o.Used != nil, Shard: o.Shard, Changes: o.Changes, Notes: o.Notes}}
	return r.report, r.run(ctx)
}

// run is one run.
type run struct {
	Options
	wire      *wire
	lab       *lab.Lab
	meter     *meter
	namespace string
	versions  map[trace.Key]string // of the objects, as the load has written them
	changes   int                  // of all sizes
	opens     int64                // how many watches have been opened when all are open again
	report    *Report
}

func (r *run) run(ctx context.Context) (err error) {
	options := r.Lab
	options.Cluster, options.Private = operatorhost.Through(r.Lab.Cluster, r.wire.wrap), true
	if r.lab, err = lab.Open(ctx, options); err != nil {
		return err
	}
	defer func() { _ = r.lab.Close(context.WithoutCancel(ctx)) }() // what a run says at its end is of no interest any more
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "load-"}}
	if err := r.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	if r.Clean {
		defer func() { err = errors.Join(err, r.clean(context.WithoutCancel(ctx), namespace)) }()
	}
	r.namespace, r.versions = namespace.Name, map[trace.Key]string{}
	first, err := r.Sample.object(1, r.namespace)
	if err != nil {
		return err
	}
	r.report.Kind = first.GetKind()
	if _, err := r.lab.Load(ctx, r.Operator, r.Spec); err != nil {
		return err
	}
	r.meter = newMeter(r.lab.Journal(), r.Operator)
	defer func() {
		r.report.Missed = r.meter.missed
		r.report.conclude()
	}()
	// What it does without any object is not part of what is measured.
	if err := r.meter.follow(ctx, r.rests); err != nil {
		return err
	}
	for i, n := range r.Sizes {
		if r.Shard.Count > 0 && i%r.Shard.Count != r.Shard.Index-1 {
			continue
		}
		size := &Size{Objects: n, Phases: map[string]*Phase{}}
		r.report.Sizes = append(r.report.Sizes, size)
		err := r.measure(ctx, size)
		if errors.Is(err, errNotSettled) {
			r.report.Unsettled = r.unsettled(size)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rests is for [meter.follow].
func (r *run) rests() (bool, time.Duration) {
	left := r.meter.rest()
	return left == 0, left
}

// measure measures all phases at a size.
func (r *run) measure(ctx context.Context, size *Size) error {
	before, err := r.storage(ctx)
	if err != nil {
		return err
	}
	begun, _ := r.used()
	phases := []struct {
		name string
		act  func(context.Context) error
		// expects says what the operator has to hear of before it can be at rest.
		expects func() bool
	}{
		{Create, func(ctx context.Context) error { return r.create(ctx, size.Objects) }, r.upToDate},
		{Change, r.change, r.upToDate},
		{Relist, r.relist, r.heardAll},
		{Restart, r.restart, r.heardAll},
	}
	for _, p := range phases {
		if p.name == Change && r.Changes == 0 {
			continue
		}
		r.Progress(size.Objects, p.name)
		if p.name == Restart && r.Used != nil {
			if used, known := r.used(); known {
				size.CPU, size.Memory = (used.CPU - begun.CPU).Seconds(), used.Resident
			}
		}
		phase, err := r.phase(ctx, p.act, p.expects)
		size.Phases[p.name] = phase
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if p.name == Create {
			after, err := r.storage(ctx)
			if err != nil {
				return err
			}
			size.Etcd = after - before
		}
	}
	size.Settled = true
	return nil
}

func (r *run) used() (usage.Used, bool) {
	if r.Used == nil {
		return usage.Used{}, false
	}
	return r.Used()
}

// phase does something, waits until the operator has come to rest, and returns what it did.
func (r *run) phase(ctx context.Context, act func(context.Context) error, expects func() bool) (*Phase, error) {
	r.meter.update()
	r.meter.begin()
	wire, began := r.wire.now(), time.Now()
	acting, stop := context.WithCancel(ctx)
	defer stop()
	acted := make(chan error, 1)
	go func() { acted <- act(acting) }()
	err := r.meter.follow(ctx, func() (bool, time.Duration) {
		select {
		case err := <-acted:
			acted <- err
			return true, 0
		default:
			return false, 10 * time.Millisecond
		}
	})
	stop()
	if wrong := <-acted; err == nil && r.meter.spun == nil {
		err = wrong
	}
	if err == nil {
		err = r.settle(ctx, expects)
	}
	if err == nil && r.meter.spun != nil {
		err = errNotSettled
	}
	return newPhase(r.meter.end(), wire, r.wire.now(), time.Since(began)), err
}

// settle waits until the operator has heard of what is expected, or does not for a while, and is at rest.
func (r *run) settle(ctx context.Context, expects func() bool) error {
	limited, cancel := context.WithTimeoutCause(ctx, r.patience(), errNotSettled)
	defer cancel()
	begun := r.meter.journal.Elapsed()
	return r.meter.follow(limited, func() (bool, time.Duration) {
		left := r.meter.rest()
		if waited := r.meter.journal.Elapsed() - max(begun, r.meter.last); left == 0 && waited < deafness && !expects() {
			return false, deafness - waited
		}
		return left == 0, left
	})
}

// patience returns how long the operator may take to come to rest with the objects that there are.
func (r *run) patience() time.Duration {
	if r.Patience > 0 {
		return r.Patience
	}
	return 5*time.Minute + time.Duration(len(r.versions))*100*time.Millisecond
}

// deafness is how long nothing has to happen until an operator is taken not to hear of what was done: it may not watch the kind.
const deafness = 10 * time.Second

// upToDate reports whether the operator has heard of all that the load has written.
func (r *run) upToDate() bool {
	for key, version := range r.versions {
		if !r.meter.has(r.report.Kind, key, version) {
			return false
		}
	}
	return true
}

// heardAll reports whether the operator has opened its watches again, and heard of each object.
func (r *run) heardAll() bool { return r.wire.opened() >= r.opens && r.meter.heardAll() }

// makers is how many objects are made at once.
const makers = 4

// create makes objects until there are so many.
func (r *run) create(ctx context.Context, upTo int) error {
	var mu sync.Mutex
	made := map[trace.Key]string{}
	next, errs := make(chan int), make([]error, makers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range makers {
		all.Go(func() {
			for n := range next {
				o, err := r.Sample.object(n, r.namespace)
				if err == nil {
					err = r.Client.Create(ctx, o)
				}
				if err != nil {
					errs[i] = err
					cancel()
					return
				}
				mu.Lock()
				made[trace.Key{Namespace: o.GetNamespace(), Name: o.GetName()}] = o.GetResourceVersion()
				mu.Unlock()
			}
		})
	}
	for n := len(r.versions) + 1; n <= upTo; n++ {
		select {
		case next <- n:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	maps.Copy(r.versions, made)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("make the objects: %w", err)
	}
	return ctx.Err()
}

// change changes one object after the other, at a steady pace.
func (r *run) change(ctx context.Context) error {
	pace := time.NewTicker(max(r.Every, 1))
	defer pace.Stop()
	for i := range r.Changes {
		if i > 0 {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r.changes++
		patch, err := r.Sample.patch(r.changes)
		if err != nil {
			return err
		}
		o, err := r.Sample.object(1+i%len(r.versions), r.namespace)
		if err != nil {
			return err
		}
		key := trace.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
		r.meter.change(key, r.meter.journal.Elapsed())
		if err := r.Client.Patch(ctx, o, patch); err != nil {
			return fmt.Errorf("change an object: %w", err)
		}
		r.versions[key] = o.GetResourceVersion()
	}
	return nil
}

// relist ends all watches of the operator with 410 Gone.
func (r *run) relist(context.Context) error {
	const name = "relist"
	r.opens = r.wire.opened() + r.wire.watching.Load()
	faults := r.lab.Faults()
	faults.Disarm(name)
	return faults.Arm(name, v1alpha1.FaultSpec{Operator: r.Operator, Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchGone}})
}

// restart ends the operator in order and waits until it serves again.
func (r *run) restart(ctx context.Context) error {
	r.opens = r.wire.opened() + r.wire.watching.Load()
	r.lab.Restart(r.Operator)
	_, err := r.lab.Load(ctx, r.Operator, r.Spec)
	return err
}

// storage returns how many bytes etcd has allocated, as the API server tells; 0 if it does not.
func (r *run) storage(ctx context.Context) (int64, error) {
	c, err := discovery.NewDiscoveryClientForConfig(r.Lab.Cluster.Config())
	if err != nil {
		return 0, err
	}
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if apierrors.IsForbidden(err) {
		return 0, nil // nothing is said of etcd then
	}
	if err != nil {
		return 0, fmt.Errorf("ask the API server for its metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "apiserver_storage_size_bytes{"); is {
			_, value, _ = strings.Cut(value, "} ")
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int64(bytes), err
		}
	}
	return 0, nil // of a cluster that hides its etcd
}

// done is how a sentence says that a phase has been begun.
var done = map[string]string{
	Create: "they were made", Change: "the last change", Relist: "its watches had ended", Restart: "it was started again",
}

// unsettled says why an operator does not come to rest.
func (r *run) unsettled(size *Size) string {
	objects := size.Objects
	if r.meter.spun != nil {
		return fmt.Sprintf("with %s it does not come to rest: %s", ofKind(objects, r.report.Kind), r.meter.spin())
	}
	phase := size.last()
	return fmt.Sprintf("with %s it was still at work %v after %s, with %s reconciles and %d ready keys then", ofKind(objects, r.report.Kind), r.patience(),
		done[phase], number(float64(size.Phases[phase].Reconciles)), r.meter.ready)
}
