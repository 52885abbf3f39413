"""Python's ways of running commands, as a peer of the benchmark: peer.py VARIANT [--ballast MIB]

Requests come as lines on stdin, and each is answered with one line on stdout; benches/README.md has the protocol.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import re
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

BASH = "/bin/bash"
KEPT = 64_000

SLEEPER = "echo r; exec sleep 300"
CHATTERER = "while :; do echo chatter; done"
QUIET = "exec sleep 300"
TELLING_TIME = "sleep 0.005; echo $EPOCHREALTIME"
#: A read from a pipe that nothing ever comes from is a pause that costs no process.
LINES = "exec 9<> <(:); for ((i = 0; i < %d; i++)); do echo line $i; read -t 0.001 -u 9; done; true"

#: A process group of its own: by the way that does not take a session where there is one.
OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
POPEN: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    **OWN_GROUP,
}

Answer = dict[str, Any]


class UnsupportedError(Exception):
    """The variant does not do that."""


class Tail:
    """The end of a stream: whole chunks, until there are enough without the first."""

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.kept = 0
        self.total = 0

    def push(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self.kept += len(chunk)
        self.total += len(chunk)
        while self.kept - len(self.chunks[0]) >= KEPT:
            self.kept -= len(self.chunks.popleft())

    @property
    def data(self) -> bytes:
        return b"".join(self.chunks)[-KEPT:]


# What is measured with -----------------------------------------------------------------------------------------------


def now() -> int:
    """Microseconds on a clock that only goes forward."""
    return time.monotonic_ns() // 1000


def cpu() -> int:
    """Microseconds of this process on all processors."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e6)


