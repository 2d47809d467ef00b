package cli

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
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox"
)

// What another terminal can ask of the lesson under way.
const (
	remoteHint     = "hint"
	remoteCheck    = "check"
	remoteSolution = "solution"
	remoteReset    = "reset"
	remoteNext     = "next"
	remoteAnswer   = "answer"
	remotePlace    = "place"
)

// lessonAddress is the file by which other terminals find the lesson under way, in the state directory. Only its owner
// can read it. After a crash it may be left: whether a lesson is under way is for its sandbox to say.
const lessonAddress = "lesson.json"

// address of the lesson under way.
type address struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	CA    []byte `json:"ca"`
}

// lessonServer lets other terminals take part in a session.
type lessonServer struct {
	session *session
	token   string
	server  *http.Server
	// life is as long as the session: what has begun goes on when the other terminal hangs up, but not when the lesson is left.
	life context.Context
	end  context.CancelFunc
}

// serveOthers serves on loopback, with TLS and a token. Without it the lesson goes on: it is only that other terminals
// cannot take part, and they say so.
func (s *session) serveOthers(ctx context.Context) *lessonServer {
	l := &lessonServer{session: s, token: rand.Text(), server: &http.Server{ReadHeaderTimeout: remotePatience}}
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

func (l *lessonServer) listen() (address, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return address{}, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return address{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return address{}, err
	}
	secure := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	go func() { _ = l.server.Serve(secure) }()
	return address{URL: "https://" + listener.Addr().String(), Token: l.token, CA: certPEM}, nil
}

// remotePatience is how long a request may take to arrive.
const remotePatience = 10 * time.Second

// announce writes the file by which others find it.
func (l *lessonServer) announce(at address) error {
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	file := addressFile(l.session.state)
	tmp := file + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

// addressFile is where the address is: not in the sandbox, for one lesson follows another in a sandbox of its own.
func addressFile(state string) string { return filepath.Join(state, lessonAddress) }

// forgetAddress removes the file.
func forgetAddress(state string) { _ = os.Remove(addressFile(state)) }

// close refuses what is asked from now on, and has what was asked before given up.
func (l *lessonServer) close() {
	forgetAddress(l.session.state)
	_ = l.server.Close()
	l.end()
}

// answer is what a request gets.
type answer struct {
	// Text in markdown.
	Text  string      `json:"text,omitempty"`
	Done  bool        `json:"done"`
	Place lessonPlace `json:"place,omitzero"`
	Error string      `json:"error,omitempty"`
	Hint  string      `json:"hint,omitempty"`
}

// ServeHTTP does what another terminal asks for.
func (l *lessonServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(l.token)) != 1 {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	what, ctx := strings.TrimPrefix(r.URL.Path, "/"), r.Context()
	if what == remoteReset || what == remoteNext {
		ctx = l.life
	}
	a, err := l.session.asked(ctx, what, r.URL.Query().Get("text"))
	if err != nil {
		a.Error, a.Hint = err.Error(), sandbox.HintOf(err)
	}
	_ = json.NewEncoder(w).Encode(a) // who has hung up is not told
}

// asked does what another terminal asks for.
func (s *session) asked(ctx context.Context, what, text string) (answer, error) {
	t := s.tutor()
	if t == nil && what != remoteNext { // that opens a lesson which could not be opened
		return answer{}, s.between()
	}
	var err error
	switch what {
	case remotePlace:
		return answer{Place: s.place()}, nil
	case remoteHint:
		err = t.Hint()
		if hints := t.View().Hints; err == nil && len(hints) > 0 { // none: the lesson has gone on meanwhile
			return answer{Text: hints[len(hints)-1]}, nil
		}
	case remoteSolution:
		t.Solution()
		return answer{Text: t.View().Solution}, nil
	case remoteAnswer:
		err = t.Answer(ctx, text)
	case remoteCheck:
		err = t.Check(ctx)
	case remoteReset:
		err = s.undo(ctx)
	case remoteNext:
		err = s.next(ctx, opening{step: func(sandbox.Step) {}, say: func(string) {}})
		if errors.Is(err, errBookOver) {
			return answer{Text: s.bookOver(), Done: true}, nil
		}
	default:
		err = fmt.Errorf("there is no %q", what)
	}
	if t = s.tutor(); err != nil || t == nil {
		return answer{}, err
	}
	v := t.View()
	return answer{Text: s.stands(v), Done: v.Done}, nil
}

// stands says how a task stands, in markdown.
func (s *session) stands(v tutor.View) string {
	out := []string{"**" + taskNumber(v.Index, v.Tasks, v.TaskTitle) + "**"}
	for _, c := range v.Checks {
		line := "- " + s.t("to do", "未達成") + ": " + c.Text
		if c.Done || v.Done {
			line = "- " + s.t("done", "達成") + ": " + c.Text
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

// lessonUnderWayAt is the lesson that is under way in some terminal; nil if there is none.
func lessonUnderWayAt() (*address, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	record, err := sandbox.Lookup(state, lessonSandbox)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !record.Running {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(addressFile(state))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var at address
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	return &at, err
}

// ask asks the lesson under way, and prints what it answers.
func (at *address) ask(ctx context.Context, io streams, what, text string) error {
	a, err := at.request(ctx, what, text)
	if err != nil {
		return err
	}
	if a.Text != "" {
		fmt.Fprintln(io.out, strings.TrimRight(tui.Plain(a.Text, plainWidth), "\n"))
	}
	if what == remoteCheck && !a.Done {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (at *address) request(ctx context.Context, what, text string) (answer, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(at.CA)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL+"/"+what+"?text="+url.QueryEscape(text), nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+at.Token)
	response, err := client.Do(request)
	if err != nil {
		return answer{}, notAnswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	var a answer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return answer{}, notAnswered(fmt.Errorf("%s: %w", response.Status, err))
	}
	if a.Error != "" {
		return a, &sandbox.Problem{Err: errors.New(a.Error), Hint: a.Hint}
	}
	return a, nil
}

// notAnswered is the error of a lesson that is just beginning or ending, or has crashed.
func notAnswered(err error) error {
	return &sandbox.Problem{
		Err:  fmt.Errorf("ask the lesson under way: %w", err),
		Hint: "it may be just starting or ending: try again in a moment, or look at the terminal it is in",
	}
}

// mustBeUnderWay is the lesson under way, or says how to open one.
func mustBeUnderWay() (*address, error) {
	at, err := lessonUnderWayAt()
	if err == nil && at == nil {
		err = usageError("open one with 'operator-lab lesson'", "no lesson is under way")
	}
	return at, err
}

func lessonRemoteCommand(io streams, verb, short, what string) *cobra.Command {
	return &cobra.Command{
		Use:   verb,
		Short: short,
		Long:  short + ".\nThe lesson is the one under way in another terminal.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := mustBeUnderWay()
			if err != nil {
				return err
			}
			return at.ask(cmd.Context(), io, what, "")
		},
	}
}

func lessonAnswerCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "answer <number or word>",
		Short: "Answer the question of the task under way",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("such as 'operator-lab lesson answer 3'", "one answer, please")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := mustBeUnderWay()
			if err != nil {
				return err
			}
			return at.ask(cmd.Context(), io, remoteAnswer, args[0])
		},
	}
}

func lessonShellCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "shell [-- command…]",
		Short: "Open a shell where kubectl finds the cluster of the lesson under way",
		Long: `Open a shell in the directory with the manifests of the lesson under way. kubectl, etcdctl and
curl find its cluster there. With a command, run that and end with its exit code.`,
		Example: `  operator-lab lesson shell
  operator-lab lesson shell -- kubectl get pods`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := mustBeUnderWay()
			if err != nil {
				return err
			}
			a, err := at.request(cmd.Context(), remotePlace, "")
			if err != nil {
				return err
			}
			return runShell(cmd.Context(), io, a.Place, args)
		},
	}
}

// runShell runs the learner's shell, or a command where it would be.
func runShell(ctx context.Context, io streams, at lessonPlace, command []string) error {
	cmd, err := lessonShell(at)
	if err != nil {
		return err
	}
	if len(command) > 0 { // not with their own shell: not all of them know "$@"
		dir, environment := cmd.Dir, cmd.Env
		cmd = exec.Command("/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, command...)...)
		cmd.Dir, cmd.Env = dir, environment
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	err = runForeground(ctx, io, cmd, len(command) == 0)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if exited, is := errors.AsType[*exec.ExitError](err); is {
		return &exitError{code: exitCodeOf(exited)}
	}
	return err
}
