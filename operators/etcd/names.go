package etcd

import (
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// Labels and annotations of what the operator makes, in both variants, as published.
const (
	// AppLabel has the value AppName on all pods and Services of all clusters.
	AppLabel = "app"
	// AppName is the value of AppLabel.
	AppName = "etcd"
	// ClusterLabel has the name of the EtcdCluster.
	ClusterLabel = "etcd_cluster"
	// ProxyLabel has the name of the EtcdCluster, too, on the pods of its proxies: by ClusterLabel they would be taken for
	// members. Hardened only.
	ProxyLabel = "etcd_proxy_of"
	// NodeLabel has the name of the member, which is that of its pod.
	NodeLabel = "etcd_node"
	// VersionAnnotation is the version a pod's image was asked for.
	VersionAnnotation = "etcd.version"
)

const (
	clientPort = 2379
	peerPort   = 2380

	containerName = "etcd"
	dataVolume    = "etcd-data"
	dataMount     = "/var/etcd"
	dataDir       = "/var/etcd/data"
)

// peerService names the headless Service by which members know each other: as the cluster.
func peerService(cluster *v1beta2.EtcdCluster) string { return cluster.Name }

// clientService names the Service for clients.
func clientService(cluster *v1beta2.EtcdCluster) string { return cluster.Name + "-client" }

// proxyName names the Deployment of the proxies, and the Service by which clients reach them.
func proxyName(cluster *v1beta2.EtcdCluster) string { return cluster.Name + "-proxy" }

// memberName makes a name for a new member. Ten random characters leave 52 of 63 for the cluster's.
func memberName(cluster *v1beta2.EtcdCluster) string { return cluster.Name + "-" + rand.String(10) }

// memberHost is the name by which a member is found.
func memberHost(cluster *v1beta2.EtcdCluster, member string) string {
	host := fmt.Sprintf("%s.%s.%s.svc", member, peerService(cluster), cluster.Namespace)
	if cluster.Spec.Pod != nil && cluster.Spec.Pod.ClusterDomain != "" {
		host += "." + cluster.Spec.Pod.ClusterDomain
	}
	return host
}

// clientURL is where clients reach a member.
func clientURL(cluster *v1beta2.EtcdCluster, member string) string {
	return memberURL(serverTLS(cluster), memberHost(cluster, member), clientPort)
}

// peerURL is where the other members reach a member.
func peerURL(cluster *v1beta2.EtcdCluster, member string) string {
	return memberURL(peerTLS(cluster), memberHost(cluster, member), peerPort)
}

func memberURL(secure bool, host string, port int) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// serverTLS reports whether clients need TLS.
func serverTLS(cluster *v1beta2.EtcdCluster) bool {
	static := staticTLS(cluster)
	return static.Member != nil && static.Member.ServerSecret != ""
}

// peerTLS reports whether members use TLS among each other.
func peerTLS(cluster *v1beta2.EtcdCluster) bool {
	static := staticTLS(cluster)
	return static.Member != nil && static.Member.PeerSecret != ""
}

func staticTLS(cluster *v1beta2.EtcdCluster) v1beta2.StaticTLS {
	if cluster.Spec.TLS == nil || cluster.Spec.TLS.Static == nil {
		return v1beta2.StaticTLS{}
	}
	return *cluster.Spec.TLS.Static
}
