package images

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// visitors is a program of the Visitors site: it makes a handler of its environment, and serves it on its port.
type visitors struct {
	port int
	// handler returns the handler and says what it does, for the log. It may wait until ctx ends.
	handler func(ctx context.Context, c *Container, env *variables, out *lines) (handler http.Handler, about string)
}

const (
	visitorsBackendPort  = 8000
	visitorsFrontendPort = 3000
	// visitorsNodePort is the backend's in the published manifests, where the published page looks for it.
	visitorsNodePort = 30685
	visitorsPath     = "/visitors/"
	// visitorsTime is MySQL's form of a TIMESTAMP, in UTC.
	visitorsTime = "2006-01-02 15:04:05.000000"
)

// File implements [Program].
func (visitors) File(string) (string, bool) { return "", false }

// Start implements [Program].
func (v visitors) Start(c *Container) (Running, error) {
	if r := shell(c, c.Command); r != nil {
		return r, nil
	}
	return begin(func(t *task) int { return v.run(t, c) }), nil
}

// run serves until a signal ends it.
func (v visitors) run(t *task, c *Container) int {
	out := &lines{to: c.Stdout}
	ctx, stop := context.WithCancel(t.life)
	defer stop()
	ready := make(chan http.Handler, 1)
	go func() {
		handler, about := v.handler(ctx, c, environment(c, nil), out)
		if ctx.Err() == nil {
			out.printf("operator-lab: %s is simulated: %s\n", c.Image, about)
		}
		ready <- handler
	}()
	for {
		select {
		case handler := <-ready:
			listener, err := c.Network.Listen(v.port)
			if err != nil {
				out.printf("operator-lab: %s cannot listen on port %d: %v\n", c.Image, v.port, err)
				return 1
			}
			return serveHTTP(t, c, listener, handler)
		case <-t.life:
			return killed(syscall.SIGKILL)
		case s := <-t.signals:
			if terminates(s) {
				return 0
			}
		}
	}
}

// visit is one visit, as the backend shows it.
type visit struct {
	ServiceIP string `json:"service_ip"`
	ClientIP  string `json:"client_ip"`
	Timestamp string `json:"timestamp"`
}

// visitorsBackend keeps visits in a MySQL database. As the published one it serves only once it could make its table.
func visitorsBackend(ctx context.Context, c *Container, env *variables, out *lines) (handler http.Handler, about string) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = env.get("MYSQL_USERNAME"), env.get("MYSQL_PASSWORD"), env.get("MYSQL_DATABASE")
	config.Net, config.Addr = "tcp", net.JoinHostPort(env.get("MYSQL_SERVICE_HOST"), strconv.Itoa(databasePort))
	config.DialFunc, config.InterpolateParams = c.Network.DialContext, true
	config.Timeout, config.Logger = 10*time.Second, log.New(io.Discard, "", 0)
	b := &backend{ip: c.IP}
	connector, err := mysql.NewConnector(config)
	if err == nil {
		b.db = sql.OpenDB(connector)
		context.AfterFunc(ctx, func() { _ = b.db.Close() })
	}
	for said := ""; ; {
		if err == nil {
			_, err = b.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS visits (service_ip VARCHAR(64), client_ip VARCHAR(64), visited VARCHAR(32))")
		}
		if err == nil || ctx.Err() != nil {
			break
		}
		if said != err.Error() {
			said = err.Error()
			out.printf("operator-lab: %s waits for the database at %s: %s\n", c.Image, config.Addr, said)
		}
		select {
		case <-time.After(time.Second):
			if b.db != nil {
				err = nil
			}
		case <-ctx.Done():
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+visitorsPath, b.list)
	mux.HandleFunc("POST "+visitorsPath, b.add)
	return mux, fmt.Sprintf("it keeps visits in the database %q at %s", config.DBName, config.Addr)
}

// backend answers with visits of the database.
type backend struct {
	db *sql.DB
	ip string // its pod's
}

// add counts a visit and answers with it.
func (b *backend) add(w http.ResponseWriter, r *http.Request) {
	v := visit{b.ip, clientIP(r), time.Now().UTC().Format(visitorsTime)}
	_, err := b.db.ExecContext(r.Context(), "INSERT INTO visits (service_ip, client_ip, visited) VALUES (?, ?, ?)", v.ServiceIP, v.ClientIP, v.Timestamp)
	respond(w, v, err)
}

// list answers with all visits, the newest first.
func (b *backend) list(w http.ResponseWriter, r *http.Request) {
	all := []visit{}
	rows, err := b.db.QueryContext(r.Context(), "SELECT service_ip, client_ip, visited FROM visits ORDER BY visited DESC")
	if err == nil {
		defer rows.Close() //nolint:errcheck // Err has the error
		for rows.Next() && err == nil {
			var v visit
			err = rows.Scan(&v.ServiceIP, &v.ClientIP, &v.Timestamp)
			all = append(all, v)
		}
		if err == nil {
			err = rows.Err()
		}
	}
	respond(w, all, err)
}

func respond(w http.ResponseWriter, answer any, err error) {
	if err != nil {
		http.Error(w, "the database: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a client that went away cannot be told
}

// clientIP is the address that a request came from, before any proxy that says so.
func clientIP(r *http.Request) string {
	if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ","); first != "" {
		return strings.TrimSpace(first)
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// visitorsPage is the page, with the visits that the backend has.
var visitorsPage = template.Must(template.New("").Parse(`<!DOCTYPE html><title>{{.Title}}</title>
<meta charset="utf-8">
<h1>{{.Title}}</h1>
<p>Visits: {{len .Visits}}</p>
<table>
<tr><th>Service IP</th><th>Client IP</th><th>Timestamp</th></tr>
{{- range .Visits}}
<tr><td>{{.ServiceIP}}</td><td>{{.ClientIP}}</td><td>{{.Timestamp}}</td></tr>
{{- end}}
</table>
`))

// visitorsFrontend shows a page for each request, which is a visit. The published one is a page whose script asks the
// backend from the browser, on the backend's port of the node; here the server asks there, or where its variables say.
func visitorsFrontend(_ context.Context, c *Container, env *variables, _ *lines) (handler http.Handler, about string) {
	at := net.JoinHostPort(cmp.Or(env.get("REACT_APP_SERVICE_HOST"), c.Node), cmp.Or(env.get("REACT_APP_SERVICE_PORT"), strconv.Itoa(visitorsNodePort)))
	f := &frontend{
		title: cmp.Or(env.get("REACT_APP_TITLE"), "Visitors Dashboard"), backend: "http://" + at + visitorsPath,
		client: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{DialContext: c.Network.DialContext, DisableKeepAlives: true},
		},
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", f)
	return mux, "its server counts the visit that is otherwise counted by the browser, with the backend " + f.backend
}

// frontend shows the page.
type frontend struct {
	title, backend string
	client         *http.Client
}

// ServeHTTP counts a visit and shows the page.
func (f *frontend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var visits []visit
	err := f.ask(r, http.MethodPost, new(visit))
	if err == nil {
		err = f.ask(r, http.MethodGet, &visits)
	}
	if err != nil {
		http.Error(w, f.title+": the backend: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = visitorsPage.Execute(w, map[string]any{"Title": f.title, "Visits": visits}) // a client that went away cannot be told
}

// ask asks the backend, in the name of whoever asks for the page.
func (f *frontend) ask(r *http.Request, method string, into any) error {
	request, err := http.NewRequestWithContext(r.Context(), method, f.backend, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("X-Forwarded-For", clientIP(r))
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // what there is of it
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return json.NewDecoder(response.Body).Decode(into)
}
