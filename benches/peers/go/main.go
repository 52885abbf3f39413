// Go's ways of running commands, as a peer of the benchmark: peer VARIANT [--ballast MIB]
//
// Requests come as lines on stdin, and each is answered with one line on stdout; benches/README.md has the protocol.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"libdsh.org/dsh"
)

const (
	bash = "/bin/bash"
	kept = 64_000

	sleeper     = "echo r; exec sleep 300"
	quiet       = "exec sleep 300"
	chatterer   = "while :; do echo chatter; done"
	tellingTime = "sleep 0.005; echo $EPOCHREALTIME"
	// A read from a pipe that nothing ever comes from is a pause that costs no process.
	lines = "exec 9<> <(:); for ((i = 0; i < %d; i++)); do echo line $i; read -t 0.001 -u 9; done; true"
)

var errUnsupported = errors.New("unsupported")

// variant is a way of running commands.
type variant interface {
	version() string
	// run runs a command, and tells how much it wrote to stdout and what files it was spilled to.
	run(command, mode string) (total int64, files []string, err error)
	// start starts a command in the background.
	start(command string) (process, error)
	// most is how many may be in the background at a time.
	most() int
	// tidy is called after all runs of a request.
	tidy() error
	// end ends what is still there, in a hurry.
	end()
}

// process is a command in the background.
type process interface {
	pid() int
	// first waits for the first piece of stdout, and gives it.
	first() ([]byte, error)
	// reads waits until stdout has ended, and tells in how many pieces it came.
	reads() (int, error)
	// terminate sends SIGTERM to the group.
	terminate() error
	// wait waits for the end.
	wait() error
}

// os/exec -------------------------------------------------------------------------------------------------------------

// tail is the end of a stream.
type tail struct {
	kept  []byte
	total int64
}

func (t *tail) Write(b []byte) (int, error) {
	t.total += int64(len(b))
	if len(b) >= kept {
		t.kept = append(t.kept[:0], b[len(b)-kept:]...)
		return len(b), nil
	}
	t.kept = append(t.kept, b...)
	// Moved to the front once in a while only.
	if len(t.kept) > 3*kept {
		t.kept = t.kept[:copy(t.kept, t.kept[len(t.kept)-kept:])]
	}
	return len(b), nil
}

func (t *tail) bytes() []byte {
	return t.kept[max(0, len(t.kept)-kept):]
}

type osExec struct {
	mu    sync.Mutex
	alive map[*osProcess]struct{}
}

func newOsExec() (variant, error) {
	return &osExec{alive: map[*osProcess]struct{}{}}, nil
}

func (*osExec) version() string { return "os/exec" }

// osProcess is where its stdout is written to, by a goroutine of os/exec.
type osProcess struct {
	tail
	cmd    *exec.Cmd
	stderr tail
	spoken chan []byte
	pieces int
	ended  chan struct{}
	err    error // once it has ended
}

func (p *osProcess) Write(b []byte) (int, error) {
	if p.pieces == 0 {
		p.spoken <- append([]byte(nil), b...)
	}
	p.pieces++
	return p.tail.Write(b)
}

func (v *osExec) begin(command string) (*osProcess, error) {
	p := &osProcess{cmd: exec.Command(bash, "-c", command), spoken: make(chan []byte, 1), ended: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = p, &p.stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.alive[p] = struct{}{}
	v.mu.Unlock()
	return p, nil
}

func (v *osExec) reap(p *osProcess) {
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) {
		p.err = err
	}
	v.mu.Lock()
	delete(v.alive, p)
	v.mu.Unlock()
	close(p.ended)
}

func (v *osExec) run(command, mode string) (int64, []string, error) {
	if mode != "keep" {
		return 0, nil, errUnsupported
	}
	p, err := v.begin(command)
	if err != nil {
		return 0, nil, err
	}
	v.reap(p)
	_, _ = p.bytes(), p.stderr.bytes()
	return p.total, nil, p.err
}

// A goroutine waits for the command from its start on: a host that has commands in the background wants to know of their
// end.
func (v *osExec) start(command string) (process, error) {
	p, err := v.begin(command)
	if err != nil {
		return nil, err
	}
	go v.reap(p)
	return p, nil
}

// A thread waits for each, and a program of more than 10,000 threads is ended by Go.
func (*osExec) most() int { return 9_000 }

