package images_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// databaseEnv is what the manifests of the site give to MySQL.
var databaseEnv = []string{
	"MYSQL_ROOT_PASSWORD=root-word", "MYSQL_DATABASE=visitors", "MYSQL_USER=ann", "MYSQL_PASSWORD=word",
}

// serveDatabase starts MySQL with its data in a directory, or in no volume if that is empty.
func serveDatabase(t *testing.T, data string, env []string) (at string, r images.Running, log *output.Output) {
	t.Helper()
	c, _ := catalogue(t, "")
	in, log := container(t, "mysql:5.7")
	in.Env = env
	if data != "" {
		in.Mounts = []images.Mount{{ContainerPath: "/var/lib/mysql", HostPath: data}}
	}
	r = start(t, c, in)
	log.Await(t, "is simulated by a small server of MySQL's protocol")
	return listening(in, 3306), r, log
}

// listening is where a port of a container really is.
func listening(in *images.Container, port int) string {
	network := in.Network.(*loopback)
	network.mu.Lock()
	defer network.mu.Unlock()
	return network.ports[port]
}

// client opens a database as a user. It asks nothing yet.
func client(t *testing.T, at, user, password, name string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.DBName = user, password, "tcp", at, name
	config.InterpolateParams = true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// do runs statements, and one that fails ends the test.
func do(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// one returns the only value that a query finds.
func one(t *testing.T, db *sql.DB, query string) (value string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// terminate ends a program in order.
func terminate(t *testing.T, r images.Running) {
	t.Helper()
	r.Signal(syscall.SIGTERM)
	if code := exit(t, r); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// TestDatabaseKeepsItsVolume: what was written is there for the next container of the volume, and the passwords are
// those of the first. Without a volume nothing is left.
func TestDatabaseKeepsItsVolume(t *testing.T) {
	for name, volume := range map[string]string{"in a volume": t.TempDir(), "in no volume": ""} {
		at, r, log := serveDatabase(t, volume, databaseEnv)
		log.Await(t, name)
		do(t, client(t, at, "ann", "word", "visitors"), "CREATE TABLE t (n INTEGER, s VARCHAR(8))", "INSERT INTO t VALUES (1, NULL), (2, 'two')")
		terminate(t, r)

		at, r, _ = serveDatabase(t, volume, []string{"MYSQL_ROOT_PASSWORD=x", "MYSQL_DATABASE=visitors", "MYSQL_USER=ann", "MYSQL_PASSWORD=other"})
		if volume == "" {
			if _, err := client(t, at, "ann", "other", "visitors").QueryContext(t.Context(), "SELECT * FROM t"); err == nil || !strings.Contains(err.Error(), "no such table") {
				t.Errorf("a new container has the table of the last one: %v", err)
			}
			continue
		}
		db := client(t, at, "ann", "word", "visitors")
		if got := one(t, db, "SELECT sum(n) FROM t"); got != "3" {
			t.Errorf("the sum is %s", got)
		}
		if got := one(t, db, "SHOW TABLES"); got != "t" {
			t.Errorf("the table is %s", got)
		}
		var null sql.NullString
		if err := db.QueryRow("SELECT s FROM t WHERE n = 1").Scan(&null); err != nil || null.Valid {
			t.Errorf("NULL is %+v: %v", null, err)
		}
		if err := db.QueryRow("SELECT s FROM t WHERE n = 7").Scan(&null); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("no row is %v", err)
		}
		terminate(t, r)
	}
}

// TestDatabaseRefuses: passwords, names and statements that it does not take.
func TestDatabaseRefuses(t *testing.T) {
	at, _, _ := serveDatabase(t, t.TempDir(), databaseEnv)
	for name, test := range map[string]struct{ user, password, database, want string }{
		"the password":    {"ann", "wrong", "visitors", "1045"},
		"no password":     {"ann", "", "visitors", "1045"},
		"the user":        {"bob", "word", "visitors", "1045"},
		"the database":    {"root", "root-word", "other", "1049"},
		"nothing":         {"ann", "word", "visitors", ""},
		"nothing of root": {"root", "root-word", "visitors", ""},
	} {
		err := client(t, at, test.user, test.password, test.database).PingContext(t.Context())
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	db := client(t, at, "ann", "word", "visitors")
	outside := filepath.Join(t.TempDir(), "outside")
	for _, statement := range []string{
		"ATTACH DATABASE '" + outside + "' AS o", "SELECT 1; ATTACH DATABASE '" + outside + "' AS o", "GRANT ALL ON *.* TO 'ann'", "SELECT * FROM users", "SELEC",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("it takes %s", statement)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a client made a file of this machine")
	}
}

// TestDatabaseNeedsAPassword: as the real image does, where there is no data yet.
func TestDatabaseNeedsAPassword(t *testing.T) {
	for env, want := range map[string]string{
		"": "none of MYSQL_ROOT_PASSWORD and MYSQL_ALLOW_EMPTY_PASSWORD", "MYSQL_DATABASE=../x": `"../x", which is no name`, "MYSQL_USER=root": "MYSQL_USER is root",
	} {
		c, _ := catalogue(t, "")
		in, log := container(t, "mysql")
		if env != "" {
			in.Env = []string{env, "MYSQL_ROOT_PASSWORD=x"}
		}
		if code := exit(t, start(t, c, in)); code != 1 {
			t.Errorf("%s: it exits with %d", env, code)
		}
		log.Await(t, want)
	}
}

// TestDatabaseInitFile changes a password at every start.
func TestDatabaseInitFile(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "init.sql")
	write(t, file, "ALTER USER IF EXISTS 'ann'@'%' IDENTIFIED BY 'new';\n")
	c, _ := catalogue(t, "")
	serve := func() (at string) {
		in, log := container(t, "mysql:5.7")
		in.Env, in.Args = databaseEnv, []string{"--init-file=/etc/init/init.sql"}
		in.Mounts = []images.Mount{{ContainerPath: "/var/lib/mysql", HostPath: data}, {ContainerPath: "/etc/init", HostPath: filepath.Dir(file)}}
		r := start(t, c, in)
		log.Await(t, "MySQL's protocol")
		t.Cleanup(func() { terminate(t, r) })
		return listening(in, 3306)
	}
	at := serve()
	if err := client(t, at, "ann", "word", "visitors").PingContext(t.Context()); err == nil {
		t.Error("the old password is still good")
	}
	do(t, client(t, at, "ann", "new", "visitors"), "CREATE TABLE t (n INTEGER)")
	write(t, file, "DROP TABLE t;\n")
	in, log := container(t, "mysql:5.7")
	in.Env, in.Args = databaseEnv, []string{"--init-file=/etc/init/init.sql"}
	in.Mounts = []images.Mount{{ContainerPath: "/etc/init", HostPath: filepath.Dir(file)}}
	if code := exit(t, start(t, c, in)); code != 1 {
		t.Errorf("with a statement that is not known it exits with %d", code)
	}
	log.Await(t, "line 1 cannot be run")
}

// TestDatabaseOutlivesItsClients: what is no request ends its connection only.
func TestDatabaseOutlivesItsClients(t *testing.T) {
	at, _, log := serveDatabase(t, "", databaseEnv)
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte{3, 0, 0, 1, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until the server closes it
	log.Await(t, conn.LocalAddr().String())
	if err := client(t, at, "ann", "word", "visitors").PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// site is a network in which each host is a container.
type site map[string]string

// join lets a container reach the hosts, and makes it one.
func (s site) join(in *images.Container) { in.Network = siteNetwork{in.Network.(*loopback), s} }

type siteNetwork struct {
	*loopback
	hosts site
}

func (n siteNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, n.hosts[address])
}

// TestVisitors: each request of the page is a visit, in the database.
func TestVisitors(t *testing.T) {
	hosts := site{}
	run := func(image string, port int, env ...string) (at string) {
		c, _ := catalogue(t, "")
		in, log := container(t, image)
		in.Env = env
		inner := in.Network.(*loopback)
		hosts.join(in)
		start(t, c, in)
		log.Await(t, "is simulated")
		eventually(t, "it listens", func() bool {
			inner.mu.Lock()
			defer inner.mu.Unlock()
			at = inner.ports[port]
			return at != ""
		})
		return at
	}
	hosts["db:3306"], _, _ = serveDatabase(t, t.TempDir(), databaseEnv)
	credentials := []string{"MYSQL_SERVICE_HOST=db", "MYSQL_DATABASE=visitors", "MYSQL_USERNAME=ann"}

	hosts["node-1:30685"] = run("jdob/visitors-service:1.0.0", 8000, append(credentials, "MYSQL_PASSWORD=word")...)
	hosts["ex-backend:8000"] = hosts["node-1:30685"]
	classic := run("jdob/visitors-webui:1.0.0", 3000)
	named := run("jdob/visitors-webui:1.0.0", 3000, "REACT_APP_TITLE=Ann <3", "REACT_APP_SERVICE_HOST=ex-backend", "REACT_APP_SERVICE_PORT=8000")
	for i, want := range []string{"<h1>Visitors Dashboard</h1>\n<p>Visits: 1</p>", "<h1>Ann &lt;3</h1>\n<p>Visits: 2</p>"} {
		status, page := fetched(t, []string{classic, named}[i]+"/")
		if status != http.StatusOK || !strings.Contains(page, want) || !strings.Contains(page, "<td>10.244.1.5</td><td>127.0.0.1</td>") {
			t.Errorf("the answer is %d %s, want %s", status, page, want)
		}
	}
	if status, list := fetched(t, hosts["node-1:30685"]+"/visitors/"); status != http.StatusOK || strings.Count(list, `"service_ip":"10.244.1.5"`) != 2 {
		t.Errorf("the backend lists %d %s", status, list)
	}

	delete(hosts, "ex-backend:8000")
	if status, page := fetched(t, named+"/"); status != http.StatusBadGateway {
		t.Errorf("without a backend: %d %s", status, page)
	}
	c, _ := catalogue(t, "")
	in, log := container(t, "jdob/visitors-service:1.0.0")
	in.Env = append(credentials, "MYSQL_PASSWORD=wrong")
	hosts.join(in)
	waiting := start(t, c, in)
	log.Await(t, "waits for the database at db:3306: Error 1045")
	terminate(t, waiting)
}

// fetched requests a page.
func fetched(t *testing.T, at string) (status int, body string) {
	t.Helper()
	response, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
