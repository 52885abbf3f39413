// Package dsh runs shell commands for AI agents: bounded output, hard timeouts, and process trees that really die. It is
// the Go face of libdsh.
//
//	ex, err := dsh.New()
//	if err != nil {
//		return err
//	}
//	defer ex.Close()
//	res, err := ex.Run(ctx, dsh.Command{Script: "go test ./...", Timeout: 5 * time.Minute})
//
// [Executor.Run] runs a command in a fresh "bash -c" and gives its [Result]. Everything that a command can do is a result,
// non-zero exits and timeouts included; an error means that it was not run, or that the context ended it.
// [Executor.Start] starts one in the background and gives its [Process].
//
// # Confinement
//
// A [SandboxPolicy], of an executor or of one [Command], says what a command may change, read and reach. One that can't be
// confined as asked is not run. [SandboxFacts] tell what confined it, and whether it was kept from something.
//
// # Goroutines and threads
//
// Every method may be called by any goroutine at any time, also while others use the same value. No goroutine holds an
// operating system thread while commands run, but for the first 10 ms of as many runs as there are processors: waiting
// goroutines are parked, and one goroutine per executor takes the library's events through Go's network poller. An
// executor has two threads of the library's own.
//
// # Cleaning up
//
// [Executor.Close] ends everything that the executor has started. An executor that is forgotten, together with its
// processes, is closed once the garbage collector finds out; so hold on to it for as long as its commands are wanted. A
// [Process] that is closed or forgotten goes on as its executor's. When the host dies, its commands are ended too, unless
// [WithoutGuard] says otherwise.
//
// # Sizes and times
//
// Times are [time.Duration], sizes are bytes. Zero always means the default. Negative values are refused with
// [ErrInvalid]. The library counts timeouts in whole milliseconds: a fraction is rounded up. The longest duration,
// math.MaxInt64, stands for no limit at all, in both directions; executors cap it by their own limits.
package dsh
