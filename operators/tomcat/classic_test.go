package tomcat

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestLongName checks that the error of a Tomcat whose release Helm would not take says how long its name may be, and that
// such a Tomcat can be deleted.
func TestLongName(t *testing.T) {
	tomcat := newTomcat()
	tomcat.SetNamespace("default")
	tomcat.SetUID("e7ef0b6f-e236-11e8-90c9-0eb98ef86d70") // of 25 digits in base 36
	tomcat.SetName(strings.Repeat("a", 27))
	if err := checkReleaseName(tomcat); err != nil {
		t.Errorf("27 characters: %v", err)
	}
	tomcat.SetName(strings.Repeat("a", 28))
	tomcat.SetFinalizers([]string{finalizer})
	key := client.ObjectKeyFromObject(tomcat)
	c := fake.NewClientBuilder().WithObjects(tomcat).Build()
	r := &classic{client: c, cache: c} // nothing to install with
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil || !strings.Contains(err.Error(), "may have 27 characters") {
		t.Errorf("28 characters: %v", err)
	}
	if err := c.Delete(t.Context(), tomcat); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), key, tomcat); !apierrors.IsNotFound(err) {
		t.Errorf("it is not gone: %v", err)
	}
}
