"""The C ABI as ctypes sees it: layouts and prototypes, written by hand from ``dsh.h``.

Nothing here has a meaning of its own; the header is the manual. A test compares every size and offset with what a C
compiler makes of the installed header, and every number with the header's.

Structs only ever grow at their end, and the library fills or reads them as far as the ``size`` that they state. So
these layouts keep working with a newer library whose structs are longer.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

ABI_VERSION = 0

OK = 0
E_TIMED_OUT = -18

CONFIG_NO_INHERIT_ENV = 1
CONFIG_NO_GUARD = 2
CONFIG_KEEP_SPILL_FILES = 4

REQUEST_MERGE_STDERR = 1
REQUEST_FOREGROUND = 2

SANDBOX_GIT_WORKTREE = 1
SANDBOX_NO_GIT_WORKTREE = 2

DENIED_UNKNOWN = 0
DENIED_NO = 1
DENIED_YES = 2

WAIT_FOREVER = 2**64 - 1
UINT64_MAX = 2**64 - 1

EVENT_NONE = 0


class Sized(Structure):
    """A struct that begins with its own size; the size is set when it is made."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


class Sandbox(Sized):
    """``dsh_sandbox_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("workspace", c_char_p),
        ("writable", POINTER(c_char_p)),
        ("writable_len", c_size_t),
        ("hidden", POINTER(c_char_p)),
        ("hidden_len", c_size_t),
        ("backends", POINTER(c_uint32)),
        ("backends_len", c_size_t),
        ("runner", POINTER(c_char_p)),
        ("runner_len", c_size_t),
        ("runner_failures", POINTER(c_char_p)),
        ("runner_failures_len", c_size_t),
        ("flags", c_uint64),
        ("mode", c_uint32),
        ("network", c_uint32),
    )


class SandboxFacts(Sized):
    """``dsh_sandbox_facts_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("workspace", c_char_p),
        ("missing", POINTER(c_char_p)),
        ("missing_len", c_size_t),
        ("denied_path", c_char_p),
        ("denied_rule", c_char_p),
        ("runner_failed", c_char_p),
        ("mode", c_uint32),
        ("backend", c_uint32),
        ("enforcement", c_uint32),
        ("denied", c_uint32),
        ("network", c_uint32),
        ("reserved", c_uint32),
    )


class BackendReport(Structure):
    """``dsh_backend_report_t``. Part of lists; it never grows."""

    _fields_ = (
        ("tried", c_char_p),
        ("message", c_char_p),
        ("remedy", c_char_p),
        ("backend", c_uint32),
        ("usable", c_uint32),
        ("network", c_uint32),
        ("version", c_uint32),
        ("error_number", c_int32),
        ("reserved", c_uint32),
    )


class DoctorInfo(Sized):
    """``dsh_doctor_info_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("text", c_char_p),
        ("backends", POINTER(BackendReport)),
        ("backends_len", c_size_t),
        ("facts", POINTER(c_char_p)),
        ("facts_len", c_size_t),
    )


class Config(Sized):
    """``dsh_config_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("cwd", c_char_p),
        ("shell", c_char_p),
        ("spill_dir", c_char_p),
        ("env_allow", POINTER(c_char_p)),
        ("env_allow_len", c_size_t),
        ("env_deny", POINTER(c_char_p)),
        ("env_deny_len", c_size_t),
        ("timeout_ms", c_uint64),
        ("max_timeout_ms", c_uint64),
        ("max_output_bytes", c_uint64),
        ("max_spill_bytes", c_uint64),
        ("max_total_spill_bytes", c_uint64),
        ("grace_ms", c_uint64),
        ("drain_ms", c_uint64),
        ("flags", c_uint64),
        ("keep", c_uint32),
        ("reserved", c_uint32),
        ("sandbox", POINTER(Sandbox)),
    )


