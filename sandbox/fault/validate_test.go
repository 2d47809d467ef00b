package fault_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
)

type (
	spec  = v1alpha1.FaultSpec
	match = v1alpha1.FaultMatch
	pod   = v1alpha1.PodFault
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
		{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchGone}, Match: &match{Nth: 2}},
		{Stale: &v1alpha1.StaleFault{For: minute, Restart: true}, Match: &match{Verbs: []string{"create", "apply"}, Subresource: "-"}},
		{Stale: &v1alpha1.StaleFault{Relist: true}, Match: &match{Verbs: []string{"DELETED"}}},
		{Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}}, Match: &match{Verbs: []string{"update"}}},
		{ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kube-scheduler"}, Match: &match{Subresource: "-"}},
		{Pod: &pod{Action: v1alpha1.PodKill, Namespace: "default", Name: "web-*", Selector: map[string]string{"app.kubernetes.io/name": "web"}, Container: "page"}},
		{Pod: &pod{Action: v1alpha1.PodCrash, ExitCode: new(int32(0)), After: minute, For: minute}, Match: &match{Times: new(int32(0))}},
		{Pod: &pod{Action: v1alpha1.PodCrash, After: &metav1.Duration{}}},
		{Pod: &pod{Action: v1alpha1.PodStartLate, After: minute}, ExpireAfter: minute},
		{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: "node-*", For: minute}, Match: &match{Verbs: []string{"get"}}},
		{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeRestart}},
		{Image: &v1alpha1.ImageFault{Name: "quay.io/**:1.*", Error: "unauthorized", Delay: *minute, Namespace: "default", For: minute}},
		{Crash: &v1alpha1.CrashFault{}, Match: &match{Field: "spec", Verbs: []string{"delete", "update"}}},
	} {
		if errs := fault.Validate(s); len(errs) > 0 {
			t.Errorf("%+v: %v", s, errs)
		}
	}
}

