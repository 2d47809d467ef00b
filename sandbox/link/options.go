//go:build go1.23

package link

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Addresses of a linked program. The kernel chooses the port 0.
const (
	loopback = "127.0.0.1"
	freePort = loopback + ":0"
)

// adapt makes the options of a manager, which are meant for a pod, fit for a process beside others on this machine.
func (s Settings) adapt(o *manager.Options) {
	if o.Metrics.BindAddress == "" { // the port 8080
		o.Metrics.BindAddress = freePort
	}
	for _, address := range []*string{&o.Metrics.BindAddress, &o.HealthProbeBindAddress, &o.PprofBindAddress} {
		ofPod := s.InPod && strings.HasPrefix(*address, "127.")
		if *address != "" && *address != "0" && !ofPod {
			*address = freePort
		}
	}
	o.LeaderElection = o.LeaderElection && !s.NoLeaderElection
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = s.Namespace
	}
	// Or the next life would wait until the lease of this one has run out, some 15 s.
	o.LeaderElectionReleaseOnCancel = true
	// The taps' logger passes lines on. The program may set the one behind ctrl.Log later.
	if o.Logger.GetSink() == nil {
		o.Logger = ctrl.Log
	}
	if s.WebhookPort == 0 && !s.InPod {
		return
	}
	if o.WebhookServer == nil {
		o.WebhookServer = webhook.NewServer(webhook.Options{})
	}
	server, ok := o.WebhookServer.(*webhook.DefaultServer)
	if !ok {
		return
	}
	w := &server.Options
	if s.InPod {
		port := cmp.Or(w.Port, webhook.DefaultPort)
		w.Host, w.Port = os.Getenv("LAB_HOST"), port
		if here, err := strconv.Atoi(os.Getenv("LAB_PORT_" + strconv.Itoa(port))); err == nil {
			w.Port = here
		}
		return
	}
	w.Host, w.Port = loopback, s.WebhookPort
	w.CertDir, w.CertName, w.KeyName, w.ClientCAName = s.WebhookCertDir, "tls.crt", "tls.key", ""
}
