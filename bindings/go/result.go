package dsh

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// Captured is one stream of a run as it was kept.
type Captured struct {
	// Bytes is what was kept in memory: not promised to be UTF-8, but never cut inside a character by the library.
	Bytes []byte
	// Total is how many bytes the command wrote.
	Total int64
	// Omitted is how many of them are not in Bytes.
	Omitted int64
	// OmittedAt is where in Bytes they are missing: an offset, 0 when only the tail was kept.
	OmittedAt int
	// SpillPath is the file that holds the whole stream from its first byte. Empty when memory was enough, or SpillError
	// says why there is none. The file lives as long as the executor.
	SpillPath string
	// SpillError is why there is no such file although memory was not enough.
	SpillError string
}

// String gives what was kept as text.
func (c Captured) String() string {
	return string(c.Bytes)
}

// Result is what a run gave.
type Result struct {
	Outcome

	// Stdout is its standard output; both streams, when they were merged.
	Stdout Captured
	// Stderr is its standard error.
	Stderr Captured
	// HeldBy are the pids that held the output pipes when the drain limit passed, as far as they could be seen.
	HeldBy []int
	// Survivors are descendants that were still alive.
	Survivors []Survivor
	// Sandbox is what is known of its confinement; nil when nobody has asked for one.
	Sandbox *SandboxFacts
	// Scrubbed are names of host variables that the command did not get because they look like credentials or are denied.
	Scrubbed []string
	// Timeout is the one that was in force.
	Timeout time.Duration
	// InputWritten is how many bytes of input the command took, or were left in the pipe for it.
	InputWritten int64
	// ProcessID is the library's number of the process, unique in its executor.
	ProcessID uint64
}

func result(info *C.dsh_result_info_t, facts *C.dsh_sandbox_facts_t) *Result {
	return &Result{
		Outcome:      outcome(&info.outcome),
		Stdout:       captured(&info.out),
		Stderr:       captured(&info.err),
		HeldBy:       pids(unsafe.Slice(info.held_by, info.held_by_len)),
		Survivors:    survivors(unsafe.Slice(info.survivors, info.survivors_len)),
		Sandbox:      sandboxFacts(facts),
		Scrubbed:     goStrings(info.scrubbed, info.scrubbed_len),
		Timeout:      duration(uint64(info.timeout_ms)),
		InputWritten: signed(uint64(info.input_written)),
		ProcessID:    uint64(info.process_id),
	}
}

func captured(c *C.dsh_captured_t) Captured {
	return Captured{
		Bytes:      goBytes(c.data, c.len),
		Total:      signed(uint64(c.total)),
		Omitted:    signed(uint64(c.omitted)),
		OmittedAt:  int(c.omitted_at),
		SpillPath:  C.GoString(c.spill_path),
		SpillError: C.GoString(c.spill_error),
	}
}
