// Package sandboxtest helps to test an operator against a sandbox: one sandbox for all tests of a package, a namespace
// for each test, and waiting until something is true.
//
//	var cluster = sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{}, nil })
//
//	func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, cluster)) }
//
//	func TestOwner(t *testing.T) {
//		n := sandboxtest.NewNamespace(t, cluster.Get(t).Config(), scheme)
//		n.Run(n.Config, ctrl.Options{}, SetupWithManager) // the operator under test
//		n.MustCreate(owner)
//		sandboxtest.Eventually(t, "the child is there", func() bool { return n.Exists(child) })
//	}
//
// Tests that need the operator-lab binary are skipped where there is none.
package sandboxtest
