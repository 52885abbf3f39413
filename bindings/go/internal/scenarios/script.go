package main

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// line is a line of a scenario: a word, a space, and the rest.
type line struct {
	whole, word, rest string
}

// lines gives the lines that say something to a driver, with their numbers.
func lines(text string) iter.Seq2[int, line] {
	return func(yield func(int, line) bool) {
		number := 0
		for whole := range strings.Lines(text) {
			number++
			whole = strings.TrimSuffix(whole, "\n")
			if strings.TrimSpace(whole) == "" || whole[0] == '#' || whole[0] == '=' {
				continue
			}
			word, rest, _ := strings.Cut(whole, " ")
			if !yield(number, line{whole, word, rest}) {
				return
			}
		}
	}
}

// escapes are the bytes that a backslash and a letter stand for.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '"': '"'}

// unescape gives the bytes that a value stands for.
func unescape(value string) (string, error) {
	var bytes strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '\\' {
			bytes.WriteByte(value[i])
			continue
		}
		i++
		if i == len(value) {
			return "", fmt.Errorf("a lonely backslash at the end")
		}
		if b, ok := escapes[value[i]]; ok {
			bytes.WriteByte(b)
			continue
		}
		if value[i] != 'x' || i+2 >= len(value) {
			return "", fmt.Errorf("unknown escape \\%c", value[i])
		}
		b, err := strconv.ParseUint(value[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("unknown escape \\%s", value[i:i+3])
		}
		bytes.WriteByte(byte(b))
		i += 2
	}
	return bytes.String(), nil
}

// quote is the way back, for bytes that are printed.
func quote(text string) string {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for i := range len(text) {
		switch b := text[i]; {
		case b == '\n':
			quoted.WriteString(`\n`)
		case b == '\t':
			quoted.WriteString(`\t`)
		case b == '\r':
			quoted.WriteString(`\r`)
		case b == '\\' || b == '"':
			quoted.WriteByte('\\')
			quoted.WriteByte(b)
		case b < 0x20 || b > 0x7e:
			fmt.Fprintf(&quoted, `\x%02x`, b)
		default:
			quoted.WriteByte(b)
		}
	}
	quoted.WriteByte('"')
	return quoted.String()
}
