package operators

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/agent"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// etcdNamespace is where the operator is, and the cluster of the demo.
const etcdNamespace = "etcd-operator"

func etcdOperator() Operator {
	return Operator{
		Name:             "etcd",
		Summary:          "an EtcdCluster becomes members of etcd that are replaced, scaled, upgraded, backed up and restored",
		Source:           "etcd-operator, in an introduction of 2021 and in the book Kubernetes Operators",
		AddToScheme:      etcd.AddToScheme,
		Manifests:        etcd.Manifests(),
		Namespace:        etcdNamespace,
		ServiceAccount:   "etcd-operator",
		LeaderElectionID: etcd.LeaderElectionID,
		New: func() Instance {
			return &etcdInstance{
				options: etcd.Options{Variant: etcd.Hardened},
				demo:    &etcdDemo{},
			}
		},
	}
}

type etcdInstance struct {
	options etcd.Options
	demo    *etcdDemo
}

func (e *etcdInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{(*string)(&e.options.Variant), []string{string(etcd.Hardened), string(etcd.Classic)}},
		"variant", "which of the two operators: hardened, or classic as published, with its flaws")
	fs.DurationVar(&e.options.Period, "period", etcd.DefaultPeriod, "time between two passes of classic")
	fs.BoolVar(&e.options.ClusterWide, "cluster-wide", false, "classic heeds the clusters whose scope annotation says clusterwide, and no others")
	fs.BoolVar(&e.options.CreateCRD, "create-crd", false, "classic creates the definition of EtcdCluster when it starts")
	fs.StringVar(&e.options.AgentImage, "agent-image", etcd.DefaultAgentImage, "image of the pods that take, check and unpack backups")
	fs.StringSliceVar(&e.options.Controllers, "controllers", nil, "controllers that run, of "+strings.Join(etcd.Controllers(), ",")+" (default: all)")
	fs.Int64Var(&e.options.Seed, "seed", 0, "seed of names and of what classic chooses at random (0: others each time)")
}

// Commands are those of the pods that take, check and unpack backups.
func (e *etcdInstance) Commands() []*cobra.Command { return []*cobra.Command{agent.Command()} }

func (e *etcdInstance) Variant() string { return string(e.options.Variant) }

func (e *etcdInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return etcd.CRDs(e.options.Variant)
}

// Reach says how pods and Services are reached by somebody who is in no pod.
func (e *etcdInstance) Reach(dial func(ctx context.Context, address string) (net.Conn, error)) {
	e.options.Dial = dial
}

func (e *etcdInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	options := e.options
	options.Controller = o
	return etcd.SetupWithManager(mgr, options)
}

func (e *etcdInstance) Demo() Demo { return e.demo }

// etcdDemo is the life of a cluster: it is born, grows, loses a member, is upgraded, and goes.
type etcdDemo struct {
	pause time.Duration
}

// etcdDemoCluster is its name. What it makes begins with it, so it is short.
const etcdDemoCluster = "example"

func (d *etcdDemo) Flags(fs *pflag.FlagSet) {
	fs.DurationVar(&d.pause, "pause", 4*time.Second, "how long each step is shown")
}

func (d *etcdDemo) Values() (map[string]any, error) {
	if d.pause < 0 || d.pause > longestPause {
		return nil, fmt.Errorf("--pause %v is not between 0s and %v", d.pause, longestPause)
	}
	return map[string]any{"pause": strconv.FormatFloat(d.pause.Seconds(), 'f', -1, 64)}, nil
}

// Nodes is three: the members are pods, and one node may be lost.
func (d *etcdDemo) Nodes() int { return 3 }

// Store is the cluster whose members are asked how they are, and that is written to.
func (d *etcdDemo) Store() (namespace, name string) { return etcdNamespace, etcdDemoCluster }

// Caption is of a member's pod the version that was asked for, and of an EtcdCluster how many members are well, and which
// of them leads.
func (d *etcdDemo) Caption(kind string, object json.RawMessage) string {
	switch kind {
	case "Pod":
		var pod corev1.Pod
		if json.Unmarshal(object, &pod) != nil || pod.Labels[etcd.ClusterLabel] == "" || pod.Annotations[etcd.VersionAnnotation] == "" {
			return ""
		}
		return "etcd " + pod.Annotations[etcd.VersionAnnotation]
	case "EtcdCluster":
		var cluster v1beta2.EtcdCluster
		if json.Unmarshal(object, &cluster) != nil || cluster.Status.Phase == "" && len(cluster.Status.Conditions) == 0 {
			return ""
		}
		return clusterText(&cluster)
	}
	return ""
}

// clusterText says how many members are well, and which of them leads.
func clusterText(cluster *v1beta2.EtcdCluster) string {
	well, leader := len(cluster.Status.Members.Ready), ""
	if len(cluster.Status.MemberStatus) > 0 {
		well = 0
	}
	for _, m := range cluster.Status.MemberStatus {
		if m.Healthy && !m.Learner {
			well++
		}
		if m.Leader {
			leader = strings.TrimPrefix(m.Name, cluster.Name+"-")
		}
	}
	text := fmt.Sprintf("%d/%d", well, cluster.Spec.Size)
	if leader != "" {
		text += ", leader " + leader
	}
	return text
}

// Summary tells how the cluster is, or of what it has left behind when it is gone.
func (d *etcdDemo) Summary(ctx context.Context, r client.Reader, choose func(english, japanese string) string) ([][2]string, error) {
	var cluster v1beta2.EtcdCluster
	switch err := r.Get(ctx, client.ObjectKey{Namespace: etcdNamespace, Name: etcdDemoCluster}, &cluster); {
	case err == nil:
		return [][2]string{{choose("members", "メンバー"), clusterText(&cluster)}, {choose("requested", "要求"), "etcd " + cluster.Status.CurrentVersion}}, nil
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	var left []string
	of := []client.ListOption{client.InNamespace(etcdNamespace), client.MatchingLabels{etcd.ClusterLabel: etcdDemoCluster}}
	for _, kind := range []struct {
		name string
		list client.ObjectList
	}{{"Pod", &corev1.PodList{}}, {"Service", &corev1.ServiceList{}}, {"PersistentVolumeClaim", &corev1.PersistentVolumeClaimList{}}} {
		if err := r.List(ctx, kind.list, of...); err != nil {
			return nil, err
		}
		if n := meta.LenList(kind.list); n > 0 {
			left = append(left, fmt.Sprintf("%s %d", kind.name, n))
		}
	}
	if len(left) == 0 {
		left = []string{choose("nothing", "なし")}
	}
	return [][2]string{{choose("left", "残り"), strings.Join(left, ", ")}}, nil
}
