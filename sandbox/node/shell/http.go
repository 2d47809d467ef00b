package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// client returns an HTTP client with the network of the pod.
func (p *process) client(insecure bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: p.container.Dial, DisableKeepAlives: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transfer holds the options of curl.
type transfer struct {
	url                                                            string
	method, data, output, format, user                             string
	header                                                         http.Header
	silent, showErrors, include, headOnly, fails, follow, insecure bool
	verbose, get, ownName                                          bool
	limit, connectLimit                                            time.Duration
}

// curlOptions are what curl knows.
const curlOptions = "X,request: d,data,data-raw: H,header: o,output: w,write-out: u,user: A,user-agent: m,max-time: connect-timeout: url: " +
	"s,silent S,show-error i,include I,head f,fail L,location k,insecure v,verbose G,get O,remote-name " +
	"4,ipv4 N,no-buffer no-progress-meter http1.1"

func parseCurl(argv []string) (*transfer, error) {
	o, err := parse(argv, curlOptions)
	if wrong, is := errors.AsType[*problemWith](err); is {
		if wrong.noValue {
			return nil, fmt.Errorf("option %s: requires parameter", wrong.option)
		}
		return nil, fmt.Errorf("option %s: is unknown", wrong.option)
	}
	if err != nil {
		return nil, err
	}
	t := &transfer{
		header: http.Header{}, data: strings.Join(o.values["d"], "&"),
		silent: o.has("s"), showErrors: o.has("S"), include: o.has("i"), headOnly: o.has("I"), fails: o.has("f"),
		follow: o.has("L"), insecure: o.has("k"), verbose: o.has("v"), get: o.has("G"), ownName: o.has("O"),
	}
	for option, text := range map[string]*string{"X": &t.method, "o": &t.output, "w": &t.format, "u": &t.user} {
		*text, _ = o.value(option)
	}
	for _, header := range o.values["H"] {
		if name, value, ok := strings.Cut(header, ":"); ok {
			t.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	if agent, given := o.value("A"); given {
		t.header.Set("User-Agent", agent)
	}
	for option, limit := range map[string]*time.Duration{"m": &t.limit, "connect-timeout": &t.connectLimit} {
		if text, given := o.value(option); given {
			if *limit, err = seconds(text); err != nil {
				return nil, err
			}
		}
	}
	switch urls := append(o.values["url"], o.names...); len(urls) {
	case 0:
		return nil, errors.New("no URL specified")
	case 1:
		t.url = urls[0]
	default:
		return nil, errors.New("only one URL at a time, here")
	}
	return t, nil
}

func curl(p *process, argv []string, s streams) int {
	if len(argv) == 2 && (argv[1] == "--version" || argv[1] == "-V") {
		fmt.Fprintln(s.out, "curl, as far as the lab has it\nProtocols: http https")
		return 0
	}
	t, err := parseCurl(argv)
	if err != nil {
		return problem(s, argv, "%v", err) + 1
	}
	at, err := address(t.url)
	if err != nil {
		return t.failed(s, 3, "URL rejected: "+err.Error())
	}
	if at.Scheme != "http" && at.Scheme != "https" {
		return t.failed(s, 1, fmt.Sprintf("Protocol %q not supported", at.Scheme))
	}
	began := time.Now()
	ctx := p.ctx
	if t.limit > 0 {
		limited, cancel := context.WithTimeout(ctx, t.limit)
		defer cancel()
		ctx = limited
	}
	response, err := t.do(ctx, p, at)
	if err != nil {
		code, text := curlProblem(err, at, time.Since(began))
		t.write(s, nil, time.Since(began))
		return t.failed(s, code, text)
	}
	defer func() { _ = response.Body.Close() }()
	return t.show(p, s, response, began)
}

// address parses a URL; without a scheme it is http.
func address(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("malformed input to a URL function")
	}
	if u.Host == "" {
		return nil, errors.New("no host part in the URL")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func (t *transfer) do(ctx context.Context, p *process, at *url.URL) (*http.Response, error) {
	client := p.client(t.insecure)
	if t.follow {
		client.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
			if len(via) > 50 {
				return errors.New("Maximum (50) redirects followed") //nolint:staticcheck // curl's own words
			}
			return nil
		}
	}
	if t.connectLimit > 0 {
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, t.connectLimit)
			defer cancel()
			return p.container.Dial(ctx, network, to)
		}
	}
	data := t.data
	if file, ok := strings.CutPrefix(data, "@"); ok {
		content, err := p.container.Files.ReadFile(p.path(file), maxSorted)
		if err != nil {
			return nil, err
		}
		data = string(content)
	}
	method := http.MethodGet
	switch {
	case t.method != "":
		method = t.method
	case t.headOnly:
		method = http.MethodHead
	case t.data != "" && !t.get:
		method = http.MethodPost
	}
	if t.get {
		at.RawQuery, data = strings.Trim(at.RawQuery+"&"+data, "&"), ""
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), strings.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header = t.header
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "curl/8.0 (operator-lab)")
	}
	if request.Header.Get("Accept") == "" {
		request.Header.Set("Accept", "*/*")
	}
	if data != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	if name, password, ok := strings.Cut(t.user, ":"); ok {
		request.SetBasicAuth(name, password)
	}
	return client.Do(request)
}

