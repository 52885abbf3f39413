"""What confinement this system has."""

from __future__ import annotations

import asyncio
import ctypes
from dataclasses import dataclass

from dsh import _abi, _values
from dsh._aside import aside, on_main_thread
from dsh._handle import Handle
from dsh._library import call, lib
from dsh._numbers import Backend
from dsh._record import Record


@dataclass(frozen=True)
class BackendReport(Record):
    """What was found out about one backend by really running something under it."""

    __slots__ = ("backend", "usable", "network", "version", "errno", "tried", "message", "remedy")

    #: Which backend.
    backend: Backend
    #: Whether it confines commands here.
    usable: bool
    #: Whether it also gives them a network of their own, or none.
    network: bool
    #: The version of its interface; ``None`` when it has none.
    version: int | None
    #: The ``errno`` of what failed; ``None`` when nothing did, or no system call.
    errno: int | None
    #: What was tried.
    tried: str
    #: What came back.
    message: str
    #: What would mend it; ``None`` when it works.
    remedy: str | None

    @classmethod
    def _of(cls, report: _abi.BackendReport) -> BackendReport:
        return cls(
            backend=Backend(report.backend),
            usable=bool(report.usable),
            network=bool(report.network),
            version=report.version or None,
            errno=report.error_number or None,
            tried=_values.text_of(report.tried) or "",
            message=_values.text_of(report.message) or "",
            remedy=_values.text_of(report.remedy),
        )


@dataclass(frozen=True)
class DoctorReport(Record):
    """What confinement this system has, why not more, and what would mend it. As ``str`` it is the text for people."""

    __slots__ = ("backends", "facts", "text")

    #: The backends in the order in which they are tried by default.
    backends: tuple[BackendReport, ...]
    #: Facts of the system that decide about them: names and values, fit for ``dict``.
    facts: tuple[tuple[str, str], ...]
    #: The whole report as text for people.
    text: str

    def __str__(self) -> str:
        return self.text


class DoctorHandle(Handle):
    """``dsh_doctor_t``."""

    def __init__(self) -> None:
        super().__init__(lib.dsh_doctor_free)

    def report(self) -> DoctorReport:
        info = _abi.DoctorInfo()
        call(lib.dsh_doctor_info, self, ctypes.byref(info))
        facts = (fact.partition("=") for fact in _values.texts(info.facts, info.facts_len))
        return DoctorReport(
            backends=tuple(BackendReport._of(info.backends[index]) for index in range(info.backends_len)),
            facts=tuple((name, value) for name, _, value in facts),
            text=_values.text_of(info.text) or "",
        )


def _examine() -> DoctorReport:
    with DoctorHandle() as handle:
        call(lib.dsh_sandbox_doctor, handle.out)
        return handle.report()


def sandbox_doctor() -> DoctorReport:
    """Tries every backend of the system with a shell that does nothing, and reports what works, why not more, and what
    would mend it. Needs no executor.

    Blocks this thread for some milliseconds per backend, and 10 seconds at most when one hangs. Other threads run
    meanwhile, and on the main thread Ctrl-C ends the waiting.
    """
    return aside(_examine).result() if on_main_thread() else _examine()


async def sandbox_doctor_async() -> DoctorReport:
    """As :func:`sandbox_doctor`, waiting in the running event loop: a thread of its own does the work."""
    return await asyncio.shield(asyncio.wrap_future(aside(_examine)))
