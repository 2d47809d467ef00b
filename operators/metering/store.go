package metering

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	v1 "github.com/operator-lab/operator-lab/operators/metering/v1"
)

// store is the operator's database: samples, and the rows of reports. Times are in seconds since 1970. What it holds belongs to
// a UID, so that no later object of the same name inherits it.
type store struct {
	db *sql.DB
	// queries runs the SQL of ReportQueries.
	queries *sql.DB
}

const (
	// sqlPatience is how long a query may run.
	sqlPatience = 30 * time.Second
	// sqlLength is how long a value may be, in bytes; SQLite's limit 0.
	sqlLength = 1 << 20
	// maxRows is how many rows one period of a report may have.
	maxRows = 100_000
)

// tables: observed has, for each source, the time in which it was looked at; until is as far as it is imported.
const tables = `
CREATE TABLE IF NOT EXISTS clock (since INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS api (address TEXT NOT NULL, certificate TEXT NOT NULL, key TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS owners (uid TEXT PRIMARY KEY, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, seen INTEGER NOT NULL,
	UNIQUE (kind, namespace, name));
CREATE TABLE IF NOT EXISTS samples (owner TEXT NOT NULL REFERENCES owners ON DELETE CASCADE, timestamp INTEGER NOT NULL, labels TEXT NOT NULL,
	timeprecision INTEGER NOT NULL, amount REAL NOT NULL, PRIMARY KEY (owner, timestamp, labels)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS observed (owner TEXT NOT NULL REFERENCES owners ON DELETE CASCADE, since INTEGER NOT NULL, until INTEGER NOT NULL,
	PRIMARY KEY (owner, since)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS periods (owner TEXT NOT NULL REFERENCES owners ON DELETE CASCADE, since INTEGER NOT NULL, until INTEGER NOT NULL,
	observed INTEGER NOT NULL, columns TEXT NOT NULL, PRIMARY KEY (owner, since)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (owner TEXT NOT NULL REFERENCES owners ON DELETE CASCADE, since INTEGER NOT NULL, n INTEGER NOT NULL,
	row TEXT NOT NULL, PRIMARY KEY (owner, since, n)) WITHOUT ROWID;`

// openStore opens the database in a directory, and makes what is missing. Each rate of the clock has one of its own, since their
// times are not the same.
func openStore(dir string, rate float64) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, fmt.Sprintf("metering-x%g.sqlite", rate))
	options := "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=foreign_keys(1)&_txlock=immediate"
	db, err := sql.Open("sqlite", file+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one writer at a time, without waiting inside of SQLite
	if _, err := db.Exec(tables); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", file, err), db.Close())
	}
	queries, err := sql.Open("sqlite", file+options)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &store{db, queries}, nil
}

func (s *store) close() error { return errors.Join(s.queries.Close(), s.db.Close()) }

// change runs statements in one transaction.
func (s *store) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// since returns when the operator's clock began, which is now if it is new.
func (s *store) since(now time.Time) (since time.Time, err error) {
	var at int64
	err = s.change(context.Background(), func(tx *sql.Tx) error {
		err := tx.QueryRow("SELECT since FROM clock").Scan(&at)
		if errors.Is(err, sql.ErrNoRows) {
			at = now.UnixNano()
			_, err = tx.Exec("INSERT INTO clock VALUES (?)", at)
		}
		return err
	})
	return time.Unix(0, at).UTC(), err
}

// served returns where the HTTP API was last, and its certificate and key; empty before the first time.
func (s *store) served(ctx context.Context) (address string, certificate, key []byte, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT address, certificate, key FROM api").Scan(&address, &certificate, &key)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return address, certificate, key, err
}

// serves keeps what served returns.
func (s *store) serves(ctx context.Context, address string, certificate, key []byte) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM api"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO api VALUES (?, ?, ?)", address, string(certificate), string(key))
		return err
	})
}

// owner is an object that has something in the database.
type owner struct{ uid, kind, namespace, name string }

