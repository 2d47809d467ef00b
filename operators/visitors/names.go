package visitors

import v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"

// tier is one of the three parts of a site, and the value of the label tier of its pods.
type tier string

const (
	mysqlTier    tier = "mysql"
	backendTier  tier = "backend"
	frontendTier tier = "frontend"
)

// What both variants run, and by what they tell it apart.
const (
	appName   = "visitors"
	appLabel  = "app"
	tierLabel = "tier"
	siteLabel = "visitorssite_cr"

	mysqlImage    = "mysql:5.7"
	backendImage  = "jdob/visitors-service:1.0.0"
	frontendImage = "jdob/visitors-webui:1.0.0"

	mysqlPort    = 3306
	backendPort  = 8000
	frontendPort = 3000

	databaseName = "visitors"
	titleEnv     = "REACT_APP_TITLE"
)

// labelsOf are the labels of the pods of a tier, and its selector.
func labelsOf(app *v1.VisitorsApp, t tier) map[string]string {
	return map[string]string{appLabel: appName, siteLabel: app.Name, tierLabel: string(t)}
}

// nameOf names the Deployment of a tier, and what else belongs to it, after the VisitorsApp. Of MySQL it is hardened's only.
func nameOf(app *v1.VisitorsApp, t tier) string { return app.Name + "-" + string(t) }

// serviceOf names the Service of a tier, likewise.
func serviceOf(app *v1.VisitorsApp, t tier) string { return nameOf(app, t) + "-service" }
