package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HookVersion says how the keys of children and related objects in a hook's request are written.
type HookVersion string

// The versions of hooks.
const (
	// V1 has the name; of a namespaced object of a cluster-scoped parent namespace/name.
	V1 HookVersion = "v1"
	// V2 has namespace/name of every namespaced object. The answer may have no unknown fields.
	V2 HookVersion = "v2"
)

// Hook is a webhook that is asked.
type Hook struct {
	// version is v1 or v2.
	// +kubebuilder:default=v1
	// +optional
	Version *HookVersion `json:"version,omitempty"`
	// webhook says where it is.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`
}

// Webhook is an HTTP server that takes a request in JSON by POST and answers in JSON.
type Webhook struct {
	// url is its address, for all else than a Service.
	// +optional
	URL *string `json:"url,omitempty"`
	// timeout is how long an answer may take. The default is 10s.
	// +kubebuilder:validation:Format=duration
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// etag says to send and to take ETags. It is not supported when enabled.
	// +optional
	Etag *Etag `json:"etag,omitempty"`
	// path is that of the URL at a Service, as in /sync.
	// +optional
	Path *string `json:"path,omitempty"`
	// service is a Service of the cluster, if there is no url.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`
	// responseUnMarshallMode is loose or strict: whether unknown and repeated fields of an answer are an error. The default
	// is loose for v1 and strict for v2.
	// +kubebuilder:validation:Enum=loose;strict
	// +optional
	ResponseUnmarshallMode *ResponseUnmarshallMode `json:"responseUnMarshallMode,omitempty"`
	// caBundle is for a server with a certificate of an authority of its own. It is not supported.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// clientTLS is for a server that asks for a certificate. It is not supported.
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// authorization is for a server that asks for a token. It is not supported.
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// basicAuth is for a server that asks for a password. It is not supported.
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
}

// ResponseUnmarshallMode says how strictly an answer is read.
type ResponseUnmarshallMode string

// The modes.
const (
	Loose  ResponseUnmarshallMode = "loose"
	Strict ResponseUnmarshallMode = "strict"
)

// Etag says to send and to take ETags.
type Etag struct {
	// enabled turns it on.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// cacheTimeoutSeconds is how long an answer is kept.
	// +optional
	CacheTimeoutSeconds *int32 `json:"cacheTimeoutSeconds,omitempty"`
	// cacheCleanupSeconds is how often old answers are dropped.
	// +optional
	CacheCleanupSeconds *int32 `json:"cacheCleanupSeconds,omitempty"`
}

// ServiceReference names a Service.
type ServiceReference struct {
	// name is its name.
	Name string `json:"name"`
	// namespace is its namespace.
	Namespace string `json:"namespace"`
	// port is one of its ports. The default is 80.
	// +optional
	Port *int32 `json:"port,omitempty"`
	// protocol is http or https. The default is http.
	// +optional
	Protocol *string `json:"protocol,omitempty"`
}

// EndpointConfig has settings for a host.
type EndpointConfig struct {
	// host is the host, or host and port, of URLs.
	Host string `json:"host"`
	// caBundle is as in a webhook.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// clientTLS is as in a webhook.
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// authorization is as in a webhook.
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// basicAuth is as in a webhook.
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
}

// CABundle says where certificates of authorities are.
type CABundle struct {
	// inline are the certificates, as PEM.
	// +optional
	Inline *string `json:"inline,omitempty"`
	// secretRef is a key of a Secret.
	// +optional
	SecretRef *ResourceKeyRef `json:"secretRef,omitempty"`
	// configMapRef is a key of a ConfigMap.
	// +optional
	ConfigMapRef *ResourceKeyRef `json:"configMapRef,omitempty"`
}

// ResourceKeyRef names a key of a Secret or ConfigMap.
type ResourceKeyRef struct {
	// name is that of the object.
	Name string `json:"name"`
	// namespace is that of the object.
	Namespace string `json:"namespace"`
	// key is the key.
	// +kubebuilder:default=ca.crt
	// +optional
	Key string `json:"key,omitempty"`
}

// ClientTLS says where a certificate and its key are.
type ClientTLS struct {
	// secretRef is the Secret.
	SecretRef SecretRef `json:"secretRef"`
	// certKey is the key with the certificate.
	// +kubebuilder:default=tls.crt
	// +optional
	CertKey string `json:"certKey,omitempty"`
	// privateKeyKey is the key with the private key.
	// +kubebuilder:default=tls.key
	// +optional
	PrivateKeyKey string `json:"privateKeyKey,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	// name is its name.
	Name string `json:"name"`
	// namespace is its namespace.
	Namespace string `json:"namespace"`
}

// SecretKeyRef names a key of a Secret.
type SecretKeyRef struct {
	// name is that of the Secret.
	Name string `json:"name"`
	// namespace is that of the Secret.
	Namespace string `json:"namespace"`
	// key is the key.
	Key string `json:"key"`
}

// Authorization says where a token is.
type Authorization struct {
	// type is the scheme.
	// +kubebuilder:default=Bearer
	// +optional
	Type string `json:"type,omitempty"`
	// secretRef is the key of a Secret with it.
	SecretRef SecretKeyRef `json:"secretRef"`
}

// BasicAuth says where a name and a password are.
type BasicAuth struct {
	// secretRef is the Secret.
	SecretRef SecretRef `json:"secretRef"`
	// usernameKey is the key with the name.
	// +kubebuilder:default=username
	// +optional
	UsernameKey string `json:"usernameKey,omitempty"`
	// passwordKey is the key with the password.
	// +kubebuilder:default=password
	// +optional
	PasswordKey string `json:"passwordKey,omitempty"`
}
