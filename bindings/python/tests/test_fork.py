"""Forked children of a Python host: nothing works there, and nothing is harmed in the parent."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import traceback
from pathlib import Path
from typing import Any, Callable

import pytest

import dsh

import support

# Python 3.12 warns of a fork in a process with threads, which this is about.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def in_child(function: Callable[[], Any]) -> None:
    """Runs a function in a forked child, where it must raise nothing."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:  # noqa: BLE001, RUF100
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def refused(call: Callable[[], Any]) -> None:
    with pytest.raises(dsh.ForkedError) as failure:
        call()
    assert failure.value.code == dsh.Code.FORKED


def test_every_call_in_a_child_says_that_it_was_forked(executor: dsh.Executor) -> None:
    token = dsh.CancelToken()
    process = executor.start("sleep 60")
    support.run_in_loop(executor, "true")

    def child() -> None:
        for call in (
            lambda: executor.run("true"),
            lambda: support.in_thread(lambda: executor.run("true")),
            lambda: asyncio.run(executor.run_async("true")),
            lambda: executor.start("true"),
            lambda: executor.resolve("true"),
            lambda: executor.settings,
            lambda: executor.configure(grace=1),
            lambda: executor.stats,
            executor.shutdown,
            executor.close,
            lambda: asyncio.run(executor.aclose()),
            process.info,
            process.kill,
            process.wait,
            lambda: asyncio.run(process.settled()),
            process.read_output,
            lambda: process.read_stream(dsh.Stream.STDOUT),
            process.result,
            token.cancel,
            lambda: token.cancelled,
        ):
            refused(call)
        assert "dsh.Process" in repr(process)

    in_child(child)
    assert process.status == dsh.ProcessStatus.RUNNING
    assert not token.cancelled


def test_what_a_child_forgets_is_still_the_parent_s(tmp_path: Path) -> None:
    held = [dsh.Executor(cwd=tmp_path)]
    processes = [held[0].start(support.WAIT_FOR_GO)]

    def child() -> None:
        processes.clear()
        held.clear()
        gc.collect()

    in_child(child)
    assert processes[0].status == dsh.ProcessStatus.RUNNING
    (tmp_path / "go").touch()
    assert processes[0].wait(support.LIMIT).exit_code == 0
    held[0].close()


def test_a_child_may_use_an_executor_of_its_own(executor: dsh.Executor) -> None:
    def child() -> None:
        with dsh.Executor() as own:
            assert own.run("echo child").stdout == b"child\n"
            assert support.run_in_loop(own, "echo child").stdout == b"child\n"

    in_child(child)
    assert executor.run("echo parent").stdout == b"parent\n"


def test_a_child_of_a_loop_takes_nothing_from_the_parent_s_loop(executor: dsh.Executor, tmp_path: Path) -> None:
    """The child's copies of waiting coroutines end there; they share the loop's epoll descriptor with the parent."""

    async def main() -> None:
        task = asyncio.ensure_future(executor.run_async(f"{support.WAIT_FOR_GO}; echo gone"))
        await asyncio.sleep(0.05)

        def child() -> None:
            task.get_coro().close()

        in_child(child)
        (tmp_path / "go").touch()
        assert (await support.within(task)).stdout == b"gone\n"

    asyncio.run(main())


def _in_pool(_: int) -> str:
    with dsh.Executor() as executor:
        return executor.run("echo pooled").stdout_text


def test_a_multiprocessing_pool_that_forks_is_harmless(executor: dsh.Executor) -> None:
    process = executor.start("sleep 60")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_in_pool, range(4)).get(support.LIMIT) == ["pooled\n"] * 4
    assert process.status == dsh.ProcessStatus.RUNNING


def test_a_child_that_exits_as_python_does_harms_nothing(tmp_path: Path) -> None:
    program = support.run_script(
        """
import dsh, os, sys
executor = dsh.Executor()
process = executor.start("until [ -e go ]; do sleep 0.01; done; echo gone")
pid = os.fork()
if pid == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
open("go", "w").close()
process.wait()
print(process.read_output().text)
""",
        cwd=tmp_path,
    )
    assert (program.stdout.strip(), program.returncode) == ("gone", 0)
    assert "Error" not in program.stderr
