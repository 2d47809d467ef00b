package node

import (
	"io"
	"sync"
)

// stdin is what somebody who is attached writes and the program reads. A reader waits for a writer; a writer waits for
// the reader, as with a pipe, until the container ends.
type stdin struct {
	reader *io.PipeReader
	writer *io.PipeWriter
	once   sync.Once
}

func newStdin() *stdin {
	s := &stdin{}
	s.reader, s.writer = io.Pipe()
	return s
}

func (s *stdin) Read(p []byte) (int, error) { return s.reader.Read(p) }

func (s *stdin) Write(p []byte) (int, error) { return s.writer.Write(p) }

// end is the end of the file, and of waiting for a reader.
func (s *stdin) end() {
	s.once.Do(func() {
		_ = s.writer.Close()
	})
}
