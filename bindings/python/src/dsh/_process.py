"""A process in the background: the shell and all its descendants."""

from __future__ import annotations

import asyncio
import ctypes
import math
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from dsh import _abi, _values
from dsh._aside import on_main_thread
from dsh._errors import Error, invalid
from dsh._events import Waiter
from dsh._handle import Handle
from dsh._library import call, lib
from dsh._numbers import EventKind, Exit, ProcessStatus, Stream
from dsh._record import Record
from dsh._result import Outcome, Result, ResultHandle, Survivor, outcome_values
from dsh._sandbox import SandboxFacts, sandbox_facts

if TYPE_CHECKING:
    from dsh._events import Dispatcher
    from dsh._executor import ExecutorHandle

_T = TypeVar("_T")

#: Milliseconds that the main thread stays in a call: Python runs signal handlers, that of Ctrl-C too, between calls.
_SLICE = 50

_SETTLING = frozenset({EventKind.SETTLED})
_ENDING = frozenset({EventKind.QUIESCENT})
_TALKING = frozenset({EventKind.OUTPUT, EventKind.SETTLED})
_ALL = frozenset(EventKind)


@dataclass(frozen=True)
class ProcessInfo(Outcome):
    """What is known of a process at one moment. The fields of :class:`Outcome` say how it ended, once it has."""

    __slots__ = (
        "status",
        "quiescent",
        "process_id",
        "pid",
        "tag",
        "out_total",
        "err_total",
        "input_written",
        "sandbox",
    )

    #: What has become of it.
    status: ProcessStatus
    #: Whether nothing of the tree is alive any more.
    quiescent: bool
    #: The library's number of the process, unique in its executor.
    process_id: int
    #: The shell's pid. Its number may belong to somebody else once the process has settled.
    pid: int
    #: The caller's number.
    tag: int
    #: Bytes of stdout (both streams, when they are merged) seen so far.
    out_total: int
    #: Bytes of stderr seen so far.
    err_total: int
    #: Bytes of input that the command took, or that were left in the pipe for it.
    input_written: int
    #: What is known of its confinement; ``None`` when nobody has asked for one. Final once it has settled.
    sandbox: SandboxFacts | None


