//go:build go1.23

package link

// SocketVariable is the environment variable with the path of the lab's unix socket. Without it a linked program
// behaves as it does without the link.
const SocketVariable = "OPERATOR_LAB_LINK"

// PodVariable is the environment variable of a linked program that runs in a pod, as a process of this machine: its value is the pod's
// namespace. The program elects its leader there and serves webhooks at LAB_HOST, with or without a lab.
const PodVariable = "OPERATOR_LAB_POD"

// Header is the header of each request that a linked manager sends to the API server. Its value is an [Origin] as JSON.
// Whoever passes the request on takes it off.
const Header = "Operator-Lab-Reconcile"

// Settings is the first line on the connection, sent by the lab.
type Settings struct {
	// Operator is the operator's name in its events; a second manager of the process is called name-2, and so on.
	Operator string `json:"operator"`
	// LogLevel is the highest recorded verbosity of log lines.
	LogLevel int `json:"logLevel,omitempty"`
	// Mode is that in which the operator begins.
	Mode
	// NoLeaderElection lets managers work without leader election.
	NoLeaderElection bool `json:"noLeaderElection,omitempty"`
	// Namespace is that of leader election, where the program names none.
	Namespace string `json:"namespace,omitempty"`
	// APIServer is the address of the API server that the lab gave the program.
	APIServer string `json:"apiServer,omitempty"`
	// InPod says that the program runs in a pod: addresses to listen on that are given to it on loopback are those of the pod, and
	// it serves webhooks where their port of the pod is on this machine.
	InPod bool `json:"inPod,omitempty"`
	// WebhookPort is the port on 127.0.0.1 of the program's webhook server; 0 leaves the server as it is.
	WebhookPort int `json:"webhookPort,omitempty"`
	// WebhookCertDir is the directory with the server's tls.crt and tls.key.
	WebhookCertDir string `json:"webhookCertDir,omitempty"`
}

// Origin says which reconcile of the operator a request belongs to, in the process's own numbers.
type Origin struct {
	// Seq is that of the newest event in the process's journal when the request was sent.
	Seq int64 `json:"seq"`
	// Reconcile is the number of the reconcile; 0 if the request belongs to none. Then the other fields are empty.
	Reconcile int64 `json:"reconcile,omitempty"`
	// Controller is the name of the controller.
	Controller string `json:"controller,omitempty"`
	// Namespace and Name are the key that is reconciled.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// The values of Order.Do. Those of the loop are the methods of taps.Taps with these names, on the taps of each manager.
const (
	DoPause    = "pause"
	DoResume   = "resume"
	DoStep     = "step"
	DoStepCall = "step-call"
	DoHold     = "hold"
	DoRelease  = "release"
	DoClose    = "close"
	// DoProbe puts a key into a controller's work queue.
	DoProbe = "probe"
	// DoFlush does nothing but send the events so far.
	DoFlush = "flush"
	// DoMetrics asks for the metrics of the process.
	DoMetrics = "metrics"
)

// Order is a line from the lab that asks for something to be done.
type Order struct {
	// ID is the number of the order, from 1.
	ID int64 `json:"id"`
	// Do says what is to be done; an unknown one is acknowledged and does nothing.
	Do string `json:"do"`
	// Actor is who takes the step of DoStep. Default: the person.
	Actor string `json:"actor,omitempty"`
	// Controller, Namespace and Name are the key of DoProbe.
	Controller string `json:"controller,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Message is a line to the lab that is not an event: the acknowledgement of an order, after all events that the order
// caused at once, or a change of the state that nobody asked for.
type Message struct {
	// Ack is the ID of the order that was carried out; 0 if the message answers none.
	Ack int64 `json:"ack,omitempty"`
	// Found is the result of DoProbe.
	Found bool `json:"found,omitempty"`
	// Metrics is the result of DoMetrics, in the text format of Prometheus; empty if there is none.
	Metrics string `json:"metrics,omitempty"`
	// State is the state now; it is in every message.
	State *State `json:"state,omitempty"`
}

// State is what the lab knows of the process's managers without asking.
type State struct {
	// Paused says whether the loop is paused.
	Paused bool `json:"paused,omitempty"`
	// Controllers are the sorted names of the controllers whose work queues exist now, of all managers.
	Controllers []string `json:"controllers,omitempty"`
	// Serving says whether there are controllers, and the workers of all of them take keys.
	Serving bool `json:"serving,omitempty"`
}

// Mode is what the orders so far ask of an operator.
type Mode struct {
	// Paused is asked for by DoPause and the steps, until DoResume.
	Paused bool `json:"paused,omitempty"`
	// HoldWrites is asked for by DoHold and DoStepCall, until DoRelease, DoStep or DoResume.
	HoldWrites bool `json:"holdWrites,omitempty"`
	// Closed is asked for by DoClose: nothing is held any more, and no order changes that.
	Closed bool `json:"closed,omitempty"`
}

// After returns the mode after one more order.
func (m Mode) After(do string) Mode {
	if m.Closed {
		return m
	}
	switch do {
	case DoPause:
		m.Paused = true
	case DoResume:
		m.Paused, m.HoldWrites = false, false
	case DoStep:
		m.Paused, m.HoldWrites = true, false
	case DoStepCall:
		m.Paused, m.HoldWrites = true, true
	case DoHold:
		m.HoldWrites = true
	case DoRelease:
		m.HoldWrites = false
	case DoClose:
		m = Mode{Closed: true}
	}
	return m
}
