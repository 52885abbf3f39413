package dsh

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

func TestNewsBetweenALookAndAWaitIsNotMissed(t *testing.T) {
	j := newJob(nil, 1, 0)
	looks := 0
	given := make(chan int)
	go func() {
		n, _ := j.await(func() (int, error) {
			looks++
			if looks == 1 {
				j.tellNews() // comes when this look has been in vain, and nobody waits yet
				return 0, nil
			}
			return 5, nil
		})
		given <- n
	}()
	select {
	case n := <-given:
		equal(t, "given", n, 5)
	case <-time.After(patience):
		t.Fatal("the news were missed")
	}
}

func TestReadersLookOnceMoreWhenAProcessHasSettled(t *testing.T) {
	j := newJob(nil, 1, 0)
	reason := errors.New("the thread that drives it is lost")
	looks := 0
	given := make(chan error)
	go func() {
		_, err := j.await(func() (int, error) {
			if looks++; looks > 2 {
				return 0, reason
			}
			return 0, nil
		})
		given <- err
	}()
	eventually(t, "the reader to wait", func() bool { j.newsMu.Lock(); defer j.newsMu.Unlock(); return j.news != nil })
	j.settle()
	select {
	case err := <-given:
		isError(t, "read", err, reason)
	case <-time.After(patience):
		t.Fatal("the reader hangs")
	}
}

func TestWhoWaitsIsToldWhenNoEventsCanBeHadAnyMore(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "sleep 600"})
	waiting := make(chan error, 3)
	go func() { _, err := io.ReadAll(process.Stdout()); waiting <- err }()
	go func() { _, err := io.ReadAll(process); waiting <- err }()
	go func() { _, err := ex.Run(context.Background(), Command{Script: "sleep 600"}); waiting <- err }()
	eventually(t, "both to run", func() bool { stats, _ := ex.Stats(); return stats.Live == 2 })

	reason := errors.New("the events are gone")
	ex.core.loop.fail(reason)
	within(t, "the end of the waiting", process.Done())
	within(t, "the end of the waiting", process.Quiescent())
	for range 3 {
		select {
		case err := <-waiting:
			isError(t, "whoever waited", err, reason)
		case <-time.After(patience):
			t.Fatal("somebody hangs")
		}
	}
	_, err := ex.Run(patient(t), Command{Script: "true"})
	isError(t, "run", err, reason)
	killed, err := process.Kill()
	equal(t, "killed", killed, true)
	isError(t, "kill", err, nil)
}

func TestWhoWaitsIsToldWhenThePollerFails(t *testing.T) {
	ex := newExecutor(t)
	process := mustStart(t, ex, Command{Script: "sleep 600"})
	if err := ex.core.loop.file.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the waiting", process.Done())
	_, err := ex.Run(patient(t), Command{Script: "true"})
	isError(t, "run", err, ErrSystem)
}
