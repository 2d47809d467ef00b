package report

// Nothing is a sink that does nothing. Other sinks embed it and override some of the methods.
type Nothing struct{}

var _ Sink = Nothing{}

// BeginRun does nothing.
func (Nothing) BeginRun(*Run) {}

// BeginTest does nothing.
func (Nothing) BeginTest(*Test) {}

// BeginStep does nothing.
func (Nothing) BeginStep(*Test, *Step) {}

// BeginOperation does nothing.
func (Nothing) BeginOperation(*Test, *Step, *Operation) {}

// EndOperation does nothing.
func (Nothing) EndOperation(*Test, *Step, *Operation) {}

// EndStep does nothing.
func (Nothing) EndStep(*Test, *Step) {}

// EndTest does nothing.
func (Nothing) EndTest(*Test) {}

// EndRun does nothing.
func (Nothing) EndRun(*Run) {}

// Tee passes each call on to several sinks, one after the other.
type Tee []Sink

var _ Sink = Tee(nil)

// BeginRun calls all sinks.
func (tee Tee) BeginRun(r *Run) {
	for _, s := range tee {
		s.BeginRun(r)
	}
}

// BeginTest calls all sinks.
func (tee Tee) BeginTest(t *Test) {
	for _, s := range tee {
		s.BeginTest(t)
	}
}

// BeginStep calls all sinks.
func (tee Tee) BeginStep(t *Test, step *Step) {
	for _, s := range tee {
		s.BeginStep(t, step)
	}
}

// BeginOperation calls all sinks.
func (tee Tee) BeginOperation(t *Test, step *Step, o *Operation) {
	for _, s := range tee {
		s.BeginOperation(t, step, o)
	}
}

// EndOperation calls all sinks.
func (tee Tee) EndOperation(t *Test, step *Step, o *Operation) {
	for _, s := range tee {
		s.EndOperation(t, step, o)
	}
}

// EndStep calls all sinks.
func (tee Tee) EndStep(t *Test, step *Step) {
	for _, s := range tee {
		s.EndStep(t, step)
	}
}

// EndTest calls all sinks.
func (tee Tee) EndTest(t *Test) {
	for _, s := range tee {
		s.EndTest(t)
	}
}

// EndRun calls all sinks.
func (tee Tee) EndRun(r *Run) {
	for _, s := range tee {
		s.EndRun(r)
	}
}
