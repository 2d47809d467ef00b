package etcd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// Reasons of the events. There are spaces in them, and so they are no reasons by today's rules.
const (
	classicEventAdded     = "New Member Added"
	classicEventRemoved   = "Member Removed"
	classicEventReplacing = "Replacing Dead Member"
	classicEventUpgraded  = "Member Upgraded"
)

// event tells people of a change. Each is one of its own, and none is counted.
func (c *classicCluster) event(ctx context.Context, reason, message string) {
	now := metav1.NewTime(c.options.Clock.Now())
	err := c.client.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.cluster.Namespace, GenerateName: c.cluster.Name + "-"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1beta2.GroupVersion.String(), Kind: v1beta2.EtcdClusterKind,
			Namespace: c.cluster.Namespace, Name: c.cluster.Name, UID: c.cluster.UID, ResourceVersion: c.cluster.ResourceVersion,
		},
		Source: corev1.EventSource{Component: classicComponent()}, ReportingController: classicComponent(),
		Type: corev1.EventTypeNormal, Reason: reason, Message: message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "the event could not be created", "reason", reason)
	}
}

func classicPodName() string { return os.Getenv("MY_POD_NAME") }

func classicLabels(cluster *v1beta2.EtcdCluster) map[string]string {
	return map[string]string{AppLabel: AppName, ClusterLabel: cluster.Name}
}

func classicOwner(cluster *v1beta2.EtcdCluster) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1beta2.GroupVersion.WithKind(v1beta2.EtcdClusterKind))}
}

// createServices creates the Service for clients and that of the members, unless there are any of those names, whosever
// they are.
func (c *classicCluster) createServices(ctx context.Context) error {
	client := corev1.ServicePort{Name: "client", Protocol: corev1.ProtocolTCP, Port: clientPort, TargetPort: intstr.FromInt32(clientPort)}
	peer := corev1.ServicePort{Name: "peer", Protocol: corev1.ProtocolTCP, Port: peerPort, TargetPort: intstr.FromInt32(peerPort)}
	for _, service := range []*corev1.Service{
		c.service(clientService(c.cluster), "", client),
		c.service(peerService(c.cluster), corev1.ClusterIPNone, client, peer),
	} {
		if err := c.client.Create(ctx, service); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Service %s: %w", service.Name, err)
		}
	}
	return nil
}

// service has the addresses of all pods, Ready or not, because members have to find each other before they are. The
// published one had an annotation for that, which Kubernetes knows no more since 1.24: without the field, no second member
// would ever be found. The same holds for clients, who may be sent to a member that does not answer.
func (c *classicCluster) service(name, address string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.cluster.Namespace, Name: name, Labels: classicLabels(c.cluster), OwnerReferences: classicOwner(c.cluster),
			Annotations: map[string]string{"service.alpha.kubernetes.io/tolerate-unready-endpoints": "true"},
		},
		Spec: corev1.ServiceSpec{Ports: ports, Selector: classicLabels(c.cluster), ClusterIP: address, PublishNotReadyAddresses: true},
	}
}

// newName is a name for a new member. With a seed the same names come again after the operator's restart: those that are
// taken are passed over.
func (c *classicCluster) newName(ctx context.Context) (string, error) {
	for {
		name := c.memberName()
		if c.options.Seed == 0 {
			return name, nil
		}
		err := c.reader.Get(ctx, types.NamespacedName{Namespace: c.cluster.Namespace, Name: name}, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return name, nil
		}
		if err != nil {
			return "", fmt.Errorf("look whether there is a pod %s: %w", name, err)
		}
	}
}

// classicClaims tells whether members keep their data on volume claims.
func classicClaims(cluster *v1beta2.EtcdCluster) bool {
	return cluster.Spec.Pod != nil && cluster.Spec.Pod.PersistentVolumeClaimSpec != nil
}

// createPod creates the pod of a member, after its claim if it has one.
func (c *classicCluster) createPod(ctx context.Context, member string, members classicMembers, first bool) error {
	if err := c.createClaim(ctx, member); err != nil {
		return err
	}
	return c.client.Create(ctx, classicPod(c.cluster, member, members, first))
}

// createRestored creates the pod of a first member that has the data of a backup.
func (c *classicCluster) createRestored(ctx context.Context, member, url string) error {
	if err := c.createClaim(ctx, member); err != nil {
		return err
	}
	pod := classicPod(c.cluster, member, classicMembers{member: 0}, true)
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, classicRestoreContainers(c.cluster, member, url)...)
	return c.client.Create(ctx, pod)
}

