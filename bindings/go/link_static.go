//go:build dsh_static

package dsh

// The archive comes first and leaves nothing for the -ldsh of pkg-config to resolve, so that the shared library, which
// is installed beside it, is not needed by the program.

// #cgo LDFLAGS: -Wl,--as-needed -l:libdsh.a -lpthread -ldl -lm -lgcc_s
// #cgo pkg-config: dsh
import "C"
