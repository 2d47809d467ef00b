package labapi

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// columns are the columns of a kind in 'kubectl get'.
type columns struct {
	definitions []metav1.TableColumnDefinition
	cells       func(object) []any
}

// wide marks a column for 'kubectl get -o wide' only.
const wide = 1

// ConvertToTable implements [rest.TableConvertor].
func (c columns) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = c.definitions
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	} else if one, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = one.GetResourceVersion()
	}
	row := func(o runtime.Object) error {
		of, ok := o.(object)
		if !ok {
			return fmt.Errorf("%T cannot be printed", o)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: c.cells(of), Object: runtime.RawExtension{Object: o}})
		return nil
	}
	if meta.IsListType(obj) {
		return table, meta.EachListItem(obj, row)
	}
	return table, row(obj)
}

func column(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

func wideColumn(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: wide}
}

func nameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."}
}

func operatorColumns() columns {
	return columns{
		[]metav1.TableColumnDefinition{
			nameColumn(),
			column("Variant", "string", "Variant of the operator."),
			column("State", "string", "State it is in."),
			column("Restarts", "integer", "How often it was started again."),
			column("Age", "string", "Time since it was loaded."),
			wideColumn("Controllers", "Controllers that have taken part so far."),
			wideColumn("Message", "Why it is in its state."),
		},
		func(of object) []any {
			o := of.(*v1alpha1.Operator)
			return []any{
				o.Name, o.Spec.Variant, string(o.Status.State), int64(o.Status.Restarts), age(o.CreationTimestamp.Time),
				strings.Join(o.Status.Controllers, ","), o.Status.Message,
			}
		},
	}
}

func loopColumns() columns {
	return columns{
		[]metav1.TableColumnDefinition{
			nameColumn(),
			column("Operator", "string", "Operator whose loop it is."),
			column("Reconciles", "integer", "Reconciles that ended."),
			column("Writes", "integer", "Writes that the API server carried out."),
			column("Errors", "integer", "Errors that reconciles ended with."),
			column("Quiet", "boolean", "Whether nothing of the key is queued, running or waiting for a timer."),
			column("Hot", "string", "The field by which the loop wakes itself again and again."),
			column("Last", "string", "Outcome of the newest reconcile that ended."),
			wideColumn("Cause", "Cause of the newest reconcile that ended."),
		},
		func(of object) []any {
			o := of.(*v1alpha1.Loop)
			return []any{
				o.Name, o.Spec.Operator, o.Status.Reconciles, o.Status.Writes.Total, o.Status.Errors, o.Status.Quiet,
				hot(o.Status), last(o.Status.Last), o.Status.Last.Cause,
			}
		},
	}
}

// last returns the outcome of a reconcile. Where the key runs again at once it is not "done", as on the screen.
func last(l v1alpha1.LoopLast) string {
	const again = "again at once"
	switch {
	case !l.Again:
		return l.Outcome
	case l.Error != "":
		return l.Outcome + ", " + again
	}
	return again
}

func hot(s v1alpha1.LoopStatus) string {
	switch {
	case !s.Hot:
		return ""
	case s.HotField == "":
		return "yes"
	default:
		return s.HotField
	}
}

func faultColumns() columns {
	return columns{
		[]metav1.TableColumnDefinition{
			nameColumn(),
			column("Fault", "string", "What is to go wrong."),
			column("Target", "string", "What it is to happen to."),
			column("Phase", "string", "How far it is."),
			column("Times", "integer", "How often it happened."),
			column("At", "string", "Time of day at which it last happened."),
			wideColumn("Operator", "Operator whose calls and events are looked at."),
			wideColumn("Message", "At what it last happened, or why it cannot."),
		},
		func(of object) []any {
			o := of.(*v1alpha1.Fault)
			at := ""
			if o.Status.At != nil {
				at = o.Status.At.Local().Format("15:04:05.000")
			}
			return []any{
				o.Name, faultKind(o.Spec), faultTarget(o.Spec), string(o.Status.Phase), int64(o.Status.Times), at,
				o.Spec.Operator, o.Status.Message,
			}
		},
	}
}

// faultKind returns the kind of a fault, with its action if the kind has several.
func faultKind(s v1alpha1.FaultSpec) string {
	switch {
	case s.Crash != nil:
		return "crash"
	case s.Hold != nil:
		return "hold"
	case s.API != nil:
		return strings.TrimSuffix("api/"+string(s.API.Reply), "/")
	case s.Watch != nil:
		return strings.TrimSuffix("watch/"+string(s.Watch.Action), "/")
	case s.Stale != nil && s.Stale.Restart:
		return "stale/Restart"
	case s.Stale != nil:
		return "stale"
	case s.Conflict != nil:
		return "conflict"
	case s.ControlPlane != nil:
		return "controlPlane"
	case s.Pod != nil:
		return "pod/" + string(s.Pod.Action)
	case s.Node != nil:
		return "node/" + string(s.Node.Action)
	case s.Image != nil:
		return "image"
	default:
		return ""
	}
}

// faultTarget describes whom the fault happens to, or else what it waits for.
func faultTarget(s v1alpha1.FaultSpec) string {
	switch {
	case s.ControlPlane != nil:
		return s.ControlPlane.Program
	case s.Pod != nil:
		return podsTarget(s.Pod)
	case s.Node != nil:
		return orStar(s.Node.Name)
	case s.Image != nil:
		return s.Image.Name
	case s.Match != nil:
		return matchTarget(s.Match)
	default:
		return ""
	}
}

// podsTarget returns for example "default/web-*/page app=web".
func podsTarget(p *v1alpha1.PodFault) string {
	target := orStar(p.Name)
	if p.Namespace != "" {
		target = p.Namespace + "/" + target
	}
	if p.Container != "" {
		target += "/" + p.Container
	}
	if len(p.Selector) > 0 {
		target += " " + labels.Set(p.Selector).String()
	}
	return target
}

func orStar(name string) string {
	if name == "" {
		return "*"
	}
	return name
}

// matchTarget returns for example "create,update Zundoko default/hikawa-* #3".
func matchTarget(m *v1alpha1.FaultMatch) string {
	words := []string{strings.Join(m.Verbs, ","), m.Kind, m.Field}
	if m.Subresource != "" && m.Subresource != "-" {
		words[1] += "/" + m.Subresource
	}
	name := m.Name
	if m.Namespace != "" {
		name = m.Namespace + "/" + m.Name
	}
	words = append(words, name)
	if m.Nth > 1 {
		words = append(words, fmt.Sprintf("#%d", m.Nth))
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// age formats a time as 'kubectl get' does.
func age(since time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(since))
}