@dataclass(frozen=True)
class Chunk(Record):
    """What one consuming read gave: new stdout, then, when there is new stderr, ``[stderr]`` on a line of its own and
    that."""

    __slots__ = ("data", "out_missing", "err_missing", "out_spill_path", "err_spill_path", "end")

    #: The text; empty when there was nothing new.
    data: bytes
    #: Bytes of stdout that had slid out of memory before this read, and are not in it.
    out_missing: int
    #: Bytes of stderr that had.
    err_missing: int
    #: The file that holds the whole stdout, when there is one.
    out_spill_path: Path | None
    #: The file that holds the whole stderr, when there is one.
    err_spill_path: Path | None
    #: Whether both streams have ended and everything has been given.
    end: bool

    @property
    def lossy(self) -> bool:
        """Whether anything is missing."""
        return self.out_missing > 0 or self.err_missing > 0

    @property
    def text(self) -> str:
        """``data`` as UTF-8. The library never cuts a character in two; what is no UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Reading(Record):
    """What one read by offset gave."""

    __slots__ = ("data", "start", "next", "missing", "end")

    #: The bytes; empty when there was nothing new.
    data: bytes
    #: The offset of the first byte given; above the one that was asked for when the read is lossy.
    start: int
    #: The offset to ask for next.
    next: int
    #: Bytes between the offset that was asked for and ``start``, which had slid out of memory.
    missing: int
    #: Whether the stream has ended and this read reached its end.
    end: bool

    @property
    def lossy(self) -> bool:
        """Whether anything is missing."""
        return self.missing > 0


class RunHandle(Handle):
    """``dsh_process_t``, as far as a run needs it. Used for one run after the other."""

    def __init__(self) -> None:
        super().__init__(lib.dsh_process_free)
        #: Who waits for its events, see :mod:`dsh._events`.
        self.waiters: dict[Waiter, None] = {}
        self._id: int | None = None

    def start(self, executor: ExecutorHandle, request: _abi.Request) -> None:
        self._id = None
        call(lib.dsh_start, executor, ctypes.byref(request), self.out)

    @property
    def id(self) -> int:
        if self._id is None:
            self._id = self.facts().process_id
        return self._id

    def facts(self) -> _abi.ProcessInfo:
        info = _abi.ProcessInfo()
        call(lib.dsh_process_info, self, ctypes.byref(info))
        return info

    def kill(self) -> bool:
        was_running = ctypes.c_uint32()
        call(lib.dsh_kill, self, ctypes.byref(was_running))
        return bool(was_running.value)

    def wait(self, seconds: float = math.inf) -> bool:
        """Blocks until it has settled, for so long at most. Says whether it has."""
        if not on_main_thread():
            return self._wait(_values.clamped(seconds))
        deadline = time.monotonic() + seconds
        while not self._wait(min(_values.clamped(seconds), _SLICE)):
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return False
        return True

    def wait_in_slices(self) -> None:
        """As :meth:`wait` does on the main thread, without a limit."""
        while not self._wait(_SLICE):
            pass

    def is_settled(self) -> bool:
        return self._wait(0)

    def _wait(self, milliseconds: int) -> bool:
        # Without a place for an error: none is made when the time has passed.
        status = lib.dsh_wait(self, milliseconds, None)
        if status == _abi.OK:
            return True
        if status != _abi.E_TIMED_OUT:
            call(lib.dsh_wait, self, 0)  # says why
        return False

    async def settles(self, events: Dispatcher) -> None:
        """Until it has settled. To be awaited when it hardly can have."""
        waiter = Waiter(_SETTLING)
        try:
            events.enter(self, waiter)
            while not self.is_settled():
                await waiter.wait()
        finally:
            events.leave(self, waiter)

    async def settles_despite_cancellation(self, events: Dispatcher) -> None:
        """Until it has settled, for a task that has been cancelled and may be again. A stop must have been ordered,
        which bounds this by the grace and a second."""
        while True:
            try:
                return await self.settles(events)
            except asyncio.CancelledError:
                pass


class ProcessHandle(RunHandle):
    """``dsh_process_t``. Keeps its executor from being freed, which would end the command."""

    def __init__(self, executor: ExecutorHandle) -> None:
        super().__init__()
        self.executor = executor

    def sandbox(self) -> SandboxFacts | None:
        return sandbox_facts(lib.dsh_process_sandbox, self)

    def held_by(self) -> tuple[int, ...]:
        return tuple(_filled(lib.dsh_process_held_by, self, ctypes.c_int32))

    def survivors(self) -> tuple[Survivor, ...]:
        return tuple(map(Survivor._of, _filled(lib.dsh_process_survivors, self, _abi.Survivor)))

    def spill_path(self, stream: Stream) -> Path | None:
        def fill(process: Handle, *rest: Any) -> int:
            status: int = lib.dsh_process_spill_path(process, stream, *rest)
            return status

        path: bytes = _filled(fill, self, ctypes.c_char)
        return _values.path_of(path.rstrip(b"\0")) if path else None

    def chunk(self) -> Chunk:
        with ChunkHandle() as handle:
            call(lib.dsh_read_output, self, handle.out)
            return handle.chunk()

    def read(self, stream: Stream, offset: int, size: int) -> Reading:
        buffer = (ctypes.c_char * size)()
        reading = _abi.Reading()
        call(lib.dsh_read_stream, self, stream, offset, buffer, size, ctypes.byref(reading))
        return Reading(
            data=ctypes.string_at(buffer, reading.len),
            start=reading.start,
            next=reading.next,
            missing=reading.missing,
            end=bool(reading.end),
        )

    def result(self) -> Result:
        with ResultHandle() as handle:
            call(lib.dsh_process_result, self, handle.out)
            return handle.result(confined=True)

    async def until(self, kinds: frozenset[EventKind], look: Callable[[], _T | None]) -> _T:
        """Looks, and looks again whenever an event of these kinds has come, until there is something to be seen."""
        found = look()
        if found is None:
            events = self.executor.events
            waiter = Waiter(kinds)
            try:
                events.enter(self, waiter)
                while (found := look()) is None:
                    await waiter.wait()
            finally:
                events.leave(self, waiter)
        return found

    async def settled(self) -> None:
        """Until it has settled."""
        await self.until(_SETTLING, lambda: self.is_settled() or None)


class Process:
    """A command in the background. Made by :meth:`Executor.start`; every method may be called from any thread.

    Forgetting a process is no way to end it: it goes on, owned by its executor, until that is closed or forgotten too.
    Used as a context manager (``with`` or ``async with``), it is killed at the end of the block, with what it has left
    behind, and has settled afterwards.
    """

    def __init__(self, handle: ProcessHandle) -> None:
        self._handle = handle
        facts = handle.facts()
        #: The library's number of the process, unique in its executor.
        self.id: int = facts.process_id
        #: The shell's pid. Its number may belong to somebody else once the process has settled.
        self.pid: int = facts.pid
        #: The caller's number.
        self.tag: int = facts.tag

    def info(self) -> ProcessInfo:
        """What is known of it now."""
        facts = self._handle.facts()
        outcome = outcome_values(
            facts,
            self._handle.held_by() if facts.held_by_len else (),
            self._handle.survivors() if facts.survivors_len else (),
        )
        own: tuple[Any, ...] = (
            ProcessStatus(facts.status),
            bool(facts.quiescent),
            facts.process_id,
            facts.pid,
            facts.tag,
            facts.out_total,
            facts.err_total,
            facts.input_written,
            self._handle.sandbox(),
        )
        return ProcessInfo(*outcome, *own)

    @property
    def status(self) -> ProcessStatus:
        """What has become of it."""
        return ProcessStatus(self._handle.facts().status)

    def result(self) -> Result:
        """What it has given so far, as a run gives it, once it has settled; :class:`WaitTimeoutError` before. Consumes
        nothing. :class:`SandboxUnavailableError` when what was to confine it failed, and the command did not run."""
        return self._handle.result()

    def kill(self) -> bool:
        """Ends the whole tree: SIGTERM, and after the grace SIGKILL to what is still alive. What a command that has
        ended left behind is ended too. Does not wait for the end.

        True when there was still a command to be killed: once, and never after its own end.
        """
        return self._handle.kill()

    def wait(self, timeout: float | None = None) -> ProcessInfo:
        """Blocks this thread until the process has settled: its exit is known, and its output is complete or the drain
        limit has passed.

        Waits for ``timeout`` seconds at most, 0 only looks, ``None`` and infinity have no limit. After that it raises
        :class:`WaitTimeoutError`, and the process goes on. Other threads run meanwhile, and on the main thread Ctrl-C
        ends the waiting (not the process).
        """
        seconds = math.inf if timeout is None else _values.duration("timeout", timeout)
        if not self._handle.wait(seconds):
            call(lib.dsh_wait, self._handle, 0)  # raises, unless it has settled just now
        return self.info()

    async def settled(self) -> ProcessInfo:
        """Waits in the running event loop until the process has settled, see :meth:`wait`. Cancelling the waiting does
        nothing to the process."""
        await self._handle.settled()
        return self.info()

    async def quiescent(self) -> ProcessInfo:
        """Waits in the running event loop until nothing of the tree is alive any more, survivors included."""
        await self._handle.until(_ENDING, lambda: self._handle.facts().quiescent or None)
        return self.info()

    async def events(self) -> AsyncIterator[EventKind]:
        """What has happened to it, and then what happens, until nothing of it is alive: a kind is given when there is
        something new of it, so several happenings of one kind may be given as one. Any number of loops and tasks may
        ask."""
        seen = _Seen(self._handle)
        while True:
            news = await self._handle.until(_ALL, seen.look)
            for kind in news:
                yield kind
            if EventKind.QUIESCENT in news:
                return

    def read_output(self) -> Chunk:
        """Takes what both streams got since the last call, as one text. No byte is given twice. Does not wait: a chunk
        without data means that there is nothing new."""
        return self._handle.chunk()

    def __aiter__(self) -> AsyncIterator[Chunk]:
        """The output as it comes, taken as by :meth:`read_output`, until the process has settled. Ends early only by
        leaving the loop; nothing is lost then, and another one goes on where it left off."""
        return _Output(self._handle)

    def read_stream(self, stream: Stream, offset: int = 0, size: int = 65_536) -> Reading:
        """Up to ``size`` bytes of one stream, from an absolute offset on. Consumes nothing, so that many readers may
        read the same bytes, also after the process has ended. Does not wait: a reading without data means that there
        is nothing new there."""
        if _values.number("size", size) > sys.maxsize:
            raise invalid(f"size: {size}: is more than can be held in memory")
        return self._handle.read(Stream(stream), _values.number("offset", offset), size)

    def spill_path(self, stream: Stream) -> Path | None:
        """The file that holds a whole stream, once it was too long for memory. It is removed with the executor."""
        return self._handle.spill_path(Stream(stream))

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        self._handle.wait()

    async def __aenter__(self) -> Process:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        try:
            await self._handle.settled()
        except asyncio.CancelledError:
            await self._handle.settles_despite_cancellation(self._handle.executor.events)
            raise

    def __repr__(self) -> str:
        try:
            return f"<dsh.Process id={self.id} pid={self.pid} {self.status.name.lower()}>"
        except Error:  # in a forked child, for one
            return f"<dsh.Process id={self.id} pid={self.pid}>"


class ChunkHandle(Handle):
    """``dsh_chunk_t``."""

    def __init__(self) -> None:
        super().__init__(lib.dsh_chunk_free)

    def chunk(self) -> Chunk:
        info = _abi.ChunkInfo()
        call(lib.dsh_chunk_info, self, ctypes.byref(info))
        return Chunk(
            data=ctypes.string_at(info.data, info.len),
            out_missing=info.out_missing,
            err_missing=info.err_missing,
            out_spill_path=_values.path_of(info.out_spill_path),
            err_spill_path=_values.path_of(info.err_spill_path),
            end=bool(info.end),
        )


class _Output:
    """The output of a process as it comes."""

    def __init__(self, handle: ProcessHandle) -> None:
        self._handle = handle

    def __aiter__(self) -> _Output:
        return self

    async def __anext__(self) -> Chunk:
        chunk = await self._handle.until(_TALKING, self._look)
        if not chunk.data and not chunk.lossy:
            raise StopAsyncIteration
        return chunk

    def _look(self) -> Chunk | None:
        """What is new; an empty chunk when nothing more will be."""
        settled = self._handle.is_settled()  # asked first: what came before that is then in the chunk
        chunk = self._handle.chunk()
        return chunk if chunk.data or chunk.lossy or chunk.end or settled else None


class _Seen:
    """What somebody who asks for events has been told so far."""

    def __init__(self, handle: ProcessHandle) -> None:
        self._handle = handle
        self._told: dict[EventKind, Any] = {
            EventKind.OUTPUT: (0, False, 0, False),
            EventKind.EXIT: False,
            EventKind.SETTLED: False,
            EventKind.QUIESCENT: False,
        }

    def look(self) -> list[EventKind] | None:
        """The kinds of which there is something new."""
        facts = self._handle.facts()
        out, err = facts.out_total, facts.err_total
        now = {
            EventKind.OUTPUT: (out, self._ended(Stream.STDOUT, out), err, self._ended(Stream.STDERR, err)),
            EventKind.EXIT: facts.outcome.exit != Exit.NONE,
            EventKind.SETTLED: facts.status != ProcessStatus.RUNNING,
            EventKind.QUIESCENT: bool(facts.quiescent),
        }
        news = [kind for kind, state in now.items() if state != self._told[kind]]
        self._told = now
        return news or None

    def _ended(self, stream: Stream, total: int) -> bool:
        return self._handle.read(stream, total, 0).end


def _filled(fill: Callable[..., int], handle: Handle, item: Any) -> Any:
    """A list that the library fills, with as much room as it takes."""
    room = 0
    while True:
        items = (item * room)()
        count = ctypes.c_size_t()
        call(fill, handle, items, room, ctypes.byref(count))
        if count.value <= room:
            return items[: count.value]
        room = count.value