// curlProblem is curl's exit code and text.
func curlProblem(err error, at *url.URL, took time.Duration) (int, string) {
	host, port := at.Hostname(), at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	milliseconds := took.Milliseconds()
	var op *net.OpError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case cannotResolve(err):
		return 6, "Could not resolve host: " + host
	case errors.As(err, &op) && op.Op == "dial":
		return 7, fmt.Sprintf("Failed to connect to %s port %s after %d ms: %s", host, port, milliseconds, connectText(err))
	case isTimeout(err):
		return 28, fmt.Sprintf("Operation timed out after %d milliseconds with 0 bytes received", milliseconds)
	case errors.As(err, &certificate):
		return 60, "SSL certificate problem: " + certificate.Err.Error()
	case errors.As(err, &record):
		return 35, "TLS connect error: " + record.Msg
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH):
		return 7, fmt.Sprintf("Failed to connect to %s port %s after %d ms: %s", host, port, milliseconds, connectText(err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return 52, "Empty reply from server"
	case errors.Is(err, syscall.ECONNRESET):
		return 56, "Recv failure: Connection reset by peer"
	}
	if wrapped, is := errors.AsType[*url.Error](err); is {
		err = wrapped.Err
	}
	return 56, err.Error()
}

func connectText(err error) string {
	if isTimeout(err) {
		return "Timeout was reached"
	}
	return "Couldn't connect to server"
}

func (t *transfer) failed(s streams, code int, text string) int {
	if !t.silent || t.showErrors {
		fmt.Fprintf(s.err, "curl: (%d) %s\n", code, text)
	}
	return code
}

func (t *transfer) show(p *process, s streams, r *http.Response, began time.Time) int {
	if t.verbose {
		fmt.Fprintf(s.err, "> %s %s HTTP/1.1\n> Host: %s\n>\n", r.Request.Method, r.Request.URL.RequestURI(), r.Request.URL.Host)
		heading(s.err, r, "< ")
	}
	if t.fails && r.StatusCode >= 400 {
		t.write(s, r, time.Since(began))
		return t.failed(s, 22, fmt.Sprintf("The requested URL returned error: %d", r.StatusCode))
	}
	out := s.out
	if t.ownName {
		t.output = path.Base(r.Request.URL.Path)
	}
	if t.output != "" && t.output != "-" {
		f, err := p.create(t.output, false, s)
		if err != nil {
			return t.failed(s, 23, fmt.Sprintf("client returned ERROR on write: %s: %s", t.output, why(err)))
		}
		defer func() { _ = f.Close() }()
		out = f
	}
	if t.include || t.headOnly {
		heading(out, r, "")
	}
	if err := p.copy(out, r.Body); err != nil {
		if p.ctx.Err() != nil {
			return codeKilled
		}
		if isTimeout(err) {
			return t.failed(s, 28, fmt.Sprintf("Operation timed out after %d milliseconds", time.Since(began).Milliseconds()))
		}
		return t.failed(s, 18, "transfer closed with outstanding read data remaining")
	}
	t.write(s, r, time.Since(began))
	return 0
}

func heading(out io.Writer, r *http.Response, prefix string) {
	fmt.Fprintf(out, "%s%s %s\r\n", prefix, r.Proto, r.Status)
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.Header[name] {
			fmt.Fprintf(out, "%s%s: %s\r\n", prefix, name, value)
		}
	}
	fmt.Fprintf(out, "%s\r\n", prefix)
}

// write is curl's -w.
func (t *transfer) write(s streams, r *http.Response, took time.Duration) {
	if t.format == "" {
		return
	}
	code := "000"
	if r != nil {
		code = strconv.Itoa(r.StatusCode)
	}
	fmt.Fprint(s.out, strings.NewReplacer("%{http_code}", code, "%{response_code}", code,
		"%{time_total}", fmt.Sprintf("%.6f", took.Seconds()), `\n`, "\n", `\t`, "\t").Replace(t.format))
}

// wget is busybox's.
func wget(p *process, argv []string, s streams) int {
	o, err := parse(argv, "q,quiet S,server-response O,output-document: T,timeout: spider")
	if err != nil || len(o.names) != 1 {
		return problem(s, argv, "usage: wget [-q] [-O FILE] [-T SEC] URL")
	}
	at, err := address(o.names[0])
	if err != nil {
		return problem(s, argv, "bad address '%s'", o.names[0])
	}
	t := transfer{header: http.Header{"User-Agent": {"Wget"}}, follow: true}
	ctx := p.ctx
	if text, ok := o.value("T"); ok {
		d, err := seconds(text)
		if err != nil {
			return problem(s, argv, "invalid number '%s'", text)
		}
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx = limited
	}
	if !o.has("q") {
		fmt.Fprintf(s.err, "Connecting to %s (%s)\n", at.Host, at.Host)
	}
	response, err := t.do(ctx, p, at)
	switch {
	case cannotResolve(err):
		return problem(s, argv, "bad address '%s'", at.Host)
	case isTimeout(err):
		return problem(s, argv, "download timed out")
	case err != nil:
		return problem(s, argv, "can't connect to remote host (%s): %s", at.Hostname(), errnoText(err))
	}
	defer func() { _ = response.Body.Close() }()
	if o.has("S") {
		heading(s.err, response, "  ")
	}
	if response.StatusCode != http.StatusOK {
		return problem(s, argv, "server returned error: %s %s", response.Proto, response.Status)
	}
	if o.has("spider") {
		return 0
	}
	name, ok := o.value("O")
	if !ok {
		if name = path.Base(at.Path); name == "/" {
			name = "index.html"
		}
	}
	if name == "-" {
		name = "/dev/stdout"
	}
	f, err := p.create(name, false, s)
	if err != nil {
		return problem(s, argv, "can't open '%s': %s", name, why(err))
	}
	defer func() { _ = f.Close() }()
	if err := p.copy(f, response.Body); err != nil {
		return problem(s, argv, "%s", errnoText(err))
	}
	return 0
}
