package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// DialThrough connects like [Hub.DialContext], but through the proxy of a hub, which may be in another process. The
// proxy's URL contains its credentials.
func DialThrough(ctx context.Context, proxy, network, address string) (net.Conn, error) {
	if !isTCP(network) {
		return nil, other(address, nil, net.UnknownNetworkError(network))
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, other(address, nil, errNoProxy)
	}
	if _, _, err := splitHostPort(ctx, address); err != nil {
		return nil, err
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, byProxy(address, err)
	}
	c := raw.(*net.TCPConn)
	cancel := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	through, err := connectOver(c, address, credentials(u.User))
	if !cancel() {
		// The connection may have been made, but its deadline has passed.
		err = asTimeout(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, byProxy(address, err)
	}
	return through, nil
}

var errNoProxy = errors.New("the sandbox has no proxy")

// byProxy returns errors of the cluster's network unchanged, and marks other errors as errors of the proxy.
func byProxy(asked string, err error) error {
	if e, is := errors.AsType[*Error](err); is {
		return e
	}
	return other(asked, nil, fmt.Errorf("by way of the sandbox's proxy: %w", err))
}

// credentials returns the header that the proxy requires.
func credentials(user *url.Userinfo) http.Header {
	header := http.Header{}
	if password, has := user.Password(); has {
		as := http.Request{Header: http.Header{}}
		as.SetBasicAuth(user.Username(), password)
		header.Set("Proxy-Authorization", as.Header.Get("Authorization"))
	}
	return header
}
