package dsh

// #cgo noescape dsh_read_stream
// #cgo nocallback dsh_read_stream
// #include "shim.h"
import "C"

import (
	"errors"
	"io"
	"os"
	"runtime"
	"unsafe"
)

// Stream is one of the two streams of a process.
type Stream uint32

const (
	// Stdout is standard output, and standard error too when they are merged.
	Stdout Stream = C.DSH_STDOUT
	// Stderr is standard error.
	Stderr Stream = C.DSH_STDERR
)

// String gives "stdout" or "stderr".
func (s Stream) String() string {
	return nameOf(s, "0", "stdout", "stderr")
}

// Reading is what one read by offset gave.
type Reading struct {
	// Start is the offset of the first byte given; above the one that was asked for when bytes are missing.
	Start int64
	// Len is how many bytes were written to the buffer; 0 when there is nothing new.
	Len int
	// Next is the offset to ask for next.
	Next int64
	// Missing is how many bytes between the offset that was asked for and Start had slid out of memory. The whole stream
	// may be in a file, see [Process.SpillPath].
	Missing int64
	// End: the stream has ended and this read reached its end.
	End bool
}

// ReadStream copies bytes of one stream, from an absolute offset on, and does not wait for any. It consumes nothing, so
// that many readers may read the same bytes, also after the process has ended. An incomplete UTF-8 sequence at the end of
// the stream so far waits for a later call.
func (p *Process) ReadStream(stream Stream, offset int64, b []byte) (Reading, error) {
	if offset < 0 {
		return Reading{}, invalid("offset %d: is negative", offset)
	}
	defer runtime.KeepAlive(p)
	handle, err := p.job.enter()
	if err != nil {
		return Reading{}, err
	}
	defer p.job.exit()
	reading := C.dsh_reading_t{size: C.sizeof_dsh_reading_t}
	var cerr *C.dsh_error_t
	status := C.dsh_read_stream(handle, C.dsh_stream_t(stream), C.uint64_t(offset), unsafe.Pointer(unsafe.SliceData(b)),
		C.size_t(len(b)), &reading, &cerr)
	if status != C.DSH_OK {
		return Reading{}, failure(status, cerr)
	}
	return Reading{
		Start:   signed(uint64(reading.start)),
		Len:     int(reading.len),
		Next:    signed(uint64(reading.next)),
		Missing: signed(uint64(reading.missing)),
		End:     reading.end != 0,
	}, nil
}

// SpillPath is the file that holds a whole stream, once it was too long for memory; empty when there is no such file. It
// lives as long as the executor.
func (p *Process) SpillPath(stream Stream) (string, error) {
	defer runtime.KeepAlive(p)
	handle, err := p.job.enter()
	if err != nil {
		return "", err
	}
	defer p.job.exit()
	path, err := filled(func(buffer *C.char, capacity C.size_t, count *C.size_t, cerr **C.dsh_error_t) C.dsh_status_t {
		return C.dsh_process_spill_path(handle, C.dsh_stream_t(stream), buffer, capacity, count, cerr)
	})
	if err != nil || len(path) == 0 {
		return "", err
	}
	return C.GoString(unsafe.SliceData(path)), nil
}

// StreamReader reads one stream of a process from its first byte on, as an io.Reader. Readers consume nothing, so any
// number of them may read the same stream, each at its own pace. One reader is for one goroutine at a time.
type StreamReader struct {
	process *Process
	stream  Stream
	offset  int64
}

// Stdout gives a new reader of standard output, and of standard error too when they are merged.
func (p *Process) Stdout() *StreamReader {
	return &StreamReader{process: p, stream: Stdout}
}

// Stderr gives a new reader of standard error.
func (p *Process) Stderr() *StreamReader {
	return &StreamReader{process: p, stream: Stderr}
}

// Read waits until there is something to be read. What has slid out of memory is read from the stream's spill file; when
// there is none, Read gives a [LostError], once for each gap.
//
// It gives io.EOF when the stream has ended: when nothing holds the pipe any more, which may be later than Done if the
// command left something behind. Closing the process ends the wait.
func (r *StreamReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return r.process.job.await(func() (int, error) { return r.readSome(b) })
}

// readSome gives 0 and no error when there is nothing new.
func (r *StreamReader) readSome(b []byte) (int, error) {
	reading, err := r.process.ReadStream(r.stream, r.offset, b)
	switch {
	case err != nil:
		return 0, err
	case reading.Missing > 0:
		return r.readMissing(b, reading.Missing)
	case reading.Len == 0 && reading.End:
		return 0, io.EOF
	}
	r.offset = reading.Next
	return reading.Len, nil
}

// readMissing reads what is no longer in memory. It is in the spill file before it slides out.
func (r *StreamReader) readMissing(b []byte, missing int64) (int, error) {
	b = b[:min(int64(len(b)), missing)]
	n, err := r.readSpill(b)
	if n == 0 || err != nil {
		r.offset += missing
		return 0, &LostError{Bytes: missing}
	}
	r.offset += int64(n)
	return n, nil
}

func (r *StreamReader) readSpill(b []byte) (int, error) {
	path, err := r.process.SpillPath(r.stream)
	if err != nil || path == "" {
		return 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := file.ReadAt(b, r.offset)
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, err
}
