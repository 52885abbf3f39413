//go:build !dsh_static

package dsh

// #cgo pkg-config: dsh
import "C"