class Stats(Sized):
    """``dsh_stats_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("live", c_uint64),
        ("ended", c_uint64),
        ("spill_bytes", c_uint64),
        ("threads", c_uint64),
        ("spawn_path", c_uint32),
        ("guard_pid", c_int32),
    )


class Request(Sized):
    """``dsh_request_t``. The input is typed as text since ctypes then takes bytes, NUL bytes included, as they are."""

    _fields_ = (
        ("size", c_size_t),
        ("command", c_char_p),
        ("command_len", c_size_t),
        ("workdir", c_char_p),
        ("input", c_char_p),
        ("input_len", c_size_t),
        ("env", POINTER(c_char_p)),
        ("env_len", c_size_t),
        ("dsh_env", POINTER(c_char_p)),
        ("dsh_env_len", c_size_t),
        ("cancel", c_void_p),
        ("timeout_ms", c_uint64),
        ("stdout_max_bytes", c_uint64),
        ("tag", c_uint64),
        ("flags", c_uint64),
        ("survivors", c_uint32),
        ("reserved", c_uint32),
        ("sandbox", POINTER(Sandbox)),
        ("attend_ms", c_uint64),
    )


class SpecInfo(Sized):
    """``dsh_spec_info_t``. The command is a bare pointer: its length stands beside it."""

    _fields_ = (
        ("size", c_size_t),
        ("command", c_void_p),
        ("command_len", c_size_t),
        ("shell", c_char_p),
        ("workdir", c_char_p),
        ("scrubbed", POINTER(c_char_p)),
        ("scrubbed_len", c_size_t),
        ("timeout_ms", c_uint64),
        ("stdout_max_bytes", c_uint64),
        ("max_output_bytes", c_uint64),
        ("grace_ms", c_uint64),
        ("drain_ms", c_uint64),
        ("tag", c_uint64),
        ("flags", c_uint64),
        ("survivors", c_uint32),
        ("sandbox_mode", c_uint32),
    )


class Outcome(Structure):
    """``dsh_outcome_t``. Part of other structs; it never grows."""

    _fields_ = (
        ("exit", c_uint32),
        ("code", c_int32),
        ("signal", c_int32),
        ("core_dumped", c_uint32),
        ("timed_out", c_uint32),
        ("aborted", c_uint32),
        ("cause", c_uint32),
        ("stopped_by", c_uint32),
        ("stage", c_uint32),
        ("pipes_held", c_uint32),
        ("wall_us", c_uint64),
        ("user_us", c_uint64),
        ("system_us", c_uint64),
        ("max_rss_bytes", c_uint64),
    )


class Survivor(Structure):
    """``dsh_survivor_t``. Part of lists; it never grows."""

    _fields_ = (
        ("start_time", c_uint64),
        ("pid", c_int32),
        ("reserved", c_uint32),
    )


class Captured(Structure):
    """``dsh_captured_t``. Part of other structs; it never grows."""

    _fields_ = (
        ("data", c_void_p),
        ("len", c_size_t),
        ("total", c_uint64),
        ("omitted", c_uint64),
        ("omitted_at", c_uint64),
        ("spill_path", c_char_p),
        ("spill_error", c_char_p),
    )


class ResultInfo(Sized):
    """``dsh_result_info_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("outcome", Outcome),
        ("out", Captured),
        ("err", Captured),
        ("held_by", POINTER(c_int32)),
        ("held_by_len", c_size_t),
        ("survivors", POINTER(Survivor)),
        ("survivors_len", c_size_t),
        ("scrubbed", POINTER(c_char_p)),
        ("scrubbed_len", c_size_t),
        ("timeout_ms", c_uint64),
        ("input_written", c_uint64),
        ("process_id", c_uint64),
    )


class ProcessInfo(Sized):
    """``dsh_process_info_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("outcome", Outcome),
        ("process_id", c_uint64),
        ("tag", c_uint64),
        ("out_total", c_uint64),
        ("err_total", c_uint64),
        ("input_written", c_uint64),
        ("pid", c_int32),
        ("status", c_uint32),
        ("quiescent", c_uint32),
        ("reserved", c_uint32),
        ("survivors_len", c_uint64),
        ("held_by_len", c_uint64),
    )


class ChunkInfo(Sized):
    """``dsh_chunk_info_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("data", c_void_p),
        ("len", c_size_t),
        ("out_missing", c_uint64),
        ("err_missing", c_uint64),
        ("out_spill_path", c_char_p),
        ("err_spill_path", c_char_p),
        ("lossy", c_uint32),
        ("end", c_uint32),
    )


