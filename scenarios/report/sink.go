package report

// Nothing is a sink that does nothing; others embed it and do what they are for.
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

// Tee tells several sinks, one after the other.
type Tee []Sink

var _ Sink = Tee(nil)

// BeginRun tells all.
func (tee Tee) BeginRun(r *Run) {
	for _, s := range tee {
		s.BeginRun(r)
	}
}

// BeginTest tells all.
func (tee Tee) BeginTest(t *Test) {
	for _, s := range tee {
		s.BeginTest(t)
	}
}

// BeginStep tells all.
func (tee Tee) BeginStep(t *Test, step *Step) {
	for _, s := range tee {
		s.BeginStep(t, step)
	}
}

// BeginOperation tells all.
func (tee Tee) BeginOperation(t *Test, step *Step, o *Operation) {
	for _, s := range tee {
		s.BeginOperation(t, step, o)
	}
}

// EndOperation tells all.
func (tee Tee) EndOperation(t *Test, step *Step, o *Operation) {
	for _, s := range tee {
		s.EndOperation(t, step, o)
	}
}

// EndStep tells all.
func (tee Tee) EndStep(t *Test, step *Step) {
	for _, s := range tee {
		s.EndStep(t, step)
	}
}

// EndTest tells all.
func (tee Tee) EndTest(t *Test) {
	for _, s := range tee {
		s.EndTest(t)
	}
}

// EndRun tells all.
func (tee Tee) EndRun(r *Run) {
	for _, s := range tee {
		s.EndRun(r)
	}
}
