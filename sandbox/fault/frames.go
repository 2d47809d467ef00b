package fault

import "io"

// frames splits a stream of JSON objects into single objects without parsing them.
type frames struct {
	r    io.Reader
	buf  []byte
	from int // where the next object, or white space before it, begins in buf
	at   int // buf has been scanned up to here
	err  error

	depth           int
	quoted, escaped bool
	begun           bool // an object has begun at from
}

// chunk is the number of bytes by which the buffer grows; many events are smaller.
const chunk = 16 << 10

// next returns the next object with a newline at its end, as clients that read lines expect it. It is valid until the
// next call. An incomplete object at the end of a broken stream is returned before the error.
func (f *frames) next() ([]byte, error) {
	for {
		if end := f.scan(); end > 0 {
			return f.cut(end), nil
		}
		if f.err != nil {
			return f.rest()
		}
		f.fill()
	}
}

// scan looks for the end of the object; 0 if it is not there yet.
func (f *frames) scan() (end int) {
	for ; f.at < len(f.buf); f.at++ {
		c := f.buf[f.at]
		switch {
		case f.quoted && f.escaped:
			f.escaped = false
		case f.quoted && c == '\\':
			f.escaped = true
		case c == '"':
			f.quoted = !f.quoted
		case f.quoted:
		case c == '{' || c == '[':
			if !f.begun {
				f.from, f.begun = f.at, true
			}
			f.depth++
		case c == '}' || c == ']':
			if f.depth--; f.depth == 0 && f.begun {
				f.at++
				f.begun = false
				return f.at
			}
		}
	}
	return 0
}

// cut returns the object up to its end.
func (f *frames) cut(end int) []byte {
	from := f.from
	f.from = end
	if end < len(f.buf) && f.buf[end] == '\n' {
		f.from, f.at = end+1, end+1
		return f.buf[from : end+1]
	}
	return append(f.buf[from:end:end], '\n')
}

// rest returns an incomplete object after the end of the stream, once.
func (f *frames) rest() ([]byte, error) {
	if f.begun && f.from < len(f.buf) {
		rest := f.buf[f.from:]
		f.begun, f.from, f.at = false, len(f.buf), len(f.buf)
		return rest, nil
	}
	return nil, f.err
}

// fill reads more of the stream into the buffer.
func (f *frames) fill() {
	if f.from == len(f.buf) || f.from >= chunk {
		f.at -= f.from
		f.buf = f.buf[:copy(f.buf, f.buf[f.from:])]
		f.from = 0
	}
	if cap(f.buf)-len(f.buf) < chunk/4 {
		f.buf = append(make([]byte, 0, 2*len(f.buf)+chunk), f.buf...)
	}
	n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	f.err = err
}
