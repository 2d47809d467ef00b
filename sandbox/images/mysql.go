package images

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
	"modernc.org/sqlite"
)

// database is a small server of MySQL's protocol in place of MySQL. SQLite keeps the data, in a file of MySQL's data
// directory. It has users with passwords, one database and the common statements; it has no privileges, prepared
// statements, TLS or replication.
type database struct{}

const (
	databaseCommand = "mysqld"
	databasePort    = 3306
	databaseDir     = "/var/lib/mysql"
	databaseVersion = "5.7.44-operator-lab"
	// databaseUsers is the file of the users and of the name of their database.
	databaseUsers = "mysql.sqlite"
	databaseRoot  = "root"
)

// File implements [Program].
func (database) File(string) (string, bool) { return "", false }

// Start implements [Program]. Of the arguments of mysqld it knows --init-file, and its log names the others.
func (d database) Start(c *Container) (Running, error) {
	argv := slices.Concat(c.Command, c.Args)
	if len(argv) == 0 || len(c.Command) == 0 && strings.HasPrefix(argv[0], "-") {
		argv = slices.Insert(argv, 0, databaseCommand)
	}
	if path.Base(argv[0]) == databaseCommand {
		return begin(func(t *task) int { return d.run(t, c, argv[1:]) }), nil
	}
	if r := shell(c, c.Command); r != nil {
		return r, nil
	}
	return nil, &exec.Error{Name: argv[0], Err: exec.ErrNotFound}
}

// run serves until a signal ends it.
func (d database) run(t *task, c *Container, args []string) int {
	out := &lines{to: c.Stdout}
	fail := func(err error) int {
		out.printf("operator-lab: %s: %v\n", c.Image, err)
		return 1
	}
	s := &databaseServer{dir: c.hostPath(databaseDir), out: out}
	defer s.close()
	if err := s.open(environment(c, nil)); err != nil {
		return fail(err)
	}
	for _, arg := range args {
		file, is := strings.CutPrefix(arg, "--init-file=")
		if !is {
			out.printf("operator-lab: not used: %s\n", arg)
			continue
		}
		if err := s.initFile(c.hostPath(file)); err != nil {
			return fail(fmt.Errorf("--init-file %s: %w", file, err))
		}
	}
	listener, err := c.Network.Listen(databasePort)
	if err != nil {
		return fail(err)
	}
	lifetime := "in no volume, so it ends with the container"
	if _, mounted := c.mountOf(databaseDir); mounted {
		lifetime = "in a volume"
	}
	out.printf("operator-lab: %s is simulated by a small server of MySQL's protocol, with SQLite: %s, database %q, data in %s (%s)\n",
		c.Image, net.JoinHostPort(c.IP, strconv.Itoa(databasePort)), s.name, databaseDir, lifetime)
	ctx, stop := context.WithCancel(t.life)
	defer stop()
	go s.accept(ctx, listener)
	defer listener.Close() //nolint:errcheck // it serves no more
	return t.await()
}

// databaseServer serves the clients of one container.
type databaseServer struct {
	dir   string // on this machine
	out   *lines
	users *sql.DB // has the users, and the name of the database
	data  *sql.DB // what clients see; nil without a database
	name  string  // of the database
}

