package sandbox_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/certificate"
	"github.com/operator-lab/operator-lab/sandbox/network"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// imagesFile maps an image test/<name> to each of podPrograms.
func imagesFile(t *testing.T) string {
	t.Helper()
	file, _ := imagesFileWithCA(t)
	return file
}

// imagesFileWithCA also returns the authority of those that serve.
func imagesFileWithCA(t *testing.T) (file string, ca []byte) {
	t.Helper()
	cert, key, ca := serving(t)
	var b strings.Builder
	b.WriteString("images:\n")
	for name := range podPrograms {
		fmt.Fprintf(&b, "- {name: test/%s, command: [%q], env: {%s: %s, TEST_STATE: %q, TEST_CERT: %q, TEST_KEY: %q}}\n", name, os.Args[0], asProgram, name, markOf(t), cert, key)
	}
	file = filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, ca
}

// markOf is in the environment of processes that run in pods of a test.
func markOf(t *testing.T) string {
	t.Helper()
	return stateDir + " " + t.Name()
}

// processesOfTest are the processes that run in pods of a test, and not of another run of it.
func processesOfTest(t *testing.T) (pids []int) {
	t.Helper()
	mark := []byte("\x00TEST_STATE=" + markOf(t) + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		b, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() && bytes.Contains(b, []byte("\x00"+asProgram+"=")) && bytes.Contains(b, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func exactly(n int, pids []int) error {
	if len(pids) != n {
		return fmt.Errorf("there are %v, not %d", pids, n)
	}
	return nil
}

// serving issues a certificate for the Services that the tests make.
func serving(t *testing.T) (certFile, keyFile string, ca []byte) {
	t.Helper()
	authority, err := certificate.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(certificate.Subject{Name: "test", Hosts: []string{"webhook.default.svc", "api.default.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, authority.PEM()
}

// podOf is a pod of one of podPrograms.
func podOf(program string) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: program, Namespace: "default", Labels: map[string]string{"program": program}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
			Name: "main", Image: "test/" + program, ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{{ContainerPort: 8443}},
		}}},
	}
}

func createPod(t *testing.T, c kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	if _, err := c.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitPod waits until a pod is as it should be.
func awaitPod(t *testing.T, c kubernetes.Interface, name, what string, is func(*corev1.Pod) bool) (pod *corev1.Pod) {
	t.Helper()
	sandboxtest.Eventually(t, name+" "+what, func(ctx context.Context) (err error) {
		if pod, err = c.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !is(pod) {
			return fmt.Errorf("its phase is %s, its containers are %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	return pod
}

func waitingFor(reason string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == reason
		})
	}
}

// TestNodes has more than one node, and fewer the next time, beside some that only answer.
func TestNodes(t *testing.T) {
	t.Parallel()
	const name = "nodes-of-test"
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, name) })
	lab := start(t, sandbox.Options{Name: name, Nodes: 2})
	c := clientset(t, lab)
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 2 {
		t.Fatalf("there are %d nodes", len(nodes.Items))
	}
	for i, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 || n.Status.Addresses[0].Address != fmt.Sprintf("172.18.0.%d", i+2) || n.Spec.PodCIDR != fmt.Sprintf("10.244.%d.0/24", i+1) {
			t.Errorf("%s has the taints %v, the addresses %v and the range %s", n.Name, n.Spec.Taints, n.Status.Addresses, n.Spec.PodCIDR)
		}
	}
	log, err := os.ReadFile(lab.LogFile("node-1"))
	if err != nil || !bytes.Contains(log, []byte("Started kubelet")) || bytes.Contains(log, []byte("Looking once a second")) {
		t.Errorf("the kubelet could not be made to look at its containers more often (%v)", err)
	}
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	lab = start(t, sandbox.Options{Name: name, Nodes: 1, FakeNodes: 2})
	c = clientset(t, lab)
	sandboxtest.Eventually(t, "the second node to be gone", func(ctx context.Context) error {
		_, err := c.CoreV1().Nodes().Get(ctx, "node-2", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	onlyAnswers(t, lab, c)
}

// onlyAnswers checks what is said by nodes, pods and jobs where no program runs, and what of it a checkpoint brings back.
func onlyAnswers(t *testing.T, lab *sandbox.Sandbox, c kubernetes.Interface) {
	t.Helper()
	runs(t, c, "answered", "fake-2")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "answered"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{sandbox.SimulatedLabel: "only-answers"},
		Containers: []corev1.Container{{Name: "wait", Image: "unknown"}},
	}}}}
	if _, err := c.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the job to be done", func(ctx context.Context) error {
		j, err := c.BatchV1().Jobs("default").Get(ctx, "answered", metav1.GetOptions{})
		if err == nil && j.Status.Succeeded != 1 {
			err = fmt.Errorf("it is %+v", j.Status)
		}
		return err
	})
	if log, err := c.CoreV1().Pods("default").GetLogs("answered", &corev1.PodLogOptions{}).DoRaw(t.Context()); err == nil {
		t.Errorf("it has a log: %s", log)
	}
	surplus := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fake-3", Labels: map[string]string{sandbox.SimulatedLabel: "only-answers"}}}
	if _, err := c.CoreV1().Nodes().Create(t.Context(), surplus, metav1.CreateOptions{}); err != nil { // as an earlier run with more
		t.Fatal(err)
	}
	point := checkpoint(t, lab, "answered")
	if err := c.CoreV1().Pods("default").Delete(t.Context(), "answered", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	restore(t, lab, point)
	p, err := c.CoreV1().Pods("default").Get(t.Context(), "answered", metav1.GetOptions{})
	if err != nil || p.Status.Phase != corev1.PodRunning || p.Status.HostIP != network.FakeNodeIP(2) {
		t.Errorf("brought back: %v, %+v", err, p.Status)
	}
	sandboxtest.Eventually(t, "two nodes to answer", func(ctx context.Context) error {
		nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: sandbox.SimulatedLabel + "=only-answers"})
		if err == nil && len(nodes.Items) != 2 {
			err = fmt.Errorf("there are %d", len(nodes.Items))
		}
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			for _, said := range n.Status.Conditions {
				if said.Reason != "OnlyAnswers" {
					return fmt.Errorf("%s says %+v", n.Name, said)
				}
			}
		}
		return nil
	})
}