func TestInvalid(t *testing.T) {
	api := &v1alpha1.APIFault{}
	watch := &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce}
	negative := metav1.Duration{Duration: -1}
	minute := &metav1.Duration{Duration: time.Minute}
	stale := &v1alpha1.StaleFault{}
	for want, s := range map[string]spec{
		"spec.stale.for: Invalid value":                                                       {Stale: &v1alpha1.StaleFault{For: &metav1.Duration{}}},
		"is none of ADDED, MODIFIED, DELETED: a stale fault begins either":                    {Stale: stale, Match: &match{Verbs: []string{"ADDED", "create"}}},
		"is none of create, update, patch, apply, delete: a stale fault":                      {Stale: stale, Match: &match{Verbs: []string{"create", "DELETED"}}},
		"delete: a stale fault begins either at events or at writes":                          {Stale: stale, Match: &match{Verbs: []string{"get"}}},
		"spec.match.subresource: Forbidden":                                                   {Stale: stale, Match: &match{Subresource: "status"}},
		"spec: Required value: one of crash, hold, api, watch, stale, conflict, controlPlane": {},
		"spec.hold: Forbidden: a fault is one thing, and this one is crash already":           {Crash: &v1alpha1.CrashFault{}, Hold: &v1alpha1.HoldFault{}},
		"spec.expireAfter: Invalid value":                                                     {API: api, ExpireAfter: &metav1.Duration{}},
		`spec.crash.when: Unsupported value: "before": supported values: "Before", "After"`:   {Crash: &v1alpha1.CrashFault{When: "before"}},
		"spec.crash.restartAfter: Invalid value: \"-1ns\": must not be negative":              {Crash: &v1alpha1.CrashFault{RestartAfter: negative}},
		"spec.hold.when: Unsupported value":                                                   {Hold: &v1alpha1.HoldFault{When: "During"}},
		"spec.hold.for: Invalid value":                                                        {Hold: &v1alpha1.HoldFault{For: &metav1.Duration{}}},
		"spec.api.reply: Unsupported value: \"Teapot\"":                                       {API: &v1alpha1.APIFault{Reply: "Teapot"}},
		"spec.api.delay: Invalid value":                                                       {API: &v1alpha1.APIFault{Delay: negative}},
		"spec.api.delay: Required value: the true answer":                                     {API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyTrue}},
		"spec.watch.action: Required value: one of Cut":                                       {Watch: &v1alpha1.WatchFault{}},
		"spec.watch.action: Unsupported value":                                                {Watch: &v1alpha1.WatchFault{Action: "Drop"}},
		"spec.watch.for: Forbidden: only a Delay takes time":                                  {Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut, For: &metav1.Duration{Duration: 1}}},
		"spec.conflict.patch: Invalid value":                                                  {Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte("[]")}}},
		"spec.conflict.patch: Required value":                                                 {Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte("{}")}}},
		"spec.controlPlane.program: Required value: one of etcd":                              {ControlPlane: &v1alpha1.ControlPlaneFault{}},
		"spec.controlPlane.program: Unsupported value: \"kubelet\"":                           {ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kubelet"}},
		"spec.node: Forbidden: a fault is one thing, and this one is pod already": {
			Pod: &pod{Action: v1alpha1.PodKill}, Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost},
		},
		"spec.pod.action: Required value: one of Kill, OOMKill":         {Pod: &pod{Name: "a/b"}},
		"spec.pod.action: Unsupported value: \"kill\"":                  {Pod: &pod{Action: "kill", For: minute}},
		"spec.pod.namespace: Invalid value: \"team-*\"":                 {Pod: &pod{Action: v1alpha1.PodKill, Namespace: "team-*"}},
		"spec.pod.name: Invalid value: \"default/web\"":                 {Pod: &pod{Action: v1alpha1.PodKill, Name: "default/web"}},
		"spec.pod.selector: Invalid value: \"a b\"":                     {Pod: &pod{Action: v1alpha1.PodKill, Selector: map[string]string{"a b": ""}}},
		"spec.pod.container: Invalid value: \"*\"":                      {Pod: &pod{Action: v1alpha1.PodKill, Container: "*"}},
		"spec.pod.exitCode: Forbidden: only a Crash":                    {Pod: &pod{Action: v1alpha1.PodKill, ExitCode: new(int32(1))}},
		"spec.pod.exitCode: Invalid value: 256":                         {Pod: &pod{Action: v1alpha1.PodCrash, ExitCode: new(int32(256))}},
		"spec.pod.after: Required value: how late":                      {Pod: &pod{Action: v1alpha1.PodStartLate}},
		"spec.pod.after: Invalid value: \"0s\"":                         {Pod: &pod{Action: v1alpha1.PodStartLate, After: &metav1.Duration{}}},
		"spec.pod.after: Invalid value: \"-1ns\"":                       {Pod: &pod{Action: v1alpha1.PodCrash, After: &negative}},
		"spec.pod.after: Forbidden: only a Crash and a StartLate":       {Pod: &pod{Action: v1alpha1.PodUnready, After: minute}},
		"spec.pod.for: Forbidden: OOMKill happens once":                 {Pod: &pod{Action: v1alpha1.PodOOMKill, For: minute}},
		"spec.pod.for: Invalid value: \"0s\"":                           {Pod: &pod{Action: v1alpha1.PodUnready, For: &metav1.Duration{}}},
		"spec.node.action: Required value: Lost or Restart":             {Node: &v1alpha1.NodeFault{Name: "node-1"}},
		"spec.node.action: Unsupported value: \"Drained\"":              {Node: &v1alpha1.NodeFault{Action: "Drained"}},
		"spec.node.name: Invalid value: \"node-[12]\"":                  {Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, Name: "node-[12]"}},
		"spec.node.for: Forbidden: only a node that is Lost":            {Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeRestart, For: minute}},
		"spec.image.name: Required value":                               {Image: &v1alpha1.ImageFault{}},
		"spec.image.namespace: Invalid value":                           {Image: &v1alpha1.ImageFault{Name: "nginx", Namespace: "*"}},
		"spec.image.delay: Invalid value":                               {Image: &v1alpha1.ImageFault{Name: "nginx", Delay: negative}},
		"spec.image.for: Invalid value":                                 {Image: &v1alpha1.ImageFault{Name: "nginx", For: &negative}},
		"spec.match.verbs[1]: Unsupported value: \"write\"":             {API: api, Match: &match{Verbs: []string{"get", "write"}}},
		"is a watch event, and only a watch fault has those":            {API: api, Match: &match{Verbs: []string{"ADDED"}}},
		"is a call, and a watch fault has events: ADDED":                {Watch: watch, Match: &match{Verbs: []string{"create"}}},
		"cannot meet a second writer; these can: update":                {Conflict: &v1alpha1.ConflictFault{}, Match: &match{Verbs: []string{"create"}}},
		"spec.match.kind: Invalid value: \"apps/Deployment\"":           {API: api, Match: &match{Kind: "apps/Deployment"}},
		"spec.match.subresource: Forbidden: watch events have none":     {Watch: watch, Match: &match{Subresource: "status"}},
		"spec.match.namespace: Invalid value: \"team-*\"":               {API: api, Match: &match{Namespace: "team-*"}},
		"spec.match.name: Invalid value: \"default/one\"":               {API: api, Match: &match{Name: "default/one"}},
		"spec.match.field: Invalid value: \"spec..a\"":                  {API: api, Match: &match{Field: "spec..a"}},
		"spec.match.field: Invalid value: \"spec\": is changed by no g": {API: api, Match: &match{Field: "spec", Verbs: []string{"get", "delete"}}},
		"spec.match.nth: Invalid value: -1: must be 1 or more":          {API: api, Match: &match{Nth: -1}},
		"spec.match.times: Invalid value: -1":                           {API: api, Match: &match{Times: new(int32(-1))}},
		"spec.match.percent: Invalid value: 101: must be between 1":     {API: api, Match: &match{Percent: 101}},
	} {
		errs := fault.Validate(s)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%v, want one that says %q", errs, want)
		}
	}
	// All errors are reported at once.
	if errs := fault.Validate(spec{API: api, Watch: watch, Match: &match{Nth: -1, Percent: -1}}); len(errs) != 3 {
		t.Error(errs)
	}
}