// validName keeps the name of a database a name of a file.
var validName = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_$-]{0,63}$`)

// open opens the files. As with the real image, the variables count only for an empty directory: later they change
// neither a password nor a name.
func (s *databaseServer) open(env *variables) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if s.users, err = openFile(filepath.Join(s.dir, databaseUsers)); err != nil {
		return err
	}
	if err := s.initialize(env); err != nil {
		return err
	}
	if err := s.users.QueryRow("SELECT name FROM databases").Scan(&s.name); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	s.data, err = openFile(filepath.Join(s.dir, s.name+".sqlite"))
	return err
}

// openFile opens a file of SQLite, which is made for its owner only. Who writes waits for whoever else does.
func openFile(name string) (*sql.DB, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", name+"?_pragma=busy_timeout(10000)")
}

// initialize fills an empty data directory.
func (s *databaseServer) initialize(env *variables) error {
	tx, err := s.users.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if _, err := tx.Exec("CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, password TEXT NOT NULL);" +
		"CREATE TABLE IF NOT EXISTS databases (name TEXT PRIMARY KEY)"); err != nil {
		return err
	}
	var users int
	if err := tx.QueryRow("SELECT count(*) FROM users").Scan(&users); err != nil || users > 0 {
		return err
	}
	root, name, user, password := env.get("MYSQL_ROOT_PASSWORD"), env.get("MYSQL_DATABASE"), env.get("MYSQL_USER"), env.get("MYSQL_PASSWORD")
	switch {
	case root == "" && env.get("MYSQL_ALLOW_EMPTY_PASSWORD") == "":
		return errors.New("the data directory is empty, and none of MYSQL_ROOT_PASSWORD and MYSQL_ALLOW_EMPTY_PASSWORD is set")
	case name != "" && (!validName.MatchString(name) || strings.EqualFold(name, "mysql")):
		return fmt.Errorf("MYSQL_DATABASE is %q, which is no name of a database here", name)
	case user == databaseRoot:
		return errors.New("MYSQL_USER is root, whose password is MYSQL_ROOT_PASSWORD")
	case (user == "") != (password == ""):
		s.out.printf("operator-lab: no user is made: MYSQL_USER and MYSQL_PASSWORD need each other\n")
		user = ""
	}
	if _, err := tx.Exec("INSERT INTO users VALUES (?, ?)", databaseRoot, root); err != nil {
		return err
	}
	if user != "" {
		if _, err := tx.Exec("INSERT INTO users VALUES (?, ?)", user, password); err != nil {
			return err
		}
	}
	if name != "" {
		if _, err := tx.Exec("INSERT INTO databases VALUES (?)", name); err != nil {
			return err
		}
	}
	s.out.printf("operator-lab: initialized %s\n", databaseDir)
	return tx.Commit()
}

// alterUser is the one statement about users.
var alterUser = regexp.MustCompile(`(?is)^\s*ALTER\s+USER\s+(?:IF\s+EXISTS\s+)?'([^'\\]+)'(?:@'%')?\s+IDENTIFIED\s+BY\s+'([^'\\]*)'\s*;?\s*$`)

// initFile runs the statements of a file, one a line, as root. Only those that change passwords are known.
func (s *databaseServer) initFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return errors.New(plain(err))
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if known, err := s.alter(line); err != nil || !known {
			return errors.Join(err, fmt.Errorf("line %d cannot be run; only ALTER USER … IDENTIFIED BY … is known", i+1))
		}
	}
	return nil
}

// alter runs a statement that changes a password; known is false if it is none. One for a user that does not exist
// changes nothing.
func (s *databaseServer) alter(statement string) (known bool, err error) {
	parts := alterUser.FindStringSubmatch(statement)
	if parts == nil {
		return false, nil
	}
	_, err = s.users.Exec("UPDATE users SET password = ? WHERE name = ?", parts[2], parts[1])
	return true, err
}

func (s *databaseServer) close() {
	for _, db := range []*sql.DB{s.data, s.users} {
		if db != nil {
			_ = db.Close() // everything is written when a statement ends
		}
	}
}

// CheckUsername implements [server.CredentialProvider].
func (s *databaseServer) CheckUsername(name string) (found bool, err error) {
	_, found, err = s.GetCredential(name)
	return found, err
}

// GetCredential implements [server.CredentialProvider]. Nobody is told which users there are.
func (s *databaseServer) GetCredential(name string) (password string, found bool, err error) {
	err = s.users.QueryRow("SELECT password FROM users WHERE name = ?", name).Scan(&password)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, server.ErrAccessDenied
	}
	return password, err == nil, err
}

// accept serves every client until the listener is closed. Their connections end with ctx.
func (s *databaseServer) accept(ctx context.Context, listener net.Listener) {
	protocol := server.NewServer(databaseVersion, mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go s.serve(ctx, protocol, conn)
	}
}

// serve serves one client. What it sends that the library cannot take ends its connection, not this process.
func (s *databaseServer) serve(ctx context.Context, protocol *server.Server, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // whoever is there is served no more
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client := &databaseClient{server: s, ctx: ctx}
	defer client.close()
	defer func() {
		if failure := recover(); failure != nil {
			s.out.printf("operator-lab: a client at %s sent what is no request: %v\n", conn.RemoteAddr(), failure)
		}
	}()
	session, err := protocol.NewCustomizedConn(conn, s, client)
	if err != nil {
		if !errors.Is(err, io.EOF) && !errors.Is(err, mysql.ErrBadConn) { // as a probe ends
			s.out.printf("operator-lab: refused %s: %v\n", conn.RemoteAddr(), err)
		}
		return
	}
	for !session.Closed() && session.HandleCommand() == nil {
	}
}

// databaseClient handles the commands of one client. What it does not know is refused.
type databaseClient struct {
	server *databaseServer
	ctx    context.Context
	conn   *sql.Conn // its own, for its transactions; nil until it has chosen the database
}

func (d *databaseClient) close() {
	if d.conn != nil {
		_ = d.conn.Raw(func(any) error { return driver.ErrBadConn }) // an open transaction is not for the next client
		_ = d.conn.Close()
	}
}

// UseDB implements [server.Handler].
func (d *databaseClient) UseDB(name string) error {
	if d.server.data == nil || name != d.server.name {
		return mysql.NewDefaultError(mysql.ER_BAD_DB_ERROR, name)
	}
	if d.conn != nil {
		return nil
	}
	conn, err := d.server.data.Conn(d.ctx)
	if err != nil {
		return refused(err)
	}
	// Nobody opens other files of this machine.
	if _, err := sqlite.Limit(conn, limitAttached, 0); err != nil {
		return refused(errors.Join(err, conn.Close()))
	}
	d.conn = conn
	return nil
}

// limitAttached is SQLITE_LIMIT_ATTACHED.
const limitAttached = 7

// statements are what SQLite does as MySQL does; the value tells whether they return rows.
var statements = map[string]bool{
	"SELECT": true, "SHOW": true, "INSERT": false, "REPLACE": false, "UPDATE": false, "DELETE": false,
	"CREATE": false, "DROP": false, "ALTER": false, "BEGIN": false, "COMMIT": false, "ROLLBACK": false,
}

// shown are the lists of MySQL that are queries here.
var shown = map[string]string{
	"SHOW TABLES": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
}

// HandleQuery implements [server.Handler].
func (d *databaseClient) HandleQuery(query string) (*mysql.Result, error) {
	query = strings.TrimRight(strings.TrimSpace(query), "; \t\r\n")
	words := strings.Fields(query)
	if len(words) == 0 {
		return nil, mysql.NewDefaultError(mysql.ER_EMPTY_QUERY)
	}
	first := strings.ToUpper(words[0])
	switch {
	case first == "SET":
		return nil, nil // of a session, which has nothing to set
	case first == "USE" && len(words) == 2:
		return nil, d.UseDB(strings.Trim(words[1], "`"))
	}
	rows, known := statements[first]
	if !known {
		return nil, refused(fmt.Errorf("%s is not known", words[0]))
	}
	if d.conn == nil {
		return nil, mysql.NewDefaultError(mysql.ER_NO_DB_ERROR)
	}
	if list, is := shown[strings.ToUpper(strings.Join(words, " "))]; is {
		query = list
	}
	if rows {
		return d.rows(query)
	}
	result, err := d.conn.ExecContext(d.ctx, query)
	if err != nil {
		return nil, refused(err)
	}
	affected, _ := result.RowsAffected() // SQLite has both
	id, _ := result.LastInsertId()
	return &mysql.Result{AffectedRows: uint64(affected), InsertId: uint64(id)}, nil
}

