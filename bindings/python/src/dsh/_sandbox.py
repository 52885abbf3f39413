"""Confinement: what a command may do, and what is known of how it was kept to that."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, TypeVar, Union

from dsh import _abi, _values
from dsh._errors import invalid
from dsh._library import call, lib
from dsh._numbers import Backend, Enforcement, Network, Word
from dsh._record import Record

if TYPE_CHECKING:
    from dsh._handle import Handle


class SandboxMode(Word):
    """How much of the file system a command may change. In policies also by its word: ``"workspace-write"``."""

    #: Nothing but ``/dev/null`` and a private directory for temporary files, in TMPDIR.
    READ_ONLY = 1
    #: That, and the workspace with everything below it, and further writable paths.
    WORKSPACE_WRITE = 2
    #: Everything: no confinement.
    DANGER_FULL_ACCESS = 3

    @property
    def wider(self) -> tuple[SandboxMode, ...]:
        """The modes that are strictly wider, the narrowest first: what could be asked for when a command was denied
        something."""
        return tuple(mode for mode in SandboxMode if lib.dsh_sandbox_is_wider(mode, self))


_W = TypeVar("_W", bound=Word)

#: What a policy takes for each of its words.
ModeLike = Union[SandboxMode, Literal["read-only", "workspace-write", "danger-full-access"]]
NetworkLike = Union[Network, Literal["full", "loopback", "none"]]
BackendLike = Union[Backend, Literal["bubblewrap", "landlock", "seatbelt", "runner"]]


@dataclass(frozen=True, init=False)
class Sandbox(Record):
    """A policy: what a confined command may do.

    ::

        policy = dsh.Sandbox(mode="workspace-write", workspace="/home/u/project", network="none")
        with dsh.Executor(cwd="/home/u/project", sandbox=policy) as executor:
            executor.run("make")
            executor.run("cat notes", sandbox=dsh.Sandbox(mode="read-only"))

    An executor's policy is for all of its commands. A request's policy says what differs from that: what is left out
    (``None``, or a list that is empty) is as the executor's policy says, and there the default. Paths are absolute, and
    symbolic links in them are followed.

    :param mode: How much of the file system may be changed. Default ``read-only``.
    :param workspace: The directory that ``workspace-write`` lets a command change. Default: the executor's ``cwd``,
        whatever the ``cwd`` of the request is.
    :param writable: Further paths that ``workspace-write`` lets a command change. They have to exist.
    :param hidden: Paths whose contents a command does not get to see. Those that do not exist are passed over.
    :param network: How much of the network may be used; the word ``"none"`` is a command without one. Default
        ``full``.
    :param backends: What is tried to carry it out, in this order. Default: the runner if there is one, then all of the
        system, bubblewrap before Landlock.
    :param runner: A sandbox of your own: a program (absolute, or found in PATH) and its first arguments, after which
        come the shell, ``-c`` and the command. It finds the policy in the variables ``DSH_SANDBOX_MODE``,
        ``DSH_SANDBOX_WORKSPACE``, ``DSH_SANDBOX_WRITABLE`` (a list with ``:``) and ``DSH_SANDBOX_NETWORK``, and is
        trusted to enforce it.
    :param runner_failures: A line on stderr that contains one of these, whatever the case, says together with a
        non-zero exit that the runner itself failed and the command did not run. Required with a runner.
    :param git_worktree: Whether a workspace that is a linked git worktree may change those parts of the main repository
        that a commit needs: not its hooks, and not its configuration. Default: no.
    :raises InvalidValueError: for a value that can't be one. What depends on the file system is refused by whoever gets
        the policy.
    """

    __slots__ = (
        "mode",
        "workspace",
        "writable",
        "hidden",
        "network",
        "backends",
        "runner",
        "runner_failures",
        "git_worktree",
    )

    #: How much of the file system may be changed.
    mode: SandboxMode | None
    #: The directory that ``workspace-write`` lets a command change.
    workspace: Path | None
    #: Further paths that it lets a command change.
    writable: tuple[Path, ...]
    #: Paths whose contents a command does not get to see.
    hidden: tuple[Path, ...]
    #: How much of the network may be used.
    network: Network | None
    #: What is tried to carry it out, in this order.
    backends: tuple[Backend, ...]
    #: The caller's own sandbox: a program and its first arguments.
    runner: tuple[str, ...]
    #: What it says on stderr when it fails itself.
    runner_failures: tuple[str, ...]
    #: Whether a linked git worktree may be committed to.
    git_worktree: bool | None

    def __init__(
        self,
        *,
        mode: ModeLike | None = None,
        workspace: _values.StrPath | None = None,
        writable: Iterable[_values.StrPath] = (),
        hidden: Iterable[_values.StrPath] = (),
        network: NetworkLike | None = None,
        backends: Iterable[BackendLike] = (),
        runner: Iterable[_values.StrPath] = (),
        runner_failures: Iterable[str] = (),
        git_worktree: bool | None = None,
    ) -> None:
        values = {
            "mode": None if mode is None else _word("sandbox.mode", SandboxMode, mode),
            "workspace": None if workspace is None else _path("sandbox.workspace", workspace),
            "writable": _each(_path, "sandbox.writable", writable),
            "hidden": _each(_path, "sandbox.hidden", hidden),
            "network": None if network is None else _word("sandbox.network", Network, network),
            "backends": _each(_backend, "sandbox.backends", backends),
            "runner": _each(_argument, "sandbox.runner", runner),
            "runner_failures": _each(_argument, "sandbox.runner_failures", runner_failures),
            "git_worktree": git_worktree,
        }
        if git_worktree is not None and not isinstance(git_worktree, bool):
            raise TypeError(f"sandbox.git_worktree: must be a bool, not {type(git_worktree).__name__}")
        for name, value in values.items():
            object.__setattr__(self, name, value)


#: A policy as it is taken: also its fields by name, which is what :func:`dataclasses.asdict` makes of one.
Policy = Optional[Union[Sandbox, Mapping[str, Any]]]


def policy(sandbox: Policy) -> Any:
    """A pointer to a policy for the library, or nothing for none. It keeps alive what it points to, and a struct that
    it is put into keeps it alive."""
    if sandbox is None:
        return None
    if isinstance(sandbox, Mapping):
        strange = [name for name in sandbox if name not in Sandbox.__slots__]
        if strange:
            raise TypeError(f"sandbox: {strange[0]!r}: is no field of a policy")
        sandbox = Sandbox(**sandbox)
    if not isinstance(sandbox, Sandbox):
        raise TypeError(f"sandbox: must be a Sandbox, not {type(sandbox).__name__}")
    writable, hidden = _encoded(sandbox.writable), _encoded(sandbox.hidden)
    runner, failures = _encoded(sandbox.runner), _encoded(sandbox.runner_failures)
    flags = {None: 0, True: _abi.SANDBOX_GIT_WORKTREE, False: _abi.SANDBOX_NO_GIT_WORKTREE}
    return ctypes.pointer(
        _abi.Sandbox(
            workspace=_values.path("sandbox.workspace", sandbox.workspace),
            writable=_values.array(writable),
            writable_len=len(writable),
            hidden=_values.array(hidden),
            hidden_len=len(hidden),
            backends=(ctypes.c_uint32 * len(sandbox.backends))(*sandbox.backends) if sandbox.backends else None,
            backends_len=len(sandbox.backends),
            runner=_values.array(runner),
            runner_len=len(runner),
            runner_failures=_values.array(failures),
            runner_failures_len=len(failures),
            flags=flags[sandbox.git_worktree],
            mode=sandbox.mode or 0,
            network=sandbox.network or 0,
        )
    )


def policy_of(pointer: Any) -> Sandbox | None:
    """The policy of an executor that a struct of the library points to, with the defaults filled in."""
    if not pointer:
        return None
    sandbox = pointer.contents
    return Sandbox(
        mode=SandboxMode(sandbox.mode or SandboxMode.READ_ONLY),
        workspace=sandbox.workspace,
        writable=_values.texts(sandbox.writable, sandbox.writable_len),
        hidden=_values.texts(sandbox.hidden, sandbox.hidden_len),
        network=Network(sandbox.network or Network.FULL),
        backends=[Backend(number) for number in sandbox.backends[: sandbox.backends_len]],
        runner=_values.texts(sandbox.runner, sandbox.runner_len),
        runner_failures=_values.texts(sandbox.runner_failures, sandbox.runner_failures_len),
        git_worktree=bool(sandbox.flags & _abi.SANDBOX_GIT_WORKTREE),
    )


def _encoded(values: Iterable[_values.StrPath]) -> list[bytes]:
    return [os.fsencode(value) for value in values]


def _word(name: str, kind: type[_W], value: Any) -> _W:
    """A named number, or the word for one. A bare number is not taken: which one it would be is not for callers to
    know."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name}: must be a {kind.__name__} or its word, not {type(value).__name__}")
    try:
        return kind(value)  # type: ignore[arg-type]
    except ValueError:
        words = ", ".join(repr(member.word) for member in kind)
        raise invalid(f"{name}: {value!r}: must be one of {words}") from None


