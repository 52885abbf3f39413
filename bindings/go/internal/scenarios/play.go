package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"libdsh.org/dsh"
)

// dirName is what the folder of the case is called in a scenario.
const dirName = "@DIR@"

// play is one case under way.
type play struct {
	out    *bufio.Writer
	dir    string
	ctx    context.Context
	cancel context.CancelFunc

	config   dsh.Config
	executor *dsh.Executor
	request  request
	// process is the one that was started last, with whether it got input.
	process  *dsh.Process
	hasInput bool
}

// begin begins a case.
func begin(name string, out *bufio.Writer) (*play, error) {
	dir, err := os.MkdirTemp("", "dsh-scenario-")
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "case", name)
	p := &play{out: out, dir: dir}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// end frees what the case has used.
func (p *play) end() {
	if p == nil {
		return
	}
	p.cancel()
	if p.process != nil {
		p.process.Close()
	}
	if p.executor != nil {
		p.executor.Close()
	}
	filepath.WalkDir(p.dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(p.dir)
}

// value gives the bytes that a value stands for.
func (p *play) value(text string) (string, error) {
	bytes, err := unescape(text)
	return strings.ReplaceAll(bytes, dirName, p.dir), err
}

// say prints a result line.
func (p *play) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(p.out, "=", strings.ReplaceAll(text, p.dir, dirName))
}

// do plays one line.
func (p *play) do(l line) error {
	switch l.word {
	case "set", "config":
		key, text, _ := strings.Cut(l.rest, " ")
		value, err := p.value(text)
		if err != nil {
			return err
		}
		if l.word == "config" {
			return configure(&p.config, key, value)
		}
		return p.request.set(key, value)
	case "fill":
		return p.fill(l.rest)
	case "file":
		return p.file(l.rest)
	}
	step, ok := steps[l.word]
	if !ok {
		return fmt.Errorf("unknown step")
	}
	fmt.Fprintln(p.out, l.whole)
	if p.executor == nil {
		executor, err := dsh.New(dsh.WithConfig(p.config))
		if err != nil {
			p.fail(err)
			return nil
		}
		p.executor = executor
	}
	if step.ofProcess && p.process == nil {
		return fmt.Errorf("there is no process")
	}
	return step.do(p, strings.Fields(l.rest), l.rest)
}

// fill is a set of a text that is repeated.
func (p *play) fill(rest string) error {
	parts := strings.SplitN(rest, " ", 3)
	if len(parts) != 3 {
		return fmt.Errorf("not KEY COUNT TEXT")
	}
	count, err := strconv.ParseUint(parts[1], 10, 31)
	if err != nil {
		return err
	}
	value, err := p.value(parts[2])
	if err != nil {
		return err
	}
	return p.request.set(parts[0], strings.Repeat(value, int(count)))
}

// file makes a file or a folder.
func (p *play) file(rest string) error {
	name, rest, _ := strings.Cut(rest, " ")
	mode, text, _ := strings.Cut(rest, " ")
	bits, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return err
	}
	value, err := p.value(text)
	if err != nil {
		return err
	}
	path := filepath.Join(p.dir, name)
	if strings.HasSuffix(name, "/") {
		err = os.Mkdir(path, 0o700)
	} else {
		err = os.WriteFile(path, []byte(value), 0o600)
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, fs.FileMode(bits))
}

// step is what a line of that word does.
type step struct {
	ofProcess bool
	do        func(p *play, words []string, rest string) error
}

var steps = map[string]step{
	"run":       {false, (*play).run},
	"start":     {false, (*play).start},
	"resolve":   {false, (*play).resolve},
	"cancel":    {false, (*play).throw},
	"configure": {false, (*play).configure},
	"settings":  {false, (*play).settings},
	"shutdown":  {false, (*play).shutdown},
	"until":     {true, (*play).until},
	"wait":      {true, (*play).wait},
	"read":      {true, (*play).read},
	"read_all":  {true, (*play).readAll},
	"stream":    {true, (*play).stream},
	"kill":      {true, (*play).kill},
	"quiescent": {true, (*play).quiescent},
	"events":    {true, (*play).events},
}

// take uses the terms up.
func (p *play) take() (request, context.Context) {
	taken := p.request
	p.request = request{}
	if taken.cancel {
		return taken, p.ctx
	}
	return taken, context.Background()
}

func (p *play) run([]string, string) error {
	request, ctx := p.take()
	result, err := p.executor.Run(ctx, request.command)
	if result == nil {
		p.fail(err)
		return nil
	}
	p.result(result, request.hasInput)
	return nil
}

func (p *play) start([]string, string) error {
	request, ctx := p.take()
	process, err := p.executor.StartContext(ctx, request.command)
	if err != nil {
		p.fail(err)
		return nil
	}
	if p.process != nil {
		p.process.Close()
	}
	p.process, p.hasInput = process, request.hasInput
	p.say("started")
	return nil
}

