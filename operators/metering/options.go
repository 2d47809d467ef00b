package metering

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// Hardened is the only variant.
const Hardened = "hardened"

// Names of the operator's controllers, in the order in which data goes through them.
const (
	DataSourceController = "reportdatasource"
	ReportController     = "report"
)

// LeaderElectionID is the name of the lease a manager of this operator should elect its leader by. There must be one
// leader: the database is a file.
const LeaderElectionID = "reporting-operator-lock"

// Namespace is where the operator runs by default.
const Namespace = "openshift-metering"

// Bounds of what can be set.
const (
	DefaultInterval  = time.Minute
	MinInterval      = time.Second
	MaxInterval      = time.Hour
	DefaultRetention = 30 * 24 * time.Hour
	MaxRate          = 3600
)

// Options set up the operator. The zero value is one that keeps its database in a temporary directory.
type Options struct {
	// Namespace is that of the operator, where the built-in ReportQueries are. The default is Namespace.
	Namespace string
	// Interval is the time between samples of one ReportDataSource, in whole seconds. The default is DefaultInterval.
	Interval time.Duration
	// Retention is how long samples are kept. The default is DefaultRetention.
	Retention time.Duration
	// Rate is how many times as fast as the machine's the clock goes: for lessons, so that an hour need not be waited for. The
	// default is 1.
	Rate float64
	// Clock replaces the operator's own clock, which keeps its begin in the database.
	Clock Clock
	// Dir is a directory that outlives the operator, for the database. The default is a temporary one, gone when the manager
	// ends.
	Dir string
	// Listen is the address of the HTTP API. The default is a free port of 127.0.0.1; 0 means none.
	Listen string
	// Dial connects to endpoints of metrics, if not as the machine does.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Controller is given to both controllers as it is. The default is controller-runtime's.
	Controller controller.Options
}

// Validate returns an error for what cannot be used.
func (o Options) Validate() error {
	switch {
	case o.Interval != 0 && (o.Interval < MinInterval || o.Interval > MaxInterval || o.Interval%time.Second != 0):
		return fmt.Errorf("the interval %v is not a whole number of seconds between %v and %v", o.Interval, MinInterval, MaxInterval)
	case o.Retention != 0 && o.Retention < time.Hour:
		return fmt.Errorf("the retention %v is less than %v", o.Retention, time.Hour)
	case o.Rate != 0 && (o.Rate < 1 || o.Rate > MaxRate):
		return fmt.Errorf("the clock's rate %v is not between 1 and %v", o.Rate, MaxRate)
	}
	return nil
}

// AddToScheme registers the types of the operator with a scheme. It also needs those of Kubernetes itself there.
func AddToScheme(s *runtime.Scheme) error {
	return v1.AddToScheme(s)
}

// SetupWithManager adds the operator to a manager, whose scheme has to know the types already. The database is closed when
// the manager ends.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o.Namespace = cmp.Or(o.Namespace, Namespace)
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	o.Retention = cmp.Or(o.Retention, DefaultRetention)
	o.Rate = cmp.Or(o.Rate, 1)
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "metering-"); err != nil {
			return err
		}
	}
	s, err := openStore(dir, o.Rate)
	if err != nil {
		return err
	}
	if o.Clock == nil {
		since, err := s.since(time.Now())
		if err != nil {
			return err
		}
		o.Clock = rated{since, o.Rate}
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		if o.Dir == "" {
			defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		}
		return s.close()
	}))
	if err != nil {
		return err
	}
	if err := setupSources(mgr, s, o); err != nil {
		return fmt.Errorf("set up the %s controller: %w", DataSourceController, err)
	}
	if err := setupReports(mgr, s, o); err != nil {
		return fmt.Errorf("set up the %s controller: %w", ReportController, err)
	}
	if err := mgr.Add(&builtins{mgr.GetClient(), o.Namespace}); err != nil {
		return err
	}
	if o.Listen == "0" {
		return nil
	}
	return mgr.Add(&server{client: mgr.GetClient(), store: s, namespace: o.Namespace, address: cmp.Or(o.Listen, "127.0.0.1:0")})
}
