package images_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// browser reaches what listens in a container.
func browser(t *testing.T, in *images.Container) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: in.Network.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func ask(t *testing.T, c *http.Client, method, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestThePagesOfTheArticle(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for image, want := range map[string]string{
		"quay.io/daein/prodpage:latest":  "Production Page !\n",
		"quay.io/daein/maintpage:latest": "Maintenance Page !\n",
	} {
		in, log := container(t, image)
		r := start(t, c, in)
		log.Await(t, image+": simulated by operator-lab: it serves /var/www/html on 10.244.1.5:8080\n")
		web := browser(t, in)
		for _, x := range []struct {
			method, path string
			status       int
			body, size   string
		}{
			{"GET", "/", 200, want, fmt.Sprint(len(want))},
			{"GET", "/index.html", 200, want, fmt.Sprint(len(want))},
			{"GET", "/?q=%22%0a", 200, want, fmt.Sprint(len(want))},
			{"POST", "/", 200, want, fmt.Sprint(len(want))},
			{"HEAD", "/", 200, "", "-"},
			{"GET", "/other", 404, "The requested URL was not found", "196"},
			{"GET", "/../etc/passwd", 404, "The requested URL was not found", "196"},
			{"DELETE", "/", 405, "The requested method DELETE is not allowed", "2"},
			{"OPTIONS", "/", 200, "", "-"},
		} {
			answer, body := ask(t, web, x.method, "http://pod:8080"+x.path)
			if answer.StatusCode != x.status || !strings.Contains(body, x.body) || x.status == 200 && body != x.body {
				t.Errorf("%s %s: %s %q", x.method, x.path, answer.Status, body)
			}
			line := regexp.MustCompile(`(?m)^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}\] "` +
				regexp.QuoteMeta(x.method+" "+x.path) + ` HTTP/1\.1" ` + fmt.Sprint(x.status) + " " + x.size)
			eventually(t, "the line of "+x.method+" "+x.path+" in "+log.String(), func() bool { return line.MatchString(log.String()) })
		}
		if answer, _ := ask(t, web, "HEAD", "http://pod:8080/"); answer.ContentLength != int64(len(want)) {
			t.Errorf("HEAD says %d bytes", answer.ContentLength)
		}
		if text, ok := lookup(t, c, image).Program.File("/var/www/html/index.html"); !ok || text != want {
			t.Errorf("its file is %q", text)
		}
		if _, ok := lookup(t, c, image).Program.File("/etc/passwd"); ok {
			t.Error("it has a file that it has not")
		}
		web.CloseIdleConnections()
		r.Signal(syscall.SIGTERM)
		if code := exit(t, r); code != 0 {
			t.Errorf("it exits with %d", code)
		}
	}
}

func TestAPageOfOnesOwn(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, `images:
- name: mine
  page: Mine
  env: {PORT: 80}
  files: {/var/www/html/sub/index.html: Sub, /var/www/html/a.json: "{}", /etc/other: x}
- {name: wrong, page: x, env: {PORT: "99999"}}
`)
	in, log := container(t, "mine")
	start(t, c, in)
	log.Await(t, "10.244.1.5:80\n")
	web := browser(t, in)
	if _, body := ask(t, web, "GET", "http://pod:80/sub/"); body != "Sub" {
		t.Errorf("the folder is %q", body)
	}
	if answer, _ := ask(t, web, "GET", "http://pod:80/sub"); answer.StatusCode != 301 || answer.Header.Get("Location") != "/sub/" {
		t.Errorf("without its slash it is %s %s", answer.Status, answer.Header.Get("Location"))
	}
	if answer, _ := ask(t, web, "GET", "http://pod:80/a.json"); answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", answer.Header)
	}
	if answer, _ := ask(t, web, "GET", "http://pod:80/etc/other"); answer.StatusCode != 404 {
		t.Errorf("a file outside is served: %s", answer.Status)
	}
	wrong, log := container(t, "wrong")
	if code := exit(t, start(t, c, wrong)); code != 1 || !strings.Contains(log.String(), `PORT is "99999"`) {
		t.Errorf("%d %s", code, log)
	}
	in.Image = "nginx" // in the same pod, where the port is taken
	log = in.Stdout.(*output.Output)
	if code := exit(t, start(t, c, in)); code != 1 {
		t.Errorf("it exits with %d", code)
	}
	log.Await(t, "nginx: simulated by operator-lab: it cannot listen on 10.244.1.5:80: address already in use")
}

