package dsh

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// numbers is what seq prints.
func numbers(last int) string {
	var text strings.Builder
	for i := range last {
		fmt.Fprintln(&text, i+1)
	}
	return text.String()
}

func TestReadersCoexist(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "for i in {1..500}; do echo $i; echo e$i >&2; done"})
	want := numbers(500)
	var group sync.WaitGroup
	for range 8 {
		group.Add(2)
		go func() {
			defer group.Done()
			text, err := io.ReadAll(process.Stdout())
			equal(t, "stdout", string(text), want)
			equal(t, "error", err, nil)
		}()
		go func() {
			defer group.Done()
			text, err := io.ReadAll(iotest.HalfReader(process.Stderr()))
			equal(t, "stderr", string(text), "e"+strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n", "\ne")+"\n")
			equal(t, "error", err, nil)
		}()
	}
	group.Wait()
	text, err := io.ReadAll(process.Stdout())
	equal(t, "after the end", string(text), want)
	equal(t, "error", err, nil)
}

func TestAReaderSeesLinesAsTheyCome(t *testing.T) {
	ex := newExecutor(t)
	mark := t.TempDir() + "/step"
	process := mustStart(t, ex, Command{
		Script: "for i in 1 2 3; do echo $i; while [ ! -e " + mark + "$i ]; do sleep 0.01; done; done",
	})
	lines := bufio.NewScanner(process.Stdout())
	for _, step := range []string{"1", "2", "3"} {
		if !lines.Scan() || lines.Text() != step {
			t.Fatalf("got %q, want %q: %v", lines.Text(), step, lines.Err())
		}
		if err := os.WriteFile(mark+step, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "more", lines.Scan(), false)
	equal(t, "error", lines.Err(), nil)
}

func TestAReaderOfSingleBytesSeesWholeCharacters(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: `printf 'a€😀é'; printf '\xe2\x82'`})
	text, err := io.ReadAll(iotest.OneByteReader(process.Stdout()))
	equal(t, "text", string(text), "a€😀é\xe2\x82")
	equal(t, "error", err, nil)
}

func TestASlowReaderGetsFromTheFileWhatHasLeftMemory(t *testing.T) {
	ex := newExecutor(t, WithMaxOutput(1000))
	process := mustStart(t, ex, Command{Script: "seq 1 100000"})
	mustWait(t, process)
	text, err := io.ReadAll(process.Stdout())
	if string(text) != numbers(100000) {
		t.Errorf("got %d bytes", len(text))
	}
	equal(t, "error", err, nil)
}

func TestAReaderFollowsAFastStreamWithoutALoss(t *testing.T) {
	ex := newExecutor(t, WithMaxOutput(10_000))
	process := mustStart(t, ex, Command{Script: "seq 1 300000"})
	text, err := io.ReadAll(process.Stdout())
	if string(text) != numbers(300000) {
		t.Errorf("got %d bytes", len(text))
	}
	equal(t, "error", err, nil)
}

func TestAReaderSaysWhatIsLost(t *testing.T) {
	for name, option := range map[string]Option{
		"tail": WithKeep(KeepTail),
		"both": WithKeep(KeepHeadTail),
	} {
		ex := newExecutor(t, WithMaxOutput(1000), WithMaxSpill(1), option)
		process := mustStart(t, ex, Command{Script: "seq 1 10000"})
		state := mustWait(t, process)
		reader := process.Stdout()
		var text bytes.Buffer
		_, err := io.Copy(&text, reader)
		lost, ok := err.(*LostError)
		if !ok {
			t.Fatalf("%s: got %v", name, err)
		}
		if _, err := io.Copy(&text, reader); err != nil {
			t.Errorf("%s: after the gap: %v", name, err)
		}
		equal(t, name, int64(text.Len())+lost.Bytes, state.StdoutTotal)
		if !strings.HasSuffix(text.String(), "\n10000\n") {
			t.Errorf("%s: the end is missing", name)
		}
	}
}

func TestAReadByOffsetSaysWhereItIs(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "printf 0123456789"})
	mustWait(t, process)
	buffer := make([]byte, 4)
	reading, err := process.ReadStream(Stdout, 3, buffer)
	equal(t, "error", err, nil)
	equal(t, "reading", reading, Reading{Start: 3, Len: 4, Next: 7})
	equal(t, "bytes", string(buffer), "3456")
	reading, _ = process.ReadStream(Stdout, 7, buffer)
	equal(t, "reading", reading, Reading{Start: 7, Len: 3, Next: 10, End: true})
	_, err = process.ReadStream(Stdout, -1, buffer)
	isError(t, "negative offset", err, ErrInvalid)
	_, err = process.ReadStream(9, 0, buffer)
	isError(t, "unknown stream", err, ErrInvalid)
	_, err = process.ReadStream(Stdout, 0, nil)
	equal(t, "no buffer", err, nil)
}

func TestTheSpillPathIsThereOnceItIsNeeded(t *testing.T) {
	ex := newExecutor(t, WithMaxOutput(100))
	process := mustStart(t, ex, Command{Script: "seq 1 1000; echo short >&2"})
	mustWait(t, process)
	path, err := process.SpillPath(Stdout)
	equal(t, "error", err, nil)
	text, err := os.ReadFile(path)
	equal(t, "error", err, nil)
	equal(t, "file", string(text), numbers(1000))
	path, err = process.SpillPath(Stderr)
	equal(t, "stderr", path, "")
	equal(t, "error", err, nil)
}

func TestAReaderDoesNotOutwaitItsExecutor(t *testing.T) {
	ex, err := New()
	if err != nil {
		t.Fatal(err)
	}
	process := mustStart(t, ex, Command{Script: "echo started; sleep 600"})
	reader := process.Stdout()
	ended := make(chan error)
	go func() { _, err := io.Copy(io.Discard, reader); ended <- err }()
	eventually(t, "the start", func() bool { state, _ := process.State(); return state.StdoutTotal > 0 })
	ex.Close()
	isError(t, "copy", <-ended, nil)
}

func TestAReaderGoesOnAfterTheCommandsEndWhileSomethingHoldsThePipe(t *testing.T) {
	ex := newExecutor(t)
	mark := t.TempDir() + "/go-on"
	process := mustStart(t, ex, Command{
		Script: "(while [ ! -e " + mark + " ]; do sleep 0.01; done; echo late) & echo early",
	})
	reader := bufio.NewReader(process.Stdout())
	line, _ := reader.ReadString('\n')
	equal(t, "first", line, "early\n")
	eventually(t, "the shell's end", func() bool { state, _ := process.State(); return state.Exit == ExitCode })
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(reader)
	equal(t, "rest", string(rest), "late\n")
	equal(t, "error", err, nil)
}