func (*osExec) tidy() error { return nil }

func (v *osExec) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := range v.alive {
		p.signal(syscall.SIGKILL)
	}
}

func (p *osProcess) pid() int { return p.cmd.Process.Pid }

func (p *osProcess) first() ([]byte, error) {
	select {
	case b := <-p.spoken:
		return b, nil
	case <-p.ended:
		return nil, io.EOF
	}
}

func (p *osProcess) reads() (int, error) {
	<-p.ended
	return p.pieces, p.err
}

func (p *osProcess) terminate() error { return p.signal(syscall.SIGTERM) }

func (p *osProcess) signal(number syscall.Signal) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	// Not there any more: waited for just now.
	if err := syscall.Kill(-p.pid(), number); err != syscall.ESRCH {
		return err
	}
	return nil
}

func (p *osProcess) wait() error {
	<-p.ended
	return p.err
}

// This library --------------------------------------------------------------------------------------------------------

type library struct {
	keeping, spilling *dsh.Executor
}

// newLibrary makes an executor that writes nothing to disk: output that is longer than MaxSpill has no file, from its
// first byte on.
func newLibrary() (variant, error) {
	keeping, err := dsh.New(dsh.WithShell(bash), dsh.WithMaxSpill(1))
	return &library{keeping: keeping}, err
}

func (*library) version() string { return "libdsh " + dsh.Version() }

func (v *library) run(command, mode string) (int64, []string, error) {
	executor := v.keeping
	if mode == "spill" {
		if v.spilling == nil {
			var err error
			if v.spilling, err = dsh.New(dsh.WithShell(bash)); err != nil {
				return 0, nil, err
			}
		}
		executor = v.spilling
	}
	result, err := executor.Run(context.Background(), dsh.Command{Script: command})
	if err != nil {
		return 0, nil, err
	}
	var files []string
	for _, path := range []string{result.Stdout.SpillPath, result.Stderr.SpillPath} {
		if path != "" {
			files = append(files, path)
		}
	}
	return result.Stdout.Total, files, nil
}

func (v *library) start(command string) (process, error) {
	p, err := v.keeping.Start(dsh.Command{Script: command})
	if err != nil {
		return nil, err
	}
	state, err := p.State()
	if err != nil {
		return nil, err
	}
	return &libraryProcess{p, state.PID}, nil
}

func (*library) most() int { return math.MaxInt }

func (v *library) tidy() error {
	if v.spilling == nil {
		return nil
	}
	err := v.spilling.Close()
	v.spilling = nil
	return err
}

func (v *library) end() { v.keeping.Close() }

type libraryProcess struct {
	process *dsh.Process
	number  int
}

func (p *libraryProcess) pid() int { return p.number }

func (p *libraryProcess) first() ([]byte, error) {
	b := make([]byte, 4096)
	n, err := p.process.Stdout().Read(b)
	return b[:n], err
}

func (p *libraryProcess) reads() (int, error) {
	b := make([]byte, 4096)
	stdout := p.process.Stdout()
	for count := 0; ; count++ {
		if _, err := stdout.Read(b); err == io.EOF {
			return count, nil
		} else if err != nil {
			return count, err
		}
	}
}

func (p *libraryProcess) terminate() error {
	_, err := p.process.Kill()
	return err
}

func (p *libraryProcess) wait() error {
	<-p.process.Done()
	return nil
}

// What is asked of them -----------------------------------------------------------------------------------------------

func micros(d time.Duration) int64 { return d.Microseconds() }

// cpu is the microseconds of this process on all processors.
func cpu() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano()/1000 + usage.Stime.Nano()/1000
}

// status is a number of /proc/self/status.
func status(field string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", field)
}

func descriptors() (int64, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	return int64(len(entries)) - 1, err // not the one by which the directory is read
}

// answer is put together field by field.
type answer []string

func (a *answer) add(key string, values ...int64) {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = strconv.FormatInt(value, 10)
	}
	*a = append(*a, key+"="+strings.Join(texts, ","))
}

