// Package names lets etcd find an address for each name of the pod network, which it never dials.
package names

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net"

	"golang.org/x/net/dns/dnsmessage"
)

// Answer makes this process find an address for each name. A joining member compares the URLs of the existing ones by
// their addresses, and gives up if it finds none. It only compares them: to connect, it uses names, through the proxy.
// So a unique made-up address for each name is enough.
func Answer() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answer(theirs)
		return ours, nil
	}}
}

func answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
			return
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeAAAA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.AAAAResource{AAAA: addressOf(q.Name.String())},
			}}
		}
		answer, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// addressOf returns an address of fd00::/8. It has to be so long: a member with the same address as another takes a
// wrong ID when it joins, and never comes up.
func addressOf(name string) (address [16]byte) {
	sum := sha256.Sum256([]byte(name))
	address[0] = 0xfd
	copy(address[1:], sum[:])
	return address
}
