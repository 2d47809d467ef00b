package images

import (
	"fmt"
	"syscall"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// bundled returns the entries of the images that come with the lab.
func bundled(binary string, g *guard.Guard) []entry {
	const (
		nginxRoot = "/usr/share/nginx/html"
		httpdRoot = "/usr/local/apache2/htdocs"
		root      = 0
	)
	nginx := newPage("Hello from nginx, simulated by operator-lab\n", nginxRoot, 80)
	unprivileged := nginx
	unprivileged.port = defaultPort
	sh := []string{"sh"}
	operators := func(name, variant string) operator {
		return operator{guard: g, binary: binary, name: name, variant: variant}
	}
	tomcat := func(variant string) operator {
		o := operators("tomcat", variant)
		o.own = map[string]string{"reconcile-period": "", "max-concurrent-reconciles": ""}
		return o
	}
	metering := operators("metering", "hardened")
	metering.own = map[string]string{"interval": "", "retention": "", "clock-rate": "", "data-dir": "", "api-bind-address": ""}
	members, keeper := newEtcdImage(g, binary), store{newForeground()}
	var all []entry
	for _, image := range []struct {
		name    string
		user    int64
		program Program
	}{
		// The pages of the article, in images that OpenShift runs.
		{"quay.io/daein/prodpage:*", nonRoot, newPage("Production Page !\n", defaultRoot, defaultPort)},
		{"quay.io/daein/maintpage:*", nonRoot, newPage("Maintenance Page !\n", defaultRoot, defaultPort)},
		// The operators, as they were published, and as they are now.
		{"quay.io/daein/maintpage-operator:*", nonRoot, operators("maintpage", "classic")},
		{"quay.io/daein/maintpage-operator:hardened", nonRoot, operators("maintpage", "hardened")},
		{"kaitoy/zundoko-operator:*", nonRoot, operators("zundoko", "classic")},
		{"kaitoy/zundoko-operator:hardened", nonRoot, operators("zundoko", "hardened")},
		{"quay.io/coreos/etcd-operator:*", nonRoot, newEtcdOperator(operators("etcd", "classic"))},
		{"quay.io/coreos/etcd-operator:hardened", nonRoot, newEtcdOperator(operators("etcd", "hardened"))},
		{"jdob/visitors-operator:*", nonRoot, operators("visitors", "classic")},
		{"jdob/visitors-operator:hardened", nonRoot, operators("visitors", "hardened")},
		{"quay.io/operator-lab/reporting-operator", nonRoot, metering},
		{"quay.io/operator-lab/tomcat-operator", nonRoot, tomcat("hardened")},
		{"quay.io/operator-lab/tomcat-operator:classic", nonRoot, tomcat("classic")},
		{"quay.io/operator-lab/*-operator", nonRoot, operators("", "")}, // any other
		// What its chart deploys: applications are below webapps, usually in a volume.
		{"tomcat", root, page{root: "/usr/local/tomcat/webapps", port: defaultPort}},
		// Members of etcd clusters.
		{"quay.io/coreos/etcd", root, members},
		{"gcr.io/etcd-development/etcd", root, members},
		{"registry.k8s.io/etcd", root, members},
		{"k8s.gcr.io/etcd", root, members},
		// What keeps their backups.
		{"minio/minio", root, keeper},
		{"quay.io/minio/minio", root, keeper},
		// The Visitors site.
		{"mysql", root, database{}},
		{"jdob/visitors-service", root, visitors{port: visitorsBackendPort, handler: visitorsBackend}},
		{"jdob/visitors-webui", root, visitors{port: visitorsFrontendPort, handler: visitorsFrontend}},
		// With what OLM unpacks bundles.
		{"quay.io/operator-framework/olm", nonRoot, copier},
		{"quay.io/operator-framework/opm", nonRoot, ownProgram{g, binary, "opm"}},
		// What examples everywhere use.
		{"nginx", root, nginx},
		{"nginxinc/nginx-unprivileged", 101, unprivileged},
		{"httpd", root, newPage("Hello from httpd, simulated by operator-lab\n", httpdRoot, 80)},
		{"registry.k8s.io/pause", 65535, waiter{quiet: true}},
		{"k8s.gcr.io/pause", 65535, waiter{quiet: true}},
		{"busybox", root, tools{command: sh}},
		{"alpine", root, tools{command: sh}},
		{"debian", root, tools{command: sh}},
		{"ubuntu", root, tools{command: sh}},
		{"curlimages/curl", 101, tools{entrypoint: []string{"curl"}}},
	} {
		p, err := parsePattern(image.name)
		if err != nil {
			panic(err) // the names are constants, and good ones
		}
		all = append(all, entry{pattern: p, program: image.program, user: image.user})
	}
	return all
}

// signalName returns the usual name of a signal.
func signalName(s syscall.Signal) string {
	if name, known := map[syscall.Signal]string{
		syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT",
	}[s]; known {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
