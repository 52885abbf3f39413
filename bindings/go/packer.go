package dsh

// #include "shim.h"
import "C"

import (
	"strings"
	"time"
	"unsafe"
)

// packed is texts as the shim takes them: one after the other, each with its NUL.
type packed []byte

// pointer is where the texts begin. They must be alive during the call.
func (p packed) pointer() *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(p)))
}

// packer turns Go values into those of C, and remembers the first one that can't be used.
type packer struct {
	texts packed
	err   error
}

func (p *packer) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *packer) text(field, text string) {
	if strings.IndexByte(text, 0) >= 0 {
		p.note(invalid("%s %q: holds a NUL byte", field, text))
	}
	p.texts = append(append(p.texts, text...), 0)
}

// list adds texts of which a message shows nothing behind the first "=": that may be a secret.
func (p *packer) list(field string, list []string) {
	for _, text := range list {
		if strings.IndexByte(text, 0) >= 0 {
			name, _, _ := strings.Cut(text, "=")
			p.note(invalid("%s %q: holds a NUL byte", field, name))
		}
		p.texts = append(append(p.texts, text...), 0)
	}
}

func (p *packer) millis(field string, d time.Duration) C.uint64_t {
	ms, err := millis(field, d)
	p.note(err)
	return C.uint64_t(ms)
}

func (p *packer) bytes(field string, n int64) C.uint64_t {
	size, err := byteCount(field, n)
	p.note(err)
	return C.uint64_t(size)
}

// goStrings copies a list of texts.
func goStrings(list **C.char, count C.size_t) []string {
	if count == 0 {
		return nil
	}
	texts := make([]string, count)
	for i, text := range unsafe.Slice(list, count) {
		texts[i] = C.GoString(text)
	}
	return texts
}

// goBytes copies bytes; C.GoBytes knows no length beyond 2 GiB.
func goBytes(data unsafe.Pointer, length C.size_t) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(data), length)...)
}
