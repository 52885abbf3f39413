"""How a command ended, and what it gave."""

from __future__ import annotations

import ctypes
import signal
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dsh import _abi, _values
from dsh._errors import CommandFailedError
from dsh._handle import Handle
from dsh._library import call, lib
from dsh._numbers import Exit, Stop, StopStage
from dsh._record import Record
from dsh._sandbox import SandboxFacts, sandbox_facts


@dataclass(frozen=True)
class Survivor(Record):
    """A process that is still alive."""

    __slots__ = ("pid", "start_time")

    #: Its pid.
    pid: int
    #: When it started, in clock ticks since boot: with it, the pid can't be mistaken for a later process.
    start_time: int

    @classmethod
    def _of(cls, survivor: _abi.Survivor) -> Survivor:
        return cls(pid=survivor.pid, start_time=survivor.start_time)


@dataclass(frozen=True)
class Outcome(Record):
    """How a command ended."""

    __slots__ = (
        "exit",
        "exit_code",
        "signal",
        "core_dumped",
        "timed_out",
        "aborted",
        "cause",
        "stopped_by",
        "stop_stage",
        "pipes_held",
        "held_by",
        "survivors",
        "wall_time",
        "user_time",
        "system_time",
        "max_rss_bytes",
    )

    #: Whether the shell ended by a code or by a signal, and whether that is known.
    exit: Exit
    #: The exit code, 0 to 255; ``None`` unless the shell ended by one.
    exit_code: int | None
    #: The signal that ended the shell: a :class:`signal.Signals` where Python has a name for it (some real-time signals
    #: have none). ``None`` unless a signal ended it.
    signal: int | None
    #: Whether that signal had memory dumped.
    core_dumped: bool
    #: The timeout was the first cause to cut the command short, whatever it then exited with.
    timed_out: bool
    #: A cancellation, kill or shutdown was the first cause to cut the command short. Never with ``timed_out``.
    aborted: bool
    #: The first cause that cut the command short while it ran.
    cause: Stop
    #: Who first ordered a stop, also of what was left behind after the command's own end.
    stopped_by: Stop
    #: How far that stop had to go.
    stop_stage: StopStage
    #: Something still held the output pipes when the drain limit had passed.
    pipes_held: bool
    #: The pids that did, as far as they could be seen.
    held_by: tuple[int, ...]
    #: Descendants that were still alive.
    survivors: tuple[Survivor, ...]
    #: Seconds from the start until the shell's end.
    wall_time: float
    #: Seconds of CPU time in user mode, of the shell and the descendants that it waited for.
    user_time: float
    #: The same in the kernel.
    system_time: float
    #: Peak resident memory in bytes of the largest of them.
    max_rss_bytes: int

    @property
    def signal_name(self) -> str | None:
        """The signal's name, such as ``"SIGKILL"`` or ``"SIGRTMIN+3"``; ``None`` when there was none."""
        if self.signal is None:
            return None
        if isinstance(self.signal, signal.Signals):
            return self.signal.name
        return f"SIGRTMIN+{self.signal - signal.SIGRTMIN}"

    @property
    def ok(self) -> bool:
        """Whether it exited with code 0 and nothing cut it short."""
        return self.exit_code == 0 and self.cause == Stop.NONE

    @property
    def ending(self) -> str:
        """How it ended, in a few words: ``"exited with code 3"``, ``"timed out and was killed by SIGTERM"``."""
        cut_short = {
            Stop.NONE: "",
            Stop.TIMEOUT: "timed out and ",
            Stop.CANCEL: "was cancelled and ",
            Stop.SHUTDOWN: "was shut down and ",
        }.get(self.cause, "was stopped and ")
        if self.exit == Exit.NONE:
            return "is running" if self.cause == Stop.NONE else cut_short + "is ending"
        if self.exit == Exit.CODE:
            return f"{cut_short}exited with code {self.exit_code}"
        if self.exit == Exit.SIGNAL:
            return f"{cut_short}was killed by {self.signal_name}"
        return f"{cut_short}ended in an unknown way"


#: Reads all fields of a ``dsh_outcome_t`` at once.
_OUTCOME = struct.Struct("".join(field._type_ for _, field in _abi.Outcome._fields_))


def outcome_values(
    info: _abi.ResultInfo | _abi.ProcessInfo, held_by: tuple[int, ...], survivors: tuple[Survivor, ...]
) -> tuple[Any, ...]:
    """The fields of an :class:`Outcome` in their order, for the classes that extend it."""
    *ending, wall_us, user_us, system_us, max_rss_bytes = _OUTCOME.unpack_from(info, type(info).outcome.offset)
    return (
        *_ending(*ending),
        held_by,
        survivors,
        wall_us / 1e6,
        user_us / 1e6,
        system_us / 1e6,
        max_rss_bytes,
    )