// narrow is a network that takes little at once, so that a server is still writing while nobody reads.
type narrow struct{ images.Network }

func (n narrow) Listen(port int) (net.Listener, error) {
	l, err := n.Network.Listen(port)
	return narrowListener{l}, err
}

func (n narrow) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := n.Network.DialContext(ctx, network, address)
	if err == nil {
		err = conn.(*net.TCPConn).SetReadBuffer(4096)
	}
	return conn, err
}

type narrowListener struct{ net.Listener }

func (l narrowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return conn, err
}

func TestAPageFinishesWhatItHasBeenAsked(t *testing.T) {
	t.Parallel()
	page := strings.Repeat("0123456789", 6_000)
	c, _ := catalogue(t, "images: [{name: large, page: '"+page+"'}]")
	for _, killed := range []bool{false, true} {
		in, log := container(t, "large")
		in.Network = narrow{in.Network}
		r := start(t, c, in)
		log.Await(t, "serves")
		conn, err := in.Network.DialContext(t.Context(), "tcp", "pod:8080")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		answers := bufio.NewReader(conn)
		if _, err := answers.Peek(1); err != nil {
			t.Fatal(err)
		}
		r.Signal(syscall.SIGTERM)
		log.Await(t, "caught SIGTERM, finishing the requests in flight")
		eventually(t, "the end of its listener", func() bool {
			second, err := in.Network.DialContext(t.Context(), "tcp", "pod:8080")
			if err == nil {
				_ = second.Close()
			}
			return err != nil
		})
		select {
		case <-r.Done():
			t.Fatal("it has ended with a request in flight")
		default:
		}
		if killed {
			r.Signal(syscall.SIGKILL)
			if code := exit(t, r); code != 137 {
				t.Errorf("it exits with %d", code)
			}
			continue
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != page {
			t.Fatalf("the answer has %d bytes: %v", len(body), err)
		}
		if code := exit(t, r); code != 0 {
			t.Errorf("it exits with %d", code)
		}
	}
}

func TestALogThatIsGoneDoesNotStopAPage(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	in, _ := container(t, "nginx")
	in.Stdout = broken{}
	start(t, c, in)
	eventually(t, "a page", func() bool {
		conn, err := in.Network.DialContext(context.WithoutCancel(t.Context()), "tcp", net.JoinHostPort("pod", "80"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	if _, body := ask(t, browser(t, in), "GET", "http://pod:80/"); !strings.Contains(body, "nginx") {
		t.Error(body)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestAPageOfAVolume checks that a volume takes the place of the files that the image has there.
func TestAPageOfAVolume(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for image, root := range map[string]string{"tomcat:9.0": "/usr/local/tomcat/webapps", "nginx": "/usr/share/nginx/html"} {
		in, log := container(t, image)
		volume := t.TempDir()
		if err := os.MkdirAll(filepath.Join(volume, "sample"), 0o700); err != nil {
			t.Fatal(err)
		}
		in.Mounts = append(in.Mounts, images.Mount{ContainerPath: root, HostPath: volume})
		start(t, c, in)
		log.Await(t, "it serves "+root)
		web, url := browser(t, in), "http://pod:8080/sample"
		if image == "nginx" {
			url = "http://pod/sample"
		}
		if answer, _ := ask(t, web, "GET", url+"/"); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s has a page before there is one: %s", image, answer.Status)
		}
		if err := os.WriteFile(filepath.Join(volume, "sample", "index.html"), []byte("from the volume"), 0o600); err != nil {
			t.Fatal(err)
		}
		if answer, body := ask(t, web, "GET", url+"/"); answer.StatusCode != http.StatusOK || body != "from the volume" {
			t.Errorf("%s: %s %q", image, answer.Status, body)
		}
		if answer, _ := ask(t, web, "GET", url); answer.StatusCode != http.StatusMovedPermanently {
			t.Errorf("%s: %s", image, answer.Status)
		}
		if answer, _ := ask(t, web, "GET", strings.TrimSuffix(url, "sample")); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s shows what the volume covers: %s", image, answer.Status)
		}
	}
}
