package dsh_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"libdsh.org/dsh"
)

func Example() {
	ex, err := dsh.New(dsh.WithTimeout(30 * time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	result, err := ex.Run(context.Background(), dsh.Command{Script: "echo hello; exit 3"})
	if err != nil {
		log.Fatal(err) // it was not run
	}
	fmt.Printf("%s(exit code %d)\n", result.Stdout, result.Code)
	// Output:
	// hello
	// (exit code 3)
}

func ExampleExecutor_Run_timeout() {
	ex, err := dsh.New()
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	result, err := ex.Run(context.Background(), dsh.Command{
		Script:  "echo begun; sleep 60 & sleep 60",
		Timeout: time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%stimed out: %t, after %v; left: %d\n", result.Stdout, result.TimedOut, result.Timeout, len(result.Survivors))
	// Output:
	// begun
	// timed out: true, after 1s; left: 0
}

func ExampleExecutor_Run_context() {
	ex, err := dsh.New()
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	result, err := ex.Run(ctx, dsh.Command{Script: "echo begun; sleep 60"})
	// The output so far is not lost.
	fmt.Printf("%s%v, %t\n", result.Stdout, result.Cause, errors.Is(err, context.DeadlineExceeded))
	// Output:
	// begun
	// cancel, true
}

func ExampleExecutor_Run_errors() {
	ex, err := dsh.New()
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	_, err = ex.Run(context.Background(), dsh.Command{Script: "ls", Dir: "/no/such/folder"})
	var failure *dsh.Error
	switch {
	case errors.Is(err, dsh.ErrWorkdirMissing):
		errors.As(err, &failure)
		fmt.Println("the folder is missing:", failure.Stage, failure.Errno)
	case err != nil:
		log.Fatal(err)
	}
	// Output:
	// the folder is missing: workdir no such file or directory
}

func ExampleExecutor_Run_confined() {
	ex, err := dsh.New(dsh.WithSandbox(dsh.SandboxPolicy{Mode: dsh.ModeReadOnly}))
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	result, err := ex.Run(context.Background(), dsh.Command{Script: "touch /usr/share/mine"})
	if err != nil {
		log.Fatal(err) // dsh.ErrSandboxUnavailable: nothing here could confine it, so it was not run
	}
	facts := result.Sandbox
	fmt.Println(facts.Mode, facts.Denied, facts.DeniedPath, facts.DeniedRule)
	fmt.Println("could be asked for:", facts.Mode.Wider())
	// Output:
	// read-only yes /usr/share/mine read-only mode
	// could be asked for: [workspace-write danger-full-access]
}

func ExampleExecutor_Start() {
	ex, err := dsh.New()
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	process, err := ex.Start(dsh.Command{Script: "echo listening on 8080; sleep 60"})
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	lines := bufio.NewScanner(process.Stdout())
	lines.Scan()
	fmt.Println(lines.Text())

	killed, err := process.Kill()
	if err != nil {
		log.Fatal(err)
	}
	state, err := process.Wait(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(killed, state.Status, state.Signal)
	// Output:
	// listening on 8080
	// true killed terminated
}

func ExampleProcess_ReadOutput() {
	ex, err := dsh.New()
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	process, err := ex.Start(dsh.Command{Script: "echo out; echo err >&2"})
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	<-process.Done()
	chunk, err := process.ReadOutput()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%send: %t\n", chunk.Bytes, chunk.End)
	// Output:
	// out
	// [stderr]
	// err
	// end: true
}

func ExampleProcess_Stderr() {
	ex, err := dsh.New()
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Close()

	process, err := ex.Start(dsh.Command{Script: "for i in 1 2 3; do echo $i; done >&2"})
	if err != nil {
		log.Fatal(err)
	}
	defer process.Close()
	// Readers do not take anything from each other.
	one, _ := io.ReadAll(process.Stderr())
	two, _ := io.ReadAll(process.Stderr())
	fmt.Printf("%q %q\n", one, two)
	// Output:
	// "1\n2\n3\n" "1\n2\n3\n"
}