// endAll ends all of them, and waits for that.
func endAll(processes []process) error {
	var first error
	for _, p := range processes {
		if err := p.terminate(); err != nil && first == nil {
			first = err
		}
	}
	for _, p := range processes {
		if err := p.wait(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func run(v variant, count int, mode, command string) (a answer, err error) {
	defer func() {
		if tidied := v.tidy(); err == nil {
			err = tidied
		}
	}()
	var (
		wall  []int64
		total int64
		files []string
	)
	before := cpu()
	for range count {
		since := time.Now()
		if total, files, err = v.run(command, mode); err != nil {
			return nil, err
		}
		wall = append(wall, micros(time.Since(since)))
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return nil, err
			}
		}
	}
	a.add("wall_us", wall...)
	a.add("cpu_us", cpu()-before)
	a.add("bytes", total)
	return a, nil
}

func parallel(v variant, callers, count int, command string) (a answer, err error) {
	var (
		left    atomic.Int64
		group   sync.WaitGroup
		failure atomic.Pointer[error]
	)
	left.Store(int64(count))
	before, since := cpu(), time.Now()
	for range callers {
		group.Add(1)
		go func() {
			defer group.Done()
			for left.Add(-1) >= 0 {
				if _, _, err := v.run(command, "keep"); err != nil {
					failure.Store(&err)
				}
			}
		}()
	}
	group.Wait()
	a.add("wall_us", micros(time.Since(since)))
	a.add("cpu_us", cpu()-before)
	if err := failure.Load(); err != nil {
		return nil, *err
	}
	return a, nil
}

// Go has raised the limit of descriptors to the hard one when it started, so nothing is done about it here.

func many(v variant, count int) (a answer, err error) {
	if count > v.most() {
		return nil, errUnsupported
	}
	var processes []process
	defer func() { endAll(processes) }()
	rssBefore, err := status("VmRSS")
	if err != nil {
		return nil, err
	}
	before, since := cpu(), time.Now()
	for range count {
		p, err := v.start(sleeper)
		if err != nil {
			return nil, err
		}
		processes = append(processes, p)
	}
	for _, p := range processes {
		if _, err := p.first(); err != nil {
			return nil, err
		}
	}
	a.add("ready_us", micros(time.Since(since)))
	a.add("start_cpu_us", cpu()-before)
	rss, err := status("VmRSS")
	if err != nil {
		return nil, err
	}
	threads, err := status("Threads")
	if err != nil {
		return nil, err
	}
	fds, err := descriptors()
	if err != nil {
		return nil, err
	}
	a.add("rss_kib", max(0, rss-rssBefore))
	a.add("threads", threads)
	a.add("fds", fds)

	time.Sleep(200 * time.Millisecond)
	before = cpu()
	time.Sleep(time.Second)
	a.add("idle_us", cpu()-before)

	before, since = cpu(), time.Now()
	if err := endAll(processes); err != nil {
		return nil, err
	}
	a.add("kill_us", micros(time.Since(since)))
	a.add("kill_cpu_us", cpu()-before)
	return a, nil
}

// becomesSleep waits until the shell has become what it is to be.
func becomesSleep(p process) error {
	for {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid()))
		if err != nil || string(comm) == "sleep\n" {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func kill(v variant, count int) (a answer, err error) {
	var wall []int64
	for range count {
		took, err := killOne(v)
		if err != nil {
			return nil, err
		}
		wall = append(wall, took)
	}
	a.add("wall_us", wall...)
	return a, nil
}

func killOne(v variant) (int64, error) {
	p, err := v.start(sleeper)
	if err != nil {
		return 0, err
	}
	defer endAll([]process{p})
	if _, err := p.first(); err != nil {
		return 0, err
	}
	if err := becomesSleep(p); err != nil {
		return 0, err
	}
	since := time.Now()
	if err := p.terminate(); err != nil {
		return 0, err
	}
	err = p.wait()
	return micros(time.Since(since)), err
}

func firstByte(v variant, count, chatty int) (a answer, err error) {
	var (
		processes []process
		wall      []int64
	)
	defer func() { endAll(processes) }()
	for range chatty {
		p, err := v.start(chatterer)
		if err != nil {
			return nil, err
		}
		processes = append(processes, p)
	}
	time.Sleep(100 * time.Millisecond) // until they chatter
	for range count {
		p, err := v.start(tellingTime)
		if err != nil {
			return nil, err
		}
		printed, err := p.first()
		read := time.Now().UnixMicro()
		if err == nil {
			err = p.wait()
		}
		if err != nil {
			return nil, errors.Join(err, endAll([]process{p}))
		}
		// Six digits follow the decimal point, which is a comma in some languages.
		digits := strings.NewReplacer(".", "", ",", "", "\n", "").Replace(string(printed))
		then, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, err
		}
		wall = append(wall, max(0, read-then))
	}
	a.add("wall_us", wall...)
	return a, nil
}

func wakeup(v variant, pipes, count int) (a answer, err error) {
	var processes []process
	defer func() { endAll(processes) }()
	for range pipes / 2 {
		p, err := v.start(quiet)
		if err != nil {
			return nil, err
		}
		processes = append(processes, p)
	}
	for _, p := range processes {
		if err := becomesSleep(p); err != nil {
			return nil, err
		}
	}
	time.Sleep(200 * time.Millisecond)
	before := cpu()
	p, err := v.start(fmt.Sprintf(lines, count))
	if err != nil {
		return nil, err
	}
	processes = append(processes, p)
	wakeups, err := p.reads()
	if err == nil {
		err = p.wait()
	}
	if err != nil {
		return nil, err
	}
	a.add("cpu_us", cpu()-before)
	a.add("wakeups", int64(wakeups))
	return a, nil
}

// The conversation ----------------------------------------------------------------------------------------------------

func answerTo(v variant, line string) (answer, error) {
	fields := strings.SplitN(line, "\t", 4)
	// The numbers are the first of the fields.
	numbers := make([]int, 2)
	for i := range numbers {
		if i+1 < len(fields) {
			numbers[i], _ = strconv.Atoi(fields[i+1])
		}
	}
	switch {
	case fields[0] == "run" && len(fields) == 4:
		return run(v, numbers[0], fields[2], fields[3])
	case fields[0] == "parallel" && len(fields) == 4:
		return parallel(v, numbers[0], numbers[1], fields[3])
	case fields[0] == "many" && len(fields) == 2:
		return many(v, numbers[0])
	case fields[0] == "kill" && len(fields) == 2:
		return kill(v, numbers[0])
	case fields[0] == "first_byte" && len(fields) == 3:
		return firstByte(v, numbers[0], numbers[1])
	case fields[0] == "wakeup" && len(fields) == 3:
		return wakeup(v, numbers[0], numbers[1])
	}
	return nil, errUnsupported
}

func shown(a answer, err error) string {
	switch {
	case errors.Is(err, errUnsupported):
		return "unsupported"
	case err != nil:
		return "error\t" + strings.Join(strings.Fields(err.Error()), " ")
	}
	return strings.Join(a, "\t")
}

var variants = map[string]func() (variant, error){
	"os_exec": newOsExec,
	"dsh":     newLibrary,
}

// loaded allocates so much memory and has every page of it.
func loaded(arguments []string) ([]byte, error) {
	if len(arguments) == 0 {
		return nil, nil
	}
	if len(arguments) != 2 || arguments[0] != "--ballast" {
		return nil, errors.New("usage: peer os_exec|dsh [--ballast MIB]")
	}
	mebibytes, err := strconv.Atoi(arguments[1])
	if err != nil {
		return nil, err
	}
	ballast := make([]byte, mebibytes<<20)
	for i := 0; i < len(ballast); i += os.Getpagesize() {
		ballast[i] = 1
	}
	return ballast, nil
}

func converse() error {
	if len(os.Args) < 2 || variants[os.Args[1]] == nil {
		return errors.New("usage: peer os_exec|dsh [--ballast MIB]")
	}
	ballast, err := loaded(os.Args[2:])
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(ballast)
	v, err := variants[os.Args[1]]()
	if err != nil {
		return err
	}
	defer v.end()
	// Told to end, it ends what it has started first.
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		<-told
		v.end()
		os.Exit(1)
	}()
	for range 10 {
		if _, _, err := v.run("true", "keep"); err != nil {
			return err
		}
	}
	fmt.Printf("ready\tversion=%s, %s\n", strings.Replace(runtime.Version(), "go", "Go ", 1), v.version())
	requests := bufio.NewScanner(os.Stdin)
	requests.Buffer(nil, 1<<20)
	for requests.Scan() {
		fmt.Println(shown(answerTo(v, requests.Text())))
	}
	return requests.Err()
}

func main() {
	if err := converse(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}
