package dsh

// #include "shim.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// BackendReport is what was found out about one backend by really running something under it.
type BackendReport struct {
	// Backend is which one.
	Backend Backend
	// Usable: it confines commands here.
	Usable bool
	// Network: it also gives them a network of their own, or none.
	Network bool
	// Version is the version of its interface; 0 when it has none.
	Version int
	// Errno is the error number of what failed; 0 when nothing did, or no system call.
	Errno syscall.Errno
	// Tried is what was tried.
	Tried string
	// Message is what came back.
	Message string
	// Remedy is what would mend it; empty when it works.
	Remedy string
}

// SandboxReport is what confinement this system has.
type SandboxReport struct {
	// Backends are those of the system, in the order in which they are tried by default.
	Backends []BackendReport
	// Facts are those of the system that decide about them, "NAME=VALUE" each.
	Facts []string

	text string
}

// String gives the whole report as text for people.
func (r *SandboxReport) String() string {
	return r.text
}

// SandboxDoctor tries every backend of the system with a shell that does nothing, and reports what works, why not more,
// and what would mend it. It needs no executor.
//
// It takes some milliseconds per backend, and 10 seconds at most when one hangs; it keeps a thread as long as that.
func SandboxDoctor() (*SandboxReport, error) {
	var (
		doctor *C.dsh_doctor_t
		cerr   *C.dsh_error_t
	)
	if status := C.dsh_sandbox_doctor(&doctor, &cerr); status != C.DSH_OK {
		return nil, failure(status, cerr)
	}
	defer C.dsh_doctor_free(doctor)
	info := C.dsh_doctor_info_t{size: C.sizeof_dsh_doctor_info_t}
	if status := C.dsh_doctor_info(doctor, &info, &cerr); status != C.DSH_OK {
		return nil, failure(status, cerr)
	}
	report := &SandboxReport{Facts: goStrings(info.facts, info.facts_len), text: C.GoString(info.text)}
	for _, r := range unsafe.Slice(info.backends, info.backends_len) {
		report.Backends = append(report.Backends, BackendReport{
			Backend: Backend(r.backend),
			Usable:  r.usable != 0,
			Network: r.network != 0,
			Version: int(r.version),
			Errno:   syscall.Errno(r.error_number),
			Tried:   C.GoString(r.tried),
			Message: C.GoString(r.message),
			Remedy:  C.GoString(r.remedy),
		})
	}
	return report, nil
}