func TestTooManyNodes(t *testing.T) {
	for _, o := range []sandbox.Options{{Nodes: -1}, {Nodes: sandbox.MaxNodes + 1}, {FakeNodes: -1}, {FakeNodes: sandbox.MaxFakeNodes + 1}} {
		o.StateDir, o.Ephemeral = stateDir, true
		_, err := sandbox.Start(t.Context(), o)
		if sandbox.HintOf(err) == "" {
			t.Errorf("%d and %d nodes: %v", o.Nodes, o.FakeNodes, err)
		}
	}
}

// TestBadImagesFile refuses a file before anything is started.
func TestBadImagesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(file, []byte("images:\n- name: a\n  comand: [x]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.Start(t.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true, Nodes: 1, Images: file})
	if err == nil || !strings.Contains(err.Error(), "images.yaml:3") || !strings.Contains(err.Error(), "comand") {
		t.Errorf("it says: %v", err)
	}
}

// TestBadPrograms runs what people write by mistake, and sees what a cluster shows.
func TestBadPrograms(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1, Images: imagesFile(t)})
	c := clientset(t, lab)
	deaf := podOf("deaf")
	deaf.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}},
	}
	huge := podOf("exits")
	huge.Name, huge.Spec.Containers[0].Resources.Requests = "huge", corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ti")}
	unknown := podOf("nothing-of-the-kind")
	unknown.Spec.Containers[0].Image = "quay.io/daein/prodpage:notfound"
	for _, pod := range []*corev1.Pod{podOf("exits"), podOf("floods"), podOf("stubborn"), podOf("daemons"), deaf, huge, unknown} {
		createPod(t, c, pod)
	}
	running := func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

	pod := awaitPod(t, c, "exits", "to be started again and again", waitingFor("CrashLoopBackOff"))
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 || last.Reason != "Error" {
		t.Errorf("its last end is %+v", last)
	}
	awaitPod(t, c, "nothing-of-the-kind", "not to be pulled", waitingFor("ImagePullBackOff"))
	awaitPod(t, c, "huge", "to be refused by the scheduler", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "Insufficient memory")
		})
	})
	awaitPod(t, c, "deaf", "to run", running)
	sandboxtest.Eventually(t, "deaf to be said not to be ready", func(ctx context.Context) error {
		events, err := c.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=deaf,reason=Unhealthy"})
		if err == nil && !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, "connection refused") }) {
			err = fmt.Errorf("the events are %+v", events.Items)
		}
		return err
	})
	awaitPod(t, c, "floods", "to run", running)
	logs, err := c.CoreV1().Pods("default").GetLogs("floods", &corev1.PodLogOptions{TailLines: new(int64(1))}).DoRaw(t.Context())
	if err != nil || !bytes.Contains(logs, []byte("flood flood")) && !bytes.Contains(logs, []byte("operator-lab: the log is full")) {
		t.Errorf("its log ends with %q (%v)", logs, err)
	}
	awaitPod(t, c, "stubborn", "to run", running)
	awaitPod(t, c, "daemons", "to run", running)
	sandboxtest.Eventually(t, "the children of daemons", func(context.Context) error { return exactly(6, processesOfTest(t)) }) // deaf, floods, stubborn, three
	for _, name := range []string{"stubborn", "floods", "daemons", "deaf", "exits"} {
		if err := c.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.Eventually(t, "the pods to be gone", func(ctx context.Context) error {
		pods, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 2 {
			err = fmt.Errorf("%d are there", len(pods.Items))
		}
		return err
	})
	sandboxtest.Eventually(t, "all processes to be gone", func(context.Context) error { return exactly(0, processesOfTest(t)) })
}

