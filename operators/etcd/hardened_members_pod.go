package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	// PolicyAnnotation is on each pod: a sum of what its policy was. A pod with another one is replaced.
	PolicyAnnotation = v1beta2.Group + "/policy"

	// metricsPort is where a member tells the kubelet, in plain HTTP, how it is. Those of 3.5.11 and 3.4.29 and later
	// know /livez and /readyz.
	metricsPort = 2381

	peerTLSDir   = "/etc/etcdtls/member/peer-tls"
	serverTLSDir = "/etc/etcdtls/member/server-tls"

	// nobody is the user of members that are told no other.
	nobody = int64(65532)

	// lostAfter is the time, in seconds, after which the member on a node that is away is given up.
	lostAfter = int64(30)
)

// beginning says how a member that has no data yet joins.
type beginning struct {
	state   string            // new or existing
	token   string            // of etcd, for new
	members map[string]string // peer URLs by name
}

func (b beginning) initialCluster(cluster *v1beta2.EtcdCluster, self string) string {
	all := maps.Clone(b.members)
	if all == nil {
		all = map[string]string{}
	}
	all[self] = peerURL(cluster, self)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, name+"="+all[name])
	}
	return strings.Join(pairs, ",")
}

// memberPod is the pod of a member.
//
// It has no init container that waits for its name in DNS, as the published one has: the Service of the members tells of
// pods that are not Ready, and etcd looks names up again and again itself. Its containers are started again where they
// ended (restartPolicy Always), so that a node that was away for a moment brings its member back, data and all.
func memberPod(cluster *v1beta2.EtcdCluster, name, version, token string, b beginning) *corev1.Pod {
	policy := podPolicyOf(cluster)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: cluster.Namespace,
			Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*ownedBy(cluster)},
		},
		Spec: corev1.PodSpec{
			Hostname: name, Subdomain: peerService(cluster),
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64(10)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			NodeSelector:                  policy.NodeSelector,
			Affinity:                      affinityOf(cluster, token),
			Tolerations:                   tolerationsOf(policy),
			SecurityContext:               podSecurity(policy),
			Containers:                    []corev1.Container{etcdContainer(cluster, name, version, b)},
			Volumes:                       append([]corev1.Volume{dataOf(cluster, name)}, tlsVolumes(cluster)...),
		},
	}
	maps.Copy(pod.Labels, policy.Labels)
	maps.Copy(pod.Labels, clusterLabels(cluster))
	pod.Labels[NodeLabel], pod.Labels[TokenLabel] = name, token
	maps.Copy(pod.Annotations, policy.Annotations)
	pod.Annotations[VersionAnnotation], pod.Annotations[PolicyAnnotation] = version, policySum(cluster)
	return pod
}