func (p *play) resolve([]string, string) error {
	request, _ := p.take()
	spec, err := p.executor.Resolve(request.command)
	if err != nil {
		p.fail(err)
		return nil
	}
	p.spec(spec)
	return nil
}

func (p *play) throw([]string, string) error {
	p.cancel()
	return nil
}

func (p *play) configure([]string, string) error {
	if err := p.executor.Configure(dsh.WithConfig(p.config)); err != nil {
		p.fail(err)
		return nil
	}
	p.say("configured")
	return nil
}

func (p *play) settings(_ []string, key string) error {
	config, err := p.executor.Config()
	if err != nil {
		p.fail(err)
		return nil
	}
	value, err := setting(&config, key)
	if err == nil {
		p.say("%s %v", key, value)
	}
	return err
}

func (p *play) shutdown([]string, string) error {
	if err := p.executor.Shutdown(context.Background()); err != nil {
		p.fail(err)
	}
	return nil
}

func streamOf(words []string) (dsh.Stream, error) {
	if len(words) == 0 {
		return 0, fmt.Errorf("no stream is named")
	}
	return oneOf(words[0], dsh.Stdout, dsh.Stderr)
}

func (p *play) until(words []string, rest string) error {
	stream, err := streamOf(words)
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(rest, " ")
	wanted, err := p.value(text)
	if err != nil {
		return err
	}
	reader := p.process.Stdout()
	if stream == dsh.Stderr {
		reader = p.process.Stderr()
	}
	var seen []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(seen, []byte(wanted)) {
		n, err := reader.Read(buffer)
		seen = append(seen, buffer[:n]...)
		var lost *dsh.LostError
		if err == io.EOF {
			p.say("ended")
			return nil
		} else if err != nil && !errors.As(err, &lost) {
			p.fail(err)
			return nil
		}
	}
	p.say("seen")
	return nil
}

func (p *play) wait(words []string, _ string) error {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if len(words) > 0 {
		limit, err := millis(words[0])
		if err != nil {
			return err
		}
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	state, err := p.process.Wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		p.say("timed out")
	case err != nil:
		p.fail(err)
	default:
		p.state(state, p.hasInput)
	}
	return nil
}

func (p *play) read([]string, string) error {
	chunk, err := p.process.ReadOutput()
	if err != nil {
		p.fail(err)
		return nil
	}
	p.chunk(&chunk)
	return nil
}

func (p *play) readAll([]string, string) error {
	<-p.process.Done()
	var all dsh.Chunk
	for !all.End {
		chunk, err := p.process.ReadOutput()
		if err != nil {
			p.fail(err)
			return nil
		}
		if len(chunk.Bytes) == 0 && !chunk.End {
			time.Sleep(time.Millisecond) // something that is left holds the pipes
		}
		chunk.Bytes = append(all.Bytes, chunk.Bytes...)
		chunk.StdoutMissing += all.StdoutMissing
		chunk.StderrMissing += all.StderrMissing
		all = chunk
	}
	p.chunk(&all)
	return nil
}

func (p *play) stream(words []string, _ string) error {
	stream, err := streamOf(words)
	if err != nil {
		return err
	}
	if len(words) != 3 {
		return fmt.Errorf("not STREAM OFFSET CAPACITY")
	}
	offset, err := size(words[1])
	if err != nil {
		return err
	}
	capacity, err := strconv.ParseUint(words[2], 10, 31)
	if err != nil {
		return err
	}
	buffer := make([]byte, capacity)
	reading, err := p.process.ReadStream(stream, offset, buffer)
	if err != nil {
		p.fail(err)
		return nil
	}
	p.reading(&reading, buffer)
	return nil
}

func (p *play) kill([]string, string) error {
	wasRunning, err := p.process.Kill()
	switch {
	case err != nil:
		p.fail(err)
	case wasRunning:
		p.say("was running")
	default:
		p.say("was not running")
	}
	return nil
}

func (p *play) quiescent([]string, string) error {
	<-p.process.Quiescent()
	return nil
}

// events tells what this package makes of the events: a reader that ends, an exit in the state, and two channels.
func (p *play) events([]string, string) error {
	<-p.process.Quiescent()
	kinds := []string{"events"}
	if _, err := io.Copy(io.Discard, p.process.Stdout()); err == nil {
		kinds = append(kinds, "OUTPUT")
	}
	state, err := p.process.State()
	if err != nil {
		p.fail(err)
		return nil
	}
	if state.Exit != dsh.ExitNone {
		kinds = append(kinds, "EXIT")
	}
	select {
	case <-p.process.Done():
		kinds = append(kinds, "SETTLED")
	default:
	}
	p.say("%s QUIESCENT", strings.Join(kinds, " "))
	return nil
}