// claim returns when an object was first seen, and forgets an earlier one of its name. There is a view named after it:
// tableName.
func (s *store) claim(ctx context.Context, o owner, now time.Time) (seen time.Time, err error) {
	var at int64
	if err := s.db.QueryRowContext(ctx, "SELECT seen FROM owners WHERE uid = ?", o.uid).Scan(&at); !errors.Is(err, sql.ErrNoRows) {
		return time.Unix(at, 0).UTC(), err
	}
	at = now.Unix()
	err = s.change(ctx, func(tx *sql.Tx) error {
		if err := forget(ctx, tx, o); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO owners VALUES (?, ?, ?, ?, ?)", o.uid, o.kind, o.namespace, o.name, at); err != nil {
			return err
		}
		if o.kind != kindDataSource {
			return nil // its view has the columns of its query
		}
		_, err := tx.ExecContext(ctx, "CREATE VIEW "+quoted(tableName(o))+" AS SELECT timestamp, timeprecision, labels, amount FROM samples WHERE owner = "+literal(o.uid))
		return err
	})
	return time.Unix(at, 0).UTC(), err
}

// forget drops all that an object of a name had.
func (s *store) forget(ctx context.Context, o owner) error {
	return s.change(ctx, func(tx *sql.Tx) error { return forget(ctx, tx, o) })
}

func forget(ctx context.Context, tx *sql.Tx, o owner) error {
	if _, err := tx.ExecContext(ctx, "DROP VIEW IF EXISTS "+quoted(tableName(o))); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM owners WHERE kind = ? AND namespace = ? AND name = ?", o.kind, o.namespace, o.name)
	return err
}

// The kinds of owners, as tables are named after them.
const (
	kindDataSource = "datasource"
	kindReport     = "report"
)

// tableName names the view of an object. Names of objects have no underscores, so there is one name for each.
func tableName(o owner) string { return strings.Join([]string{o.kind, o.namespace, o.name}, "_") }

// quoted writes a name into SQL, literal a text.
func quoted(name string) string  { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// sample is an amount at a time with labels.
type sample struct {
	labels map[string]string
	amount float64
}

// look writes the samples of a look for each step from since until before until, and drops those that are too old. Without
// samples it says that there were none. From the first look of a life on, since and until are the same.
func (s *store) look(ctx context.Context, uid string, since, until, oldest time.Time, step time.Duration, samples []sample) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, "INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer insert.Close() //nolint:errcheck // the transaction ends it
		for _, sample := range samples {
			labels, err := json.Marshal(sample.labels) // with sorted keys
			if err != nil {
				return err
			}
			for at := since; at.Before(until); at = at.Add(step) {
				if _, err := insert.ExecContext(ctx, uid, at.Unix(), string(labels), int64(step/time.Second), sample.amount); err != nil {
					return err
				}
			}
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM samples WHERE owner = ? AND timestamp < ?", uid, oldest.Unix()); err != nil {
			return err
		}
		extended, err := tx.ExecContext(ctx, "UPDATE observed SET until = max(until, ?) WHERE owner = ? AND since <= ? AND until >= ?",
			until.Unix(), uid, since.Unix(), since.Unix())
		if err != nil {
			return err
		}
		if n, err := extended.RowsAffected(); err != nil || n > 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO observed VALUES (?, ?, ?)", uid, since.Unix(), until.Unix())
		return err
	})
}

// imported returns when the samples of a source begin and end; known is false before the first look.
func (s *store) imported(ctx context.Context, uid string) (since, until time.Time, known bool, err error) {
	var from, to sql.NullInt64
	err = s.db.QueryRowContext(ctx, "SELECT min(since), max(until) FROM observed WHERE owner = ?", uid).Scan(&from, &to)
	return time.Unix(from.Int64, 0).UTC(), time.Unix(to.Int64, 0).UTC(), from.Valid, err
}

// observed returns how much of a period was looked at.
func (s *store) observed(ctx context.Context, uid string, since, until time.Time) (d time.Duration, err error) {
	var seconds sql.NullInt64
	err = s.db.QueryRowContext(ctx, "SELECT sum(min(until, ?) - max(since, ?)) FROM observed WHERE owner = ? AND since < ? AND until > ?",
		until.Unix(), since.Unix(), uid, until.Unix(), since.Unix()).Scan(&seconds)
	return time.Duration(seconds.Int64) * time.Second, err
}

