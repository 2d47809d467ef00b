package members

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// store is one etcd cluster. It is used by one look at a time.
type store struct {
	observer *Observer
	name     types.NamespacedName
	askers   map[types.UID]*asker

	// object is the EtcdCluster as it was last seen; hadObject reports whether there ever was one.
	object    cluster
	hadObject bool
	// members are the last known members; quorum reports whether they had a quorum.
	members []*pb.Member
	quorum  bool

	// secure is the TLS configuration for clients, secureErr the reason why there is none; both were read at readAt.
	secure    *tls.Config
	secureErr error
	readAt    time.Time
}

// rereadAfter is the time after which certificates are read again.
const rereadAfter = 10 * time.Second

func (s *store) close() {
	for _, a := range s.askers {
		_ = a.conn.Close() // nothing is under way
	}
}

// look asks all members in the pods that list returns.
func (s *store) look(ctx context.Context, list func() []pod) trace.Membership {
	pods := list()
	object, wanted := s.observer.listClusters()[s.name]
	if wanted && s.hadObject && object.uid != s.object.uid {
		s.members, s.quorum = nil, false // another cluster of the same name
	}
	if wanted {
		s.object, s.hadObject = object, true
	}
	if !wanted && isLeaving(pods) {
		return s.gone()
	}
	seen, members := s.see(ctx, pods)
	if s.quorum && !seen.Quorum() && seen.Unknown == "" && s.redial() == nil {
		// While they were asked they may have been deleted with their cluster.
		pods = list()
		if _, wanted := s.observer.listClusters()[s.name]; !wanted && isLeaving(pods) {
			return s.gone()
		}
		// Members are not asked at exactly the same moment: a promotion may happen between two answers. So the loss of
		// a quorum is only reported if a second look confirms it.
		seen, members = s.see(ctx, pods)
	}
	s.members, s.quorum = members, seen.Quorum()
	return seen
}

// gone forgets the members of a cluster that is being removed.
func (s *store) gone() trace.Membership {
	s.members, s.quorum, s.hadObject = nil, false, false
	return trace.Membership{Gone: true}
}

// see asks all members once.
func (s *store) see(ctx context.Context, pods []pod) (trace.Membership, []*pb.Member) {
	answers, unknown := s.ask(ctx, pods)
	seen, members := judge(pods, answers, s.members)
	seen.Unknown = unknown
	return seen, members
}

// redial makes new connections to the members that did not answer.
func (s *store) redial() error {
	for _, a := range s.askers {
		if err := a.redial(); err != nil {
			return err
		}
	}
	return nil
}

// isLeaving reports whether a cluster that is no longer wanted is being removed.
func isLeaving(pods []pod) bool {
	for _, p := range pods {
		if p.leaving {
			return true
		}
	}
	return len(pods) == 0
}

// ask asks all running pods at once. unknown is the reason why none can be asked.
func (s *store) ask(ctx context.Context, pods []pod) (answers map[string]answer, unknown string) {
	s.forgetOthers(pods)
	answers = map[string]answer{}
	var asking sync.WaitGroup
	var mu sync.Mutex
	for _, p := range pods {
		if p.phase != corev1.PodRunning || p.ip == "" {
			continue
		}
		a, err := s.asker(ctx, p)
		if err != nil {
			unknown = err.Error()
			continue
		}
		asking.Go(func() {
			said := a.ask(ctx)
			mu.Lock()
			defer mu.Unlock()
			answers[p.name] = said
		})
	}
	asking.Wait()
	return answers, unknown
}

// forgetOthers closes the connections to pods that no longer exist.
func (s *store) forgetOthers(pods []pod) {
	there := map[types.UID]bool{}
	for _, p := range pods {
		there[p.uid] = true
	}
	for uid, a := range s.askers {
		if !there[uid] {
			_ = a.conn.Close() // the member is gone
			delete(s.askers, uid)
		}
	}
}

func (s *store) asker(ctx context.Context, p pod) (*asker, error) {
	if a := s.askers[p.uid]; a != nil {
		if a.ip == p.ip {
			return a, nil
		}
		_ = a.conn.Close() // the member is gone
		delete(s.askers, p.uid)
	}
	var secure *tls.Config
	if p.secure {
		if time.Since(s.readAt) > rereadAfter {
			s.secure, s.secureErr = s.observer.certificates(ctx, s.name.Namespace, s.object.operatorSecret)
			s.readAt = time.Now()
		}
		if s.secureErr != nil {
			return nil, s.secureErr
		}
		secure = s.secure.Clone()
		secure.ServerName = fmt.Sprintf("%s.%s.%s.svc", p.name, s.name.Name, s.name.Namespace)
	}
	a, err := newAsker(s.observer.options.Dial, address(p.ip), secure)
	if err != nil {
		return nil, err
	}
	a.ip = p.ip
	s.askers[p.uid] = a
	return a, nil
}