def status(field: str) -> int:
    """A number of /proc/self/status."""
    found = re.search(rf"^{field}:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) - 1  # not the one by which the directory is read


def is_sleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"


def delay(printed: bytes) -> int:
    """Microseconds since what `$EPOCHREALTIME` was."""
    # Six digits follow the decimal point, which is a comma in some languages.
    return max(0, time.time_ns() // 1000 - int(re.sub(rb"\D", b"", printed)))


def raise_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Many:
    """The answer to `many`, as its steps are gone through."""

    def __init__(self) -> None:
        self.answer: Answer = {}
        self.rss = status("VmRSS")
        self.begin()

    def begin(self) -> None:
        self.since, self.cpu = now(), cpu()

    def ready(self) -> None:
        self.answer.update(ready_us=now() - self.since, start_cpu_us=cpu() - self.cpu)
        self.answer.update(rss_kib=max(0, status("VmRSS") - self.rss), threads=status("Threads"), fds=descriptors())

    def idle(self) -> None:
        self.answer.update(idle_us=cpu() - self.cpu)

    def ended(self) -> Answer:
        self.answer.update(kill_us=now() - self.since, kill_cpu_us=cpu() - self.cpu)
        return self.answer


# The variants --------------------------------------------------------------------------------------------------------


class Variant:
    """A way of running commands, and its requests; those that are not overridden are not supported."""

    version = ""

    def run(self, _count: int, _mode: str, _command: str) -> Answer:
        raise UnsupportedError

    def parallel(self, _callers: int, _count: int, _command: str) -> Answer:
        raise UnsupportedError

    def many(self, _count: int) -> Answer:
        raise UnsupportedError

    def kill(self, _count: int) -> Answer:
        raise UnsupportedError

    def first_byte(self, _count: int, _chatty: int) -> Answer:
        raise UnsupportedError

    def wakeup(self, _pipes: int, _count: int) -> Answer:
        raise UnsupportedError

    def clear(self) -> None:
        """Ends what a request that has failed has left in the background."""

    def end(self) -> None:
        """Ends everything, in a hurry."""


def one_by_one(count: int, run: Callable[[], int]) -> Answer:
    wall = []
    total = 0
    before = cpu()
    for _ in range(count):
        since = now()
        total = run()
        wall.append(now() - since)
    return {"wall_us": wall, "cpu_us": cpu() - before, "bytes": total}


def by_threads(callers: int, count: int, run: Callable[[], object]) -> Answer:
    before, since = cpu(), now()
    with ThreadPoolExecutor(callers) as pool:
        for running in [pool.submit(run) for _ in range(count)]:
            running.result()
    return {"wall_us": now() - since, "cpu_us": cpu() - before}


class Command:
    """A command in the background, whose output the loop below reads."""

    def __init__(self, text: str, heard: Callable[[bytes], None] | None = None) -> None:
        self.process = subprocess.Popen([BASH, "-c", text], **POPEN)
        self.heard = heard
        self.out, self.err = Tail(), Tail()
        self.open = 2

    @property
    def has_spoken(self) -> bool:
        return self.out.total > 0

    def signal(self, number: int) -> None:
        if self.process.returncode is None:
            os.killpg(self.process.pid, number)


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


class Subprocess(Variant):
    """`subprocess`: a run reads as `communicate` does, but keeps the end only; what is in the background is read by one
    loop over all pipes."""

    version = "subprocess"

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.commands: set[Command] = set()

    def run_one(self, command: str) -> int:
        tails = {"out": Tail(), "err": Tail()}
        with subprocess.Popen([BASH, "-c", command], **POPEN) as process, selectors.PollSelector() as selector:
            try:
                selector.register(pipe(process.stdout), selectors.EVENT_READ, tails["out"])
                selector.register(pipe(process.stderr), selectors.EVENT_READ, tails["err"])
                while selector.get_map():
                    for key, _ in selector.select():
                        chunk = os.read(key.fd, 65536)
                        if chunk:
                            key.data.push(chunk)
                        else:
                            selector.unregister(key.fileobj)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        _ = tails["out"].data, tails["err"].data
        return tails["out"].total

    def run(self, count: int, mode: str, command: str) -> Answer:
        if mode != "keep":
            raise UnsupportedError
        return one_by_one(count, lambda: self.run_one(command))

    def parallel(self, callers: int, count: int, command: str) -> Answer:
        return by_threads(callers, count, lambda: self.run_one(command))

    # What is in the background.

    def start(self, text: str, heard: Callable[[bytes], None] | None = None) -> Command:
        command = Command(text, heard)
        self.commands.add(command)
        for stream, tail in ((command.process.stdout, command.out), (command.process.stderr, command.err)):
            self.selector.register(pipe(stream), selectors.EVENT_READ, (command, tail, stream))
        return command

    def pump(self, timeout: float | None = None) -> None:
        """Reads what there is, after having waited for something at most so long."""
        for key, _ in self.selector.select(timeout):
            command, tail, stream = key.data
            chunk = os.read(key.fd, 65536)
            if chunk:
                tail.push(chunk)
                if command.heard is not None and tail is command.out:
                    command.heard(chunk)
            else:
                self.selector.unregister(key.fileobj)
                stream.close()
                command.open -= 1
                if command.open == 0:
                    command.process.wait()
                    self.commands.discard(command)

    def pump_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.pump(left)

    def pump_until_spoken(self, commands: Iterable[Command]) -> None:
        for command in commands:
            while not command.has_spoken:
                self.pump()

    def pump_until_sleep(self, commands: Iterable[Command]) -> None:
        for command in commands:
            while not is_sleep(command.process.pid):
                self.pump_for(0.001)

    def pump_until_ended(self, commands: Iterable[Command]) -> None:
        for command in commands:
            while command in self.commands:
                self.pump()

    def clear(self) -> None:
        commands = list(self.commands)
        for command in commands:
            command.signal(signal.SIGTERM)
        self.pump_until_ended(commands)

    def end(self) -> None:
        for command in self.commands:
            command.signal(signal.SIGKILL)

    def many(self, count: int) -> Answer:
        many = Many()
        commands = [self.start(SLEEPER) for _ in range(count)]
        self.pump_until_spoken(commands)
        many.ready()
        self.pump_for(0.2)
        many.begin()
        self.pump_for(1)
        many.idle()
        many.begin()
        self.clear()
        return many.ended()

    def kill(self, count: int) -> Answer:
        wall = []
        for _ in range(count):
            command = self.start(SLEEPER)
            self.pump_until_spoken([command])
            self.pump_until_sleep([command])
            since = now()
            command.signal(signal.SIGTERM)
            self.pump_until_ended([command])
            wall.append(now() - since)
        return {"wall_us": wall}

    def first_byte(self, count: int, chatty: int) -> Answer:
        wall: list[int] = []
        for _ in range(chatty):
            self.start(CHATTERER)
        self.pump_for(0.1)  # until they chatter
        for _ in range(count):
            self.pump_until_ended([self.start(TELLING_TIME, lambda chunk: wall.append(delay(chunk)))])
        self.clear()
        return {"wall_us": wall}

    def wakeup(self, pipes: int, count: int) -> Answer:
        quiet = [self.start(QUIET) for _ in range(pipes // 2)]
        self.pump_until_sleep(quiet)
        self.pump_for(0.2)
        reads: list[int] = []
        before = cpu()
        self.pump_until_ended([self.start(LINES % count, lambda chunk: reads.append(len(chunk)))])
        answer = {"cpu_us": cpu() - before, "wakeups": len(reads)}
        self.clear()
        return answer


async def becomes_sleep(pid: int) -> None:
    while not is_sleep(pid):
        await asyncio.sleep(0.001)


class Asynchronous(Variant):
    """What is the same for both variants in an event loop; they differ in what a command is."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    async def run_one(self, command: str, mode: str) -> tuple[int, list[Path]]:
        """How much it wrote to stdout, and the files that it was spilled to."""
        raise NotImplementedError

    async def start(self, text: str) -> Any:
        """A command in the background: `pid`, `first()`, `chunks()`, `terminate()` and `ended()`."""
        raise NotImplementedError

    async def end_all(self) -> None:
        """Ends everything in the background."""
        raise NotImplementedError

    async def tidy(self) -> None:
        """After all runs of a request."""

    def wait(self, work: Awaitable[Answer]) -> Answer:
        async def whole() -> Answer:
            try:
                return await work
            finally:
                await self.end_all()

        return self.loop.run_until_complete(whole())

    def run(self, count: int, mode: str, command: str) -> Answer:
        return self.wait(self._run(count, mode, command))

    async def _run(self, count: int, mode: str, command: str) -> Answer:
        wall = []
        total = 0
        before = cpu()
        for _ in range(count):
            since = now()
            total, files = await self.run_one(command, mode)
            wall.append(now() - since)
            for file in files:
                file.unlink()
        answer = {"wall_us": wall, "cpu_us": cpu() - before, "bytes": total}
        await self.tidy()
        return answer

    def parallel(self, callers: int, count: int, command: str) -> Answer:
        return self.wait(self._parallel(callers, count, command))

    async def _parallel(self, callers: int, count: int, command: str) -> Answer:
        left = iter(range(count))

        async def caller() -> None:
            for _ in left:
                await self.run_one(command, "keep")

        before, since = cpu(), now()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return {"wall_us": now() - since, "cpu_us": cpu() - before}

    def many(self, count: int) -> Answer:
        return self.wait(self._many(count))

    async def _many(self, count: int) -> Answer:
        many = Many()
        commands = [await self.start(SLEEPER) for _ in range(count)]
        for command in commands:
            await command.first()
        many.ready()
        await asyncio.sleep(0.2)
        many.begin()
        await asyncio.sleep(1)
        many.idle()
        many.begin()
        for command in commands:
            command.terminate()
        for command in commands:
            await command.ended()
        return many.ended()

    def kill(self, count: int) -> Answer:
        return self.wait(self._kill(count))

    async def _kill(self, count: int) -> Answer:
        wall = []
        for _ in range(count):
            command = await self.start(SLEEPER)
            await command.first()
            await becomes_sleep(command.pid)
            since = now()
            command.terminate()
            await command.ended()
            wall.append(now() - since)
        return {"wall_us": wall}

    def first_byte(self, count: int, chatty: int) -> Answer:
        return self.wait(self._first_byte(count, chatty))

    async def _first_byte(self, count: int, chatty: int) -> Answer:
        wall = []
        for _ in range(chatty):
            await self.start(CHATTERER)
        await asyncio.sleep(0.1)  # until they chatter
        for _ in range(count):
            command = await self.start(TELLING_TIME)
            wall.append(delay(await command.first()))
            await command.ended()
        return {"wall_us": wall}

    def wakeup(self, pipes: int, count: int) -> Answer:
        return self.wait(self._wakeup(pipes, count))

    async def _wakeup(self, pipes: int, count: int) -> Answer:
        for command in [await self.start(QUIET) for _ in range(pipes // 2)]:
            await becomes_sleep(command.pid)
        await asyncio.sleep(0.2)
        before = cpu()
        command = await self.start(LINES % count)
        wakeups = await command.reads()
        await command.ended()
        return {"cpu_us": cpu() - before, "wakeups": wakeups}


class AsyncCommand:
    """A process of asyncio, with a task for each of its pipes."""

    def __init__(self, process: asyncio.subprocess.Process, alive: set[AsyncCommand]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.pid = process.pid
        self.out, self.err = Tail(), Tail()
        self.spoken: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.count = 0
        self.alive = alive
        alive.add(self)
        self.readers = [
            asyncio.ensure_future(self._read(process.stdout, self.out)),
            asyncio.ensure_future(self._read(process.stderr, self.err)),
        ]

    async def _read(self, stream: asyncio.StreamReader, tail: Tail) -> None:
        while chunk := await stream.read(65536):
            tail.push(chunk)
            if tail is self.out:
                self.count += 1
                if not self.spoken.done():
                    self.spoken.set_result(chunk)

    async def first(self) -> bytes:
        return await self.spoken

    async def reads(self) -> int:
        await self.readers[0]
        return self.count

    def signal(self, number: int) -> None:
        if self.process.returncode is None:
            with suppress(ProcessLookupError):  # waited for, and the loop has not heard of it yet
                os.killpg(self.pid, number)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    async def ended(self) -> None:
        for reader in self.readers:
            await reader
        await self.process.wait()
        self.alive.discard(self)


class Asyncio(Asynchronous):
    """`asyncio.create_subprocess_exec`"""

    version = "asyncio"

    def __init__(self) -> None:
        super().__init__()
        self.alive: set[AsyncCommand] = set()

    async def start(self, text: str) -> AsyncCommand:
        return AsyncCommand(await asyncio.create_subprocess_exec(BASH, "-c", text, **POPEN), self.alive)

    async def run_one(self, command: str, mode: str) -> tuple[int, list[Path]]:
        if mode != "keep":
            raise UnsupportedError
        running = await self.start(command)
        await running.ended()
        _ = running.out.data, running.err.data
        return running.out.total, []

    async def end_all(self) -> None:
        commands = list(self.alive)
        for command in commands:
            command.terminate()
        for command in commands:
            await command.ended()

    def end(self) -> None:
        for command in self.alive:
            command.signal(signal.SIGKILL)


def library() -> Any:
    """The binding, which is loaded for its own variants only."""
    return importlib.import_module("dsh")


def keeping() -> Any:
    """An executor that writes nothing to disk: output that is longer than this has no file, from its first byte on."""
    return library().Executor(shell=BASH, max_spill_bytes=1)


def spilling() -> Any:
    return library().Executor(shell=BASH)


def spilled(result: Any) -> list[Path]:
    return [path for path in (result.out.spill_path, result.err.spill_path) if path is not None]


def first(process: Any) -> None:
    """Looks from time to time whether a process has said something: who waits for output does so in an event loop."""
    while not process.read_output().data:
        time.sleep(0.001)


class Dsh(Variant):
    """This library, with calls that block."""

    def __init__(self) -> None:
        self.version = f"libdsh {library().version()}"
        self.executor = keeping()

    def run(self, count: int, mode: str, command: str) -> Answer:
        if mode == "keep":
            return one_by_one(count, lambda: self.executor.run(command).out.total)
        wall = []
        total = 0
        with spilling() as executor:
            before = cpu()
            for _ in range(count):
                since = now()
                result = executor.run(command)
                wall.append(now() - since)
                total = result.out.total
                for file in spilled(result):
                    file.unlink()
            return {"wall_us": wall, "cpu_us": cpu() - before, "bytes": total}

    def parallel(self, callers: int, count: int, command: str) -> Answer:
        return by_threads(callers, count, lambda: self.executor.run(command))

    def many(self, count: int) -> Answer:
        many = Many()
        processes: list[Any] = []
        try:
            processes.extend(self.executor.start(SLEEPER) for _ in range(count))
            for process in processes:
                first(process)
            many.ready()
            time.sleep(0.2)
            many.begin()
            time.sleep(1)
            many.idle()
            many.begin()
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()
            return many.ended()
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()

    def kill(self, count: int) -> Answer:
        wall = []
        for _ in range(count):
            with self.executor.start(SLEEPER) as process:
                first(process)
                while not is_sleep(process.pid):
                    time.sleep(0.001)
                since = now()
                process.kill()
                process.wait()
                wall.append(now() - since)
        return {"wall_us": wall}

    def end(self) -> None:
        self.executor.close()


class DshCommand:
    """A process of this library, in an event loop."""

    def __init__(self, process: Any) -> None:
        self.process = process
        self.pid = process.pid

    async def first(self) -> bytes:
        async for chunk in self.process:
            return bytes(chunk.data)
        return b""

    async def reads(self) -> int:
        count = 0
        async for _ in self.process:
            count += 1
        return count

    def terminate(self) -> None:
        self.process.kill()

    async def ended(self) -> None:
        await self.process.settled()


class DshAsync(Asynchronous):
    """This library, with calls that are awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.version = f"libdsh {library().version()}"
        self.executor = keeping()
        self.spilling: Any = None
        self.commands: list[DshCommand] = []

    async def run_one(self, command: str, mode: str) -> tuple[int, list[Path]]:
        executor = self.executor
        if mode == "spill":
            executor = self.spilling = self.spilling or spilling()
        result = await executor.run_async(command)
        return result.out.total, spilled(result)

    async def start(self, text: str) -> DshCommand:
        command = DshCommand(self.executor.start(text))
        self.commands.append(command)
        return command

    async def end_all(self) -> None:
        commands, self.commands = self.commands, []
        for command in commands:
            command.terminate()
        for command in commands:
            await command.ended()

    async def tidy(self) -> None:
        if self.spilling is not None:
            await self.spilling.aclose()
            self.spilling = None

    def end(self) -> None:
        self.executor.close()


VARIANTS: dict[str, type[Variant]] = {
    "subprocess": Subprocess,
    "asyncio": Asyncio,
    "dsh": Dsh,
    "dsh_async": DshAsync,
}

# The conversation ----------------------------------------------------------------------------------------------------


def answer_to(variant: Variant, line: str) -> str:
    name, *fields = line.rstrip("\n").split("\t", 3)
    try:
        if name == "run":
            answer = variant.run(int(fields[0]), fields[1], fields[2])
        elif name == "parallel":
            answer = variant.parallel(int(fields[0]), int(fields[1]), fields[2])
        elif name in {"many", "kill", "first_byte", "wakeup"}:
            raise_limit()
            answer = getattr(variant, name)(*map(int, fields))
        else:
            raise UnsupportedError
    except UnsupportedError:
        return "unsupported"
    except Exception as error:  # whatever it is, the conductor wants to know
        variant.clear()
        return f"error\t{type(error).__name__}: {' '.join(str(error).split())}"
    return "\t".join(f"{key}={shown(value)}" for key, value in answer.items())


def shown(value: int | list[int]) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in VARIANTS or arguments[1:2] not in ([], ["--ballast"]):
        sys.exit(f"usage: peer {'|'.join(VARIANTS)} [--ballast MIB]")
    # Told to end, it ends what it has started first.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))

    # Made of something, since the system gives no memory for what is only zeros.
    ballast = b"\1" * (int(arguments[2]) << 20) if len(arguments) > 1 else b""
    variant = VARIANTS[arguments[0]]()
    try:
        variant.run(10, "keep", "true")
        print(f"ready\tversion=Python {platform.python_version()}, {variant.version}", flush=True)
        for line in sys.stdin:
            print(answer_to(variant, line), flush=True)
    finally:
        variant.end()
        del ballast


main()
