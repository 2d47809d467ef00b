package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/operator-lab/operator-lab/sandbox"
)

// savePause is how long the source must have been left alone before it is built: an editor writes several files.
const savePause = 150 * time.Millisecond

// watch builds the project again whenever its source has changed, and gives the operator another life with it. The
// cluster stays as it is. While the source does not compile, the old program runs on.
func (o *ownOperator) watch(s *liveOperator) error {
	if o.command != "" {
		return &sandbox.Problem{Err: fmt.Errorf("%s is not built here", o.command), Hint: "--watch is for projects in Go, and for Helm charts"}
	}
	var err error
	if o.watcher, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	for _, dir := range o.project.SourceDirs {
		if err := o.watcher.Add(dir); err != nil {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
	}
	o.watching.Go(func() { o.follow(s) })
	return nil
}

// follow builds again after changes, until the watcher is closed.
func (o *ownOperator) follow(s *liveOperator) {
	saved := time.NewTimer(0)
	<-saved.C
	defer saved.Stop()
	for lives := 1; ; {
		select {
		case e, open := <-o.watcher.Events:
			if !open {
				return
			}
			if (o.project.Watches != "" || isSource(e.Name)) && !e.Has(fsnotify.Chmod) {
				saved.Reset(savePause)
			}
		case err, open := <-o.watcher.Errors:
			if !open {
				return
			}
			o.note(s, "changes of the source may have been missed: "+err.Error())
			saved.Reset(savePause)
		case <-saved.C:
			if o.buildAgain(s, lives+1) {
				lives++
			}
		}
	}
}

// isSource reports whether a file is part of a program.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".mod", ".sum", ".s":
		return true
	}
	return false
}

// buildAgain builds the project and starts the operator with it; it reports whether that was possible.
func (o *ownOperator) buildAgain(s *liveOperator, life int) bool {
	began := time.Now()
	if err := o.operator.BuildAgain(); err != nil {
		reason := "its source does not compile"
		if o.project.Watches != "" {
			reason = "its charts cannot be read"
		}
		o.note(s, "the operator runs on as it was, because "+reason+": "+err.Error())
		return false
	}
	if o.project.Watches != "" {
		o.note(s, fmt.Sprintf("the charts were read again; life %d begins", life))
		s.lab.Restart(s.name)
		return true
	}
	o.note(s, fmt.Sprintf("built again in %.1fs; life %d begins", time.Since(began).Seconds(), life))
	s.lab.Restart(s.name)
	return true
}
