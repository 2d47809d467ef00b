package images

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The default directory and port of a page, as in the images of the article.
const (
	defaultRoot = "/var/www/html"
	defaultPort = 8080
)

// page is a server of static files, as Apache's httpd is. What a volume of its container has takes the place of its own files.
type page struct {
	root  string
	port  int
	files files
	env   []variable
}

// newPage serves a text as index.html.
func newPage(text, root string, port int) page {
	return page{root: root, port: port, files: files{root + "/index.html": text}}
}

// with adds variables and files.
func (p page) with(env []variable, more files) page {
	p.files = maps.Clone(p.files)
	maps.Copy(p.files, more)
	p.env = env
	return p
}

// File implements [Program].
func (p page) File(name string) (string, bool) { return p.files.content(name) }

// Start implements [Program]. It runs a command of the pod if it is built in. Any other command is taken for the
// server's.
func (p page) Start(c *Container) (Running, error) {
	if r := shell(c, c.Command); r != nil {
		return r, nil
	}
	return begin(func(t *task) int { return p.serve(t, c) }), nil
}

// serve serves until a signal ends it.
func (p page) serve(t *task, c *Container) int {
	out := &lines{to: c.Stdout}
	text := environment(c, p.env).get("PORT")
	port := p.port
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			out.printf("%s: simulated by operator-lab: PORT is %q, which is no port\n", c.Image, text)
			return 1
		}
		port = int(n)
	}
	listener, err := c.Network.Listen(port)
	if err != nil {
		out.printf("%s: simulated by operator-lab: it cannot listen on %s: %v\n", c.Image, net.JoinHostPort(c.IP, strconv.Itoa(port)), err)
		return 1
	}
	out.printf("%s: simulated by operator-lab: it serves %s on %s\n", c.Image, p.root, net.JoinHostPort(c.IP, strconv.Itoa(port)))
	server := &http.Server{
		Handler:           &site{page: p, container: c, modified: time.Now(), log: out},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // httpd does not log clients' mistakes there either
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	for {
		select {
		case err := <-failed:
			if t.life.Err() == nil {
				out.printf("%s: it serves no more: %v\n", c.Image, err)
			}
			_ = server.Close()
			return 1
		case <-t.life:
			_ = server.Close()
			return killed(syscall.SIGKILL)
		case s := <-t.signals:
			if terminates(s) {
				return p.finish(t, server, out, s)
			}
		}
	}
}

// finish completes the open requests and accepts no more.
func (page) finish(t *task, server *http.Server, out *lines, s syscall.Signal) int {
	out.printf("caught %s, finishing the requests in flight\n", signalName(s))
	err := server.Shutdown(t.life)
	_ = server.Close()
	if errors.Is(err, t.life.Err()) && err != nil {
		return killed(syscall.SIGKILL)
	}
	return 0
}

// site answers requests.
type site struct {
	page      page
	container *Container
	modified  time.Time // of the page's own files
	log       *lines
}

// content returns a file: that of the volume that is mounted there, or else the page's own.
func (s *site) content(name string) (text string, modified time.Time, found bool) {
	host, mounted := s.container.mountOf(name)
	if !mounted {
		text, found = s.page.files.content(name)
		return text, s.modified, found
	}
	info, err := os.Stat(host)
	if err != nil || !info.Mode().IsRegular() {
		return "", time.Time{}, false
	}
	raw, err := os.ReadFile(host)
	return string(raw), info.ModTime(), err == nil
}

// ServeHTTP serves one request, and logs it in Apache's common format.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	a := &answer{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = "-"
		}
		size := "-"
		if a.size > 0 {
			size = strconv.FormatInt(a.size, 10)
		}
		s.log.printf("%s - - [%s] \"%s %s %s\" %d %s\n", host, began.Format("02/Jan/2006:15:04:05 -0700"),
			escape(r.Method), escape(r.RequestURI), r.Proto, a.status, size)
	}()
	s.answer(a, r)
}

// allowed are the methods of a static page.
const allowed = "GET,POST,OPTIONS,HEAD"

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "operator-lab")
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", allowed)
		return
	default:
		w.Header().Set("Allow", allowed)
		s.refuse(w, http.StatusMethodNotAllowed, "The requested method "+html.EscapeString(r.Method)+" is not allowed for this URL.")
		return
	}
	name := path.Join(s.page.root, path.Clean("/"+r.URL.Path))
	if strings.HasSuffix(r.URL.Path, "/") {
		name = path.Join(name, "index.html")
	}
	text, modified, found := s.content(name)
	if !found {
		if _, _, folder := s.content(path.Join(name, "index.html")); folder && !strings.HasSuffix(r.URL.Path, "/") {
			http.Redirect(w, r, path.Base(name)+"/", http.StatusMovedPermanently)
			return
		}
		s.refuse(w, http.StatusNotFound, "The requested URL was not found on this server.")
		return
	}
	read := *r
	if r.Method == http.MethodPost {
		read.Method = http.MethodGet // as httpd does with a file
	}
	http.ServeContent(w, &read, name, modified, strings.NewReader(text))
}

// refuse answers as httpd does.
func (s *site) refuse(w http.ResponseWriter, status int, why string) {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">
<html><head>
<title>%s</title>
</head><body>
<h1>%s</h1>
<p>%s</p>
</body></html>
`, title, http.StatusText(status), why)
}

// answer records the status and size of an answer.
type answer struct {
	http.ResponseWriter
	status int
	size   int64
}

// WriteHeader remembers the status.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (a *answer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.size += int64(n)
	return n, err
}

// escape keeps text from a client on one line of the log.
func escape(s string) string {
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}

// lines writes whole lines, from any goroutine.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) printf(format string, args ...any) {
	var line bytes.Buffer
	fmt.Fprintf(&line, format, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(line.Bytes()) // an error of the log cannot be reported anywhere
}
