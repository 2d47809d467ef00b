// Package images says what the containers of a simulated node run: programs of the operator-lab binary, and commands
// of the person who uses it.
//
// A container here is no Linux container: it has no file system, no process tree and no cgroup of its own. It has what
// an operator can see of one: an address in the pod network, arguments, an environment, mounted volumes, a log, signals
// and an exit code.
//
// # Images
//
// A [Catalogue] says what the name of an image stands for:
//
//   - the pages of the maintpage article, and nginx, httpd and tomcat: a server of static files in this process, also
//     of those in the container's volumes;
//   - the bundled operators: a process of the binary, with a kubeconfig that makes it the pod's service account, so that
//     RBAC is really enforced. The published images are the variant classic, the tag hardened is the other; arguments of
//     the pod that the operator knows count, such as --variant=hardened. The image of the etcd operator is three programs,
//     each with a controller, and the agent that moves backups: its command says which;
//   - etcd (quay.io/coreos/etcd, gcr.io/etcd-development/etcd, registry.k8s.io/etcd): a real member, a process of the binary,
//     and etcdctl and etcdutl for exec, for scripts and as commands. The tag is what was asked for; what runs is the etcd
//     that is linked, and the log says which. Where the pod says that it listens, and where its files are, is translated;
//     members find each other through the lab's proxy;
//   - minio: a small server of S3, whose buckets are directories of its volume;
//   - mysql: a small server of MySQL's protocol, with SQLite, whose files are in its volume; and the two programs of the
//     Visitors site (jdob/visitors-service, jdob/visitors-webui), which count visits in it and show them;
//   - the images with which OLM unpacks a bundle (quay.io/operator-framework/olm and opm): cpb and a process of the binary;
//   - busybox, alpine, debian, ubuntu, curlimages/curl: the commands that are built in, see [Shell];
//   - registry.k8s.io/pause, and everything that is not known: a container that waits. Of an unknown image it says so in
//     its log, unless the pod has a command that is built in;
//   - the tag notfound, of any image: one that cannot be pulled.
//
// # The images file
//
// A person maps further images, or these to something else, in a YAML file (testdata/images.yaml shows all of it):
//
//	images:
//	- name: quay.io/you/app        # all tags
//	  command: [./app]             # a program of this machine
//	  args: [--listen, $(LAB_HOST):$(LAB_PORT_8080)]
//	- name: quay.io/you/operator
//	  project: ./operator          # an operator's source: pulling the image builds it
//	- name: quay.io/you/script
//	  command: [./operator.sh]     # a program that the lab sees as the operator script
//	  operator: script
//	- name: quay.io/you/page:v*
//	  page: Hello                  # a page on port 8080, or on $PORT
//	- name: quay.io/you/operator-bundle
//	  bundle: ./dist/bundle        # a bundle of OLM's
//	- name: registry.example.com/**
//	  wait: true                   # a container that only waits
//	- name: quay.io/you/private
//	  pullError: unauthorized      # an image that cannot be pulled
//
// The keys of an image are
//
//	name        pattern of names: * is any characters but a slash, ** those too; without a tag it is that of all tags
//	command     a program on the PATH, or a file (relative to the images file), and its first arguments
//	project     the directory of an operator's Go module, relative to the images file. Pulling the image builds it, and
//	            fails with the words of the compiler. The program has the arguments and variables of the pod, with addresses to
//	            listen on and paths of volumes as they are on this machine; without taps, not those that have it elect a leader
//	operator    the name of the operator that a command or project is, for a lab, which is then its API server and sees it, see
//	            [Life]. The default is none for a command, and the name of the directory for a project
//	args        further arguments of command and project; those of the pod take their place
//	env         variables of command, project and page; they count more than the pod's
//	workingDir  of the command, relative to the images file; the default is the folder of that
//	files       of the image, by their absolute paths: for exec, for a page what is below /var/www/html, for a command
//	            below $LAB_ROOT, where the volumes are too
//	bundle      the directory of a bundle for OLM (registry+v1), relative to the images file, with what is in it when OLM unpacks it
//	page        what is served as /var/www/html/index.html
//	wait        true
//	pullDelay   how long pulling takes
//	pullError   why it fails
//	startDelay  how long a container runs before its program begins
//
// and exactly one of command, project, page, bundle, wait and pullError is wanted. The most specific pattern counts: the one that names more
// of the repository, then more of the tag; among equals the first. Everything in the file comes before what is bundled. In
// command, args and env $(NAME) is a variable, as in a pod; $$ is a $.
//
// A command gets the environment of its pod, and
//
//	LAB_HOST, LAB_PORT_<n>  where it has to listen for the containerPort n that the pod declares; PORT: for the first
//	LAB_POD, LAB_NAMESPACE, LAB_POD_IP, LAB_NODE, LAB_CONTAINER, LAB_IMAGE
//	LAB_ROOT                a folder with files and volumes at the paths that they have in the container
//	KUBECONFIG              a kubeconfig of the pod's service account; there is no such file if the pod mounts no token
//	HTTP_PROXY and others   a proxy that knows the cluster's names
//	HOME                    a folder of the container's own
//	PATH                    as the lab has it
//
// A pod's command, in contrast to its args, is a file of the real image, so it is not used.
//
// # What a process is not
//
// It is no more isolated than any program that the person starts. But it ends with its container, and with the lab, and
// so does everything that it has started: see the package guard.
package images

