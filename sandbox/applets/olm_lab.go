package applets

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/images"
)

// seenByLab makes this process an operator of the lab whose file is given, and returns the kubeconfig of the lab's gate, once the lab
// lets it begin. Without a lab it returns its own. When a lab comes or goes, or ends this run or kills it, the process begins anew: as
// after a death, it knows nothing of what it did.
func seenByLab(name, file, kubeconfig string) string {
	life := images.Life{Operator: name, ID: strconv.Itoa(os.Getpid()), Namespace: sandbox.OLMNamespace, Kubeconfig: kubeconfig}
	conn := life.Tell(file)
	if conn == nil {
		go func() {
			if err := images.AwaitLab(file); err != nil {
				fmt.Fprintln(os.Stderr, "no lab can see this program:", err)
				return
			}
			beginAnew()
		}()
		return kubeconfig
	}
	guard.Ready() // how long it waits is for the lab to say
	orders := json.NewDecoder(conn)
	var first images.Order
	if orders.Decode(&first) != nil {
		beginAnew()
	}
	if first.Note != "" {
		fmt.Fprintln(os.Stderr, first.Note)
	}
	for _, v := range first.Env {
		if file, is := strings.CutPrefix(v, "KUBECONFIG="); is {
			kubeconfig = file
		}
	}
	go func() {
		reports := json.NewEncoder(conn)
		for {
			var o images.Order
			if orders.Decode(&o) != nil || o.Signal != 0 { // the lab is gone, or ends or kills this run
				beginAnew()
			}
			if o.Drain != 0 {
				_ = reports.Encode(images.Report{Drained: o.Drain}) // it tells nothing of what it prints
			}
		}
	}()
	return kubeconfig
}

// beginAnew begins this process anew, or ends it.
func beginAnew() {
	fmt.Fprintln(os.Stderr, guard.Restart())
	os.Exit(1)
}
