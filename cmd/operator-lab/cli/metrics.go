package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/metrics"
)

type metricsFlags struct {
	name       string
	kubeconfig string
	operator   string
	namespace  string
	rules      []string
	interval   time.Duration
	window     time.Duration
	until      string
	limit      time.Duration
	once       bool
	plain      bool
	output     string
}

func metricsCommand(io streams) *cobra.Command {
	var f metricsFlags
	cmd := &cobra.Command{
		Use:   "metrics [flags] [operator]",
		Short: "Show the four golden signals of operators and etcd as plots, and alerts",
		Long: `Read the metrics of the operators in a sandbox and of the members of etcd once a second, and show
latency, traffic, errors and saturation as plots, and below them what Prometheus would alert:
rules that are pending or fire, since when, and those that fired in the last 15 minutes. Rules are
evaluated by Prometheus' own engine for PromQL, over what was read since the command began.

Read are operators that the lab runs (which need no endpoint), pods with a container port whose
name is metrics or ends in -metrics, pods with the annotations prometheus.io/scrape: "true" and
prometheus.io/port, and members of etcd. They are read through the API server. A member that asks
its clients for a certificate also asks for one here, and is not read.

On a terminal it is a screen, until q or Ctrl-C; else, and with --plain, a line for each target
and each alert that changes. --once reads twice, an interval apart, and prints everything. With
--output json each look is a line of JSON. --until ALERT=inactive also waits until as much was
read as the rule looks back.

The lab has rules for any operator built with controller-runtime, and for etcd. 'operator-lab
operator etcd --files DIR' writes the latter to DIR/prometheus. --rules adds your own: a rule file
of Prometheus, or a PrometheusRule. Recording rules work; the series ALERTS is not there.

Exit codes: 0 done, 1 --until did not come true, nothing has metrics, or it is gone, 2 the command
line or a rule is wrong, 3 there is no sandbox.`,
		Example: `  operator-lab metrics
  operator-lab metrics etcd --once
  operator-lab metrics --rules my-rules.yaml --plain
  operator-lab metrics --until EtcdNoQuorum=firing --for 1m`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("leave it out to see all", "%q takes one operator, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.operator = args[0]
			}
			return f.run(cmd.Context(), io)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return namesOfOperators(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	nameFlag(cmd, &f.name)
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "read another cluster than a sandbox")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "read pods of this namespace only, and no operator that the lab runs")
	flags.StringArrayVar(&f.rules, "rules", nil, "file with more rules; can be repeated")
	flags.DurationVar(&f.interval, "interval", time.Second, "time between two looks")
	flags.DurationVar(&f.window, "window", 5*time.Minute, "how far back plots go")
	flags.StringVar(&f.until, "until", "", "end when a rule is in a state: ALERT=firing, ALERT=pending or ALERT=inactive")
	flags.DurationVar(&f.limit, "for", 0, "end after this time; 0: go on")
	flags.BoolVar(&f.once, "once", false, "read twice, print everything, and end")
	flags.BoolVar(&f.plain, "plain", false, "print lines, also on a terminal")
	flags.StringVarP(&f.output, "output", "o", "", "json; default: text")
	_ = cmd.MarkFlagFilename("rules", "yaml", "yml")
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

// Limits of the flags.
const (
	leastInterval = 100 * time.Millisecond
	mostWindow    = 24 * time.Hour
)

// check checks the flags, and reads the rules. It returns the rule and the state of --until; empty without it.
func (f *metricsFlags) check() (rules *metrics.Rules, alert string, state metrics.State, err error) {
	const hint = "see 'operator-lab metrics --help'"
	switch {
	case f.output != "" && f.output != "json":
		err = usageError("use json, or leave it out", "unknown output format %q", f.output)
	case f.interval < leastInterval:
		err = usageError(hint, "--interval %v is less than %v", f.interval, leastInterval)
	case f.window < f.interval || f.window > mostWindow:
		err = usageError(hint, "--window %v is not between the interval and %v", f.window, mostWindow)
	case f.limit < 0:
		err = usageError(hint, "--for %v is negative", f.limit)
	case f.once && (f.until != "" || f.limit != 0):
		err = usageError("leave --once out to wait", "--once does not wait, so --until and --for have no meaning with it")
	}
	if err != nil {
		return nil, "", "", err
	}
	if rules, err = metrics.Bundled(); err != nil {
		return nil, "", "", err
	}
	for _, file := range f.rules {
		const hint = "it is a rule file of Prometheus, or a PrometheusRule; 'promtool check rules' says more"
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, "", "", usageError(hint, "read the rules: %w", err)
		}
		more, err := metrics.ParseRules(file, content)
		if err != nil {
			return nil, "", "", usageError(hint, "%w", err)
		}
		rules.Add(more)
	}
	if f.until == "" {
		return rules, "", "", nil
	}
	alert, text, _ := strings.Cut(f.until, "=")
	if state = metrics.State(text); !slices.Contains(metrics.States, state) {
		return nil, "", "", usageError("such as EtcdNoQuorum=firing; states are inactive, pending and firing", "--until %q is not ALERT=STATE", f.until)
	}
	if known := rules.Alerts(); !slices.Contains(known, alert) {
		return nil, "", "", usageError("rules: "+strings.Join(known, ", "), "there is no rule %q", alert)
	}
	return rules, alert, state, nil
}

