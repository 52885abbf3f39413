"""What a caller asks, and what would run."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from dsh import _abi, _values
from dsh._cancel import CancelToken
from dsh._handle import Handle
from dsh._library import call, lib
from dsh._numbers import Survivors
from dsh._record import Record
from dsh._sandbox import Policy, SandboxMode, policy

#: A request with every default. To copy it takes a fraction of making it.
_DEFAULTS = bytes(_abi.Request())
_KEEP = Survivors.KEEP


def request(
    command: _values.Text,
    *,
    foreground: bool,
    cwd: _values.StrPath | None,
    env: _values.Env | None,
    dsh_env: _values.Env | None,
    input: _values.Input | None,
    merge_stderr: bool,
    survivors: Survivors,
    cancel: CancelToken | None,
    tag: int,
    sandbox: Policy,
    timeout: float | None = None,
    stdout_max_bytes: int | None = None,
) -> _abi.Request:
    """The terms of a command for the library. The struct keeps alive what it points to."""
    # Most terms are left at their defaults, and what is not set takes no time.
    request = _abi.Request.from_buffer_copy(_DEFAULTS)
    request.command = script = _values.text("command", command)
    request.command_len = len(script)
    request.tag = _values.number("tag", tag)
    request.flags = (_abi.REQUEST_MERGE_STDERR if merge_stderr else 0) | (_abi.REQUEST_FOREGROUND if foreground else 0)
    if cwd is not None:
        request.workdir = _values.path("cwd", cwd)
    if input is not None:
        request.input = data = _values.data("input", input)
        request.input_len = len(data)
    if env:
        request.env = _values.array(variables := _values.entries("env", env))
        request.env_len = len(variables)
    if dsh_env:
        request.dsh_env = _values.array(variables := _values.entries("dsh_env", dsh_env))
        request.dsh_env_len = len(variables)
    if timeout is not None:
        request.timeout_ms = _values.milliseconds("timeout", timeout)
    if stdout_max_bytes is not None:
        request.stdout_max_bytes = _values.size("stdout_max_bytes", stdout_max_bytes)
    if survivors is not _KEEP:
        request.survivors = Survivors(survivors)
    if sandbox is not None:
        request.sandbox = policy(sandbox)
    if cancel is not None:
        request.cancel = _token(cancel)
        request.token = cancel  # the caller may drop it on another thread during the call
    return request


def _token(cancel: CancelToken) -> ctypes.c_void_p:
    if not isinstance(cancel, CancelToken):
        raise TypeError(f"cancel: must be a CancelToken, not {type(cancel).__name__}")
    return cancel._handle._as_parameter_


@dataclass(frozen=True)
class Spec(Record):
    """What would run: a request with every default and cap applied."""

    __slots__ = (
        "command",
        "shell",
        "cwd",
        "scrubbed",
        "timeout",
        "stdout_max_bytes",
        "max_output_bytes",
        "grace",
        "drain",
        "survivors",
        "merge_stderr",
        "tag",
        "sandbox_mode",
    )

    #: The text for the shell's ``-c``.
    command: bytes
    #: The absolute path of the shell.
    shell: Path
    #: The absolute working directory.
    cwd: Path
    #: Names of host variables that the command does not get because they look like credentials or are denied.
    scrubbed: tuple[str, ...]
    #: The effective timeout of a foreground run, in seconds.
    timeout: float
    #: Bytes of stdout kept in memory by a foreground run.
    stdout_max_bytes: int
    #: Bytes of stderr, and of a background process's stdout, kept in memory.
    max_output_bytes: int
    #: Seconds from SIGTERM to SIGKILL.
    grace: float
    #: Seconds that open pipes are waited for after the shell has exited.
    drain: float
    #: What happens to descendants that outlive the command.
    survivors: Survivors
    #: Whether stderr goes through stdout's pipe.
    merge_stderr: bool
    #: The caller's number.
    tag: int
    #: The mode that it would be confined under; ``None`` when nobody has asked for confinement.
    sandbox_mode: SandboxMode | None


class SpecHandle(Handle):
    """``dsh_spec_t``."""

    def __init__(self, executor: Handle, request: _abi.Request) -> None:
        super().__init__(lib.dsh_spec_free)
        call(lib.dsh_resolve, executor, ctypes.byref(request), self.out)

    def spec(self) -> Spec:
        info = _abi.SpecInfo()
        call(lib.dsh_spec_info, self, ctypes.byref(info))
        return Spec(
            command=ctypes.string_at(info.command, info.command_len),
            shell=Path(os.fsdecode(info.shell)),
            cwd=Path(os.fsdecode(info.workdir)),
            scrubbed=_values.texts(info.scrubbed, info.scrubbed_len),
            timeout=info.timeout_ms / 1000,
            stdout_max_bytes=info.stdout_max_bytes,
            max_output_bytes=info.max_output_bytes,
            grace=info.grace_ms / 1000,
            drain=info.drain_ms / 1000,
            survivors=Survivors(info.survivors),
            merge_stderr=bool(info.flags & _abi.REQUEST_MERGE_STDERR),
            tag=info.tag,
            sandbox_mode=SandboxMode(info.sandbox_mode) if info.sandbox_mode else None,
        )
