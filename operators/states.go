package operators

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
)

// statesDemo is what the demos have in common that show one state after another of what Deployments run.
type statesDemo struct {
	pause time.Duration
}

// Flags implements [Demo].
func (d *statesDemo) Flags(fs *pflag.FlagSet) {
	fs.DurationVar(&d.pause, "pause", 4*time.Second, "how long each state is shown")
}

// Values implements [Demo].
func (d *statesDemo) Values() (map[string]any, error) {
	if d.pause < 0 || d.pause > longestPause {
		return nil, fmt.Errorf("--pause %v is not between 0s and %v", d.pause, longestPause)
	}
	return map[string]any{"pause": strconv.FormatFloat(d.pause.Seconds(), 'f', -1, 64)}, nil
}

// Caption is of a Deployment how many pods it wants and has.
func (*statesDemo) Caption(kind string, object json.RawMessage) string {
	var deployment appsv1.Deployment
	if kind != "Deployment" || json.Unmarshal(object, &deployment) != nil || deployment.Spec.Replicas == nil {
		return ""
	}
	return fmt.Sprintf("%d wanted, %d available", *deployment.Spec.Replicas, deployment.Status.AvailableReplicas)
}
