package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Programs returns the names of the control plane's programs.
func Programs() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// lessonSet are the controllers that the lab runs: those that matter for the objects of an operator, without those for
// clouds. Three more run in the binary in its own way: garbage collector and namespaces with shorter intervals, and the
// volume binder for the sandbox's own volumes.
var lessonSet = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller", "endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller",
	"ephemeral-volume-controller", "horizontal-pod-autoscaler-controller", "job-controller",
	"node-lifecycle-controller", "persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller", "pod-garbage-collector-controller", "replicaset-controller",
	"replicationcontroller-controller", "resourcequota-controller", "root-ca-certificate-publisher-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "statefulset-controller",
	"taint-eviction-controller", "ttl-after-finished-controller", "validatingadmissionpolicy-status-controller",
}

// managerPrograms returns kube-controller-manager and kube-scheduler, and what answers for fake nodes if there are any.
func (p *plane) managerPrograms(fakeNodes int) ([]*program, error) {
	common := []string{
		"--leader-elect=false", "--secure-port=0", "--profiling=false", "--kube-api-qps=1000", "--kube-api-burst=2000",
	}
	controllers, err := p.manager("kube-controller-manager", "controller-manager", append(slices.Clone(common),
		"--controllers="+strings.Join(lessonSet, ","),
		"--service-account-private-key-file="+p.pki.path("sa-signer.key"),
		"--root-ca-file="+p.pki.path(clusterCA+".crt"),
		"--endpointslice-updates-batch-period=0s",
		"--volumes="+p.volumes(),
		"--node-monitor-period=500ms", "--node-monitor-grace-period="+nodeGone(fakeNodes).String(),
	))
	if err != nil {
		return nil, err
	}
	scheduler, err := p.manager("kube-scheduler", "scheduler", common)
	if err != nil {
		return nil, err
	}
	if fakeNodes == 0 {
		return []*program{controllers, scheduler}, nil
	}
	if err := p.pki.ensure(subject{file: kwok, ca: clusterCA, name: "system:kwok", groups: []string{"system:masters"}}); err != nil {
		return nil, err
	}
	answering, err := p.manager(kwok, kwok, []string{"--nodes=" + strconv.Itoa(fakeNodes)})
	if err != nil {
		return nil, err
	}
	answering.note = fmt.Sprintf("%d nodes that only answer", fakeNodes)
	return []*program{controllers, scheduler, answering}, nil
}

// nodeGone returns how long a node may say nothing until it counts as lost. A node of the lab's kubelet renews its lease every
// second. Fake ones have none, and KWOK writes their status every 10 to 20 minutes.
func nodeGone(fakeNodes int) time.Duration {
	if fakeNodes > 0 {
		return time.Hour
	}
	return 5 * time.Second
}

func (p *plane) manager(name, credentials string, args []string) (*program, error) {
	config, err := p.config(credentials)
	if err != nil {
		return nil, err
	}
	kubeconfig := p.pki.path(credentials + ".kubeconfig")
	if err := writeKubeconfig(kubeconfig, name, config); err != nil {
		return nil, err
	}
	c := &command{path: p.program(name), args: append(args, "--kubeconfig="+kubeconfig)}
	return &program{name: name, logFile: p.logFile(name), launch: c.launch, halt: c.halt}, nil
}
