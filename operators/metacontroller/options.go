package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// LeaderElectionID is the name of the lease a manager of this operator should elect its leader by.
const LeaderElectionID = "metacontroller"

// FieldOwner owns the fields that the operator writes.
const FieldOwner = client.FieldOwner("metacontroller")

// DefaultWorkers is how many objects of one controller are synced at a time: a slow hook holds up one of them.
const DefaultWorkers = 5

// Options set up the operator. The zero value works.
type Options struct {
	// Transport carries the requests to hooks. The default is that of net/http.
	Transport http.RoundTripper

	// Called is told of each hook that was asked, in the context of the sync. The default is nobody.
	Called func(context.Context, Call)

	// Workers is how many objects of one controller are synced at a time. The default is DefaultWorkers.
	Workers int

	// Controller is given to each controller as it is. The default is controller-runtime's.
	Controller controller.Options
}

// Call is a hook that was asked.
type Call struct {
	// Hook is sync, finalize or customize.
	Hook string
	// Controller is the name of the CompositeController or DecoratorController.
	Controller string
	// URL is where the webhook is.
	URL string
	// Object is the parent that it was asked about.
	Object *unstructured.Unstructured
	// Request and Response are the bodies; Response is empty if there was none.
	Request, Response []byte
	// Observed and Desired are the children, or attachments, that are there and those that were answered. Neither is set of
	// customize, and Desired is not set with an error.
	Observed, Desired []*unstructured.Unstructured
	// DesiredStatus is the status that was answered for Object; nil if none was.
	DesiredStatus map[string]any
	// Status is the HTTP status; 0 if there was no answer.
	Status int
	// Took is the time until the answer was read.
	Took time.Duration
	// Err says what is wrong with the answer; nil if nothing is.
	Err error
}

// AddToScheme registers the types that the operator reads with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(v1alpha1.AddToScheme(s), apiextensionsv1.AddToScheme(s))
}

// SetupWithManager adds the operator to a manager, whose scheme has to know the types already. The manager's client should
// read unstructured objects from the cache.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.Called == nil {
		o.Called = func(context.Context, Call) {}
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	m, err := newMeta(mgr, o)
	if err != nil {
		return err
	}
	if err := errors.Join(mgr.Add(m.running), m.setupComposite(), m.setupDecorator()); err != nil {
		return fmt.Errorf("set up metacontroller: %w", err)
	}
	return nil
}
