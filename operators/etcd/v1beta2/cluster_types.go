package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of an EtcdCluster that the operator heeds.
const (
	// ScopeAnnotation with the value ScopeClusterwide gives a cluster to an operator of all namespaces; one of a single
	// namespace leaves it alone, and takes those without it.
	ScopeAnnotation = Group + "/scope"
	// ScopeClusterwide is the one value of ScopeAnnotation that means something.
	ScopeClusterwide = "clusterwide"

	// RecoverAnnotation approves, by a person, that a cluster without a quorum begins anew. Its value is the name of the
	// member whose data it begins with: whatever only the others knew is lost. Or it is backup/<name>@<revision>, an
	// EtcdBackup and the revision that it took last: whatever came later is lost. Hardened only.
	RecoverAnnotation = Group + "/recover-from"
)

// ClusterPhase is how far a cluster has come. Classic writes it, and lives by it; hardened writes it for readers who
// know it, and never reads it.
type ClusterPhase string

// The phases. A new cluster has none.
const (
	ClusterPhaseNone     ClusterPhase = ""
	ClusterPhaseCreating ClusterPhase = "Creating"
	ClusterPhaseRunning  ClusterPhase = "Running"
	ClusterPhaseFailed   ClusterPhase = "Failed"
)

// Condition types of an EtcdCluster.
const (
	// ConditionAvailable is True while a quorum of the voting members answers. Classic writes True when it has begun
	// to look after the cluster, and never takes it back.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while something is on its way that needs nobody's help. Hardened only.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True while something is wrong that the operator cannot mend by itself, or that leaves less
	// to spare than was asked for. Hardened only.
	ConditionDegraded = "Degraded"
	// ConditionAbnormal is True while a member is not as it usually is, and Unknown until that has been learned. It is there
	// with spec.abnormality. Hardened only.
	ConditionAbnormal = "Abnormal"
	// ConditionScaling and ConditionUpgrading are there, and True, while classic does that.
	ConditionScaling   = "Scaling"
	ConditionUpgrading = "Upgrading"
)

// PodPolicy describes the pods of members. Classic gives it to new members only; hardened replaces members, one
// after the other.
type PodPolicy struct {
	// labels of the pods, in addition to those of the operator: neither app nor anything that begins with etcd_.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the pods, in addition to those of the operator: not etcd.version.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector of the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// antiAffinity asks for each member on a node of its own. Deprecated upstream in favour of affinity.
	// +optional
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// resources of the etcd container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// etcdEnv are further environment variables of etcd, such as ETCD_QUOTA_BACKEND_BYTES. Those for which the operator
	// sets a flag would keep etcd from starting.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty"`

	// persistentVolumeClaimSpec asks for a volume claim for each member, which keeps its data beyond its pod. The
	// default is an emptyDir, which goes with the pod.
	// +optional
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// busyboxImage is the image of the init container that waits for the pod's name in DNS. The default is
	// busybox:1.28.0-glibc.
	// +optional
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// securityContext of the pods.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// DNSTimeoutInSecond is how long that init container waits, in seconds. The default is 0: for ever.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DNSTimeoutInSecond int64 `json:"DNSTimeoutInSecond,omitempty"`

	// ClusterDomain is the DNS domain of the Kubernetes cluster, such as cluster.local. The default is none: names
	// end in .svc.
	// +optional
	ClusterDomain string `json:"ClusterDomain,omitempty"`
}