// config returns that of the cluster, and a name for it.
func (f *metricsFlags) config() (*rest.Config, string, error) {
	if f.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
		if err != nil {
			return nil, "", usageError("name the kubeconfig of a cluster", "read the kubeconfig: %w", err)
		}
		return config, "the cluster at " + config.Host, nil
	}
	record, err := running(f.name)
	if err != nil {
		return nil, "", sandboxError(err)
	}
	box, err := record.Open()
	if err != nil {
		return nil, "", sandboxError(err)
	}
	return box.Config(), "sandbox " + record.Name, nil
}

func (f *metricsFlags) run(ctx context.Context, io streams) error {
	rules, alert, state, err := f.check()
	if err != nil {
		return err
	}
	quietLibraries()
	config, where, err := f.config()
	if err != nil {
		return err
	}
	watcher, err := metrics.New(metrics.Options{
		Config: config, Rules: rules, Operator: f.operator, Namespace: f.namespace, Interval: f.interval, Window: f.window, Columns: plotColumns,
	})
	if err != nil {
		return err
	}
	look := &metricsLook{metricsFlags: f, io: io, where: where, watcher: watcher, alert: alert, state: state}
	switch {
	case f.once:
		return look.twice(ctx)
	case f.output == "" && !f.plain && io.terminal():
		return look.onScreen(ctx)
	}
	show := look.lines()
	if f.output == "json" {
		show = look.json
	}
	return look.follow(ctx, show)
}

// metricsLook looks at metrics for the command.
type metricsLook struct {
	*metricsFlags
	io      streams
	where   string
	watcher *metrics.Watcher
	alert   string
	state   metrics.State
}

// errUntil says that --until did not come true.
var errUntil = errors.New("--until")

// follow looks once in each interval and shows what it sees, until the time is over, the state of --until is there, or Ctrl-C
// comes, which is the end it waits for without them.
func (l *metricsLook) follow(ctx context.Context, show func(*metrics.Picture) error) error {
	looking := ctx
	if l.limit > 0 {
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeoutCause(ctx, l.limit, errUntil)
		defer cancel()
	}
	tick := time.NewTicker(l.interval)
	defer tick.Stop()
	for {
		p, err := l.watcher.Look(looking, time.Now())
		if err != nil && looking.Err() == nil {
			return sandboxError(fmt.Errorf("%s: %w", l.where, err))
		}
		if err == nil {
			if err := show(p); err != nil {
				return err
			}
			if l.alert != "" && p.Answering() > 0 {
				if now, err := p.Find(l.alert); err != nil || now == l.state {
					return err
				}
			}
		}
		select {
		case <-tick.C:
		case <-looking.Done():
			switch {
			case l.alert == "":
				return nil
			case errors.Is(context.Cause(looking), errUntil):
				return fmt.Errorf("%s is not %s after %v", l.alert, l.state, l.limit)
			}
			return ctx.Err()
		}
	}
}

// nothing returns why there is nothing to show; nil if there is something.
func (l *metricsLook) nothing(p *metrics.Picture) error {
	if len(p.Targets) > 0 {
		return nil
	}
	what := "nothing"
	if l.operator != "" {
		what = "nothing of an operator " + l.operator
	}
	if l.namespace != "" {
		what += " in namespace " + l.namespace
	}
	return &sandbox.Problem{
		Err:  fmt.Errorf("%s in %s has metrics", what, l.where),
		Hint: "an operator that the lab runs has some, as with 'operator-lab run zundoko'; a pod has a port named metrics for them",
	}
}

// twice looks twice, because rates need two looks, and prints what it saw.
func (l *metricsLook) twice(ctx context.Context) error {
	var p *metrics.Picture
	for again := range 2 {
		if again > 0 {
			select {
			case <-time.After(l.interval):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		var err error
		if p, err = l.watcher.Look(ctx, time.Now()); err != nil {
			return sandboxError(fmt.Errorf("%s: %w", l.where, err))
		}
		if err := l.nothing(p); err != nil {
			return err
		}
	}
	if l.output == "json" {
		return l.json(p)
	}
	for _, line := range metricsText(p, l.where, onceWidth, 0) {
		fmt.Fprintln(l.io.out, line)
	}
	return nil
}

// json prints a picture as a line.
func (l *metricsLook) json(p *metrics.Picture) error {
	return json.NewEncoder(l.io.out).Encode(p)
}

// onScreen shows a screen that is drawn again after each look.
func (l *metricsLook) onScreen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var last *metrics.Picture
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- l.follow(ctx, func(p *metrics.Picture) error {
			mu.Lock()
			last = p
			mu.Unlock()
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
		cancel()
	}()
	err := tui.Live(ctx, tui.LiveOptions{
		In: l.io.in, Out: l.io.out, Title: "operator-lab metrics", Changed: changed,
		Frame: func(w, h int) []string {
			mu.Lock()
			p := last
			mu.Unlock()
			if p == nil {
				return []string{"reading " + l.where}
			}
			if why := l.nothing(p); why != nil {
				return []string{why.Error() + " so far", "", sandbox.HintOf(why), "", "q leaves"}
			}
			return metricsText(p, l.where, w, h)
		},
	})
	cancel()
	looked := <-ended
	if errors.Is(looked, context.Canceled) { // the person has left before --until came true
		looked = &exitError{code: exitInterrupted}
	}
	return cmp.Or(err, looked)
}
