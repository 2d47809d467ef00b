package taps_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// An operator is watched, and stepped, without a change to it: setup is its own function that adds its controllers.
func ExampleTaps() {
	var (
		ctx    context.Context
		config *rest.Config
		setup  func(ctrl.Manager) error
	)
	run := func() error {
		t := taps.New(trace.New(trace.Options{}), taps.Options{Operator: "mine"})
		mgr, err := ctrl.NewManager(t.RESTConfig(config), t.ManagerOptions(ctrl.Options{}))
		if err != nil {
			return err
		}
		if err := setup(t.Manager(mgr)); err != nil {
			return err
		}
		t.Pause()
		go func() {
			if t.AwaitServing(ctx) == nil {
				t.Step() // lets one worker take one key
			}
		}()
		return mgr.Start(ctx)
	}
	_ = run // it needs a cluster; see the package sandbox
}

// What a program writes without a manager is recorded, too.
func ExampleTaps_Client() {
	journal := trace.New(trace.Options{})
	c := taps.New(journal, taps.Options{Actor: "you"}).Client(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build())
	song := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "song"}}
	if err := c.Create(context.Background(), song); err != nil {
		log.Panic(err)
	}
	for _, e := range journal.Since(0) {
		fmt.Println(e.Kind, e.Actor, e.Verb, e.Object.Kind, e.Object.Name)
	}
	// Output: call you create ConfigMap song
}
