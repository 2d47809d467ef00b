package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StorageType is where backups are.
type StorageType string

// The storage types. The published operator knew three more, of other clouds.
const (
	// StorageS3 is a bucket of Amazon S3, or of a server that speaks its protocol.
	StorageS3 StorageType = "S3"
	// StorageVolume is a directory of a volume claim. Hardened only.
	StorageVolume StorageType = "PersistentVolumeClaim"
)

// S3Source is an object, or the beginning of the names of objects, in a bucket.
type S3Source struct {
	// path is <bucket>/<key>. Periodic backups add _v<revision>_<time> to it.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:Pattern=`^[^/\s]+/\S+$`
	Path string `json:"path"`

	// awsSecret is a Secret with the keys credentials and config, files as the AWS command line has them. Without it
	// requests are anonymous.
	// +optional
	AWSSecret string `json:"awsSecret,omitempty"`

	// endpoint is the URL of the server. The default is Amazon's.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// forcePathStyle puts the bucket into the path of URLs instead of the host name.
	// +optional
	ForcePathStyle bool `json:"forcePathStyle,omitempty"`
}

// VolumeSource is a file, or the beginning of the names of files, on a volume claim. Hardened only.
type VolumeSource struct {
	// claimName is a PersistentVolumeClaim of the same namespace.
	// +kubebuilder:validation:MinLength=1
	ClaimName string `json:"claimName"`

	// path of the file on the volume. Periodic backups add _v<revision>_<time> to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="must be a relative path below the volume's root, without .. in it"
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}

// BackupPolicy is how often a backup is made, and how many are kept.
type BackupPolicy struct {
	// timeoutInSecond is how long one backup may take, in seconds. The default is 60.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TimeoutInSecond int64 `json:"timeoutInSecond,omitempty"`

	// backupIntervalInSecond is the time between two backups, in seconds. The default is 0: one backup, once.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackupIntervalInSecond int64 `json:"backupIntervalInSecond,omitempty"`

	// maxBackups is how many periodic backups are kept, the newest ones. The default is 0: all.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxBackups int `json:"maxBackups,omitempty"`
}

// EtcdBackupSpec is a backup that somebody wants.
//
// +kubebuilder:validation:XValidation:rule="self.storageType == 'S3' ? has(self.s3) : has(self.persistentVolumeClaim)",message="the block of the storageType must be there: s3 or persistentVolumeClaim"
type EtcdBackupSpec struct {
	// etcdEndpoints are URLs of members. Hardened takes the backup from the one that answers with the highest revision.
	// +kubebuilder:validation:MinItems=1
	EtcdEndpoints []string `json:"etcdEndpoints"`

	// storageType is where the backup goes.
	// +kubebuilder:validation:Enum=S3;PersistentVolumeClaim
	StorageType StorageType `json:"storageType"`

	// backupPolicy is how often, and how many.
	// +optional
	BackupPolicy *BackupPolicy `json:"backupPolicy,omitempty"`

	// s3 is where in S3.
	// +optional
	S3 *S3Source `json:"s3,omitempty"`

	// persistentVolumeClaim is where on a volume.
	// +optional
	PersistentVolumeClaim *VolumeSource `json:"persistentVolumeClaim,omitempty"`

	// clientTLSSecret is the Secret by which one is a client of the members, with the keys etcd-client.crt,
	// etcd-client.key and etcd-client-ca.crt.
	// +optional
	ClientTLSSecret string `json:"clientTLSSecret,omitempty"`
}