// TLSPolicy is how members and clients know each other.
type TLSPolicy struct {
	// static names Secrets that somebody else keeps.
	// +optional
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS names Secrets with keys and certificates.
//
// +kubebuilder:validation:XValidation:rule="has(self.operatorSecret) == (has(self.member) && has(self.member.serverSecret))",message="operatorSecret and member.serverSecret must be set together: where members ask for TLS, the operator needs a certificate too"
type StaticTLS struct {
	// member is TLS of the members.
	// +optional
	Member *MemberSecret `json:"member,omitempty"`

	// operatorSecret is the Secret by which the operator is a client of the members, with the keys etcd-client.crt,
	// etcd-client.key and etcd-client-ca.crt.
	// +kubebuilder:validation:MinLength=1
	// +optional
	OperatorSecret string `json:"operatorSecret,omitempty"`
}

// MemberSecret names the Secrets of members.
type MemberSecret struct {
	// peerSecret is of TLS among members, with the keys peer.crt, peer.key and peer-ca.crt.
	// +kubebuilder:validation:MinLength=1
	// +optional
	PeerSecret string `json:"peerSecret,omitempty"`

	// serverSecret is of TLS towards clients, with the keys server.crt, server.key and server-ca.crt.
	// +kubebuilder:validation:MinLength=1
	// +optional
	ServerSecret string `json:"serverSecret,omitempty"`
}

// DefragmentPolicy says when a member writes its database anew: one after the other, the leader last. etcd does not give space
// back by itself that was used once. When a member has reached its quota, the operator also has etcd forget the history
// and takes the alarm back: what is stored now stays.
type DefragmentPolicy struct {
	// freePercent is the share of the database that holds nothing, from which on it is defragmented.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=90
	// +optional
	FreePercent int `json:"freePercent,omitempty"`

	// minimumSize of a database that is defragmented.
	// +kubebuilder:default="100Mi"
	// +optional
	MinimumSize resource.Quantity `json:"minimumSize,omitempty"`

	// keepRevisions is the number of changes that are not forgotten when a member has reached its quota.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=0
	// +optional
	KeepRevisions int64 `json:"keepRevisions"`
}

// ProxyPolicy asks for etcd's gRPC proxies between clients and members, and says how many there are: more as soon as clients
// make more requests, fewer when fewer have sufficed for a while.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not be more than max"
type ProxyPolicy struct {
	// min is the number of proxies that there are in any case.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Min int32 `json:"min,omitempty"`

	// max is the number of proxies that there are at most.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Max int32 `json:"max,omitempty"`

	// requestsPerSecond is how many requests each proxy is to take. A tenth more does not count.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +optional
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`

	// scaleDownAfter is how long fewer proxies must have sufficed, all the time, before there are fewer.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="scaleDownAfter must not be negative"
	// +optional
	ScaleDownAfter metav1.Duration `json:"scaleDownAfter,omitempty"`
}

// AbnormalityPolicy has the operator compare each member with what is normal for that member: how long it takes to answer, how long
// it takes to write its log, and how many of its proposals fail.
type AbnormalityPolicy struct {
	// interval is the time between two looks.
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('500ms')",message="interval must be 500ms or more"
	// +optional
	Interval metav1.Duration `json:"interval,omitempty"`

	// factor is how many times as much as is normal has to be seen, three looks in a row.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +optional
	Factor int32 `json:"factor,omitempty"`
}

// EtcdClusterSpec is the cluster that somebody wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.proxies) || !has(self.TLS)",message="proxies do not know TLS: leave out one of the two"
type EtcdClusterSpec struct {
	// size is the number of voting members, 1 to 7. An even number tolerates no more failures than one member less
	// does: the operator warns of it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	Size int `json:"size"`

	// repository is the image of etcd without its tag.
	// +kubebuilder:default="quay.io/coreos/etcd"
	// +kubebuilder:validation:Pattern=`^[^\s:@]+(:[0-9]+/[^\s:@]+)?$`
	// +optional
	Repository string `json:"repository,omitempty"`

	// version of etcd, such as 3.2.13; the image's tag is v and the version. Members are upgraded one by one, by one
	// minor version at most, and never to an older minor version.
	// +kubebuilder:default="3.2.13"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`
	// +optional
	Version string `json:"version,omitempty"`

	// paused has the operator keep its hands off the cluster. Hardened goes on telling how it is.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pod describes the pods of members.
	// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !self.labels.exists(k, k == 'app' || k.startsWith('etcd_'))",message="labels must not be app, nor begin with etcd_: those are the operator's"
	// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || !('etcd.version' in self.annotations)",message="the annotation etcd.version is the operator's"
	// +kubebuilder:validation:XValidation:rule="!has(self.etcdEnv) || !self.etcdEnv.exists(e, e.name in ['ETCD_NAME', 'ETCD_DATA_DIR', 'ETCD_INITIAL_CLUSTER', 'ETCD_INITIAL_CLUSTER_STATE', 'ETCD_INITIAL_CLUSTER_TOKEN', 'ETCD_INITIAL_ADVERTISE_PEER_URLS', 'ETCD_ADVERTISE_CLIENT_URLS', 'ETCD_LISTEN_PEER_URLS', 'ETCD_LISTEN_CLIENT_URLS', 'ETCD_LISTEN_METRICS_URLS'])",message="variables for the name, the data directory, the URLs and the initial cluster are the operator's: etcd does not start with them beside its flags"
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`

	// defragment has the operator keep the databases of the members small. The default is that a person does. Hardened
	// only.
	// +optional
	Defragment *DefragmentPolicy `json:"defragment,omitempty"`

	// proxies has the operator keep gRPC proxies for clients, as many as their requests need. The default is none. Hardened
	// only.
	// +optional
	Proxies *ProxyPolicy `json:"proxies,omitempty"`

	// abnormality has the operator tell of members that are not as they usually are, in the condition Abnormal. The default is
	// that it does not look. Hardened only.
	// +optional
	Abnormality *AbnormalityPolicy `json:"abnormality,omitempty"`

	// TLS of members and clients. The default is none. It cannot be changed later.
	// +optional
	TLS *TLSPolicy `json:"TLS,omitempty"`
}

// MembersStatus are the names of members, by whether their pods are ready.
type MembersStatus struct {
	// ready are the names of the pods that are Ready.
	// +optional
	Ready []string `json:"ready,omitempty"`
	// unready are the names of the others.
	// +optional
	Unready []string `json:"unready,omitempty"`
}

// Member reports the state of one member. Hardened only.
type Member struct {
	// name of the member, and of its pod.
	Name string `json:"name"`
	// id is etcd's, as 16 hexadecimal digits; empty while it is not known.
	// +optional
	ID string `json:"id,omitempty"`
	// version that was asked for: that of its pod's image.
	// +optional
	Version string `json:"version,omitempty"`
	// serverVersion is the version that the member says it is; empty while it does not answer.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`
	// healthy: it answers, and has no alarm.
	Healthy bool `json:"healthy"`
	// learner: it does not vote yet.
	// +optional
	Learner bool `json:"learner,omitempty"`
	// leader: it leads.
	// +optional
	Leader bool `json:"leader,omitempty"`
	// message is why it is not healthy.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProxyStatus reports the proxies of a cluster.
type ProxyStatus struct {
	// serviceName is that of the Service by which clients reach the proxies, at the same port as the members.
	ServiceName string `json:"serviceName"`
	// replicas is the number of proxies that the requests of clients need.
	Replicas int32 `json:"replicas"`
	// ready is the number of proxies that serve.
	Ready int32 `json:"ready"`
}

// ClusterCondition is a condition of an EtcdCluster. Its fields are those of both variants: classic has
// lastUpdateTime, hardened observedGeneration.
type ClusterCondition struct {
	// type of the condition.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// observedGeneration is the metadata.generation it was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastUpdateTime is when it was last computed, as RFC 3339. Classic only.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
	// lastTransitionTime is when its status last changed, as RFC 3339.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	// reason in one word; classic's have several.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// EtcdClusterStatus is how a cluster is. Classic takes its memory from here; hardened only writes it.
type EtcdClusterStatus struct {
	// phase is how far the cluster has come.
	// +optional
	Phase ClusterPhase `json:"phase,omitempty"`
	// reason of the phase Failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// controlPaused: the operator keeps its hands off, as spec.paused says. Classic never writes it.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from. Hardened only.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Available, Progressing, Degraded and, with spec.abnormality, Abnormal; of classic Available, Scaling and
	// Upgrading.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []ClusterCondition `json:"conditions,omitempty"`

	// size is the number of members.
	// +optional
	Size int `json:"size"`
	// serviceName is that of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// clientPort is that of the Service for clients.
	// +optional
	ClientPort int `json:"clientPort,omitempty"`

	// members are the names of the members.
	// +optional
	Members MembersStatus `json:"members"`
	// memberStatus reports the state of each member. Hardened only.
	// +listType=map
	// +listMapKey=name
	// +optional
	MemberStatus []Member `json:"memberStatus,omitempty"`
	// proxies are those that spec.proxies asks for. Hardened only.
	// +optional
	Proxies *ProxyStatus `json:"proxies,omitempty"`
	// leaderID is etcd's ID of the leader; empty without one. Hardened only.
	// +optional
	LeaderID string `json:"leaderID,omitempty"`

	// currentVersion is the version that all members were asked to run.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`
	// targetVersion is the version that members are being upgraded to.
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`

	// restoredFrom is the UID of the EtcdRestore whose backup the cluster began with. Hardened only.
	// +optional
	RestoredFrom string `json:"restoredFrom,omitempty"`
}

// EtcdCluster is a cluster of etcd members, each a pod.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdclusters,singular=etcdcluster,shortName=etcd,scope=Namespaced
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="voting members that are asked for"
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.size`,description="members there are"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`,description="the version that all members were asked to run"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].reason`
// +kubebuilder:printcolumn:name="Leader",type=string,priority=1,JSONPath=`.status.leaderID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must be at most 52 characters long: members have it with a hyphen and ten more characters, and it is a label of theirs"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be that of a Service: lower case letters, digits and hyphens, beginning with a letter"
// +kubebuilder:validation:XValidation:rule="has(self.spec.TLS) == has(oldSelf.spec.TLS) && (!has(self.spec.TLS) || self.spec.TLS == oldSelf.spec.TLS)",message="TLS cannot be changed: the members know each other by URLs that have it or not"
type EtcdCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cluster that somebody wants.
	// +required
	Spec EtcdClusterSpec `json:"spec,omitempty"`
	// status is how it is.
	// +optional
	Status EtcdClusterStatus `json:"status,omitempty"`
}

// EtcdClusterList is a list of EtcdCluster.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdCluster `json:"items"`
}