// TestNothingIsLeftOfPods kills a lab with -9, or one of its nodes, while pods run processes.
func TestNothingIsLeftOfPods(t *testing.T) {
	t.Parallel()
	lab := launch(t, "up", "--name", "killed", "--images", imagesFile(t))
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, "killed") })
	var record *sandbox.Record
	sandboxtest.Eventually(t, "the sandbox", func(context.Context) (err error) {
		if record, err = sandbox.Lookup(stateDir, "killed"); err == nil && !record.Ready {
			err = errors.New(lab.said.String())
		}
		return err
	})
	access, err := record.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := kubernetes.NewForConfigOrDie(access.Config())
	createPod(t, c, podOf("daemons"))
	sandboxtest.Eventually(t, "its processes", func(context.Context) error { return exactly(3, processesOfTest(t)) })
	before := processesOfTest(t)

	// A node that is killed takes its containers with it; started again it starts them again.
	node, err := os.FindProcess(record.Children["node-1"])
	if err == nil {
		err = node.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "other processes", func(context.Context) error {
		now := processesOfTest(t)
		if slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(before, pid) }) {
			return fmt.Errorf("%v were there before: %v", now, before)
		}
		return exactly(3, now)
	})
	awaitPod(t, c, "daemons", "to have been started again", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	lab.kill()
	sandboxtest.Eventually(t, "all processes to be gone", func(context.Context) error { return exactly(0, processesOfTest(t)) })
}

// TestServedByPods has a pod answer for an admission webhook, and another one for a group of the API.
func TestServedByPods(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	images, ca := imagesFileWithCA(t)
	lab := start(t, sandbox.Options{Nodes: 1, Images: images})
	c := clientset(t, lab)
	for _, program := range []string{"webhook", "api"} {
		pod := podOf(program)
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Path: "/apis/test.example.com/v1", Port: intstr.FromInt32(8443)}},
		}
		if program == "webhook" {
			pod.Spec.Containers[0].ReadinessProbe.HTTPGet = nil
			pod.Spec.Containers[0].ReadinessProbe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}
		}
		createPod(t, c, pod)
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: program},
			Spec:       corev1.ServiceSpec{Selector: pod.Labels, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
		}
		if _, err := c.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitPod(t, c, program, "to be ready", isReady)
	}
	refuseConfigMaps(t, c, ca)
	sandboxtest.Eventually(t, "the webhook's no", func(ctx context.Context) error {
		_, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "no-"}}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "the pod on node-1 says no") {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
	registerAPI(t, lab, ca)
	sandboxtest.Eventually(t, "the API's greeting", func(ctx context.Context) error {
		answer, err := c.RESTClient().Get().AbsPath("/apis/test.example.com/v1/greeting").DoRaw(ctx)
		if err == nil && string(answer) != `{"from":"api","to":"operator-lab-admin"}`+"\n" {
			err = fmt.Errorf("it is %s", answer)
		}
		return err
	})
}