func (c *classicCluster) createClaim(ctx context.Context, member string) error {
	if !classicClaims(c.cluster) {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.cluster.Namespace, Name: member, OwnerReferences: classicOwner(c.cluster),
			Labels: map[string]string{AppLabel: AppName, ClusterLabel: c.cluster.Name, NodeLabel: member},
		},
		Spec: *c.cluster.Spec.Pod.PersistentVolumeClaimSpec.DeepCopy(),
	}
	if err := c.client.Create(ctx, claim); err != nil {
		return fmt.Errorf("create the claim: %w", err)
	}
	return nil
}

// deletePod leaves etcd five seconds to end.
func (c *classicCluster) deletePod(ctx context.Context, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.cluster.Namespace, Name: name}}
	if err := c.client.Delete(ctx, pod, client.GracePeriodSeconds(5)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

func (c *classicCluster) deleteClaim(ctx context.Context, name string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.cluster.Namespace, Name: name}}
	if err := c.client.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete claim %s: %w", name, err)
	}
	return nil
}

// upgrade gives a living pod another image, and the kubelet starts its container anew, where it is and with the data that
// it has. Any version will do, older ones too.
func (c *classicCluster) upgrade(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := c.reader.Get(ctx, types.NamespacedName{Namespace: c.cluster.Namespace, Name: name}, pod); err != nil {
		return fmt.Errorf("get pod %s: %w", name, err)
	}
	old := pod.DeepCopy()
	version := c.cluster.Spec.Version
	pod.Spec.Containers[0].Image = classicImage(c.cluster)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[VersionAnnotation] = version
	if err := c.client.Patch(ctx, pod, client.StrategicMergeFrom(old)); err != nil {
		return fmt.Errorf("upgrade pod %s: %w", name, err)
	}
	c.event(ctx, classicEventUpgraded, fmt.Sprintf("%s goes from %s to %s", name, old.Annotations[VersionAnnotation], version))
	return nil
}

func classicImage(cluster *v1beta2.EtcdCluster) string {
	return cluster.Spec.Repository + ":v" + cluster.Spec.Version
}

// classicPod is the pod of a member. It never restarts: a member whose process has ended, or whose node was off for a
// moment, is dead, and its data with it unless it is on a claim (E-03).
func classicPod(cluster *v1beta2.EtcdCluster, member string, members classicMembers, first bool) *corev1.Pod {
	policy := v1beta2.PodPolicy{}
	if cluster.Spec.Pod != nil {
		policy = *cluster.Spec.Pod.DeepCopy()
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: member, OwnerReferences: classicOwner(cluster),
			Labels:      map[string]string{AppLabel: AppName, ClusterLabel: cluster.Name, NodeLabel: member},
			Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Hostname:      member, Subdomain: peerService(cluster),
			AutomountServiceAccountToken: new(false),
			InitContainers:               []corev1.Container{classicCheckDNS(cluster, member, policy)},
			Containers:                   []corev1.Container{classicContainer(cluster, member, members, first, policy)},
			Volumes:                      []corev1.Volume{{Name: dataVolume, VolumeSource: classicData(cluster, member)}},
			NodeSelector:                 policy.NodeSelector, Affinity: policy.Affinity, Tolerations: policy.Tolerations,
			SecurityContext: policy.SecurityContext,
		},
	}
	classicMountTLS(pod, cluster)
	maps.Copy(pod.Labels, policy.Labels)
	maps.Copy(pod.Annotations, policy.Annotations)
	pod.Annotations[VersionAnnotation] = cluster.Spec.Version
	return pod
}

func classicData(cluster *v1beta2.EtcdCluster, member string) corev1.VolumeSource {
	if !classicClaims(cluster) {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: member}}
}

// classicCheckDNS waits until the pod's own name is known, since the other members look for it there.
func classicCheckDNS(cluster *v1beta2.EtcdCluster, member string, policy v1beta2.PodPolicy) corev1.Container {
	image := policy.BusyboxImage
	if image == "" {
		image = "busybox:1.28.0-glibc"
	}
	script := fmt.Sprintf(`left=%d
until nslookup %s; do
  left=$((left - 1))
  if [ $left -eq 0 ]; then echo "the name is still not known"; exit 1; fi
  sleep 1
done`, policy.DNSTimeoutInSecond, memberHost(cluster, member))
	return corev1.Container{Name: "check-dns", Image: image, Command: []string{"/bin/sh", "-c", script}}
}

