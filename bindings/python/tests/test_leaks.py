"""A thousand runs leave nothing: no handle, no descriptor, no thread, no child."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any, Callable

import pytest

import dsh
from dsh import _abi
from dsh._handle import Handle
from dsh._library import lib

import support

Run = Callable[..., dsh.Result]


def handles() -> int:
    """How many handles of the library are alive in Python. Those that wait to be used again hold none."""
    gc.collect()
    return sum(isinstance(thing, Handle) and thing.is_filled for thing in gc.get_objects())


def children() -> set[str]:
    """The children of this process, zombies included."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def mixed(executor: dsh.Executor, number: int) -> None:
    """One of the things that a host does with an executor."""
    kind = number % 5
    if kind == 0:
        assert executor.run("echo x", input=b"y", env={"A": "b"}).ok
    elif kind == 1:
        with pytest.raises(dsh.WorkdirMissingError):
            executor.run("true", cwd="/nowhere")
    elif kind == 2:
        process = executor.start("echo x; echo y >&2", cancel=dsh.CancelToken())
        process.wait()
        process.read_output()
        process.read_stream(dsh.Stream.STDERR)
        process.result()
    elif kind == 3:
        executor.start("sleep 60").kill()
    else:
        executor.resolve("true")
        assert executor.settings
        with pytest.raises(dsh.WaitTimeoutError), executor.start("sleep 60") as process:
            process.wait(0)


def test_every_handle_that_the_library_gave_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: Counter[str] = Counter()

    def counted(name: str, free: Any) -> Callable[[Any], None]:
        def give_back(handle: Any) -> None:
            freed[name] += 1
            free(handle)

        return give_back

    gc.collect()  # what earlier tests have left
    for name in _abi.PROTOTYPES:
        if name.endswith("_free"):
            monkeypatch.setattr(lib, name, counted(name[4:-5], getattr(lib, name)))

    def use() -> None:
        with dsh.Executor() as executor:
            for number in range(20):
                mixed(executor, number)
            support.run_in_thread(executor, "true")
            support.run_in_loop(executor, "true")
        dsh.sandbox_doctor()

    use()
    gc.collect()
    # Of each kind of use there were four; runs have a process on the main thread and in loops.
    assert freed == {
        "executor": 1,
        "process": 4 + 4 + 4 + 4 + 1,
        "result": 4 + 4 + 2,
        "chunk": 4,
        "cancel": 4,
        "settings": 4,
        "spec": 4,
        "error": 4 + 4,
        "doctor": 1,
    }


def test_a_thousand_calls_from_a_thread_leave_nothing(executor: dsh.Executor) -> None:
    for number in range(5):
        mixed(executor, number)  # what is made once
    support.until(lambda: executor.stats.live == 0)
    before = handles(), support.descriptors(), support.threads(), children()
    for number in range(1000):
        mixed(executor, number)
    support.until(lambda: executor.stats.live == 0)
    assert (handles(), support.descriptors(), support.threads(), children()) == before


def test_a_thousand_runs_in_loops_leave_nothing(executor: dsh.Executor) -> None:
    async def main(count: int) -> None:
        for _ in range(count // 20):
            results = await asyncio.gather(*(executor.run_async("echo x") for _ in range(18)))
            assert all(result.ok for result in results)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(executor.run_async("sleep 60"), 0.005)
            process = executor.start("echo x")
            assert [chunk.data async for chunk in process] == [b"x\n"]
            await process.quiescent()

    asyncio.run(main(20))
    before = handles(), support.descriptors(), support.threads(), children()
    asyncio.run(main(500))
    asyncio.run(main(500))
    assert (handles(), support.descriptors(), support.threads(), children()) == before
    assert executor._handle.events._watching == {}


def test_a_hundred_executors_leave_nothing(run: Run) -> None:
    def use() -> None:
        with dsh.Executor() as executor:
            assert run(executor, "echo x").ok

    use()
    before = handles(), support.descriptors(), support.threads(), children()
    for _ in range(100):
        use()
    support.until(lambda: support.threads() == before[2])
    assert (handles(), support.descriptors(), support.threads(), children()) == before


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
def test_confined_commands_leave_nothing(executor: dsh.Executor, tmp_path: Path, backend: Any) -> None:
    sandbox = dsh.Sandbox(mode="workspace-write", workspace=tmp_path, hidden=["/root"], backends=[backend])

    def use(number: int) -> None:
        if number % 3 == 0:
            facts = executor.run("mktemp", sandbox=sandbox).sandbox
            assert facts is not None
            assert facts.backend is not None
            assert facts.backend.word == backend
        elif number % 3 == 1:
            executor.start("sleep 60", sandbox=sandbox).kill()
        else:
            with pytest.raises(dsh.InvalidValueError):
                executor.run("true", sandbox=dsh.Sandbox(workspace="/nowhere"))

    def all_ended() -> bool:
        return executor.stats.live == 0

    for number in range(3):
        use(number)
    support.until(all_ended)
    before = handles(), support.descriptors(), support.threads(), children()
    for number in range(30):
        use(number)
    support.until(all_ended)
    support.until(lambda: (handles(), support.descriptors(), support.threads(), children()) == before)
    assert not list(tmp_path.glob("dsh-*/tmp-*"))
