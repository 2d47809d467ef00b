package labapi

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/waitgroup"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/certificate"
)

// Options are the options of [Start].
type Options struct {
	// Backend is the lab. It is required.
	Backend Backend
}

// Server serves the lab's API in a cluster.
type Server struct {
	registration *registration
	http         *http.Server
	end          context.CancelFunc
	running      sync.WaitGroup
	requests     waitgroup.SafeWaitGroup
	// asked is closed when kube-apiserver has asked what is served here.
	asked     chan struct{}
	askedOnce sync.Once

	stopOnce sync.Once
	stopErr  error
}

// Start serves the API on a port of 127.0.0.1, registers it with the cluster, replacing the registration of an earlier
// lab, and returns when kube-apiserver serves it; only 'kubectl explain' knows it a second later. cluster must have an
// administrator's credentials. The end of ctx after Start does not stop the server: call [Server.Stop]. If Start fails,
// nothing keeps running.
func Start(ctx context.Context, cluster *rest.Config, o Options) (*Server, error) {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s, err := serve(ctx, client, listener, o)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("serve the lab's API: %w", err)
	}
	if err := s.registration.make(ctx, cluster); err != nil {
		_ = s.Stop(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("register the lab's API: %w", err)
	}
	return s, nil
}

// Renew repairs the registration after the cluster has lost it or was restarted, and returns when kube-apiserver serves
// the API.
func (s *Server) Renew(ctx context.Context) error {
	if err := s.registration.renew(ctx); err != nil {
		return fmt.Errorf("register the lab's API: %w", err)
	}
	return nil
}

// serve answers requests that arrive at the listener.
func serve(ctx context.Context, client kubernetes.Interface, listener net.Listener, o Options) (*Server, error) {
	proxy, err := readFrontProxy(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("learn how kube-apiserver shows itself: %w", err)
	}
	// The keys are never written anywhere, and kube-apiserver is told to trust this authority only.
	own, authority, err := certificate.ForServer("operator-lab-api", service+"."+systemNamespace+".svc")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	api, err := newAPI(o.Backend, access{proxy.authenticator(), reviewer{client}}, address)
	if err != nil {
		return nil, err
	}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	asked := make(chan struct{})
	s := &Server{
		registration: &registration{client: client, address: address, authority: authority, asked: asked},
		asked:        asked, end: end,
	}
	s.http = &http.Server{
		Handler:           s.counted(api),
		TLSConfig:         proxy.tls(own),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // a client without a certificate is told; no need to log it
	}
	api.follow(following, s.running.Go)
	s.running.Go(func() { _ = s.http.ServeTLS(listener, "", "") })
	return s, nil
}

// stopping limits how long requests under way may take at the end.
const stopping = 2 * time.Second

// Stop removes the registration, so that discovery does not find a server that is gone, and then stops serving. It
// returns an error if the registration cannot be removed, for example because the cluster is gone; the next Start
// replaces it. Further calls return the same.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	unregistered := s.registration.remove(ctx)
	s.end() // ends watches, too
	s.finish()
	_ = s.http.Close() // Shutdown would wait a second for idle connections
	s.running.Wait()
	if unregistered != nil {
		return fmt.Errorf("unregister the lab's API: %w", unregistered)
	}
	return nil
}

// counted counts requests, so that stop can wait for those under way, and Start for the one that asks what is served.
func (s *Server) counted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.requests.Add(1) != nil {
			http.Error(w, "the lab is stopping", http.StatusServiceUnavailable)
			return
		}
		defer s.requests.Done()
		handler.ServeHTTP(w, r)
		if r.URL.Path == genericapiserver.APIGroupPrefix {
			s.askedOnce.Do(func() { close(s.asked) })
		}
	})
}

// finish waits for requests under way, but not forever.
func (s *Server) finish() {
	finished := make(chan struct{})
	go func() {
		s.requests.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(stopping):
	}
}
