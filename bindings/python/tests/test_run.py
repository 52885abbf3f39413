"""A run, in each of the ways to make one."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Callable

import pytest

import dsh

import support

Run = Callable[..., dsh.Result]


def test_a_result_has_the_output_of_both_streams_and_the_exit_code(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.stdout_text, result.stderr_text) == ("out\n", "err\n")
    assert (result.exit, result.exit_code, result.signal) == (dsh.Exit.CODE, 3, None)
    assert not result.ok
    assert result.ending == "exited with code 3"


def test_a_result_has_the_facts_of_the_run(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "true", timeout=7.25)
    assert result.ok
    assert result.timeout == 7.25
    assert 0 < result.wall_time < support.LIMIT
    assert result.max_rss_bytes > 0
    assert (result.cause, result.stopped_by, result.stop_stage) == (
        dsh.Stop.NONE,
        dsh.Stop.NONE,
        dsh.StopStage.NONE,
    )
    assert (result.pipes_held, result.held_by, result.survivors) == (False, (), ())


def test_a_signal_is_told_by_name_and_is_no_exit_code(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "kill -KILL $$")
    assert (result.exit, result.exit_code, result.signal) == (dsh.Exit.SIGNAL, None, signal.SIGKILL)
    assert result.signal_name == "SIGKILL"
    assert not result.aborted


def test_a_real_time_signal_without_a_name_is_told_by_its_distance(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "kill -$(( $(kill -l RTMIN) + 3 )) $$")
    assert result.signal == signal.SIGRTMIN + 3
    assert result.signal_name == "SIGRTMIN+3"


def test_a_timeout_is_a_result(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "echo begun; sleep 60", timeout=0.3)
    assert result.timed_out
    assert not result.aborted
    assert (result.cause, result.stop_stage) == (dsh.Stop.TIMEOUT, dsh.StopStage.TERM)
    assert result.stdout == b"begun\n"
    assert result.ending == "timed out and was killed by SIGTERM"


def test_a_command_that_exits_well_after_its_timeout_has_both(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "trap 'exit 0' TERM; sleep 60 & wait", timeout=0.3)
    assert (result.exit_code, result.timed_out, result.ok) == (0, True, False)


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path, run: Run) -> None:
    with dsh.Executor(grace=0.2, cwd=tmp_path) as executor:
        result = run(executor, "trap '' TERM; while :; do sleep 0.05; done", timeout=0.2)
    assert (result.signal, result.stop_stage) == (signal.SIGKILL, dsh.StopStage.KILL)


def test_a_timeout_beyond_all_bounds_is_capped(executor: dsh.Executor, run: Run) -> None:
    for timeout in (float("inf"), 1e300, 2**64, 10**30):
        assert run(executor, "true", timeout=timeout).timeout == 600


def test_input_is_given_and_counted(executor: dsh.Executor, run: Run) -> None:
    for given in (b"a\0b", bytearray(b"a\0b"), memoryview(b"a\0b"), "a\0b"):
        result = run(executor, "cat", input=given)
        assert (result.stdout, result.input_written) == (b"a\0b", 3)
    assert run(executor, "cat", input="€").stdout == "€".encode()


def test_no_input_and_an_empty_one_end_at_once(executor: dsh.Executor, run: Run) -> None:
    assert run(executor, "cat; readlink /proc/self/fd/0").stdout == b"/dev/null\n"
    assert run(executor, "cat; readlink /proc/self/fd/0", input=b"").stdout.startswith(b"pipe:")


def test_the_command_may_be_bytes_of_any_kind_and_length(executor: dsh.Executor, run: Run) -> None:
    assert run(executor, b"printf '\xff\xfe'").stdout == b"\xff\xfe"
    assert run(executor, b"printf '\xff\xfe'").stdout_text == "\ufffd\ufffd"
    assert run(executor, "printf €").stdout_text == "€"
    assert run(executor, ": " + "x" * 300_000 + "\necho long").stdout == b"long\n"


def test_variables_are_set_and_removed(executor: dsh.Executor, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_HOST", "1")
    shown = "echo ${OF_THE_HOST-none} ${MINE-none} ${DSH_MINE-none}"
    assert run(executor, shown, env={"MINE": "a=b"}, dsh_env={"DSH_MINE": "2"}).stdout == b"1 a=b 2\n"
    assert run(executor, shown, env={"OF_THE_HOST": None}).stdout == b"none none none\n"


def test_credentials_of_the_host_are_left_out_and_named(
    executor: dsh.Executor, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    result = run(executor, "echo ${SOME_API_KEY-none}")
    assert result.stdout == b"none\n"
    assert "SOME_API_KEY" in result.scrubbed


def test_the_working_directory_may_be_relative_and_any_kind_of_path(
    executor: dsh.Executor, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    for cwd in ("inner", b"inner", tmp_path / "inner", str(tmp_path / "inner")):
        assert run(executor, "pwd", cwd=cwd).stdout_text.strip() == str(tmp_path / "inner")


def test_streams_can_be_merged(executor: dsh.Executor, run: Run) -> None:
    result = run(executor, "echo 1; echo 2 >&2; echo 3", merge_stderr=True)
    assert (result.stdout, result.stderr) == (b"1\n2\n3\n", b"")


def test_a_long_stream_is_cut_and_on_disk(tmp_path: Path, run: Run) -> None:
    with dsh.Executor(max_output_bytes=1000, spill_dir=tmp_path) as executor:
        result = run(executor, "seq 1 2000")
        whole = "".join(f"{number}\n" for number in range(1, 2001)).encode()
        assert result.stdout == whole[-1000:]
        assert result.out.truncated
        assert (result.out.total, result.out.omitted, result.out.omitted_at) == (len(whole), len(whole) - 1000, 0)
        assert result.out.spill_path is not None
        assert result.out.spill_path.read_bytes() == whole
        assert run(executor, "seq 1 2000", stdout_max_bytes=100_000).stdout == whole
    assert not result.out.spill_path.exists()


def test_both_ends_of_a_long_stream_can_be_kept(tmp_path: Path, run: Run) -> None:
    with dsh.Executor(max_output_bytes=8, keep=dsh.Keep.HEAD_TAIL, spill_dir=tmp_path) as executor:
        result = run(executor, "printf 0123456789abcdef")
    assert (result.stdout, result.out.omitted, result.out.omitted_at) == (b"0123cdef", 8, 4)


def test_what_outlives_a_command_is_kept_and_listed_or_ended(executor: dsh.Executor, run: Run) -> None:
    leave = "sleep 60 >/dev/null 2>&1 & echo $!"
    result = run(executor, leave)
    assert [survivor.pid for survivor in result.survivors] == [int(result.stdout)]
    assert support.is_alive(int(result.stdout))
    result = run(executor, leave, survivors=dsh.Survivors.KILL)
    assert result.survivors == ()
    assert not support.is_alive(int(result.stdout))
    assert result.stopped_by == dsh.Stop.SURVIVORS


def test_pipes_that_are_held_open_end_the_wait_after_the_drain_limit(tmp_path: Path, run: Run) -> None:
    with dsh.Executor(drain=0.1, cwd=tmp_path) as executor:
        result = run(executor, "sleep 60 & echo $!")
    assert result.pipes_held
    assert result.held_by == (int(result.stdout),)


def test_check_raises_when_the_command_was_no_success(executor: dsh.Executor, run: Run) -> None:
    assert run(executor, "true", check=True).ok
    with pytest.raises(dsh.CommandFailedError, match=r"^the command exited with code 3$") as failure:
        run(executor, "echo why; exit 3", check=True)
    assert failure.value.result.stdout == b"why\n"
    with pytest.raises(dsh.CommandFailedError, match="timed out"):
        run(executor, "trap 'exit 0' TERM; sleep 60 & wait", timeout=0.2, check=True)


@pytest.mark.parametrize("style", [support.run_in_main, support.run_in_thread])
def test_other_threads_run_while_a_run_blocks(executor: dsh.Executor, tmp_path: Path, style: Run) -> None:
    def go() -> None:
        support.until((tmp_path / "begun").exists)
        (tmp_path / "go").touch()

    helper = threading.Thread(target=go)
    helper.start()
    assert style(executor, f"touch begun; {support.WAIT_FOR_GO}; echo gone", timeout=support.LIMIT).stdout == b"gone\n"
    helper.join()


def test_many_threads_run_commands_at_the_same_time(executor: dsh.Executor) -> None:
    results: dict[int, bytes] = {}

    def work(number: int) -> None:
        for _ in range(10):
            results[number] = executor.run(f"echo {number}").stdout

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(support.LIMIT)
    assert results == {number: f"{number}\n".encode() for number in range(16)}
