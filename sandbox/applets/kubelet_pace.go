package applets

import (
	"errors"
	"reflect"
	"time"
	"unsafe"

	"k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/kubelet/pleg"
)

// How often the kubelet looks at its containers: upstream does it once a second, because it asks another process about
// hundreds of them; here it reads a map. relistThreshold, after which it takes itself for ill, is upstream's.
const (
	relistPeriod    = 100 * time.Millisecond
	relistThreshold = 3 * time.Minute
)

// lookOften shortens a kubelet's relist period, which no option of it does: what containers do shows in their pod's
// status up to a second sooner, and a deleted pod is gone up to two seconds sooner. It has to come before the kubelet
// runs.
func lookOften(k *kubelet.Kubelet) error {
	field := reflect.ValueOf(k).Elem().FieldByName("pleg")
	if field.IsValid() {
		// The field is not exported: reflection may look at it, but not call it.
		field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		if generator, ok := reflect.TypeAssert[interface{ Update(*pleg.RelistDuration) }](field); ok {
			generator.Update(&pleg.RelistDuration{RelistPeriod: relistPeriod, RelistThreshold: relistThreshold})
			return nil
		}
	}
	return errors.New("the kubelet has no relist period where it was")
}
