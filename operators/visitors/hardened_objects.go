package visitors

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
)

// These are the fields of the objects that are ours, and no others: whatever is not named here belongs to somebody else,
// and stays as they want it.

// The keys of the Secret.
const (
	userKey     = "username"
	passwordKey = "password"
	rootKey     = "root-password"
	// initFile is a key, made of the others, and the name of the file that MySQL reads when it starts.
	initFile = "init.sql"
)

// secretAnnotation is of pods that use the Secret: with another user or password there are other pods.
const secretAnnotation = v1.Group + "/mysql-auth"

const (
	mysqlData = "/var/lib/mysql"
	mysqlInit = "/etc/mysql-auth"
)

// secretOf names the Secret of a site.
func secretOf(app *v1.VisitorsApp) string { return nameOf(app, mysqlTier) + "-auth" }

// unquotable tells whether a character has a meaning of its own in a string of SQL, or none at all.
func unquotable(r rune) bool {
	return r == '\'' || r == '\\' || r == unicode.ReplacementChar || !unicode.IsPrint(r)
}

// wantedSecret has the passwords of has, and makes those that are missing. The user is always the same: MySQL makes it only
// where there is no data yet.
func wantedSecret(app *v1.VisitorsApp, has map[string][]byte) *unstructured.Unstructured {
	value := func(key, otherwise string) string { return cmp.Or(string(has[key]), otherwise) }
	user, password, root := appName, value(passwordKey, rand.Text()), value(rootKey, rand.Text())
	data := map[string]any{}
	for key, text := range map[string]string{
		userKey: user, passwordKey: password, rootKey: root,
		initFile: fmt.Sprintf("ALTER USER IF EXISTS '%s'@'%%' IDENTIFIED BY '%s';\n", user, password),
	} {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	u := wanted(app, "v1", "Secret", secretOf(app), mysqlTier, nil)
	delete(u.Object, "spec")
	u.Object["data"] = data
	return u
}

// hashOf changes with what pods use of the Secret.
func hashOf(secret *corev1.Secret) string {
	sum := sha256.Sum256([]byte(string(secret.Data[userKey]) + "\n" + string(secret.Data[passwordKey])))
	return hex.EncodeToString(sum[:8])
}

// wantedClaim is where the data is. It goes with the VisitorsApp.
func wantedClaim(app *v1.VisitorsApp) *unstructured.Unstructured {
	return wanted(app, "v1", "PersistentVolumeClaim", nameOf(app, mysqlTier), mysqlTier, map[string]any{
		"accessModes": []any{"ReadWriteOnce"},
		"resources":   map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	})
}

// wantedMySQL has one pod at a time, since two cannot have the same files.
func wantedMySQL(app *v1.VisitorsApp, secret *corev1.Secret) *unstructured.Unstructured {
	u := deployment(app, mysqlTier, 1, secret, map[string]any{
		"image":          mysqlImage,
		"args":           []any{"--init-file=" + mysqlInit + "/" + initFile},
		"ports":          []any{port(mysqlPort)},
		"readinessProbe": probe("tcpSocket", map[string]any{"port": int64(mysqlPort)}),
		"env": []any{
			secretVariable(app, "MYSQL_ROOT_PASSWORD", rootKey),
			variable("MYSQL_DATABASE", databaseName),
			secretVariable(app, "MYSQL_USER", userKey),
			secretVariable(app, "MYSQL_PASSWORD", passwordKey),
		},
		"volumeMounts": []any{
			map[string]any{"name": "data", "mountPath": mysqlData},
			map[string]any{"name": "auth", "mountPath": mysqlInit, "readOnly": true},
		},
	}, map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": nameOf(app, mysqlTier)}},
		map[string]any{"name": "auth", "secret": map[string]any{
			"secretName": secretOf(app), "items": []any{map[string]any{"key": initFile, "path": initFile}},
		}})
	u.Object["spec"].(map[string]any)["strategy"] = map[string]any{"type": "Recreate"}
	return u
}

// wantedBackend is ready once it gets visits from MySQL.
func wantedBackend(app *v1.VisitorsApp, secret *corev1.Secret) *unstructured.Unstructured {
	return deployment(app, backendTier, app.Spec.Size, secret, map[string]any{
		"image":          backendImage,
		"ports":          []any{port(backendPort)},
		"readinessProbe": probe("httpGet", map[string]any{"path": "/visitors/", "port": int64(backendPort)}),
		"env": []any{
			variable("MYSQL_DATABASE", databaseName),
			variable("MYSQL_SERVICE_HOST", serviceOf(app, mysqlTier)),
			secretVariable(app, "MYSQL_USERNAME", userKey),
			secretVariable(app, "MYSQL_PASSWORD", passwordKey),
		},
	})
}

// wantedFrontend is told where the backend is. Its probe asks for no page, which would be a visit.
func wantedFrontend(app *v1.VisitorsApp) *unstructured.Unstructured {
	return deployment(app, frontendTier, 1, nil, map[string]any{
		"image":          frontendImage,
		"ports":          []any{port(frontendPort)},
		"readinessProbe": probe("tcpSocket", map[string]any{"port": int64(frontendPort)}),
		"env": []any{
			variable(titleEnv, cmp.Or(app.Spec.Title, "Visitors Dashboard")),
			variable("REACT_APP_SERVICE_HOST", serviceOf(app, backendTier)),
			variable("REACT_APP_SERVICE_PORT", fmt.Sprint(backendPort)),
		},
	})
}

// wantedService has no port of the nodes by number: the API server chooses one that is free. That of MySQL is for the
// cluster only, and has no address of its own.
func wantedService(app *v1.VisitorsApp, t tier, number int64) *unstructured.Unstructured {
	spec := map[string]any{
		"ports":    []any{map[string]any{"name": string(t), "protocol": "TCP", "port": number, "targetPort": number}},
		"selector": labels(labelsOf(app, t)),
	}
	if t == mysqlTier {
		spec["clusterIP"] = corev1.ClusterIPNone
	} else {
		spec["type"] = string(corev1.ServiceTypeNodePort)
	}
	return wanted(app, "v1", "Service", serviceOf(app, t), t, spec)
}

// deployment runs one container; its pods change with the Secret, unless that is nil.
func deployment(app *v1.VisitorsApp, t tier, replicas int32, secret *corev1.Secret, container map[string]any, volumes ...any) *unstructured.Unstructured {
	container["name"] = appName + "-" + string(t)
	metadata := map[string]any{"labels": labels(labelsOf(app, t))}
	if secret != nil {
		metadata["annotations"] = map[string]any{secretAnnotation: hashOf(secret)}
	}
	pod := map[string]any{"containers": []any{container}}
	if len(volumes) > 0 {
		pod["volumes"] = volumes
	}
	return wanted(app, "apps/v1", "Deployment", nameOf(app, t), t, map[string]any{
		"replicas": int64(replicas),
		"selector": map[string]any{"matchLabels": labels(labelsOf(app, t))},
		"template": map[string]any{"metadata": metadata, "spec": pod},
	})
}

func port(number int64) map[string]any {
	return map[string]any{"containerPort": number, "protocol": "TCP"}
}

// probe asks every second: so soon the next tier is made.
func probe(how string, what map[string]any) map[string]any {
	return map[string]any{how: what, "periodSeconds": int64(1)}
}

func variable(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

func secretVariable(app *v1.VisitorsApp, name, key string) map[string]any {
	return map[string]any{"name": name, "valueFrom": map[string]any{
		"secretKeyRef": map[string]any{"name": secretOf(app), "key": key},
	}}
}

func wanted(app *v1.VisitorsApp, version, kind, name string, t tier, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(app.Namespace)
	u.SetName(name)
	u.SetLabels(labelsOf(app, t))
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(app, v1.GroupVersion.WithKind(v1.VisitorsAppKind))})
	return u
}

// labels are labels as an unstructured object holds them.
func labels(from map[string]string) map[string]any {
	to := make(map[string]any, len(from))
	for key, value := range from {
		to[key] = value
	}
	return to
}
