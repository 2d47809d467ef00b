package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/traffic"
)

// demo is the subject of a run that plays the demo of a bundled operator.
type demo struct {
	op       operators.Operator
	instance operators.Instance
	// values are those of its scenario.
	values map[string]any

	// auto plays all of it without being asked.
	auto     bool
	pace     *pace
	scenario *playing
	// recordings end what records the demo's URL and its etcd cluster beside the demo.
	recordings []func()
}

func (d *demo) addToScheme(scheme *runtime.Scheme) error { return d.op.AddToScheme(scheme) }

func (d *demo) caption(kind string, object json.RawMessage) string {
	return d.instance.Demo().Caption(kind, object)
}

func (d *demo) sandbox(o *sandbox.Options) (err error) {
	o.CRDs, err = d.instance.CRDs()
	return err
}

func (d *demo) kept(up *upFlags) { up.crdsOf = d.op.Name + "/" + d.instance.Variant() }

func (d *demo) lab(_ context.Context, _ *target, o *lab.Options) error {
	o.Installed = map[string]string{d.op.Name: d.instance.Variant()}
	return nil
}

func (d *demo) samples(*liveOperator) []tui.Sample { return nil }

func (d *demo) paced() tui.Demo { return d.pace }

// hasStore reports whether the demo makes a cluster of etcd.
func (d *demo) hasStore() bool {
	_, has := d.instance.Demo().(operators.Store)
	return has
}

// begin starts the recordings and the scenario.
func (d *demo) begin(ctx context.Context, s *liveOperator) error {
	if err := d.record(ctx, s); err != nil {
		return err
	}
	var err error
	d.scenario, err = d.play(ctx, s)
	return err
}

// end stops the scenario and the recordings.
func (d *demo) end() error {
	if d.scenario != nil {
		d.scenario.stop()
	}
	for _, stop := range d.recordings {
		stop()
	}
	return nil
}

// record begins to record the answers of the demo's URL and the members of its etcd cluster, if it has them.
func (d *demo) record(ctx context.Context, s *liveOperator) error {
	if demo, has := d.instance.Demo().(operators.Traffic); has && s.target.proxy != "" {
		stop, err := traffic.RecordThrough(ctx, s.target.proxy, s.journal, demo.Traffic())
		if err != nil {
			return err
		}
		d.recordings = append(d.recordings, stop)
	}
	if demo, has := d.instance.Demo().(operators.Store); has {
		var cluster types.NamespacedName
		cluster.Namespace, cluster.Name = demo.Store()
		stop, err := members.RecordAll(ctx, members.Options{Config: s.target.Config(), Dial: s.target.DialContext}, s.journal, cluster)
		if err != nil {
			return err
		}
		d.recordings = append(d.recordings, stop)
	}
	return nil
}

// awaitEnd returns when the scenario is over and the operator has nothing left to do.
func (d *demo) awaitEnd(ctx context.Context, s *liveOperator) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.target.done:
			return sandboxError(s.target.err())
		case <-d.scenario.done:
			if d.scenario.err != nil {
				return d.scenario.err
			}
			return operatorhost.AwaitQuiet(ctx, s.journal)
		case <-s.lab.Failed(s.name):
			return s.lab.Err(s.name)
		}
	}
}

// summary prints what came of the demo.
func (d *demo) summary(ctx context.Context, s *liveOperator) error {
	reader, err := client.New(s.target.Config(), client.Options{Scheme: s.you.Scheme()})
	if err != nil {
		return err
	}
	lines, err := d.instance.Demo().Summary(ctx, reader, s.flags.look.language().Choose)
	for _, line := range lines {
		fmt.Fprintf(s.io.out, "%s%s %s\n", line[0], strings.Repeat(" ", max(0, 10-trace.TextWidth(line[0]))), line[1])
	}
	return err
}
