package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// keepServices ensures that there are the Service by which members find each other, and the one for clients.
func (r *hardenedClusters) keepServices(ctx context.Context, p *clusterPass) error {
	if err := r.keepService(ctx, p, &p.peers, wantedPeers(p)); err != nil {
		return err
	}
	return r.keepService(ctx, p, &p.clients, wantedClients(p))
}

func (r *hardenedClusters) keepService(ctx context.Context, p *clusterPass, there *corev1.Service, want *unstructured.Unstructured) error {
	err := r.keep(ctx, p, there, want)
	extra := there.UID != "" && p.mine(there) && len(there.Spec.Ports) != len(want.Object["spec"].(map[string]any)["ports"].([]any))
	if err != nil && !apierrors.IsInvalid(err) || err == nil && !extra {
		return err
	}
	// Applying adds to the ports what somebody else left there.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": there.UID}, "spec": want.Object["spec"],
	})
	if err != nil {
		return fmt.Errorf("encode the ports: %w", err)
	}
	if err := r.client.Patch(ctx, there, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("replace the ports of Service %s: %w", there.Name, err)
	}
	r.note(p, there, corev1.EventTypeNormal, "Repaired", "Repair", "Repaired Service %s", there.Name)
	return nil
}

// wantedPeers gives each member a name, Ready or not: members must find each other before any of them can be.
func wantedPeers(p *clusterPass) *unstructured.Unstructured {
	u := wantedObject(p.cluster, "v1", "Service", peerService(p.cluster), map[string]any{
		"clusterIP":                corev1.ClusterIPNone,
		"publishNotReadyAddresses": true,
		"selector":                 map[string]any{AppLabel: AppName, ClusterLabel: p.cluster.Name},
		"ports":                    []any{servicePort("client", clientPort), servicePort("peer", peerPort)},
	})
	p.birth.writeTo(u)
	return u
}

// wantedClients leads to the members that vote and are Ready. One that learns has nothing to say to clients, and one that
// is about to go must not get new ones.
func wantedClients(p *clusterPass) *unstructured.Unstructured {
	selector := map[string]any{AppLabel: AppName, ClusterLabel: p.cluster.Name}
	if p.clients.UID == "" || p.anyMarked() || p.birth.Life > 1 || len(p.clients.Spec.Selector) > len(selector) {
		selector[VotingLabel] = "true" // before the first is marked, the clients of an adopted cluster would lose it
	}
	u := wantedObject(p.cluster, "v1", "Service", clientService(p.cluster), map[string]any{
		"selector": selector,
		"ports":    []any{servicePort("client", clientPort)},
	})
	p.birth.writeTo(u)
	return u
}

func servicePort(name string, port int) map[string]any {
	return map[string]any{"name": name, "port": int64(port), "targetPort": int64(port), "protocol": "TCP"}
}

func budgetName(cluster *v1beta2.EtcdCluster) string { return cluster.Name }

// keepBudget ensures that whoever drains nodes leaves a quorum.
func (r *hardenedClusters) keepBudget(ctx context.Context, p *clusterPass) error {
	u := wantedObject(p.cluster, "policy/v1", "PodDisruptionBudget", budgetName(p.cluster), map[string]any{
		"minAvailable": int64(quorum(p.cluster.Spec.Size)),
		"selector":     map[string]any{"matchLabels": map[string]any{AppLabel: AppName, ClusterLabel: p.cluster.Name}},
	})
	p.birth.writeTo(u)
	return r.keep(ctx, p, &p.budget, u)
}

// markVoters labels the pods of members that vote, which the Service for clients looks for, and puts back the labels by
// which all Services find them. It never leads to two lives of a cluster: the members of one lose the label and are gone
// before those of the next get it.
func (r *hardenedClusters) markVoters(ctx context.Context, p *clusterPass) error {
	for _, pod := range p.pods {
		labels := map[string]any{}
		for key, value := range map[string]string{AppLabel: AppName, ClusterLabel: p.cluster.Name, NodeLabel: pod.Name} {
			if pod.Labels[key] != value {
				labels[key] = value
			}
		}
		if p.birth.Token != "" && p.ours(pod) && tokenOf(pod) != p.birth.Token {
			labels[TokenLabel] = p.birth.Token // somebody took it off, and in a later life it would count
		}
		if !p.ours(pod) && pod.Labels[VotingLabel] != "" && !p.servedByBefore() {
			labels[VotingLabel] = nil // of an earlier life: nobody is to write to it any more
		}
		if p.view.quorum && p.birth.Formed && p.ours(pod) {
			m := p.members.named(pod.Name)
			votes := m != nil && m.inEtcd && !m.learner && m.started
			if marked := pod.Labels[VotingLabel] == "true"; votes && !marked && !p.handingOver() {
				labels[VotingLabel] = "true"
			} else if !votes && marked {
				labels[VotingLabel] = nil
			}
		}
		if len(labels) == 0 || pod.DeletionTimestamp != nil {
			continue
		}
		if err := r.patchPod(ctx, pod, map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": labels}}); err != nil {
			return err
		}
	}
	return nil
}

// servedByBefore tells whether the members of before go on serving clients: until the first member has unpacked a backup.
// With the data of a member it is another thing: it does not have what is written to the others from now on.
func (p *clusterState) servedByBefore() bool {
	return !p.birth.Formed && strings.HasPrefix(p.birth.Source, fromRestore)
}

func (p *clusterState) anyMarked() bool {
	for _, pod := range p.pods {
		if pod.Labels[VotingLabel] == "true" {
			return true
		}
	}
	return false
}

// patchPod changes a pod in place. The UID in the patch keeps it from reaching another one of its name.
func (r *clusterWriter) patchPod(ctx context.Context, pod *corev1.Pod, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	err = r.client.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch), fieldOwner)
	if apierrors.IsNotFound(err) {
		return nil // gone meanwhile
	}
	if err != nil {
		return fmt.Errorf("patch Pod %s: %w", pod.Name, err)
	}
	return nil
}