// span is a period, and how much of it was observed.
type span struct {
	since, until time.Time
	observed     time.Duration
}

// done returns the last finished period of a report; nil if there is none.
func (s *store) done(ctx context.Context, uid string) (*span, error) {
	var since, until, observed int64
	err := s.db.QueryRowContext(ctx, "SELECT since, until, observed FROM periods WHERE owner = ? ORDER BY since DESC LIMIT 1", uid).Scan(&since, &until, &observed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, err
	}
	return &span{time.Unix(since, 0).UTC(), time.Unix(until, 0).UTC(), time.Duration(observed) * time.Second}, nil
}

// result is what a query returned. A value is a string, an int64, a float64 or nil.
type result struct {
	columns []string
	rows    [][]any
}

// finish writes the rows of a period, unless they are there, and the report's view. With overwrite it drops those of all other
// periods.
func (s *store) finish(ctx context.Context, o owner, p span, columns []v1.ReportQueryColumn, rows [][]any, overwrite bool) error {
	names, err := json.Marshal(columns)
	if err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		added, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO periods VALUES (?, ?, ?, ?, ?)",
			o.uid, p.since.Unix(), p.until.Unix(), int64(p.observed/time.Second), string(names))
		if err != nil {
			return err
		}
		if n, err := added.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if overwrite {
			if _, err := tx.ExecContext(ctx, "DELETE FROM results WHERE owner = ?", o.uid); err != nil {
				return err
			}
		}
		for i, row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO results VALUES (?, ?, ?, ?)", o.uid, p.since.Unix(), i, string(text)); err != nil {
				return err
			}
		}
		view := quoted(tableName(o))
		if _, err := tx.ExecContext(ctx, "DROP VIEW IF EXISTS "+view); err != nil {
			return err
		}
		fields := make([]string, 0, len(columns))
		for i, c := range columns {
			fields = append(fields, fmt.Sprintf("row ->> %d AS %s", i, quoted(c.Name)))
		}
		_, err = tx.ExecContext(ctx, "CREATE VIEW "+view+" AS SELECT "+strings.Join(fields, ", ")+" FROM results WHERE owner = "+literal(o.uid))
		return err
	})
}

// rows returns the columns of a report's last period, and the rows of all periods; known is false before the first one.
func (s *store) rows(ctx context.Context, uid string) (columns []v1.ReportQueryColumn, rows [][]any, known bool, err error) {
	var text string
	err = s.db.QueryRowContext(ctx, "SELECT columns FROM periods WHERE owner = ? ORDER BY since DESC LIMIT 1", uid).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	if err := json.Unmarshal([]byte(text), &columns); err != nil {
		return nil, nil, false, err
	}
	found, err := s.db.QueryContext(ctx, "SELECT row FROM results WHERE owner = ? ORDER BY since, n", uid)
	if err != nil {
		return nil, nil, false, err
	}
	defer found.Close() //nolint:errcheck // Err says what went wrong
	for found.Next() {
		var row []any
		if err := found.Scan(&text); err != nil {
			return nil, nil, false, err
		}
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return nil, nil, false, err
		}
		rows = append(rows, row)
	}
	return columns, rows, true, found.Err()
}

// run runs the SQL of a ReportQuery. It can read and nothing else.
func (s *store) run(ctx context.Context, query string) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, sqlPatience)
	defer cancel()
	conn, err := s.queries.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	if _, err := sqlite.Limit(conn, 0, sqlLength); err != nil {
		return nil, err
	}
	err = conn.Raw(func(c any) error { return c.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(onlyRead) })
	if err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	r := &result{}
	if r.columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	for rows.Next() {
		if len(r.rows) == maxRows {
			return nil, fmt.Errorf("it has more than %d rows", maxRows)
		}
		row := make([]any, len(r.columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		for i, value := range row {
			if b, is := value.([]byte); is {
				row[i] = string(b)
			}
		}
		r.rows = append(r.rows, row)
	}
	return r, rows.Err()
}

// onlyRead lets a connection read, and nothing else.
func onlyRead(action sqlite.AuthorizerActionCode, _, _, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthFunction, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	}
	return sqlite.AuthorizerDeny
}
