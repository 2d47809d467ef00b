package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Shared is something that the tests of a package share, such as a sandbox. The first test that asks for it starts it,
// and Main stops it.
type Shared[T any] struct {
	start func(context.Context) (value T, stop func() error, err error)
	once  sync.Once
	value T
	stop  func() error
	err   error
}

// Share returns what start will start. The context of start outlives the test. start returns stop with an error too if
// something has to be stopped nevertheless. An error that wraps [sandbox.ErrNoBinary] has the tests skipped.
func Share[T any](start func(context.Context) (value T, stop func() error, err error)) *Shared[T] {
	return &Shared[T]{start: start}
}

// ShareSandbox shares a sandbox. It is ephemeral, whatever the options say. Its CRDs are installed when it runs: data that
// is prepared with them, as [sandbox.Start] does it, only pays when more than one sandbox is started with it.
func ShareSandbox(options func() (sandbox.Options, error)) *Shared[*sandbox.Sandbox] {
	return Share(func(ctx context.Context) (*sandbox.Sandbox, func() error, error) {
		o, err := options()
		if err != nil {
			return nil, nil, err
		}
		crds := o.CRDs
		o.Ephemeral, o.CRDs = true, nil
		s, err := sandbox.Start(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		_, err = envtest.InstallCRDs(s.Config(), envtest.CRDInstallOptions{CRDs: crds, MaxTime: Patience})
		return s, s.Stop, err
	})
}

// ShareAPIServer shares an API server and nothing else: there are no controllers and no kubelet, so a Pod is Ready when a
// test says so, and nobody collects garbage. It runs what KUBEBUILDER_ASSETS names; without it the tests are skipped. The
// value is the configuration of an administrator.
func ShareAPIServer(crds func() ([]*apiextensionsv1.CustomResourceDefinition, error)) *Shared[*rest.Config] {
	return Share(func(context.Context) (*rest.Config, func() error, error) {
		if os.Getenv("KUBEBUILDER_ASSETS") == "" {
			return nil, nil, fmt.Errorf("KUBEBUILDER_ASSETS is not set: %w", sandbox.ErrNoBinary)
		}
		all, err := crds()
		if err != nil {
			return nil, nil, err
		}
		env := &envtest.Environment{CRDs: all}
		// The defaults are for a machine that does nothing else.
		env.ControlPlaneStartTimeout, env.CRDInstallOptions.MaxTime = 2*Patience, Patience
		config, err := env.Start()
		if err != nil {
			return nil, env.Stop, err // a control plane that started half-way has to be stopped as well
		}
		config.QPS = -1 // a client-side limit would only slow the tests down
		return config, env.Stop, nil
	})
}

// Get returns the shared value. It skips the test if there is no operator-lab binary, and fails it if the start failed.
func (s *Shared[T]) Get(tb testing.TB) T {
	tb.Helper()
	s.once.Do(func() { s.value, s.stop, s.err = s.start(context.WithoutCancel(tb.Context())) })
	if errors.Is(s.err, sandbox.ErrNoBinary) {
		tb.Skip(s.err)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.value
}

// Stop stops what was started, if it was. Main calls it.
func (s *Shared[T]) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// Main runs the tests of a package, and stops what they share. It returns the exit code of the process. The logs of
// controllers would drown a failure: they are only printed, to stderr, if the environment variable OPERATOR_LOG is set.
func Main(m *testing.M, shared ...interface{ Stop() error }) (code int) {
	log.SetLogger(logr.Discard())
	if os.Getenv("OPERATOR_LOG") != "" {
		log.SetLogger(funcr.New(func(prefix, args string) {
			fmt.Fprintln(os.Stderr, time.Now().Format("05.000"), prefix, args)
		}, funcr.Options{}))
	}
	klog.SetLogger(logr.Discard())
	code = m.Run()
	for _, s := range shared {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop what the tests share:", err)
			code = max(code, 1)
		}
	}
	return code
}
