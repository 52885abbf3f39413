"""The budgets of an executor."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dsh import _abi, _values
from dsh._handle import Handle
from dsh._library import call, lib
from dsh._numbers import Keep
from dsh._record import Record
from dsh._sandbox import Policy, Sandbox, policy, policy_of


@dataclass(frozen=True)
class Settings(Record):
    """The budgets of an executor as they were at one moment, with every default filled in.

    The fields have the names and meanings of the arguments of :class:`Executor`, so that
    ``executor.configure(**{**dataclasses.asdict(executor.settings), "grace": 1.0})`` changes one and keeps the others.
    """

    __slots__ = (
        "cwd",
        "shell",
        "spill_dir",
        "timeout",
        "max_timeout",
        "max_output_bytes",
        "max_spill_bytes",
        "max_total_spill_bytes",
        "grace",
        "drain",
        "keep",
        "inherit_env",
        "env_allow",
        "env_deny",
        "guard",
        "keep_spill_files",
        "sandbox",
    )

    #: Working directory of commands that name none; ``None`` is the host's, at each call.
    cwd: Path | None
    #: The shell.
    shell: Path | None
    #: Where the private directory for spill files is made.
    spill_dir: Path | None
    #: Seconds that a foreground command gets when it names no timeout.
    timeout: float
    #: The most seconds that any command gets.
    max_timeout: float
    #: Bytes of each stream kept in memory.
    max_output_bytes: int
    #: Bytes of each stream kept on disk.
    max_spill_bytes: int
    #: Bytes of all spill files together.
    max_total_spill_bytes: int
    #: Seconds from SIGTERM to SIGKILL.
    grace: float
    #: Seconds that open pipes are waited for after the shell has exited.
    drain: float
    #: Which part of a long stream stays in memory.
    keep: Keep
    #: Whether commands get the host's environment, without what looks like a credential.
    inherit_env: bool
    #: Globs on names of host variables that are passed on although they look like credentials.
    env_allow: tuple[str, ...]
    #: Globs on names of host variables that are not passed on.
    env_deny: tuple[str, ...]
    #: Whether commands are ended when the host dies.
    guard: bool
    #: Whether spill files are left behind when the executor ends.
    keep_spill_files: bool
    #: The policy under which commands are confined; ``None`` when they are not. Its ``mode`` is the one that they run
    #: under by default, and a ``workspace`` of ``None`` is ``cwd``.
    sandbox: Sandbox | None


def config(
    *,
    cwd: _values.StrPath | None,
    shell: _values.StrPath | None,
    spill_dir: _values.StrPath | None,
    timeout: float | None,
    max_timeout: float | None,
    max_output_bytes: int | None,
    max_spill_bytes: int | None,
    max_total_spill_bytes: int | None,
    grace: float | None,
    drain: float | None,
    keep: Keep,
    inherit_env: bool,
    env_allow: Iterable[str],
    env_deny: Iterable[str],
    guard: bool,
    keep_spill_files: bool,
    sandbox: Policy,
) -> _abi.Config:
    """The options of an executor for the library."""
    allow, deny = _values.globs("env_allow", env_allow), _values.globs("env_deny", env_deny)
    return _abi.Config(
        cwd=_values.path("cwd", cwd),
        shell=_values.path("shell", shell),
        spill_dir=_values.path("spill_dir", spill_dir),
        env_allow=_values.array(allow),
        env_allow_len=len(allow),
        env_deny=_values.array(deny),
        env_deny_len=len(deny),
        timeout_ms=_values.milliseconds("timeout", timeout),
        max_timeout_ms=_values.milliseconds("max_timeout", max_timeout),
        max_output_bytes=_values.size("max_output_bytes", max_output_bytes),
        max_spill_bytes=_values.size("max_spill_bytes", max_spill_bytes),
        max_total_spill_bytes=_values.size("max_total_spill_bytes", max_total_spill_bytes),
        grace_ms=_values.milliseconds("grace", grace),
        drain_ms=_values.milliseconds("drain", drain),
        flags=(0 if inherit_env else _abi.CONFIG_NO_INHERIT_ENV)
        | (0 if guard else _abi.CONFIG_NO_GUARD)
        | (_abi.CONFIG_KEEP_SPILL_FILES if keep_spill_files else 0),
        keep=Keep(keep),
        sandbox=policy(sandbox),
    )


class SettingsHandle(Handle):
    """``dsh_settings_t``."""

    def __init__(self, executor: Handle) -> None:
        super().__init__(lib.dsh_settings_free)
        call(lib.dsh_executor_config, executor, self.out)

    def settings(self) -> Settings:
        config = _abi.Config()
        call(lib.dsh_settings_info, self, ctypes.byref(config))
        return Settings(
            cwd=_values.path_of(config.cwd),
            shell=_values.path_of(config.shell),
            spill_dir=_values.path_of(config.spill_dir),
            timeout=config.timeout_ms / 1000,
            max_timeout=config.max_timeout_ms / 1000,
            max_output_bytes=config.max_output_bytes,
            max_spill_bytes=config.max_spill_bytes,
            max_total_spill_bytes=config.max_total_spill_bytes,
            grace=config.grace_ms / 1000,
            drain=config.drain_ms / 1000,
            keep=Keep(config.keep),
            inherit_env=not config.flags & _abi.CONFIG_NO_INHERIT_ENV,
            env_allow=_values.texts(config.env_allow, config.env_allow_len),
            env_deny=_values.texts(config.env_deny, config.env_deny_len),
            guard=not config.flags & _abi.CONFIG_NO_GUARD,
            keep_spill_files=bool(config.flags & _abi.CONFIG_KEEP_SPILL_FILES),
            sandbox=policy_of(config.sandbox),
        )