import (
	"context"
	"io"
	"net"
	"syscall"
)

// Container is the environment that a program runs in.
type Container struct {
	// ID is the container's ID in the runtime.
	ID string
	// Pod, Namespace and UID identify the pod, and Name is the container's name in it.
	Pod, Namespace, UID, Name string
	// Node it is on.
	Node string
	// Image as the pod names it.
	Image string
	// IP is the pod's address in the cluster.
	IP string
	// Command and Args of the pod; empty: the image's own.
	Command, Args []string
	// Env in the order of the pod, KEY=value.
	Env []string
	// WorkingDir of the pod; empty: the image's own.
	WorkingDir string
	// Mounts of volumes.
	Mounts []Mount
	// Ports that the container declares.
	Ports []int
	// Dir is a directory of the container's own, mode 0700, removed with it.
	Dir string
	// Stdin is nil unless the pod asks for it.
	Stdin io.Reader
	// Stdout and Stderr are its log.
	Stdout, Stderr io.Writer
	// Network is the network of the pod.
	Network Network
	// Shell has the built-in commands; nil if there are none.
	Shell Shell
	// APIServer is the URL of the API server for a process on this machine; empty if it has none.
	APIServer string
	// Lab is a file with the path of the socket of the lab that runs operators in the sandbox, while there is one; empty: there
	// never is.
	Lab string
}

// Shell is the set of built-in commands, which take the place of the files in an image's /bin.
type Shell interface {
	// Has reports whether there is a command of the name, written as in the pod: sh, or /bin/sh.
	Has(name string) bool
	// Run runs a command and returns its exit code. Ending ctx ends it early, like SIGKILL. Stdin may be nil for an
	// empty input.
	Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) int
}

// Commands are further commands of an image. In its containers they can be used like those of a [Shell]: with exec, in
// scripts, and as a container's command.
type Commands interface {
	// Has reports whether there is a command of the name, without a directory, such as etcdctl.
	Has(name string) bool
	// Run runs a command in an environment (KEY=value) and a directory of the container, and returns its exit code. It
	// ends early with ctx. Stdin may be nil.
	Run(ctx context.Context, argv, environment []string, dir string, stdin io.Reader, stdout, stderr io.Writer) int
}

// CommandsOf returns the commands of an image in one of its containers; nil if it has none.
func CommandsOf(p Program, c *Container) Commands {
	if d, is := p.(delayed); is {
		p = d.Program
	}
	if has, is := p.(interface{ commands(c *Container) Commands }); is {
		return has.commands(c)
	}
	return nil
}

// Mount is a volume as a container sees it.
type Mount struct {
	// ContainerPath is the path in the container, HostPath the path on this machine.
	ContainerPath, HostPath string
	// ReadOnly forbids writing.
	ReadOnly bool
}

// Network is the pod network as seen by one pod.
type Network interface {
	// Listen on a port of the pod's address.
	Listen(port int) (net.Listener, error)
	// DialContext connects to pods, Services (by name or ClusterIP), nodes and hosts outside.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// HostAddress returns the address on this machine at which a process must listen to serve the pod's port: the
	// loopback address mapped to the pod with the same port, or with another port where the system has only one such
	// address. It is the same for every call with that port.
	HostAddress(port int) (host string, hostPort int, err error)
	// Proxy returns the URL of an HTTP proxy, with credentials, through which a process reaches the cluster's names.
	Proxy() string
}

// Program runs the containers of an image.
type Program interface {
	// Start starts the program in a container. An error means that nothing was started: the image has no such command.
	Start(c *Container) (Running, error)
	// File returns the content of one of the image's own files; false if it does not exist.
	File(path string) (string, bool)
}

// Running is a running program. All methods may be called from any goroutine, and any number of times.
type Running interface {
	// Signal sends a signal. The program may ignore any, such as SIGTERM, but SIGKILL.
	Signal(syscall.Signal)
	// Done is closed when the program and all its children have ended and its log is complete.
	Done() <-chan struct{}
	// Code is its exit code, once Done is closed: 128 plus the signal's number when a signal ended it.
	Code() int
}

// measurable is a [Running] of processes of this machine.
type measurable interface {
	// processes returns the number of their process group; false: none has begun.
	processes() (group int, begun bool)
}

// ProcessesOf returns the number of the process group that a program consists of; false: it has none of its own, because
// it is a function of the process of its node.
func ProcessesOf(r Running) (group int, own bool) {
	if m, is := r.(measurable); is {
		return m.processes()
	}
	return 0, false
}