// EtcdBackupStatus reports whether the backup was made, and where it is.
type EtcdBackupStatus struct {
	// succeeded: the last backup is there.
	// +optional
	Succeeded bool `json:"succeeded"`
	// Reason why the last backup failed. The published operator wrote it with a capital letter.
	// +optional
	Reason string `json:"Reason,omitempty"`
	// etcdVersion that the member said when the last backup was taken.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// etcdRevision of the last backup.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`
	// lastSuccessDate is when the last backup was there.
	// +optional
	LastSuccessDate *metav1.Time `json:"lastSuccessDate,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from. Hardened only.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// location is where the last backup is, such as bucket/key, or the path on the volume. Hardened only.
	// +optional
	Location string `json:"location,omitempty"`
	// sizeBytes of the last backup. Hardened only.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// sha256 of the last backup, hexadecimal. Hardened only.
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// kept is how many backups there are. Hardened only.
	// +optional
	Kept int `json:"kept,omitempty"`
	// conditions is Ready. Hardened only.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EtcdBackup takes a backup of an etcd cluster, once or again and again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdbackups,singular=etcdbackup,scope=Namespaced
// +kubebuilder:printcolumn:name="Succeeded",type=boolean,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.etcdRevision`
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.status.location`
// +kubebuilder:printcolumn:name="Kept",type=integer,JSONPath=`.status.kept`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastSuccessDate`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must be at most 52 characters long: pods that take the backup have it, and more"
type EtcdBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the backup that somebody wants.
	// +required
	Spec EtcdBackupSpec `json:"spec,omitempty"`
	// status reports whether the backup was made, and where it is.
	// +optional
	Status EtcdBackupStatus `json:"status,omitempty"`
}

// EtcdBackupList is a list of EtcdBackup.
//
// +kubebuilder:object:root=true
type EtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdBackup `json:"items"`
}

// ClusterReference names an EtcdCluster of the same namespace.
type ClusterReference struct {
	// name of the EtcdCluster.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// EtcdRestoreSpec is a backup and where it goes.
//
// +kubebuilder:validation:XValidation:rule="self.backupStorageType == 'S3' ? has(self.s3) : has(self.persistentVolumeClaim)",message="the block of the backupStorageType must be there: s3 or persistentVolumeClaim"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a restore cannot be changed: make another one"
type EtcdRestoreSpec struct {
	// etcdCluster is the cluster whose data is replaced. It has to be there, and have the name of the EtcdRestore.
	EtcdCluster ClusterReference `json:"etcdCluster"`

	// backupStorageType is where the backup is.
	// +kubebuilder:validation:Enum=S3;PersistentVolumeClaim
	BackupStorageType StorageType `json:"backupStorageType"`

	// s3 is the object in S3.
	// +optional
	S3 *S3Source `json:"s3,omitempty"`

	// persistentVolumeClaim is the file on a volume.
	// +optional
	PersistentVolumeClaim *VolumeSource `json:"persistentVolumeClaim,omitempty"`
}

// EtcdRestoreStatus reports whether the restore was done.
type EtcdRestoreStatus struct {
	// succeeded: the cluster runs on the backup's data. Classic says so at once, whatever happens.
	// +optional
	Succeeded bool `json:"succeeded"`
	// reason why it failed.
	// +optional
	Reason string `json:"reason,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from. Hardened only.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// etcdRevision of the backup. Hardened only.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`
	// sha256 of the backup that was checked, hexadecimal: no other one is restored. Hardened only.
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// conditions are Checked and Ready. Hardened only.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EtcdRestore puts a backup into a cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdrestores,singular=etcdrestore,scope=Namespaced
// +kubebuilder:printcolumn:name="Succeeded",type=boolean,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="Checked",type=string,JSONPath=`.status.conditions[?(@.type=="Checked")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.etcdCluster.name",message="the name must be that of the EtcdCluster, spec.etcdCluster.name"
type EtcdRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is a backup and where it goes.
	// +required
	Spec EtcdRestoreSpec `json:"spec,omitempty"`
	// status reports whether the restore was done.
	// +optional
	Status EtcdRestoreStatus `json:"status,omitempty"`
}

// EtcdRestoreList is a list of EtcdRestore.
//
// +kubebuilder:object:root=true
type EtcdRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdRestore `json:"items"`
}
