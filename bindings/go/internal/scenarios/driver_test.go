package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// preparing are the lines that are not printed.
var preparing = map[string]bool{"set": true, "config": true, "fill": true, "file": true}

// expected is what a driver prints for a file.
func expected(text string) []string {
	var printed []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		word, _, _ := strings.Cut(line, " ")
		if line != "" && line[0] != '#' && !preparing[word] {
			printed = append(printed, line)
		}
	}
	return printed
}

func playText(t *testing.T, text string) (string, error) {
	t.Helper()
	t.Setenv("SCENARIO_PLAIN", "plain")
	path := filepath.Join(t.TempDir(), "test.scn")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	out := bufio.NewWriter(&printed)
	err := playFile(path, out)
	out.Flush()
	return printed.String(), err
}

func TestTheDriverSaysWhatItSees(t *testing.T) {
	text, err := os.ReadFile("testdata/driver.scn")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := playText(t, string(text))
	if err != nil {
		t.Error(err)
	}
	got := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	want := expected(string(text))
	// The length of a path is not known beforehand.
	length := regexp.MustCompile(`total=\d+ "(.*@DIR@)`)
	for i := range min(len(got), len(want)) {
		if line := length.ReplaceAllString(got[i], `total=@LEN@ "$1`); line != want[i] {
			t.Fatalf("line %d: got %q, want %q", i+1, line, want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

func TestOnlyOurOwnVariablesAreSaidToBeScrubbed(t *testing.T) {
	t.Setenv("SCENARIO_API_KEY", "secret")
	t.Setenv("SCENARIO_A_TOKEN", "secret")
	t.Setenv("ANOTHER_API_KEY", "secret")
	printed, err := playText(t, "case a\nset command true\nrun\n")
	want := "case a\nrun\n= scrubbed SCENARIO_API_KEY SCENARIO_A_TOKEN\n"
	if err != nil || printed != want {
		t.Errorf("got %q and %v", printed, err)
	}
}

func TestALineThatIsNotKnownIsNamed(t *testing.T) {
	for text, words := range map[string]string{
		"run":                            "test.scn:1",
		"case a\n\njump":                 `test.scn:3: "jump"`,
		"case a\nset speed 9":            "speed",
		"case a\nset command \\q":        "escape",
		"case a\nset command \\x4":       "escape",
		"case a\nset merge_stderr maybe": "neither on nor off",
		"case a\nset survivors some":     "some",
		"case a\nconfig colour red":      "colour",
		"case a\nconfig timeout_ms soon": "soon",
		"case a\nwait":                   "no process",
		"case a\nsettings colour":        "colour",
		"case a\nset sandbox.colour red": "sandbox.colour",
		"case a\nconfig sandbox.mode no": "no",
	} {
		_, err := playText(t, text)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want %s", text, err, words)
		}
	}
}