func refuseConfigMaps(t *testing.T, c kubernetes.Interface, ca []byte) {
	t.Helper()
	none, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "no"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "no.example.com", SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "webhook"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func registerAPI(t *testing.T, lab *sandbox.Sandbox, ca []byte) {
	t.Helper()
	client, err := dynamic.NewForConfig(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.test.example.com"},
		"spec": map[string]any{
			"group": "test.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"caBundle": base64.StdEncoding.EncodeToString(ca), "service": map[string]any{"namespace": "default", "name": "api"},
		},
	}}
	resource := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	if _, err := client.Resource(resource).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestForwardAndAttach uses what kubectl does in the foreground.
func TestForwardAndAttach(t *testing.T) {
	t.Parallel()
	lab := start(t, sandbox.Options{Nodes: 1})
	c := clientset(t, lab)
	createPod(t, c, pagePod("page", map[string]string{"app": "page"}))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "page"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "page"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}
	if _, err := c.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, c, "page", "to be ready", isReady)
	for _, target := range []string{"pod/page", "service/page"} {
		port := map[string]string{"pod/page": ":8080", "service/page": ":80"}[target]
		forwarding := kubectl(t, lab, "", "port-forward", target, port)
		address := forwarding.await(t, `Forwarding from (127\.0\.0\.1:\d+)`)
		for range 3 { // connections one after the other
			if got := page(t, "http://"+address+"/"); got != "Production Page !\n" {
				t.Errorf("%s answers %q", target, got)
			}
		}
		forwarding.end()
	}
	attached := kubectl(t, lab, "one\ntwo\n", "run", "echo", "--image=busybox", "--restart=Never", "-i", "--rm", "--quiet", "--command", "--", "cat")
	attached.await(t, "(?s)one\n.*two")
	<-attached.exited
	awaitNone(t, c, "echo")
}

func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func awaitNone(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	sandboxtest.Eventually(t, name+" to be gone", func(ctx context.Context) error {
		_, err := c.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// tool is a kubectl at work.
type tool struct {
	cmd    *exec.Cmd
	said   *output.Output
	exited chan struct{}
}

func kubectl(t *testing.T, lab *sandbox.Sandbox, input string, args ...string) *tool {
	t.Helper()
	k := &tool{said: &output.Output{}, exited: make(chan struct{})}
	k.cmd = exec.Command(filepath.Join(lab.Dir(), "bin", "kubectl"), append([]string{"--kubeconfig", lab.Kubeconfig()}, args...)...)
	k.cmd.Env = append(os.Environ(), "KUBECACHEDIR="+t.TempDir())
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = strings.NewReader(input), k.said, k.said
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(k.exited)
		_ = k.cmd.Wait()
	}()
	t.Cleanup(k.end)
	return k
}

func (k *tool) end() {
	_ = k.cmd.Process.Kill()
	<-k.exited
}

// await waits until kubectl has said something, and returns the group in it, if any.
func (k *tool) await(t *testing.T, pattern string) string {
	t.Helper()
	want := regexp.MustCompile(pattern)
	sandboxtest.Eventually(t, "kubectl to say "+pattern, func(context.Context) error {
		if !want.MatchString(k.said.String()) {
			return errors.New(k.said.String())
		}
		return nil
	})
	found := want.FindStringSubmatch(k.said.String())
	return found[len(found)-1]
}
