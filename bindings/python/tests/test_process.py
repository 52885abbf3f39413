"""Processes in the background, from plain threads."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

import dsh

import support


def test_a_process_runs_beside_its_caller(executor: dsh.Executor, tmp_path: Path) -> None:
    process = executor.start(f"echo up; {support.WAIT_FOR_GO}; echo gone; exit 4", tag=7)
    assert (process.status, process.tag) == (dsh.ProcessStatus.RUNNING, 7)
    assert support.is_alive(process.pid)
    assert process.info().exit == dsh.Exit.NONE
    assert process.info().ending == "is running"
    (tmp_path / "go").touch()
    info = process.wait()
    assert (info.status, info.exit_code, info.out_total) == (dsh.ProcessStatus.COMPLETED, 4, len("up\ngone\n"))
    assert (info.process_id, info.tag, info.pid) == (process.id, 7, process.pid)


def test_waiting_works_on_any_thread_and_with_any_limit(executor: dsh.Executor) -> None:
    process = executor.start("sleep 0.2")
    assert support.in_thread(process.wait).exit_code == 0
    assert process.wait().exit_code == 0
    for timeout in (0, 0.5, 10**30, float("inf")):
        assert process.wait(timeout).exit_code == 0
        assert support.in_thread(partial(process.wait, timeout)).exit_code == 0
    with pytest.raises(dsh.InvalidValueError, match=r"^timeout: -1: "):
        process.wait(-1)


def test_kill_says_once_that_there_was_something_to_be_killed(executor: dsh.Executor) -> None:
    process = executor.start("sleep 60")
    assert process.kill()
    assert not process.kill()
    info = process.wait()
    assert (info.status, info.cause, info.signal) == (dsh.ProcessStatus.KILLED, dsh.Stop.KILL, signal.SIGTERM)
    assert info.ending == "was stopped and was killed by SIGTERM"
    ended = executor.start("true")
    ended.wait()
    assert not ended.kill()


def test_output_is_read_while_the_command_runs_and_given_once(executor: dsh.Executor, tmp_path: Path) -> None:
    process = executor.start(f"echo one; echo two >&2; {support.WAIT_FOR_GO}; echo three")
    support.until(lambda: (process.info().out_total, process.info().err_total) == (4, 4))
    assert process.read_output().text == "one\n[stderr]\ntwo\n"
    chunk = process.read_output()
    assert (chunk.data, chunk.end, chunk.lossy) == (b"", False, False)
    (tmp_path / "go").touch()
    process.wait()
    chunk = process.read_output()
    assert (chunk.data, chunk.end) == (b"three\n", True)


def test_many_readers_read_a_stream_by_offset(executor: dsh.Executor) -> None:
    process = executor.start("printf 0123456789; printf error >&2")
    process.wait()
    for _ in range(2):
        reading = process.read_stream(dsh.Stream.STDOUT, 2, size=3)
        assert (reading.data, reading.start, reading.next, reading.end) == (b"234", 2, 5, False)
    assert process.read_stream(dsh.Stream.STDOUT, 5).data == b"56789"
    assert process.read_stream(dsh.Stream.STDOUT, 10).end
    assert process.read_stream(dsh.Stream.STDERR).data == b"error"
    assert process.read_stream(dsh.Stream.STDOUT, 0, size=0).data == b""
    assert process.read_output().data == b"0123456789\n[stderr]\nerror"
    for options in ({"offset": -1}, {"size": -1}, {"size": 2**63}, {"offset": 2**64}):
        with pytest.raises(dsh.InvalidValueError, match=rf"^{next(iter(options))}: "):
            process.read_stream(dsh.Stream.STDOUT, **options)


def test_what_slid_out_of_memory_is_counted_and_on_disk(tmp_path: Path) -> None:
    with dsh.Executor(max_output_bytes=100, spill_dir=tmp_path) as executor:
        process = executor.start("printf 'x%.0s' $(seq 300); printf 'y%.0s' $(seq 300) >&2")
        process.wait()
        reading = process.read_stream(dsh.Stream.STDOUT)
        assert (reading.lossy, reading.missing, reading.start, reading.data) == (True, 200, 200, b"x" * 100)
        chunk = process.read_output()
        assert (chunk.lossy, chunk.out_missing, chunk.err_missing) == (True, 200, 200)
        assert chunk.out_spill_path == process.spill_path(dsh.Stream.STDOUT)
        path = process.spill_path(dsh.Stream.STDERR)
        assert path is not None
        assert path.read_bytes() == b"y" * 300
        assert executor.stats.spill_bytes == 600
        assert executor.start("true").spill_path(dsh.Stream.STDOUT) is None


def test_a_process_gives_a_result_as_a_run_does(executor: dsh.Executor) -> None:
    process = executor.start("cat; exit 2", input="text")
    process.wait()
    result = process.result()
    assert (result.stdout, result.exit_code, result.input_written, result.timeout) == (b"text", 2, 4, None)
    assert result.process_id == process.id


def test_survivors_and_holders_of_pipes_are_listed(tmp_path: Path) -> None:
    with dsh.Executor(drain=0.1, cwd=tmp_path) as executor:
        process = executor.start("for i in 1 2 3; do sleep 60 & echo $!; done")
        info = process.wait()
        pids = sorted(int(line) for line in process.read_output().text.split())
        assert sorted(survivor.pid for survivor in info.survivors) == pids
        assert sorted(info.held_by) == pids
        assert all(survivor.start_time > 0 for survivor in info.survivors)
        assert (info.pipes_held, info.quiescent) == (True, False)
        process.kill()
        support.until(lambda: process.info().quiescent)
        assert not any(map(support.is_alive, pids))


def test_nothing_outlives_the_block_of_a_process(executor: dsh.Executor) -> None:
    with executor.start("sleep 60 >/dev/null & echo $!; sleep 60") as process:
        support.until(lambda: process.info().out_total)
        survivor = int(process.read_output().data)
    assert process.status == dsh.ProcessStatus.KILLED
    assert not support.is_alive(process.pid)
    support.until(lambda: not support.is_alive(survivor))


def test_a_block_that_raises_ends_its_process_too(executor: dsh.Executor) -> None:
    with pytest.raises(KeyError), executor.start("sleep 60") as process:
        raise KeyError
    assert process.status == dsh.ProcessStatus.KILLED


def test_a_process_is_shown_with_its_state(executor: dsh.Executor) -> None:
    with executor.start("sleep 60") as process:
        assert repr(process) == f"<dsh.Process id={process.id} pid={process.pid} running>"


def test_processes_stay_readable_after_the_shutdown_of_their_executor(executor: dsh.Executor) -> None:
    process = executor.start("echo last words; sleep 60")
    support.until(lambda: process.info().out_total)
    executor.close()
    assert process.wait(0).cause == dsh.Stop.SHUTDOWN
    assert process.read_output().data == b"last words\n"
