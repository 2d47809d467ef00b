package etcd

import (
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// SeededFromAnnotation is on the pod of a first member: the UID of the EtcdRestore whose backup it began with, or the
// name of the member whose data it took over.
const SeededFromAnnotation = v1beta2.Group + "/seeded-from"

// seedContainer is the init container that fills the data directory of a first member.
const seedContainer = "seed"

// seedTimeout is the time limit for making the data of a first member. Nobody waits for it meanwhile; after it, everything
// begins anew.
const seedTimeout = 10 * time.Minute

// seed says where the first member of a cluster has its data from: the backup of a restore, or another member, or, if
// neither is set, from nowhere. Then the cluster begins empty.
type seed struct {
	// token makes the cluster another one than any that had members of the same names.
	token string
	// backup was checked: only a backup with the sum of its status is taken.
	backup *v1beta2.EtcdRestore
	// member is the name of one that still answers. It need not have a quorum: a snapshot is what it has itself.
	member string
}

// empty reports whether the cluster begins without data.
func (s seed) empty() bool { return s.backup == nil && s.member == "" }

// from is the value of SeededFromAnnotation.
func (s seed) from() string {
	if s.backup != nil {
		return string(s.backup.UID)
	}
	return s.member
}

// addTo has the pod of a first member fill its data directory before etcd starts. The pod must have the volume of the
// data already. Where there are data already, such as after a restart of the pod, nothing is changed: the agent moves a
// data directory to its place in one step, and only when it is whole.
//
// The revision of the store is raised in doing so, far above any that the cluster can have had, and what is below it
// counts as compacted. Otherwise the revisions that were written after the backup would be given a second time, with
// other content, and a client that watches from the last one it saw, as all caches do, would go on from there and
// never learn that the world has changed. So it is told that its revision is gone, and reads everything anew.
func (s seed) addTo(pod *corev1.Pod, cluster *v1beta2.EtcdCluster, member string, o Options) {
	if s.empty() {
		return
	}
	job := agentJob{name: seedContainer, image: agentImage(o)}
	job.do("seed",
		"--timeout="+seedTimeout.String(),
		"--name="+member,
		"--peer-url="+peerURL(cluster, member),
		"--token="+s.token,
		"--data-dir="+dataDir,
	)
	job.mount(corev1.VolumeMount{Name: dataVolume, MountPath: dataMount})
	if s.backup != nil {
		spec := s.backup.Spec
		job.storage(spec.BackupStorageType, spec.S3, spec.PersistentVolumeClaim, true)
		job.args("--sha256=" + s.backup.Status.SHA256)
	} else {
		job.args("--endpoints=" + clientURL(cluster, s.member))
		if serverTLS(cluster) {
			job.clientTLS(staticTLS(cluster).OperatorSecret)
		}
	}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, job.container())
	pod.Spec.Volumes = append(pod.Spec.Volumes, job.volumes...)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[SeededFromAnnotation] = s.from()
}

func agentImage(o Options) string {
	if o.AgentImage == "" {
		return DefaultAgentImage
	}
	return o.AgentImage
}

// Where the agent finds what it needs, in its container.
const (
	agentTLSDir         = "/etc/etcdtls/operator/etcd-tls"
	agentCredentialsDir = "/etc/etcd-agent/aws"
	agentVolumeDir      = "/backup"
	agentScratchDir     = "/scratch"
	agentResultFile     = "/dev/termination-log"
)

// agentJob is one thing the agent is to do in a container, and the volumes that it needs for that.
type agentJob struct {
	name, image string
	command     []string
	mounts      []corev1.VolumeMount
	volumes     []corev1.Volume
}

// do says what is to be done. The result goes to where the kubelet takes a container's last words from.
func (j *agentJob) do(verb string, args ...string) {
	j.command = append([]string{"etcd-operator", "agent", verb, "--result=" + agentResultFile}, args...)
}

func (j *agentJob) args(args ...string) { j.command = append(j.command, args...) }

func (j *agentJob) mount(mount corev1.VolumeMount) { j.mounts = append(j.mounts, mount) }

// add adds a volume and mounts it. Its name has that of the job before it, since the pod may have volumes of its own.
func (j *agentJob) add(name, dir string, readOnly bool, source corev1.VolumeSource) {
	name = j.name + "-" + name
	j.volumes = append(j.volumes, corev1.Volume{Name: name, VolumeSource: source})
	j.mount(corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: readOnly})
}

// storage says where backups are.
func (j *agentJob) storage(kind v1beta2.StorageType, s3 *v1beta2.S3Source, claim *v1beta2.VolumeSource, readOnly bool) {
	switch kind {
	case v1beta2.StorageS3:
		j.args("--s3-path=" + s3.Path)
		if s3.Endpoint != "" {
			j.args("--s3-endpoint=" + s3.Endpoint)
		}
		if s3.ForcePathStyle {
			j.args("--s3-force-path-style")
		}
		if s3.AWSSecret != "" {
			j.args("--s3-credentials=" + agentCredentialsDir)
			j.add("aws", agentCredentialsDir, true, secretVolume(s3.AWSSecret))
		}
	case v1beta2.StorageVolume:
		// The path on the volume is an argument of its own: where the volume is mounted is the runtime's business.
		j.args("--volume="+agentVolumeDir, "--volume-path="+path.Clean(claim.Path))
		j.add("backup", agentVolumeDir, readOnly, corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.ClaimName, ReadOnly: readOnly},
		})
	}
}

// clientTLS has the agent use the keys of a Secret towards members.
func (j *agentJob) clientTLS(secret string) {
	j.args("--tls-dir=" + agentTLSDir)
	j.add("tls", agentTLSDir, true, secretVolume(secret))
}

// scratch gives the agent room for a backup that it looks at.
func (j *agentJob) scratch() {
	j.args("--scratch=" + agentScratchDir)
	j.add("scratch", agentScratchDir, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
}

func (j *agentJob) container() corev1.Container {
	return corev1.Container{
		Name:                     j.name,
		Image:                    j.image,
		Command:                  j.command,
		VolumeMounts:             j.mounts,
		TerminationMessagePath:   agentResultFile,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func secretVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
}
