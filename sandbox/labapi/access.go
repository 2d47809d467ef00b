package labapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
)

// frontProxy describes how kube-apiserver authenticates to the servers behind it and passes on the user of a request.
type frontProxy struct {
	authorities                 *x509.CertPool
	names                       []string
	users, uids, groups, extras []string
}

// readFrontProxy reads it from the ConfigMap in which the cluster publishes it.
func readFrontProxy(ctx context.Context, client kubernetes.Interface) (*frontProxy, error) {
	config, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &frontProxy{authorities: x509.NewCertPool()}
	if !p.authorities.AppendCertsFromPEM([]byte(config.Data["requestheader-client-ca-file"])) {
		return nil, errors.New("the cluster publishes no certificate authority of its front proxy")
	}
	for key, into := range map[string]*[]string{
		"requestheader-allowed-names":        &p.names,
		"requestheader-username-headers":     &p.users,
		"requestheader-uid-headers":          &p.uids,
		"requestheader-group-headers":        &p.groups,
		"requestheader-extra-headers-prefix": &p.extras,
	} {
		if value := config.Data[key]; value != "" {
			if err := json.Unmarshal([]byte(value), into); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return p, nil
}

// tls returns a config that accepts only clients with a certificate of the front proxy's authority.
func (p *frontProxy) tls(own tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    p.authorities,
	}
}

// authenticator accepts the front proxy, but no other holder of a certificate of its authority. The front proxy's own
// requests for schemas have no user: it is authenticated itself.
func (p *frontProxy) authenticator() authenticator.Request {
	options := x509request.DefaultVerifyOptions()
	options.Roots = p.authorities
	return group.NewAuthenticatedGroupAdder(headerrequest.NewDynamicVerifyOptionsSecure(x509request.StaticVerifierFn(options),
		headerrequest.StaticStringSlice(p.names), headerrequest.StaticStringSlice(p.users), headerrequest.StaticStringSlice(p.uids),
		headerrequest.StaticStringSlice(p.groups), headerrequest.StaticStringSlice(p.extras)))
}

// reviewer asks the cluster whether a user may do something. kube-apiserver has asked that before it passed the request
// on; here it is needed for the further question whether a user who may patch may also create.
type reviewer struct{ client kubernetes.Interface }

var _ authorizer.Authorizer = reviewer{}

// Authorize implements [authorizer.Authorizer].
func (r reviewer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	who := a.GetUser()
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for key, values := range who.GetExtra() {
		review.Spec.Extra[key] = values
	}
	if a.IsResourceRequest() {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
			Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		}
	} else {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
	}
	answer, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if answer.Status.Allowed {
		return authorizer.DecisionAllow, answer.Status.Reason, nil
	}
	return authorizer.DecisionNoOpinion, answer.Status.Reason, nil
}