@lru_cache(maxsize=64)  # there are few ways to end, and to look one up takes less time than to put it together
def _ending(*numbers: int) -> tuple[Any, ...]:
    """The first fields of an :class:`Outcome`."""
    exit, code, signal, core_dumped, timed_out, aborted, cause, stopped_by, stage, pipes_held = numbers
    return (
        Exit(exit),
        code if exit == Exit.CODE else None,
        _signal(signal) if exit == Exit.SIGNAL else None,
        bool(core_dumped),
        bool(timed_out),
        bool(aborted),
        Stop(cause),
        Stop(stopped_by),
        StopStage(stage),
        bool(pipes_held),
    )


def _signal(number: int) -> int:
    try:
        return signal.Signals(number)
    except ValueError:
        return number


@dataclass(frozen=True)
class Capture(Record):
    """One stream as it was kept."""

    __slots__ = ("data", "total", "omitted", "omitted_at", "spill_path", "spill_error")

    #: What was kept in memory.
    data: bytes
    #: How many bytes the command wrote.
    total: int
    #: How many bytes were left out of ``data``.
    omitted: int
    #: Where in ``data`` they are missing: an offset, 0 when only the end was kept.
    omitted_at: int
    #: The file that holds the whole stream from its first byte; ``None`` when memory was enough, or it could not be
    #: kept. It is removed with the executor.
    spill_path: Path | None
    #: Why there is no such file although memory was not enough.
    spill_error: str | None

    @property
    def text(self) -> str:
        """``data`` as UTF-8, with a replacement character for each byte sequence that is none."""
        return self.data.decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """Whether anything was left out of ``data``."""
        return self.omitted > 0

    @classmethod
    def _of(cls, captured: _abi.Captured) -> Capture:
        if not captured.total:
            return _NOTHING
        return cls(
            data=ctypes.string_at(captured.data, captured.len),
            total=captured.total,
            omitted=captured.omitted,
            omitted_at=captured.omitted_at,
            spill_path=_values.path_of(captured.spill_path),
            spill_error=_values.text_of(captured.spill_error),
        )


#: A stream to which nothing was written, as one of the two is most often.
_NOTHING = Capture(data=b"", total=0, omitted=0, omitted_at=0, spill_path=None, spill_error=None)


@dataclass(frozen=True)
class Result(Outcome):
    """What a run gave. Everything that a command can do is a result, exits and timeouts included.

    A copy of its own: it stays as it is when the executor is gone, and can be pickled.
    """

    __slots__ = ("out", "err", "timeout", "input_written", "scrubbed", "process_id", "sandbox")

    #: Its stdout (both streams, when they were merged).
    out: Capture
    #: Its stderr.
    err: Capture
    #: The effective timeout in seconds; ``None`` for a process in the background, which has none.
    timeout: float | None
    #: Bytes of input that the command took, or that were left in the pipe for it.
    input_written: int
    #: Names of host variables that the command did not get because they look like credentials or are denied.
    scrubbed: tuple[str, ...]
    #: The library's number of the process, unique in its executor.
    process_id: int
    #: What is known of its confinement; ``None`` when nobody has asked for one.
    sandbox: SandboxFacts | None

    @property
    def stdout(self) -> bytes:
        """What was kept of stdout; see ``out`` for what was not."""
        return self.out.data

    @property
    def stderr(self) -> bytes:
        """What was kept of stderr; see ``err`` for what was not."""
        return self.err.data

    @property
    def stdout_text(self) -> str:
        """``stdout`` as UTF-8, with a replacement character for each byte sequence that is none."""
        return self.out.text

    @property
    def stderr_text(self) -> str:
        """``stderr`` as UTF-8, with a replacement character for each byte sequence that is none."""
        return self.err.text

    def check(self) -> Result:
        """The result itself when it is ``ok``; otherwise raises :class:`CommandFailedError`."""
        if not self.ok:
            raise CommandFailedError(self)
        return self


class ResultHandle(Handle):
    """``dsh_result_t``."""

    def __init__(self) -> None:
        super().__init__(lib.dsh_result_free)
        self._info = _abi.ResultInfo()
        self._info_out = ctypes.byref(self._info)

    def result(self, confined: bool) -> Result:
        """What it holds. Unless anybody has asked for confinement, there is nothing to be known of it."""
        info = self._info
        call(lib.dsh_result_info, self, self._info_out)
        outcome = outcome_values(
            info,
            tuple(info.held_by[: info.held_by_len]) if info.held_by_len else (),
            tuple(map(Survivor._of, info.survivors[: info.survivors_len])) if info.survivors_len else (),
        )
        own: tuple[Any, ...] = (
            Capture._of(info.out),
            Capture._of(info.err),
            info.timeout_ms / 1000 if info.timeout_ms else None,
            info.input_written,
            _values.texts(info.scrubbed, info.scrubbed_len),
            info.process_id,
            sandbox_facts(lib.dsh_result_sandbox, self) if confined else None,
        )
        return Result(*outcome, *own)
