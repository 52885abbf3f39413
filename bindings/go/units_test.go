package dsh

import (
	"math"
	"testing"
	"time"
)

func TestDurationsAreWholeMillisecondsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]uint64{
		0:                                 0,
		1:                                 1,
		time.Millisecond:                  1,
		time.Millisecond + 1:              2,
		time.Second:                       1000,
		forever - 1:                       math.MaxInt64/1_000_000 + 1,
		forever:                           math.MaxUint64,
		1<<32*time.Millisecond + 1:        1<<32 + 1,
		math.MaxInt64 / 2 / 1000 * 1000:   math.MaxInt64/2/1_000_000 + 1,
		600*time.Second + time.Nanosecond: 600_001,
	} {
		got, err := millis("timeout", d)
		if got != want || err != nil {
			t.Errorf("%v: got %d and %v, want %d", d, got, err, want)
		}
	}
	for _, d := range []time.Duration{-1, -time.Hour, math.MinInt64} {
		_, err := millis("timeout", d)
		isError(t, d.String(), err, ErrInvalid)
	}
}

func TestMillisecondsBeyondADurationAreForever(t *testing.T) {
	for ms, want := range map[uint64]time.Duration{
		0:                           0,
		1500:                        1500 * time.Millisecond,
		math.MaxInt64 / 1_000_000:   math.MaxInt64 / 1_000_000 * time.Millisecond,
		math.MaxInt64/1_000_000 + 1: forever,
		math.MaxUint64:              forever,
	} {
		equal(t, "duration", duration(ms), want)
	}
}

func TestSizesAreNotNegative(t *testing.T) {
	_, err := byteCount("max_output", -1)
	isError(t, "-1", err, ErrInvalid)
	size, err := byteCount("max_output", math.MaxInt64)
	equal(t, "size", size, math.MaxInt64)
	equal(t, "error", err, nil)
	equal(t, "too large", signed(math.MaxUint64), math.MaxInt64)
}
