// Package metering is an operator that says what a cluster's pods request and use, and what that costs. It is no
// published source: it has the API, the names and the behaviour of Operator Metering (2018 to 2021), which was made of
// Prometheus, Hive and Presto, and is written anew on SQLite. So there is one variant of it, hardened.
//
// It is ordinary controller-runtime code that runs in any manager: call AddToScheme, install what CRDs returns, call
// SetupWithManager.
//
// A ReportDataSource is a table of samples: each has a time, the seconds that it stands for, labels and an amount. A
// ReportQuery is a SELECT over such tables. A Report is the rows of a ReportQuery for one period after the other; it waits
// until the period is over and the samples of all of it are there, and does each missed period when the operator was away.
//
// # Samples
//
// The times of samples are multiples of the interval. A look takes what the cluster says now, for each step since the look
// before, so one that comes late has no gap; of a counter it takes the increase since then, divided by the time. When a life
// of the operator begins, the first look only begins to observe: for the time in which it did not run there are no samples, and
// a Report says how much of its period was observed.
//
// # Totals
//
// A period has the samples from its begin until before its end, so each sample is in one period, however time is split. A
// period's rows are written in one transaction, together with the note that the period is done. An operator that is killed
// before it can say so in the status finds that note in its next life and says it then.
//
// # SQL
//
// The engine is SQLite in pure Go (modernc.org/sqlite), since it needs no C compiler and no server and is real SQL. A query
// can read and nothing else: an authorizer refuses all statements but SELECT, so also other files and settings.
package metering

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd rbac:roleName=metering-manager paths=./... output:crd:dir=config/crds/hardened output:rbac:dir=config/rbac/hardened