// rows returns what a query finds, as text: a column of SQLite may have values of several types, and one of MySQL may not.
func (d *databaseClient) rows(query string) (*mysql.Result, error) {
	rows, err := d.conn.QueryContext(d.ctx, query)
	if err != nil {
		return nil, refused(err)
	}
	defer rows.Close() //nolint:errcheck // Err has the error
	names, err := rows.Columns()
	if err != nil {
		return nil, refused(err)
	}
	var all [][]any
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, refused(err)
		}
		for i, value := range row {
			if row[i], err = text(value); err != nil {
				return nil, refused(err)
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		return nil, refused(err)
	}
	set, err := mysql.BuildSimpleTextResultset(names, all)
	if err != nil {
		return nil, refused(err)
	}
	return mysql.NewResult(set), nil
}

// text returns a value as MySQL writes it; nil stays nil.
func text(value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	if b, is := value.(bool); is {
		value = map[bool]int64{true: 1}[b]
	}
	return mysql.FormatTextValue(value)
}

// refused is an error for a client.
func refused(err error) error {
	return mysql.NewError(mysql.ER_UNKNOWN_ERROR, "simulated by operator-lab: "+err.Error())
}

// HandleFieldList implements [server.Handler].
func (*databaseClient) HandleFieldList(string, string) ([]*mysql.Field, error) {
	return nil, refused(errors.New("lists of fields are not known"))
}

// HandleStmtPrepare implements [server.Handler].
func (*databaseClient) HandleStmtPrepare(string) (params, columns int, context any, err error) {
	return 0, 0, nil, mysql.NewDefaultError(mysql.ER_UNSUPPORTED_PS)
}

// HandleStmtExecute implements [server.Handler].
func (*databaseClient) HandleStmtExecute(any, string, []any) (*mysql.Result, error) {
	return nil, mysql.NewDefaultError(mysql.ER_UNSUPPORTED_PS)
}

// HandleStmtClose implements [server.Handler].
func (*databaseClient) HandleStmtClose(any) error { return nil }

// HandleOtherCommand implements [server.Handler].
func (*databaseClient) HandleOtherCommand(command byte, _ []byte) error {
	return refused(fmt.Errorf("command %d is not known", command))
}