class Reading(Sized):
    """``dsh_reading_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("start", c_uint64),
        ("len", c_uint64),
        ("next", c_uint64),
        ("missing", c_uint64),
        ("lossy", c_uint32),
        ("end", c_uint32),
    )


class Event(Sized):
    """``dsh_event_t``."""

    _fields_ = (
        ("size", c_size_t),
        ("process_id", c_uint64),
        ("tag", c_uint64),
        ("kind", c_uint32),
        ("reserved", c_uint32),
    )


#: Which header type each layout is of, for the test that compares them.
LAYOUTS: dict[str, type[Structure]] = {
    "dsh_sandbox_t": Sandbox,
    "dsh_sandbox_facts_t": SandboxFacts,
    "dsh_backend_report_t": BackendReport,
    "dsh_doctor_info_t": DoctorInfo,
    "dsh_config_t": Config,
    "dsh_stats_t": Stats,
    "dsh_request_t": Request,
    "dsh_spec_info_t": SpecInfo,
    "dsh_outcome_t": Outcome,
    "dsh_survivor_t": Survivor,
    "dsh_captured_t": Captured,
    "dsh_result_info_t": ResultInfo,
    "dsh_process_info_t": ProcessInfo,
    "dsh_chunk_info_t": ChunkInfo,
    "dsh_reading_t": Reading,
    "dsh_event_t": Event,
}

_HANDLE = c_void_p
_OUT_HANDLE = POINTER(c_void_p)
_ERROR = POINTER(c_void_p)


def _call(*arguments: Any) -> tuple[Any, tuple[Any, ...]]:
    """A function that gives a status and takes an error last."""
    return c_int32, (*arguments, _ERROR)


def _free() -> tuple[Any, tuple[Any, ...]]:
    return None, (_HANDLE,)


#: What each function gives and takes.
PROTOTYPES = {
    "dsh_version": (c_char_p, ()),
    "dsh_abi_version": (c_uint32, ()),
    "dsh_feature": (c_uint32, (c_uint32,)),
    "dsh_error_code": (c_int32, (_HANDLE,)),
    "dsh_error_errno": (c_int32, (_HANDLE,)),
    "dsh_error_stage": (c_char_p, (_HANDLE,)),
    "dsh_error_message": (c_char_p, (_HANDLE,)),
    "dsh_error_free": _free(),
    "dsh_sandbox_mode_str": (c_char_p, (c_uint32,)),
    "dsh_sandbox_is_wider": (c_uint32, (c_uint32, c_uint32)),
    "dsh_sandbox_doctor": _call(_OUT_HANDLE),
    "dsh_doctor_info": _call(_HANDLE, POINTER(DoctorInfo)),
    "dsh_doctor_free": _free(),
    "dsh_executor_new": _call(POINTER(Config), _OUT_HANDLE),
    "dsh_executor_configure": _call(_HANDLE, POINTER(Config)),
    "dsh_executor_config": _call(_HANDLE, _OUT_HANDLE),
    "dsh_executor_shutdown": _call(_HANDLE, c_uint64),
    "dsh_executor_stats": _call(_HANDLE, POINTER(Stats)),
    "dsh_executor_event_fd": _call(_HANDLE, POINTER(c_int32)),
    "dsh_executor_free": _free(),
    "dsh_settings_info": _call(_HANDLE, POINTER(Config)),
    "dsh_settings_free": _free(),
    "dsh_next_event": _call(_HANDLE, POINTER(Event)),
    "dsh_cancel_new": _call(_OUT_HANDLE),
    "dsh_cancel": _call(_HANDLE),
    "dsh_is_cancelled": _call(_HANDLE, POINTER(c_uint32)),
    "dsh_cancel_free": _free(),
    "dsh_resolve": _call(_HANDLE, POINTER(Request), _OUT_HANDLE),
    "dsh_spec_info": _call(_HANDLE, POINTER(SpecInfo)),
    "dsh_spec_free": _free(),
    "dsh_run": _call(_HANDLE, POINTER(Request), _OUT_HANDLE),
    "dsh_result_info": _call(_HANDLE, POINTER(ResultInfo)),
    "dsh_result_sandbox": _call(_HANDLE, POINTER(SandboxFacts)),
    "dsh_result_free": _free(),
    "dsh_start": _call(_HANDLE, POINTER(Request), _OUT_HANDLE),
    "dsh_kill": _call(_HANDLE, POINTER(c_uint32)),
    "dsh_wait": _call(_HANDLE, c_uint64),
    "dsh_process_info": _call(_HANDLE, POINTER(ProcessInfo)),
    "dsh_process_sandbox": _call(_HANDLE, POINTER(SandboxFacts)),
    "dsh_process_result": _call(_HANDLE, _OUT_HANDLE),
    "dsh_process_survivors": _call(_HANDLE, POINTER(Survivor), c_size_t, POINTER(c_size_t)),
    "dsh_process_held_by": _call(_HANDLE, POINTER(c_int32), c_size_t, POINTER(c_size_t)),
    "dsh_process_spill_path": _call(_HANDLE, c_uint32, c_char_p, c_size_t, POINTER(c_size_t)),
    "dsh_process_free": _free(),
    "dsh_read_output": _call(_HANDLE, _OUT_HANDLE),
    "dsh_chunk_info": _call(_HANDLE, POINTER(ChunkInfo)),
    "dsh_chunk_free": _free(),
    "dsh_read_stream": _call(_HANDLE, c_uint32, c_uint64, c_void_p, c_size_t, POINTER(Reading)),
}
