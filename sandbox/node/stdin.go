package node

import (
	"io"
	"sync"
)

// stdin passes the input of attached clients to the program. As with a pipe, readers and writers wait for each other
// until the container ends.
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

// end closes the input, so that readers see its end.
func (s *stdin) end() {
	s.once.Do(func() {
		_ = s.writer.Close()
	})
}
