package dsh

import (
	"context"
	"testing"
)

// deeper calls something so many frames further down.
//
//go:noinline
func deeper(frames int, call func()) {
	if frames == 0 {
		call()
		return
	}
	deeper(frames-1, call)
}

// Go looks at pointers on a stack whenever it has to grow it, and ends the program when one can't be right. The library's
// pointer to no output must not be among them, wherever the stack comes to its end.
func TestWhatHasNoOutputIsReadWhereverTheStackGrows(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: ":"})
	mustWait(t, process)
	for frames := range 120 {
		j, err := ex.core.start(context.Background(), &Command{Script: ":"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "the command to settle", j.settled)
		read := make(chan struct{})
		go deeper(frames, func() {
			defer close(read)
			result, err := j.finish()
			if err != nil || result.Stdout.Bytes != nil {
				t.Errorf("got %+v and %v", result, err)
			}
		})
		within(t, "the result to be read", read)
		read = make(chan struct{})
		go deeper(frames, func() {
			defer close(read)
			chunk, err := process.ReadOutput()
			if err != nil || chunk.Bytes != nil {
				t.Errorf("got %+v and %v", chunk, err)
			}
		})
		within(t, "the chunk to be read", read)
	}
}
