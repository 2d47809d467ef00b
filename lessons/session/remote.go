package session

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox"
)

// Request is a request of another terminal about the running lesson.
type Request string

// The requests.
const (
	Hint     Request = "hint"     // the next hint
	Check    Request = "check"    // look whether the task is done
	Solution Request = "solution" // the solution of the task
	Reset    Request = "reset"    // bring the cluster back to the start of the task
	Back     Request = "back"     // bring the cluster back to the start of the task before
	Next     Request = "next"     // go on to the next task or lesson
	Reply    Request = "answer"   // answer the question of the task
	Where    Request = "place"    // where a shell begins
)

// lessonAddress is the file in the state directory by which other terminals find the running lesson. Only its owner can
// read it. It may be left after a crash: a lesson runs only if its sandbox does.
const lessonAddress = "lesson.json"

// Remote is the address of the lesson that runs in another terminal.
type Remote struct {
	// URL is the URL of the session's server.
	URL string `json:"url"`
	// Token is the bearer token that the server requires.
	Token string `json:"token"`
	// CA is the server's certificate as PEM.
	CA []byte `json:"ca"`
}

// server lets other terminals take part in a session.
type server struct {
	session *Session
	token   string
	server  *http.Server
	// life ends with the session. An undo or a next lesson uses it, so that it continues if the other terminal disconnects.
	life context.Context
	end  context.CancelFunc
}

// serveOthers serves other terminals on loopback, with TLS and a token. It returns nil if that fails: the lesson works
// without the server.
func (s *Session) serveOthers(ctx context.Context) *server {
	l := &server{session: s, token: rand.Text(), server: &http.Server{ReadHeaderTimeout: requestTime}}
	l.server.Handler = l
	l.life, l.end = context.WithCancel(context.WithoutCancel(ctx))
	at, err := l.listen()
	if err == nil {
		err = l.announce(at)
	}
	if err != nil {
		l.close()
		return nil
	}
	return l
}

func (l *server) listen() (Remote, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return Remote{}, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return Remote{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Remote{}, err
	}
	secure := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	go func() { _ = l.server.Serve(secure) }()
	return Remote{URL: "https://" + listener.Addr().String(), Token: l.token, CA: certPEM}, nil
}

// requestTime limits the time to read the headers of a request.
const requestTime = 10 * time.Second

// announce writes the file by which other terminals find the server.
func (l *server) announce(at Remote) error {
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	file := addressFile(l.session.options.State)
	tmp := file + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

// addressFile returns the path of the address. It is not in the sandbox: the next lesson has another sandbox.
func addressFile(state string) string { return filepath.Join(state, lessonAddress) }

// forgetAddress removes the file.
func forgetAddress(state string) { _ = os.Remove(addressFile(state)) }

// close stops the server and cancels the requests it is still serving.
func (l *server) close() {
	forgetAddress(l.session.options.State)
	_ = l.server.Close()
	l.end()
}

// Answer is the answer to a [Request].
type Answer struct {
	// Text is the answer in Markdown; may be empty.
	Text string `json:"text,omitempty"`
	// Done reports whether the task is done.
	Done bool `json:"done"`
	// Place is the answer to [Where].
	Place Place `json:"place,omitzero"`
	// Error says why the request failed; empty if it did not.
	Error string `json:"error,omitempty"`
	// Hint says what the user can do about the error; may be empty.
	Hint string `json:"hint,omitempty"`
}

// ServeHTTP serves a [Request]: its path is the request, and the query parameter text its argument.
func (l *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(l.token)) != 1 {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	what, ctx := Request(strings.TrimPrefix(r.URL.Path, "/")), r.Context()
	if what == Reset || what == Back || what == Next {
		ctx = l.life
	}
	a, err := l.session.asked(ctx, what, r.URL.Query().Get("text"))
	if err != nil {
		a.Error, a.Hint = err.Error(), sandbox.HintOf(err)
	}
	_ = json.NewEncoder(w).Encode(a) // the client may have disconnected
}

// asked carries out a request.
func (s *Session) asked(ctx context.Context, what Request, text string) (Answer, error) {
	t := s.Tutor()
	if t == nil && what != Next { // which opens again a lesson that could not be opened
		return Answer{}, s.Between()
	}
	var err error
	switch what {
	case Where:
		return Answer{Place: s.Place()}, nil
	case Hint:
		err = t.Hint()
		if hints := t.View().Hints; err == nil && len(hints) > 0 { // none: another task has begun meanwhile
			return Answer{Text: hints[len(hints)-1]}, nil
		}
	case Solution:
		t.Solution()
		return Answer{Text: t.View().Solution}, nil
	case Reply:
		err = t.Answer(ctx, text)
	case Check:
		err = t.Check(ctx)
	case Reset:
		err = s.Undo(ctx)
	case Back:
		err = s.Back(ctx)
	case Next:
		err = s.Next(ctx, Opening{})
		if errors.Is(err, ErrBookOver) {
			return Answer{Text: s.BookOver(), Done: true}, nil
		}
	default:
		err = fmt.Errorf("there is no %q", what)
	}
	if t = s.Tutor(); err != nil || t == nil {
		return Answer{}, err
	}
	v := t.View()
	return Answer{Text: s.stands(v), Done: v.Done}, nil
}

// TaskNumber returns the position and the title of a task, such as "2/3  Count the writes".
func TaskNumber(index, of int, title string) string {
	return fmt.Sprintf("%d/%d  %s", index, of, title)
}

// stands returns the state of a task in Markdown.
func (s *Session) stands(v tutor.View) string {
	out := []string{"**" + TaskNumber(v.Index, v.Tasks, v.TaskTitle) + "**"}
	for _, c := range v.Checks {
		line := "- " + s.Text("to do", "まだ") + ": " + c.Text
		if c.Done || v.Done {
			line = "- " + s.Text("done", "達成") + ": " + c.Text
		}
		out = append(out, line)
	}
	text := strings.Join(out[:1], "\n") + "\n\n" + strings.Join(out[1:], "\n")
	if v.Notice != "" {
		text += "\n\n" + v.Notice
	}
	if v.Done {
		text += "\n\n" + v.DoneText
	}
	return text
}

// Find returns the address of the lesson that runs with a state directory; nil if none runs.
func Find(state string) (*Remote, error) {
	record, err := sandbox.Lookup(state, SandboxName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !record.Running {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(state)
}

// read reads the address of the running lesson; nil if there is none.
func read(state string) (*Remote, error) {
	text, err := os.ReadFile(addressFile(state))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var at Remote
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	return &at, err
}

// Ask sends a request with its argument, which may be empty, and returns the answer. The error of an answer is returned as
// a [sandbox.Problem].
func (at *Remote) Ask(ctx context.Context, what Request, text string) (Answer, error) {
	client := at.client()
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL+"/"+string(what)+"?text="+url.QueryEscape(text), nil)
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+at.Token)
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, notAnswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	var a Answer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return Answer{}, notAnswered(fmt.Errorf("%s: %w", response.Status, err))
	}
	if a.Error != "" {
		return a, &sandbox.Problem{Err: errors.New(a.Error), Hint: a.Hint}
	}
	return a, nil
}

// client returns an HTTP client that trusts only the server's certificate.
func (at *Remote) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(at.CA)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}}
}

// notAnswered returns the error of a server that does not answer: the lesson is starting or ending, or has crashed.
func notAnswered(err error) error {
	return &sandbox.Problem{
		Err:  fmt.Errorf("ask the lesson under way: %w", err),
		Hint: "it may be just starting or ending: try again in a moment, or look at the terminal it is in",
	}
}
