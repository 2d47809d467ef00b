package labapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// Names of the registration.
const (
	systemNamespace = "operator-lab-system"
	service         = "lab-api"
	viewRole        = "operator-lab-view"
)

var apiService = v1alpha1.GroupVersion.Version + "." + v1alpha1.GroupVersion.Group

// registration registers the server with the cluster.
type registration struct {
	client     kubernetes.Interface
	aggregator aggregator.APIServiceInterface
	address    string
	authority  []byte
	// asked is closed when kube-apiserver has asked the server what it serves.
	asked <-chan struct{}
}

// patience limits how long kube-apiserver may take to serve the group. It needs a tenth of a second, but most of a
// minute on a machine that starts twenty sandboxes.
const patience = 2 * time.Minute

// make registers the server, and waits until kube-apiserver serves the group.
func (r *registration) make(ctx context.Context, cluster *rest.Config) error {
	client, err := aggregator.NewForConfig(cluster)
	if err != nil {
		return err
	}
	r.aggregator = client.APIServices()
	return r.renew(ctx)
}

// renew creates the missing parts of the registration.
func (r *registration) renew(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.makeNamespace, r.makeService, r.makeAPIService, r.makeRole, r.await} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *registration) makeNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	_, err := r.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// makeService creates a Service that leads to this machine without DNS, endpoints or a pod network: kube-apiserver
// dials its external name, here an address, and the port of the APIService.
func (r *registration) makeService(ctx context.Context) error {
	host, _, err := net.SplitHostPort(r.address)
	if err != nil {
		return err
	}
	wanted := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: systemNamespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	}
	services := r.client.CoreV1().Services(systemNamespace)
	_, err = services.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	spec, err := json.Marshal(map[string]any{"spec": wanted.Spec})
	if err != nil {
		return err
	}
	_, err = services.Patch(ctx, service, types.MergePatchType, spec, metav1.PatchOptions{})
	return err
}

// makeAPIService registers the group, replacing the registration of a lab that was killed before it could unregister.
func (r *registration) makeAPIService(ctx context.Context) error {
	_, portName, err := net.SplitHostPort(r.address)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(portName, 10, 32)
	if err != nil {
		return err
	}
	port := int32(number)
	wanted := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: apiService},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Service:              &apiregistrationv1.ServiceReference{Namespace: systemNamespace, Name: service, Port: &port},
			CABundle:             r.authority,
			GroupPriorityMinimum: 1000, VersionPriority: 10,
		},
	}
	_, err = r.aggregator.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	spec, err := json.Marshal(map[string]any{"spec": wanted.Spec})
	if err != nil {
		return err
	}
	_, err = r.aggregator.Patch(ctx, apiService, types.MergePatchType, spec, metav1.PatchOptions{})
	return err
}

// makeRole lets users who may view the cluster's objects also view the lab's.
func (r *registration) makeRole(ctx context.Context) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: viewRole, Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupVersion.Group},
			Resources: []string{"operators", v1alpha1.OperatorMetrics, "loops", "faults"},
			Verbs:     []string{"get", "list", "watch"},
		}},
	}
	roles := r.client.RbacV1().ClusterRoles()
	_, err := roles.Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
	}
	return err
}

// await returns when kube-apiserver passes requests on to this server, and its discovery has the group.
func (r *registration) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := errors.New("kube-apiserver does not ask it what it serves")
	poll := r.asked // earlier, discovery may describe an earlier lab
	for {
		select {
		case <-poll:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		}
		served, err := r.served(ctx)
		if served {
			return nil
		}
		if last = err; err == nil {
			last = errors.New("kube-apiserver does not name it in its discovery")
		}
		poll = after(ctx, pollEvery)
	}
}

const pollEvery = 2 * time.Millisecond

// served reports whether kube-apiserver's aggregated discovery document has all resources of the group.
func (r *registration) served(ctx context.Context) (bool, error) {
	group, err := r.discover(ctx)
	if err != nil || group == nil {
		return false, err
	}
	for _, version := range group.Versions {
		if version.Version == v1alpha1.GroupVersion.Version {
			return len(version.Resources) == 3 && version.Freshness != apidiscovery.DiscoveryFreshnessStale, nil
		}
	}
	return false, nil
}

func (r *registration) discover(ctx context.Context) (*apidiscovery.APIGroupDiscovery, error) {
	raw, err := r.client.Discovery().RESTClient().Get().AbsPath("/apis").SetHeader("Accept", discovery.AcceptV2).Do(ctx).Raw()
	if err != nil || !bytes.Contains(raw, []byte(v1alpha1.GroupVersion.Group)) {
		return nil, err
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == v1alpha1.GroupVersion.Group {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// removing limits how long kube-apiserver may take to delete the registration and forget the group. It needs a tenth of
// a second, and many times that on a busy machine. A kube-apiserver that is gone refuses the connection at once.
const removing = 30 * time.Second

// remove unregisters the server and waits until kube-apiserver has forgotten the group. If another lab has replaced the
// registration, it removes nothing.
func (r *registration) remove(ctx context.Context) error {
	if r.aggregator == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removing)
	defer cancel()
	registered, err := r.aggregator.Get(ctx, apiService, metav1.GetOptions{})
	if err != nil || !bytes.Equal(registered.Spec.CABundle, r.authority) {
		return unlessGone(err)
	}
	for _, err := range []error{
		r.aggregator.Delete(ctx, apiService, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &registered.UID}}),
		r.client.RbacV1().ClusterRoles().Delete(ctx, viewRole, metav1.DeleteOptions{}),
		r.client.CoreV1().Services(systemNamespace).Delete(ctx, service, metav1.DeleteOptions{}),
	} {
		if unlessGone(err) != nil {
			return err
		}
	}
	for {
		group, err := r.discover(ctx)
		if err != nil || group == nil {
			return err
		}
		select {
		case <-after(ctx, pollEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
