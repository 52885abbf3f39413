package dsh

import (
	"math"
	"time"
)

// forever is the duration that stands for no limit.
const forever = time.Duration(math.MaxInt64)

// millis is a duration as the library takes it: rounded up, so that a short one does not become the default.
func millis(field string, d time.Duration) (uint64, error) {
	switch {
	case d < 0:
		return 0, invalid("%s %v: is negative", field, d)
	case d == forever:
		return math.MaxUint64, nil
	case d%time.Millisecond != 0:
		return uint64(d/time.Millisecond) + 1, nil
	}
	return uint64(d / time.Millisecond), nil
}

// duration is the way back.
func duration(ms uint64) time.Duration {
	if ms > uint64(forever/time.Millisecond) {
		return forever
	}
	return time.Duration(ms) * time.Millisecond
}

// byteCount is a size as the library takes it.
func byteCount(field string, n int64) (uint64, error) {
	if n < 0 {
		return 0, invalid("%s %d: is negative", field, n)
	}
	return uint64(n), nil
}

// signed is the way back.
func signed(n uint64) int64 {
	return int64(min(n, math.MaxInt64))
}