def _backend(name: str, value: BackendLike) -> Backend:
    return _word(name, Backend, value)


def _path(name: str, value: _values.StrPath) -> Path:
    path = _argument(name, value)
    if not path:
        raise invalid(f"{name}: '': is no path")
    return Path(path)


def _argument(name: str, value: _values.StrPath) -> str:
    encoded = _values.path(name, value)
    if encoded is None:
        raise TypeError(f"{name}: must be str, bytes or a path, not None")
    return os.fsdecode(encoded)


def _each(convert: Callable[[str, Any], Any], name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Every item of a list, each refused by its place in it."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: must be several, in a list, not one {type(values).__name__}")
    return tuple(convert(f"{name}[{index}]", value) for index, value in enumerate(values))


@dataclass(frozen=True)
class SandboxFacts(Record):
    """What is known of the confinement of a command."""

    __slots__ = (
        "mode",
        "backend",
        "enforcement",
        "missing",
        "network",
        "workspace",
        "denied",
        "denied_path",
        "denied_rule",
        "runner_failed",
    )

    #: The mode that it ran under.
    mode: SandboxMode
    #: What confined it; ``None`` under full access.
    backend: Backend | None
    #: How much of the policy that enforces.
    enforcement: Enforcement
    #: What the policy says and the backend can't enforce here, a name each: ``"metadata"`` (modes, owners, times and
    #: attributes of files), ``"hidden-names"``, ``"truncate"``, ``"ioctl-dev"``, ``"signal"``,
    #: ``"abstract-unix-socket"``, ``"private-loopback"``.
    missing: tuple[str, ...]
    #: The network that it could use.
    network: Network
    #: The workspace without symbolic links; ``None`` under full access.
    workspace: Path | None
    #: Whether the confinement has kept it from something. ``None`` when there is no telling, or it did not matter to
    #: the command; and before the process has settled.
    denied: bool | None
    #: The path that it was kept from; ``None`` unless ``denied``.
    denied_path: Path | None
    #: The rule that forbids it, in a few words; ``None`` unless ``denied``.
    denied_rule: str | None
    #: Why the backend failed to set itself up, in which case the command did not run; ``None`` when it did not fail. Of
    #: processes only: for a result, that is :class:`SandboxUnavailableError`.
    runner_failed: str | None


def sandbox_facts(function: Any, handle: Handle) -> SandboxFacts | None:
    """What a function of the library tells of a result or process; nothing when nobody has asked for confinement."""
    facts = _abi.SandboxFacts()
    call(function, handle, ctypes.byref(facts))
    if not facts.mode:
        return None
    return SandboxFacts(
        mode=SandboxMode(facts.mode),
        backend=Backend(facts.backend) if facts.backend else None,
        enforcement=Enforcement(facts.enforcement),
        missing=_values.texts(facts.missing, facts.missing_len),
        network=Network(facts.network),
        workspace=_values.path_of(facts.workspace),
        denied={_abi.DENIED_NO: False, _abi.DENIED_YES: True}.get(facts.denied),
        denied_path=_values.path_of(facts.denied_path),
        denied_rule=_values.text_of(facts.denied_rule),
        runner_failed=_values.text_of(facts.runner_failed),
    )
