package dsh

// #include "shim.h"
import "C"

import (
	"io"
	"runtime"
)

// Chunk is what one consuming read gave.
type Chunk struct {
	// Bytes is the new output of both streams as one text: new stdout, then, when there is new stderr, "[stderr]" on a
	// line of its own and that. Empty when there was nothing new.
	Bytes []byte
	// StdoutMissing is how many bytes of stdout had slid out of memory before this read, and are not in it.
	StdoutMissing int64
	// StderrMissing is how many bytes of stderr had.
	StderrMissing int64
	// StdoutSpill is the file that holds the whole stdout; empty when there is none.
	StdoutSpill string
	// StderrSpill is the file that holds the whole stderr; empty when there is none.
	StderrSpill string
	// End: both streams have ended and everything has been given.
	End bool
}

// ReadOutput takes what both streams got since the last call, and does not wait for more. No byte is given twice, also
// not by [Process.Read], which takes from the same. An incomplete UTF-8 sequence at the end waits for the next call.
func (p *Process) ReadOutput() (Chunk, error) {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	chunk, err := p.takeChunk()
	if err == nil && len(p.pending) > 0 {
		chunk.Bytes = append(p.pending, chunk.Bytes...)
		p.pending = nil
	}
	return chunk, err
}

// Read takes output as ReadOutput does, and waits until there is some. It gives io.EOF when both streams have ended, and
// a [LostError] where output is missing.
func (p *Process) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return p.job.await(func() (int, error) { return p.readSome(b) })
}

// readSome gives 0 and no error when there is nothing new.
func (p *Process) readSome(b []byte) (int, error) {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	if len(p.pending) == 0 {
		chunk, err := p.takeChunk()
		switch {
		case err != nil:
			return 0, err
		case chunk.End && len(chunk.Bytes) == 0 && !chunk.lossy():
			return 0, io.EOF
		}
		p.pending = chunk.Bytes
		if chunk.lossy() {
			return 0, &LostError{Bytes: chunk.StdoutMissing + chunk.StderrMissing}
		}
	}
	n := copy(b, p.pending)
	p.pending = p.pending[n:]
	return n, nil
}

func (c *Chunk) lossy() bool {
	return c.StdoutMissing+c.StderrMissing > 0
}

func (p *Process) takeChunk() (Chunk, error) {
	defer runtime.KeepAlive(p)
	handle, err := p.job.enter()
	if err != nil {
		return Chunk{}, err
	}
	defer p.job.exit()
	var (
		chunk *C.dsh_chunk_t
		info  C.dsh_chunk_info_t
		cerr  *C.dsh_error_t
	)
	if status := C.dshgo_read_output(handle, &chunk, &info, &cerr); status != C.DSH_OK {
		return Chunk{}, failure(status, cerr)
	}
	defer C.dsh_chunk_free(chunk)
	return Chunk{
		Bytes:         goBytes(info.data, info.len),
		StdoutMissing: signed(uint64(info.out_missing)),
		StderrMissing: signed(uint64(info.err_missing)),
		StdoutSpill:   C.GoString(info.out_spill_path),
		StderrSpill:   C.GoString(info.err_spill_path),
		End:           info.end != 0,
	}, nil
}
