package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// savePause is how long the source must have been left alone before it is built: an editor writes several files.
const savePause = 150 * time.Millisecond

// watch builds the project again whenever its source has changed, and gives the operator another life with it. The
// cluster stays as it is. While the source does not compile, the old program runs on.
func (o *ownOperator) watch(s *liveOperator) error {
	if o.command != "" {
		return &sandbox.Problem{Err: fmt.Errorf("%s is not built here", o.command), Hint: "--watch is for projects in Go, Helm charts, and Ansible's roles"}
	}
	var err error
	if o.watcher, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	for _, dir := range o.project.WatchDirs() {
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
	for {
		select {
		case e, open := <-o.watcher.Events:
			if !open {
				return
			}
			if o.project.IsSource(e.Name) && !e.Has(fsnotify.Chmod) {
				saved.Reset(savePause)
			}
		case err, open := <-o.watcher.Errors:
			if !open {
				return
			}
			o.notef(s, "changes of the source may have been missed: %v", "ソースの変更を見落としたかもしれません: %v", err)
			saved.Reset(savePause)
		case <-saved.C:
			o.buildAgain(s)
		}
	}
}

// buildAgain builds the project and starts the operator with it.
func (o *ownOperator) buildAgain(s *liveOperator) {
	began := time.Now()
	applied, err := o.operator.BuildAgain()
	_, refused := errors.AsType[*project.ManifestsError](err)
	switch {
	case err != nil && o.project.IsRead():
		o.notef(s, "the operator runs on as it was, because its files cannot be used: %v", "ファイルを使えないので、オペレーターは元のまま動いています: %v", err)
		return
	case refused:
		o.notef(s, "the operator runs on as it was, because its manifests cannot be applied: %v", "マニフェストを適用できないので、オペレーターは元のまま動いています: %v", err)
		return
	case err != nil:
		o.notef(s, "the operator runs on as it was, because its source does not compile: %v", "ソースをコンパイルできないので、オペレーターは元のまま動いています: %v", err)
		return
	case o.project.IsRead():
		o.notef(s, "its files were read again; the next life begins", "ファイルを読み直しました。オペレーターを新しく起動します")
	case applied:
		o.notef(s, "its manifests have changed and were applied; built again in %.1fs; the next life begins", "変わったマニフェストを適用し、ビルドし直しました (%.1f 秒)。オペレーターを新しく起動します", time.Since(began).Seconds())
	default:
		o.notef(s, "built again in %.1fs; the next life begins", "ビルドし直しました (%.1f 秒)。オペレーターを新しく起動します", time.Since(began).Seconds())
	}
	s.lab.Restart(s.name)
}
