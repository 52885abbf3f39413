// Scenarios plays the cases of scenario files through this package's public interface, and prints what happened in the
// form in which the files say what is expected. See tests/scenarios/README.md.
//
//	scenarios FILE... < /dev/null
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	for _, path := range os.Args[1:] {
		if err := playFile(path, out); err != nil {
			out.Flush()
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// playFile plays the cases of one file. The error names the line that can't be played.
func playFile(path string, out *bufio.Writer) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var current *play
	defer func() { current.end() }()
	for number, line := range lines(string(text)) {
		if line.word == "case" {
			current.end()
			current, err = begin(line.rest, out)
		} else if current == nil {
			err = fmt.Errorf("there is no case yet")
		} else {
			err = current.do(line)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %q: %w", filepath.Base(path), number, line.whole, err)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}
