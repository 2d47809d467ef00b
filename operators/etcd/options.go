package etcd

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// The names of the controllers of this operator, in both variants.
const (
	ClusterController = "etcdcluster"
	BackupController  = "etcdbackup"
	RestoreController = "etcdrestore"
)

// Controllers returns the names of all controllers.
func Controllers() []string { return []string{ClusterController, BackupController, RestoreController} }

// LeaderElectionID is the name of the lease a manager of this operator should elect its leader by.
const LeaderElectionID = "etcd-operator"

// Variant says which of the two operators runs.
type Variant string

// The variants.
const (
	Hardened Variant = "hardened"
	Classic  Variant = "classic"
)

// Variants returns all variants, the default one first.
func Variants() []Variant { return []Variant{Hardened, Classic} }

// DefaultPeriod is the time between two passes of classic over a cluster to which nothing happens.
const DefaultPeriod = 8 * time.Second

// DefaultAgentImage is the image of the pods that take, check and unpack backups: the operator's own.
const DefaultAgentImage = "quay.io/coreos/etcd-operator:hardened"

// Options set up the operator. The zero value is a hardened operator.
type Options struct {
	// Variant is the operator to run. The default is Hardened.
	Variant Variant

	// Period is the time between two passes of classic. The default is DefaultPeriod. Hardened acts on events, and
	// looks at what Kubernetes has no events for, such as a leader, as often as it needs to.
	Period time.Duration

	// ClusterWide has classic heed only clusters whose scope annotation says clusterwide. By default it heeds only those
	// without it. Hardened heeds all in the namespaces that its manager watches.
	ClusterWide bool

	// CreateCRD has classic create the definition of EtcdCluster when it starts, as the published one did unless told
	// not to. The default is that somebody else has.
	CreateCRD bool

	// AgentImage is the image of the pods that take, check and unpack backups for hardened. The default is
	// DefaultAgentImage.
	AgentImage string

	// Controllers are which of the controllers run, by their names. The default is all of them. The published operator had
	// a program for each.
	Controllers []string

	// Seed of the random choices: names of members, and which member classic removes. The default is 0: others each time.
	Seed int64

	// Dial connects to members, whose addresses are <pod>.<cluster>.<namespace>.svc:2379, and to S3 servers. The default
	// is what a pod does: a name of the cluster's DNS, or a proxy that the environment names.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Clock tells the time. The default is the real one.
	Clock clock.WithTicker

	// Controller is given to the controllers as it is. The default is controller-runtime's.
	Controller controller.Options
}

// AddToScheme registers the types of the operator with a scheme. It also needs those of Kubernetes itself there.
func AddToScheme(s *runtime.Scheme) error { return v1beta2.AddToScheme(s) }

// SetupWithManager adds the operator to a manager, whose scheme has to know the types already.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Period == 0 {
		o.Period = DefaultPeriod
	}
	if o.AgentImage == "" {
		o.AgentImage = DefaultAgentImage
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	type setup func(ctrl.Manager, Options) error
	var steps map[string]setup
	switch o.Variant {
	case Hardened, "":
		steps = map[string]setup{
			ClusterController: setupHardenedClusters, BackupController: setupHardenedBackups, RestoreController: setupHardenedRestores,
		}
	case Classic:
		steps = map[string]setup{
			ClusterController: setupClassicClusters, BackupController: setupClassicBackups, RestoreController: setupClassicRestores,
		}
	default:
		return fmt.Errorf("unknown variant %q, want one of %v", o.Variant, Variants())
	}
	if err := checkControllers(o.Controllers); err != nil {
		return err
	}
	for _, name := range Controllers() {
		if len(o.Controllers) > 0 && !slices.Contains(o.Controllers, name) {
			continue
		}
		if err := steps[name](mgr, o); err != nil {
			return fmt.Errorf("set up the %s controller: %w", name, err)
		}
	}
	return nil
}

func checkControllers(names []string) error {
	for _, name := range names {
		if !slices.Contains(Controllers(), name) {
			return fmt.Errorf("unknown controller %q, want some of %v", name, Controllers())
		}
	}
	return nil
}