func classicContainer(cluster *v1beta2.EtcdCluster, member string, members classicMembers, first bool, policy v1beta2.PodPolicy) corev1.Container {
	liveness, readiness := classicProbe(cluster), classicProbe(cluster)
	liveness.InitialDelaySeconds, liveness.TimeoutSeconds, liveness.PeriodSeconds, liveness.FailureThreshold = 10, 10, 60, 3
	readiness.InitialDelaySeconds, readiness.TimeoutSeconds, readiness.PeriodSeconds, readiness.FailureThreshold = 1, 5, 5, 3
	return corev1.Container{
		Name: containerName, Image: classicImage(cluster), Command: classicCommand(cluster, member, members, first),
		Env: policy.EtcdEnv, Resources: policy.Resources,
		Ports: []corev1.ContainerPort{
			{Name: "server", ContainerPort: peerPort, Protocol: corev1.ProtocolTCP},
			{Name: "client", ContainerPort: clientPort, Protocol: corev1.ProtocolTCP},
		},
		VolumeMounts:  []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMount}},
		LivenessProbe: liveness, ReadinessProbe: readiness,
	}
}

// Where the Secrets are mounted.
const (
	classicPeerTLS     = "/etc/etcdtls/member/peer-tls"
	classicServerTLS   = "/etc/etcdtls/member/server-tls"
	classicOperatorTLS = "/etc/etcdtls/operator/etcd-tls"
)

// classicProbe asks the member itself, and succeeds without a quorum too: a member that answers is ready, whether the
// cluster can do anything or not.
func classicProbe(cluster *v1beta2.EtcdCluster) *corev1.Probe {
	command := "ETCDCTL_API=3 etcdctl endpoint status"
	if serverTLS(cluster) {
		command = fmt.Sprintf("ETCDCTL_API=3 etcdctl --endpoints=https://localhost:%d --cert=%[2]s/etcd-client.crt --key=%[2]s/etcd-client.key --cacert=%[2]s/etcd-client-ca.crt endpoint status",
			clientPort, classicOperatorTLS)
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-ec", command}}}}
}

// classicCommand starts etcd. Only the first member begins a cluster, with a token that no other cluster has.
func classicCommand(cluster *v1beta2.EtcdCluster, member string, members classicMembers, first bool) []string {
	var peers []string
	for _, name := range members.names() {
		peers = append(peers, name+"="+peerURL(cluster, name))
	}
	state := "existing"
	if first {
		state = "new"
	}
	command := []string{
		"/usr/local/bin/etcd", "--data-dir=" + dataDir, "--name=" + member,
		"--initial-advertise-peer-urls=" + peerURL(cluster, member),
		"--listen-peer-urls=" + memberURL(peerTLS(cluster), "0.0.0.0", peerPort),
		"--listen-client-urls=" + memberURL(serverTLS(cluster), "0.0.0.0", clientPort),
		"--advertise-client-urls=" + clientURL(cluster, member),
		"--initial-cluster=" + strings.Join(peers, ","), "--initial-cluster-state=" + state,
	}
	if peerTLS(cluster) {
		command = append(command, "--peer-client-cert-auth=true", "--peer-trusted-ca-file="+classicPeerTLS+"/peer-ca.crt",
			"--peer-cert-file="+classicPeerTLS+"/peer.crt", "--peer-key-file="+classicPeerTLS+"/peer.key")
	}
	if serverTLS(cluster) {
		command = append(command, "--client-cert-auth=true", "--trusted-ca-file="+classicServerTLS+"/server-ca.crt",
			"--cert-file="+classicServerTLS+"/server.crt", "--key-file="+classicServerTLS+"/server.key")
	}
	if first {
		command = append(command, "--initial-cluster-token="+classicToken())
	}
	return command
}

// classicMountTLS mounts the Secrets. That of the operator is for the probes.
func classicMountTLS(pod *corev1.Pod, cluster *v1beta2.EtcdCluster) {
	static := staticTLS(cluster)
	mount := func(name, secret, dir string) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}},
		})
		container := &pod.Spec.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: dir})
	}
	if peerTLS(cluster) {
		mount("member-peer-tls", static.Member.PeerSecret, classicPeerTLS)
	}
	if serverTLS(cluster) {
		mount("member-server-tls", static.Member.ServerSecret, classicServerTLS)
		mount("operator-etcd-tls", static.OperatorSecret, classicOperatorTLS)
	}
}
