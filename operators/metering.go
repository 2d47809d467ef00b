package operators

import (
	"context"
	"encoding/json"
	"net"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/metering"
	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

func meteringOperator() Operator {
	return Operator{
		Name:             "metering",
		Summary:          "a Report says what pods request and use, for one period after the other, and what it costs",
		Source:           "Operator Metering (2018 to 2021), written anew",
		AddToScheme:      metering.AddToScheme,
		Manifests:        metering.Manifests(),
		Namespace:        metering.Namespace,
		ServiceAccount:   "reporting-operator",
		LeaderElectionID: metering.LeaderElectionID,
		New: func() Instance {
			return &meteringInstance{variant: metering.Hardened, demo: &meteringDemo{}}
		},
	}
}

type meteringInstance struct {
	variant string
	options metering.Options
	demo    *meteringDemo
}

func (m *meteringInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{&m.variant, []string{metering.Hardened}}, "variant", "there is one: hardened")
	fs.DurationVar(&m.options.Interval, "interval", metering.DefaultInterval, "time between samples, in whole seconds of the operator's clock")
	fs.DurationVar(&m.options.Retention, "retention", metering.DefaultRetention, "how long samples are kept")
	fs.Float64Var(&m.options.Rate, "clock-rate", 1, "how many times as fast as real time the operator's clock goes, for lessons; at most 3600")
	fs.StringVar(&m.options.Dir, "data-dir", m.options.Dir, "directory of the database (default: one that is gone with the operator; in the lab, with the run)")
	fs.StringVar(&m.options.Listen, "api-bind-address", "127.0.0.1:0", "address of the HTTPS API for reports, told in the ConfigMap "+metering.APIConfigMap+"; 0: none")
}

func (m *meteringInstance) Variant() string { return m.variant }

func (m *meteringInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return metering.CRDs()
}

func (m *meteringInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	options := m.options
	options.Controller = o
	return metering.SetupWithManager(mgr, options)
}

// Reach implements [Reach].
func (m *meteringInstance) Reach(dial func(ctx context.Context, address string) (net.Conn, error)) {
	m.options.Dial = dial
}

// Keep implements [Keeper].
func (m *meteringInstance) Keep(dir string) {
	if m.options.Dir == "" {
		m.options.Dir = dir
	}
}

func (m *meteringInstance) Demo() Demo { return m.demo }

// meteringDemo makes reports of two pods.
type meteringDemo struct{ statesDemo }

// Flags has the operator's clock go quicker than real time, unless it is told otherwise: nobody waits for an hour.
func (d *meteringDemo) Flags(fs *pflag.FlagSet) {
	d.statesDemo.Flags(fs)
	for name, value := range map[string]string{"clock-rate": "360", "interval": "10m0s"} {
		if f := fs.Lookup(name); f != nil {
			f.DefValue, f.Changed = value, true
			_ = f.Value.Set(value) // a constant that is valid
		}
	}
}

// Nodes is one: pods that are on no node request nothing.
func (d *meteringDemo) Nodes() int { return 1 }

// Caption is of a Report how far it is.
func (d *meteringDemo) Caption(kind string, object json.RawMessage) string {
	var report v1.Report
	if kind != "Report" || json.Unmarshal(object, &report) != nil || report.Status.LastReportTime == nil {
		return ""
	}
	return "until " + report.Status.LastReportTime.UTC().Format("2006-01-02 15:04:05")
}

func (d *meteringDemo) Summary(ctx context.Context, r client.Reader, choose func(english, japanese string) string) ([][2]string, error) {
	var all v1.ReportList
	if err := r.List(ctx, &all); err != nil {
		return nil, err
	}
	if len(all.Items) == 0 {
		return [][2]string{{choose("left", "残り"), choose("nothing", "なし")}}, nil
	}
	var lines [][2]string
	for i := range all.Items {
		report := &all.Items[i]
		until := choose("nothing finished", "完了した期間なし")
		if last := report.Status.LastReportTime; last != nil {
			until = choose("finished until ", "完了: ") + last.UTC().Format("2006-01-02 15:04:05")
		}
		lines = append(lines, [2]string{"Report " + report.Name, until})
	}
	return lines, nil
}
