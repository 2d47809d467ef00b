package metering

import (
	"context"
	"crypto/tls"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// server is the HTTP API: the rows of a report for whoever may get its subresource export. The API server says who sends a token
// and what they may do.
type server struct {
	client    client.Client
	store     *store
	namespace string
	address   string
}

const (
	// APIConfigMap names the ConfigMap in the operator's namespace that says where the HTTP API is: url and ca.crt.
	APIConfigMap = "reporting-operator-api"

	reportsPath   = "/api/v1/reports/get"
	headerTimeout = 10 * time.Second
	answerTimeout = time.Minute
)

// Start serves until ctx ends, where the last life did and with its certificate if it can, so that clients find it again. The
// ConfigMap says where, and has the certificate.
func (s *server) Start(ctx context.Context) error {
	listener, pair, certificate, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("serve reports: %w", err)
	}
	defer listener.Close() //nolint:errcheck // it serves no more
	told := corev1apply.ConfigMap(APIConfigMap, s.namespace).WithData(map[string]string{
		"url": "https://" + listener.Addr().String() + reportsPath, "ca.crt": string(certificate),
	})
	if err := s.client.Apply(ctx, told, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply ConfigMap %s: %w", APIConfigMap, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+reportsPath, s.get)
	serving := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12},
	}
	defer context.AfterFunc(ctx, func() { _ = serving.Close() })()
	if err := serving.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen returns a listener and its certificate, also as PEM.
func (s *server) listen(ctx context.Context) (listener net.Listener, pair *tls.Certificate, certificate []byte, err error) {
	last, certificate, key, err := s.store.served(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, nil, nil, err
	}
	var config net.ListenConfig
	if lastHost, _, err := net.SplitHostPort(last); err == nil && port == "0" && lastHost == host {
		listener, _ = config.Listen(ctx, "tcp", last) // somebody else may have the port by now
	}
	if listener == nil {
		if listener, err = config.Listen(ctx, "tcp", s.address); err != nil {
			return nil, nil, nil, err
		}
	}
	made, err := tls.X509KeyPair(certificate, key)
	if err != nil || made.Leaf.VerifyHostname(host) != nil || time.Now().After(made.Leaf.NotAfter) {
		if certificate, key, err = cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil); err == nil {
			made, err = tls.X509KeyPair(certificate, key)
		}
		if err != nil {
			return nil, nil, nil, errors.Join(fmt.Errorf("make a certificate: %w", err), listener.Close())
		}
	}
	if err := s.store.serves(ctx, listener.Addr().String(), certificate, key); err != nil {
		return nil, nil, nil, errors.Join(err, listener.Close())
	}
	return listener, &made, certificate, nil
}

// statusError is an answer that is no report.
type statusError struct {
	code    int
	message string
}

func (e statusError) Error() string { return e.message }

// get answers one request.
func (s *server) get(w http.ResponseWriter, req *http.Request) {
	err := s.answer(w, req)
	if err == nil {
		return
	}
	var status statusError
	if !errors.As(err, &status) {
		log.FromContext(req.Context()).Error(err, "A request for a report failed")
		status = statusError{http.StatusInternalServerError, "the report cannot be read now; the operator's log says why"}
	}
	http.Error(w, status.message, status.code)
}

func (s *server) answer(w http.ResponseWriter, req *http.Request) error {
	q := req.URL.Query()
	namespace, name, format := q.Get("namespace"), q.Get("name"), q.Get("format")
	write, known := formats[format]
	switch {
	case name == "" || namespace == "":
		return statusError{http.StatusBadRequest, "name and namespace are needed: " + reportsPath + "?name=NAME&namespace=NAMESPACE&format=csv"}
	case !known:
		return statusError{http.StatusBadRequest, fmt.Sprintf("the format is %q, and not one of csv, json, tab", format)}
	}
	if err := s.allow(req, namespace, name); err != nil {
		return err
	}
	report := &v1.Report{}
	if err := s.client.Get(req.Context(), client.ObjectKey{Namespace: namespace, Name: name}, report); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return statusError{http.StatusNotFound, fmt.Sprintf("there is no Report %s in the namespace %s", name, namespace)}
		}
		return err
	}
	columns, rows, some, err := s.store.rows(req.Context(), string(report.UID))
	switch {
	case err != nil:
		return err
	case !some && report.Status.LastReportTime != nil:
		return statusError{http.StatusGone, "the rows of this Report are lost, with the operator's database"}
	case !some:
		return statusError{http.StatusAccepted, "no period of this Report is finished yet"}
	}
	return write(w, columns, rows)
}

// allow asks the API server who sends the token, and whether they may have this report.
func (s *server) allow(req *http.Request, namespace, name string) error {
	token, has := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !has || token == "" {
		return statusError{http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN"}
	}
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := s.client.Create(req.Context(), who); err != nil {
		return fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated {
		return statusError{http.StatusUnauthorized, "the API server does not know this token"}
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Name: name, Verb: "get", Group: v1.Group, Version: v1.Version, Resource: "reports", Subresource: "export",
		},
	}}
	if err := s.client.Create(req.Context(), may); err != nil {
		return fmt.Errorf("review an access: %w", err)
	}
	if !may.Status.Allowed {
		return statusError{http.StatusForbidden, fmt.Sprintf("%s may not get reports/export of the Report %s in the namespace %s", user.Username, name, namespace)}
	}
	return nil
}

// formats write the rows of a report.
var formats = map[string]func(http.ResponseWriter, []v1.ReportQueryColumn, [][]any) error{
	"csv": func(w http.ResponseWriter, columns []v1.ReportQueryColumn, rows [][]any) error {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		out := csv.NewWriter(w)
		return errors.Join(out.WriteAll(append([][]string{headings(columns)}, cells(rows)...)), out.Error())
	},
	"tab": func(w http.ResponseWriter, columns []v1.ReportQueryColumn, rows [][]any) error {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, line := range append([][]string{headings(columns)}, cells(rows)...) {
			fmt.Fprintln(out, strings.Join(line, "\t"))
		}
		return out.Flush()
	},
	"json": func(w http.ResponseWriter, columns []v1.ReportQueryColumn, rows [][]any) error {
		w.Header().Set("Content-Type", "application/json")
		objects := make([]map[string]any, 0, len(rows))
		for _, row := range rows {
			object := map[string]any{}
			for i, c := range columns {
				if i < len(row) {
					object[c.Name] = row[i]
				}
			}
			objects = append(objects, object)
		}
		return json.NewEncoder(w).Encode(objects)
	},
}

// headings are the names of the columns, with their units in parentheses.
func headings(columns []v1.ReportQueryColumn) []string {
	names := make([]string, 0, len(columns))
	for _, c := range columns {
		name := c.Name
		if c.Unit != "" {
			name += " (" + c.Unit + ")"
		}
		names = append(names, name)
	}
	return names
}

// cells are the values as text.
func cells(rows [][]any) [][]string {
	all := make([][]string, 0, len(rows))
	for _, row := range rows {
		line := make([]string, 0, len(row))
		for _, value := range row {
			switch value := value.(type) {
			case nil:
				line = append(line, "")
			case float64:
				line = append(line, strconv.FormatFloat(value, 'f', -1, 64))
			default:
				line = append(line, fmt.Sprint(value))
			}
		}
		all = append(all, slices.Clip(line))
	}
	return all
}
