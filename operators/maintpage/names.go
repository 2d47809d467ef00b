package maintpage

import "github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"

const (
	// appLabel tells the pods of an application and of a maintenance page apart in both variants: its
	// value is the name of the one's Deployment or of the other's MaintPage.
	appLabel = "app"

	// containerName is the name of the one container of a maintenance page. That of an application has
	// the name of the application.
	containerName = "maintpage"

	// portName and port are where every page answers, and the one port of the Service.
	portName = "8080-tcp"
	port     = 8080
)

// podName names the pod of the maintenance page.
func podName(page *v1alpha1.MaintPage) string {
	return page.Name + "-maintpage-pod"
}