func etcdContainer(cluster *v1beta2.EtcdCluster, name, version string, b beginning) corev1.Container {
	probe := func(path string, period, failures, timeout int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromInt32(metricsPort), Scheme: corev1.URISchemeHTTP,
			}},
			PeriodSeconds: period, FailureThreshold: failures, TimeoutSeconds: timeout,
		}
	}
	policy := podPolicyOf(cluster)
	mounts := []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMount}}
	for _, volume := range tlsVolumes(cluster) {
		mounts = append(mounts, corev1.VolumeMount{Name: volume.Name, MountPath: tlsDirs[volume.Name], ReadOnly: true})
	}
	return corev1.Container{
		Name:    containerName,
		Image:   imageOf(cluster, version),
		Command: append([]string{"/usr/local/bin/etcd"}, etcdFlags(cluster, name, b)...),
		Env:     policy.EtcdEnv,
		Ports: []corev1.ContainerPort{
			{Name: "server", ContainerPort: peerPort},
			{Name: "client", ContainerPort: clientPort},
			{Name: "metrics", ContainerPort: metricsPort},
		},
		Resources:    policy.Resources,
		VolumeMounts: mounts,
		// A member that takes over much data starts late; the other two probes wait for this one. Ready is who serves what
		// a quorum agrees on; alive is who answers at all, so that a lost quorum restarts nobody.
		StartupProbe:   probe("/livez", 1, 300, 2),
		ReadinessProbe: probe("/readyz", 2, 2, 3),
		LivenessProbe:  probe("/livez", 5, 4, 5),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func etcdFlags(cluster *v1beta2.EtcdCluster, name string, b beginning) []string {
	scheme := func(secure bool) string {
		if secure {
			return "https"
		}
		return "http"
	}
	flags := []string{
		"--data-dir=" + dataDir,
		"--name=" + name,
		"--initial-advertise-peer-urls=" + peerURL(cluster, name),
		fmt.Sprintf("--listen-peer-urls=%s://0.0.0.0:%d", scheme(peerTLS(cluster)), peerPort),
		fmt.Sprintf("--listen-client-urls=%s://0.0.0.0:%d", scheme(serverTLS(cluster)), clientPort),
		"--advertise-client-urls=" + clientURL(cluster, name),
		fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", metricsPort),
		"--initial-cluster=" + b.initialCluster(cluster, name),
		"--initial-cluster-state=" + b.state,
	}
	if b.token != "" {
		flags = append(flags, "--initial-cluster-token="+b.token)
	}
	if peerTLS(cluster) {
		flags = append(flags, "--peer-client-cert-auth=true", "--peer-trusted-ca-file="+peerTLSDir+"/peer-ca.crt",
			"--peer-cert-file="+peerTLSDir+"/peer.crt", "--peer-key-file="+peerTLSDir+"/peer.key")
	}
	if serverTLS(cluster) {
		flags = append(flags, "--client-cert-auth=true", "--trusted-ca-file="+serverTLSDir+"/server-ca.crt",
			"--cert-file="+serverTLSDir+"/server.crt", "--key-file="+serverTLSDir+"/server.key")
	}
	return flags
}

// tlsDirs are where the volumes with keys are mounted.
var tlsDirs = map[string]string{"member-peer-tls": peerTLSDir, "member-server-tls": serverTLSDir}

func tlsVolumes(cluster *v1beta2.EtcdCluster) (volumes []corev1.Volume) {
	if peerTLS(cluster) {
		volumes = append(volumes, corev1.Volume{Name: "member-peer-tls", VolumeSource: secretVolume(staticTLS(cluster).Member.PeerSecret)})
	}
	if serverTLS(cluster) {
		volumes = append(volumes, corev1.Volume{Name: "member-server-tls", VolumeSource: secretVolume(staticTLS(cluster).Member.ServerSecret)})
	}
	return volumes
}

// dataOf is where a member keeps its data: in its claim, which has its name, or in its pod.
func dataOf(cluster *v1beta2.EtcdCluster, name string) corev1.Volume {
	volume := corev1.Volume{Name: dataVolume}
	if podPolicyOf(cluster).PersistentVolumeClaimSpec != nil {
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	} else {
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return volume
}

// memberClaim is the volume claim of a member.
func memberClaim(cluster *v1beta2.EtcdCluster, name, token string) *corev1.PersistentVolumeClaim {
	labels := clusterLabels(cluster)
	labels[NodeLabel], labels[TokenLabel] = name, token
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: cluster.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*ownedBy(cluster)},
		},
		Spec: *podPolicyOf(cluster).PersistentVolumeClaimSpec.DeepCopy(),
	}
}

func podPolicyOf(cluster *v1beta2.EtcdCluster) v1beta2.PodPolicy {
	if cluster.Spec.Pod == nil {
		return v1beta2.PodPolicy{}
	}
	return *cluster.Spec.Pod.DeepCopy()
}

// policySum is a sum of what a running pod cannot be changed in. The version and the repository are no part of it: an
// image is changed in place. Nor is the claim: it goes for members to come.
func policySum(cluster *v1beta2.EtcdCluster) string {
	policy := podPolicyOf(cluster)
	claim := policy.PersistentVolumeClaimSpec != nil
	policy.PersistentVolumeClaimSpec, policy.BusyboxImage, policy.DNSTimeoutInSecond = nil, "", 0
	text, err := json.Marshal([]any{policy, claim})
	if err != nil {
		return "" // there is nothing in it that could fail
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// affinityOf spreads members over nodes: if it can be had, or, with antiAffinity, in any case.
// Members of an earlier life, which are there until the first of this one has answered, do not count: it would find no
// node.
func affinityOf(cluster *v1beta2.EtcdCluster, token string) *corev1.Affinity {
	policy := podPolicyOf(cluster)
	affinity := policy.Affinity
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	apart := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ClusterLabel: cluster.Name}},
		TopologyKey:   corev1.LabelHostname,
	}
	if token != adopted { // members that somebody else made have no token
		apart.LabelSelector.MatchLabels[TokenLabel] = token
	}
	anti := affinity.PodAntiAffinity
	if policy.AntiAffinity {
		anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, apart)
	} else {
		anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: apart})
	}
	return affinity
}

// tolerationsOf has Kubernetes give up a member on a lost node sooner than after its five minutes, unless the policy says
// something about that.
func tolerationsOf(policy v1beta2.PodPolicy) []corev1.Toleration {
	tolerations := policy.Tolerations
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		said := false
		for _, t := range tolerations {
			said = said || t.Key == key || t.Key == ""
		}
		if !said {
			tolerations = append(tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(lostAfter),
			})
		}
	}
	return tolerations
}

func podSecurity(policy v1beta2.PodPolicy) *corev1.PodSecurityContext {
	if policy.SecurityContext != nil {
		return policy.SecurityContext
	}
	return &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(nobody), RunAsGroup: new(nobody), FSGroup: new(nobody),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
