package gate_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/gate"
)

type (
	spec  = v1alpha1.FaultSpec
	match = v1alpha1.FaultMatch
)

func TestValid(t *testing.T) {
	minute := &metav1.Duration{Duration: time.Minute}
	for _, s := range []spec{
		{Crash: &v1alpha1.CrashFault{}},
		{Crash: &v1alpha1.CrashFault{When: v1alpha1.Before}, Match: &match{}, ExpireAfter: minute},
		{Hold: &v1alpha1.HoldFault{For: minute}, Match: &match{Percent: 50, Times: new(int32(0)), Nth: 3, Seed: new(int64(0))}},
		{API: &v1alpha1.APIFault{Delay: *minute}, Match: &match{Verbs: []string{"get", "list", "apply"}, Name: "a*b:c"}},
		{API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyTrue, Delay: *minute}, Released: true},
		{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchDelay, For: minute}, Match: &match{Verbs: []string{"ADDED", "DELETED"}}},
		{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut}, Match: &match{Field: "spec.words[0]", Kind: "songs", Subresource: ""}},
		{Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}}, Match: &match{Verbs: []string{"update"}}},
		{ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kube-scheduler"}, Match: &match{Subresource: "-"}},
		{Crash: &v1alpha1.CrashFault{}, Match: &match{Field: "spec", Verbs: []string{"delete", "update"}}},
	} {
		if errs := gate.Validate(s); len(errs) > 0 {
			t.Errorf("%+v: %v", s, errs)
		}
	}
}

func TestInvalid(t *testing.T) {
	api := &v1alpha1.APIFault{}
	watch := &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce}
	negative := metav1.Duration{Duration: -1}
	for want, s := range map[string]spec{
		"spec: Required value: one of crash, hold, api, watch, conflict and controlPlane":   {},
		"spec.hold: Forbidden: a fault is one thing, and this one is crash already":         {Crash: &v1alpha1.CrashFault{}, Hold: &v1alpha1.HoldFault{}},
		"spec.expireAfter: Invalid value":                                                   {API: api, ExpireAfter: &metav1.Duration{}},
		`spec.crash.when: Unsupported value: "before": supported values: "Before", "After"`: {Crash: &v1alpha1.CrashFault{When: "before"}},
		"spec.crash.restartAfter: Invalid value: \"-1ns\": must not be negative":            {Crash: &v1alpha1.CrashFault{RestartAfter: negative}},
		"spec.hold.when: Unsupported value":                                                 {Hold: &v1alpha1.HoldFault{When: "During"}},
		"spec.hold.for: Invalid value":                                                      {Hold: &v1alpha1.HoldFault{For: &metav1.Duration{}}},
		"spec.api.reply: Unsupported value: \"Teapot\"":                                     {API: &v1alpha1.APIFault{Reply: "Teapot"}},
		"spec.api.delay: Invalid value":                                                     {API: &v1alpha1.APIFault{Delay: negative}},
		"spec.api.delay: Required value: the true answer":                                   {API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyTrue}},
		"spec.watch.action: Required value: one of Cut":                                     {Watch: &v1alpha1.WatchFault{}},
		"spec.watch.action: Unsupported value":                                              {Watch: &v1alpha1.WatchFault{Action: "Drop"}},
		"spec.watch.for: Forbidden: only a Delay takes time":                                {Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut, For: &metav1.Duration{Duration: 1}}},
		"spec.conflict.patch: Invalid value":                                                {Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte("[]")}}},
		"spec.conflict.patch: Required value":                                               {Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte("{}")}}},
		"spec.controlPlane.program: Required value: one of etcd":                            {ControlPlane: &v1alpha1.ControlPlaneFault{}},
		"spec.controlPlane.program: Unsupported value: \"kubelet\"":                         {ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kubelet"}},
		"spec.match.verbs[1]: Unsupported value: \"write\"":                                 {API: api, Match: &match{Verbs: []string{"get", "write"}}},
		"is a watch event, and only a watch fault has those":                                {API: api, Match: &match{Verbs: []string{"ADDED"}}},
		"is a call, and a watch fault has events: ADDED":                                    {Watch: watch, Match: &match{Verbs: []string{"create"}}},
		"cannot meet a second writer; these can: update":                                    {Conflict: &v1alpha1.ConflictFault{}, Match: &match{Verbs: []string{"create"}}},
		"spec.match.kind: Invalid value: \"apps/Deployment\"":                               {API: api, Match: &match{Kind: "apps/Deployment"}},
		"spec.match.subresource: Forbidden: watch events have none":                         {Watch: watch, Match: &match{Subresource: "status"}},
		"spec.match.namespace: Invalid value: \"team-*\"":                                   {API: api, Match: &match{Namespace: "team-*"}},
		"spec.match.name: Invalid value: \"default/one\"":                                   {API: api, Match: &match{Name: "default/one"}},
		"spec.match.field: Invalid value: \"spec..a\"":                                      {API: api, Match: &match{Field: "spec..a"}},
		"spec.match.field: Invalid value: \"spec\": is changed by no g":                     {API: api, Match: &match{Field: "spec", Verbs: []string{"get", "delete"}}},
		"spec.match.nth: Invalid value: -1: must be 1 or more":                              {API: api, Match: &match{Nth: -1}},
		"spec.match.times: Invalid value: -1":                                               {API: api, Match: &match{Times: new(int32(-1))}},
		"spec.match.percent: Invalid value: 101: must be between 1":                         {API: api, Match: &match{Percent: 101}},
	} {
		errs := gate.Validate(s)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%v, want one that says %q", errs, want)
		}
	}
	// All that is wrong is told at once.
	if errs := gate.Validate(spec{API: api, Watch: watch, Match: &match{Nth: -1, Percent: -1}}); len(errs) != 3 {
		t.Error(errs)
	}
}
