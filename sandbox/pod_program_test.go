package sandbox_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asProgram tells this test's binary that it is to be what runs in a pod, and which.
const asProgram = "SANDBOX_TEST_PROGRAM"

// podPrograms are what the test's binary can be in a pod. Each returns its exit code.
var podPrograms = map[string]func(context.Context) int{
	"exits":    func(context.Context) int { return say("I have nothing to do", 3) },
	"floods":   floods,
	"stubborn": stubborn,
	"deaf":     func(ctx context.Context) int { <-ctx.Done(); return 0 },
	"daemons":  daemons,
	"links":    links,
	"counts":   counts,
	"undoes":   undoes,
	"webhook":  func(ctx context.Context) int { return serveTLS(ctx, http.HandlerFunc(refuseAll)) },
	"api":      func(ctx context.Context) int { return serveTLS(ctx, http.HandlerFunc(smallAPI)) },
}

func say(line string, code int) int {
	fmt.Fprintln(os.Stdout, line)
	return code
}

// floods prints as fast as it can.
func floods(ctx context.Context) int {
	line := []byte(strings.Repeat("flood ", 40) + "\n")
	for ctx.Err() == nil {
		if _, err := os.Stdout.Write(line); err != nil {
			return 1
		}
	}
	return 0
}

// stubborn does not end when it is asked to.
func stubborn(context.Context) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	fmt.Fprintln(os.Stdout, "I stay")
	select {}
}

// daemons starts children, one of which leaves its session, and waits.
func daemons(ctx context.Context) int {
	for _, setsid := range []bool{false, true} {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), asProgram+"=stubborn")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
		if err := child.Start(); err != nil {
			return say(err.Error(), 1)
		}
	}
	fmt.Fprintln(os.Stdout, "three")
	<-ctx.Done()
	return 0
}

// links puts links out of its volumes into them.
func links(context.Context) int {
	for _, volume := range []string{"data", "host"} {
		if err := os.Symlink(os.Getenv("LINK_TO"), filepath.Join(os.Getenv("LAB_ROOT"), volume, "link")); err != nil {
			return say(err.Error(), 1)
		}
	}
	return say("linked", 0)
}

// serveTLS serves on the address that the lab gives, with the certificate of the test.
func serveTLS(ctx context.Context, h http.Handler) int {
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("LAB_HOST"), os.Getenv("LAB_PORT_8443")))
	if err != nil {
		return say(err.Error(), 1)
	}
	server := &http.Server{Handler: h, TLSConfig: &tls.Config{NextProtos: []string{"http/1.1"}}}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	_ = server.ServeTLS(listener, os.Getenv("TEST_CERT"), os.Getenv("TEST_KEY")) // until the pod ends
	return 0
}

// refuseAll is an admission webhook that does.
func refuseAll(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Result: &metav1.Status{Message: "the pod on " + os.Getenv("LAB_NODE") + " says no"},
	}
	_ = json.NewEncoder(w).Encode(review) // the API server says when it got none
}

// smallAPI serves the group version test.example.com/v1 with nothing in it but one path.
func smallAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch r.URL.Path {
	case "/apis/test.example.com/v1":
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "test.example.com/v1"}
	case "/apis/test.example.com/v1/greeting":
		answer = map[string]string{"from": os.Getenv("LAB_POD"), "to": r.Header.Get("X-Remote-User")}
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(answer) // as above
}
