package expression_test

import (
	"context"
	"fmt"
	"log"

	"github.com/operator-lab/operator-lab/scenarios/expression"
)

// An assertion tree is checked against an object; what differs is told with its path.
func ExampleScope_Check() {
	scope := expression.Scope{}.With("most", 3)
	tree := map[string]any{"spec": map[string]any{"(replicas <= $most)": true, "paused": false}}
	object := map[string]any{"spec": map[string]any{"replicas": 5, "paused": false}}
	wrong, err := scope.Check(context.Background(), tree, object)
	if err != nil {
		log.Panic(err)
	}
	for _, e := range wrong {
		fmt.Println(e)
	}
	// Output: spec.(replicas <= $most): Invalid value: false: Expected value: true
}
