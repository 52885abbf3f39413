"""The executor: its budgets, and its end."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from pathlib import Path

import pytest

import dsh

import support


def test_settings_have_every_default_filled_in() -> None:
    with dsh.Executor() as executor:
        settings = executor.settings
    assert (settings.timeout, settings.max_timeout, settings.grace, settings.drain) == (120, 600, 3, 3)
    assert (settings.max_output_bytes, settings.max_spill_bytes) == (64_000, 64 * 2**20)
    assert settings.max_total_spill_bytes == 2**30
    assert (settings.cwd, settings.keep, settings.env_allow, settings.env_deny) == (None, dsh.Keep.TAIL, (), ())
    assert settings.shell is not None
    assert settings.shell.is_absolute()
    assert (settings.inherit_env, settings.guard, settings.keep_spill_files) == (True, True, False)


def test_options_are_the_settings(tmp_path: Path) -> None:
    options = {
        "cwd": tmp_path,
        "spill_dir": tmp_path,
        "timeout": 1.5,
        "max_timeout": 2.5,
        "max_output_bytes": 1,
        "max_spill_bytes": 2,
        "max_total_spill_bytes": 3,
        "grace": 0.25,
        "drain": 0.125,
        "keep": dsh.Keep.HEAD_TAIL,
        "inherit_env": False,
        "env_allow": ("A_*", "B"),
        "env_deny": ("C",),
        "guard": False,
        "keep_spill_files": True,
        "sandbox": None,
    }
    with dsh.Executor(**options) as executor:  # type: ignore[arg-type]
        settings = dataclasses.asdict(executor.settings)
        shell = settings.pop("shell")
        assert settings == options
        executor.configure(spill_dir=tmp_path)
        assert executor.settings.timeout == 120
        executor.configure(**{**settings, "shell": shell, "grace": 1.0})
        assert dataclasses.asdict(executor.settings) == {**options, "shell": shell, "grace": 1.0}


def test_options_that_are_refused_leave_the_executor_as_it_was(executor: dsh.Executor) -> None:
    before = executor.settings
    with pytest.raises(dsh.ShellMissingError):
        executor.configure(shell="no-such-shell", timeout=1)
    assert executor.settings == before
    assert executor.run("echo still").stdout == b"still\n"


def test_stats_say_what_the_executor_does(executor: dsh.Executor) -> None:
    with executor.start("sleep 60"):
        stats = executor.stats
        assert (stats.live, stats.ended, stats.threads) == (1, 0, 2)
        assert stats.spawn_path == dsh.SpawnPath.VFORK
        assert stats.guard_pid is not None
        assert support.is_alive(stats.guard_pid)
    executor.close()
    assert (executor.stats.live, executor.stats.threads, executor.stats.guard_pid) == (0, 0, None)


def test_resolving_tells_what_would_run_and_runs_nothing(executor: dsh.Executor, tmp_path: Path) -> None:
    spec = executor.resolve(
        "touch ran", timeout=1000, tag=5, merge_stderr=True, survivors=dsh.Survivors.KILL, stdout_max_bytes=10
    )
    assert (spec.command, spec.cwd, spec.timeout, spec.tag) == (b"touch ran", tmp_path, 600, 5)
    assert (spec.merge_stderr, spec.survivors, spec.stdout_max_bytes) == (True, dsh.Survivors.KILL, 10)
    assert spec.shell == executor.settings.shell
    assert not (tmp_path / "ran").exists()


def test_closing_ends_what_runs_and_may_be_repeated(executor: dsh.Executor) -> None:
    process = executor.start("sleep 60 & setsid sleep 60 & wait")
    for _ in range(2):
        executor.close()
        executor.shutdown()
        support.in_thread(executor.close)
        asyncio.run(executor.aclose())
    assert process.info().quiescent
    assert "closed" in repr(executor)


def test_a_shutdown_that_takes_too_long_says_so_and_may_be_repeated(tmp_path: Path) -> None:
    with dsh.Executor(grace=1, cwd=tmp_path) as executor:
        process = executor.start("trap '' TERM; touch begun; while :; do sleep 0.05; done")
        support.until((tmp_path / "begun").exists)
        with pytest.raises(dsh.WaitTimeoutError):
            executor.shutdown(0.05)
        with pytest.raises(dsh.WaitTimeoutError):
            support.in_thread(lambda: executor.shutdown(0.05))
        with pytest.raises(dsh.WaitTimeoutError):
            asyncio.run(executor.shutdown_async(0.05))
        with pytest.raises(dsh.InvalidValueError, match=r"^timeout: 0: "):
            executor.shutdown(0)
        executor.shutdown()
        assert process.info().quiescent


def test_a_shutdown_while_commands_run_gives_each_its_result(tmp_path: Path) -> None:
    executor = dsh.Executor(cwd=tmp_path)
    results: list[dsh.Result] = []

    def block(number: int) -> None:
        results.append(executor.run(f"touch {number}; sleep 60"))

    async def wait_for_both(first: int) -> None:
        runs = [executor.run_async(f"touch {number}; sleep 60") for number in (first, first + 1)]
        results.extend(await asyncio.gather(*runs))

    threads = [threading.Thread(target=block, args=(number,)) for number in range(2)]
    threads += [threading.Thread(target=asyncio.run, args=(wait_for_both(first),)) for first in (2, 4)]
    for thread in threads:
        thread.start()
    support.until(lambda: all((tmp_path / str(number)).exists() for number in range(6)))
    executor.close()
    for thread in threads:
        thread.join(support.LIMIT)
    assert [(result.aborted, result.cause) for result in results] == [(True, dsh.Stop.SHUTDOWN)] * 6


def test_an_async_block_closes_the_executor_without_blocking_its_loop() -> None:
    async def main() -> None:
        async with dsh.Executor(grace=0.5) as executor:
            process = executor.start("trap '' TERM; echo; while :; do sleep 0.05; done")
            async for _ in process:
                break
            closing = asyncio.ensure_future(executor.aclose())
            turns = 0
            while not closing.done():
                await asyncio.sleep(0.01)
                turns += 1
            assert turns > 2
        assert process.info().quiescent

    asyncio.run(main())


def test_closing_goes_on_when_its_task_is_cancelled() -> None:
    async def main() -> None:
        executor = dsh.Executor(grace=0.3)
        process = executor.start("trap '' TERM; echo; while :; do sleep 0.05; done")
        async for _ in process:
            break
        closing = asyncio.ensure_future(executor.aclose())
        await asyncio.sleep(0)
        for _ in range(3):
            closing.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert process.info().quiescent

    asyncio.run(main())


def test_the_version_and_the_features_of_the_library_are_told() -> None:
    assert dsh.version() == dsh.__version__
    assert dsh.feature(dsh.Feature.GUARD) == 1
    assert dsh.feature(dsh.Feature(999)) == 0
