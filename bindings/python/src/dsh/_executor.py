"""The executor: runs commands, and owns what it runs until nothing of it is alive."""

from __future__ import annotations

import _thread
import asyncio
import atexit
import ctypes
import os
import warnings
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from dsh import _abi, _settings, _values
from dsh._aside import aside, on_main_thread
from dsh._cancel import CancelToken
from dsh._errors import Error, WaitTimeoutError
from dsh._events import Dispatcher
from dsh._handle import Handle
from dsh._library import call, lib
from dsh._numbers import Keep, SpawnPath, Survivors
from dsh._process import Process, ProcessHandle, RunHandle
from dsh._record import Record
from dsh._request import Spec, SpecHandle, request
from dsh._result import Result, ResultHandle
from dsh._sandbox import Policy
from dsh._settings import Settings, SettingsHandle


@dataclass(frozen=True)
class Stats(Record):
    """What an executor is doing at one moment."""

    __slots__ = ("live", "ended", "spill_bytes", "threads", "spawn_path", "guard_pid")

    #: Processes of which something may be alive.
    live: int
    #: Processes that have come and gone.
    ended: int
    #: Bytes in spill files.
    spill_bytes: int
    #: Threads that the executor runs: 2, and 0 after its shutdown.
    threads: int
    #: How children are created.
    spawn_path: SpawnPath
    #: The pid of the guard; ``None`` while there is none.
    guard_pid: int | None


#: How many unused handles an executor keeps for runs to come.
_UNUSED = 16

#: Milliseconds for which the main thread drives a command itself, as other threads do to its end. Long enough for most,
#: and soon over when a signal handler is to run.
_ATTENTION = 10


class RunHandles:
    """The handles that a run needs, empty before and after it."""

    __slots__ = ("_process", "_result")

    def __init__(self) -> None:
        self._process = RunHandle()
        self._result = ResultHandle()

    def __enter__(self) -> tuple[RunHandle, ResultHandle]:
        return self._process, self._result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self._process.give_back()
            self._result.give_back()
        else:  # in a cycle of garbage perhaps, where they have been finalized: they are not used again
            self._process.__exit__()
            self._result.__exit__()


class ExecutorHandle(Handle):
    """``dsh_executor_t``."""

    def __init__(self, config: _abi.Config) -> None:
        super().__init__(_free)
        self.pid = os.getpid()
        #: What runs have used, and the next ones use again.
        self._unused: list[RunHandles] = []
        call(lib.dsh_executor_new, ctypes.byref(config), self.out)
        _living.add(self)

    @property
    def events(self) -> Dispatcher:
        """Who hands out its events; made when somebody waits for one, since events are kept from then on."""
        own = vars(self)
        dispatcher: Dispatcher = own.get("dispatcher") or own.setdefault("dispatcher", Dispatcher(self))
        return dispatcher

    def run(self, request: _abi.Request, confined: bool) -> Result:
        """Blocks until there is a result."""
        handles = self._handles()
        with handles as (process, result):
            if on_main_thread():
                request.attend_ms = _ATTENTION
                try:
                    process.start(self, request)
                    process.wait_in_slices()
                except BaseException:  # Ctrl-C above all; another one ends the waiting that follows
                    if process.is_filled:
                        process.kill()
                        process.wait_in_slices()
                    raise
                call(lib.dsh_process_result, process, result.out)
            else:
                # The fastest way: the command is driven by this thread.
                call(lib.dsh_run, self, ctypes.byref(request), result.out)
            given = result.result(confined)
        self._take_back(handles)
        return given

    async def run_async(self, request: _abi.Request, confined: bool) -> Result:
        """Waits in the running event loop until there is a result."""
        events = self.events  # may fail, and must do so before anything runs
        handles = self._handles()
        with handles as (process, result):
            try:
                process.start(self, request)
                await process.settles(events)
            except asyncio.CancelledError:
                process.kill()
                await process.settles_despite_cancellation(events)
                raise
            except BaseException:
                # Most likely the coroutine is closed: in a forked child, or as garbage, with nothing left to kill with.
                with suppress(Error):
                    process.kill()
                raise
            call(lib.dsh_process_result, process, result.out)
            given = result.result(confined)
        self._take_back(handles)
        return given

    def _handles(self) -> RunHandles:
        try:
            return self._unused.pop()
        except IndexError:
            return RunHandles()

    def _take_back(self, handles: RunHandles) -> None:
        """For the next run."""
        if len(self._unused) < _UNUSED:
            self._unused.append(handles)

    def start(self, request: _abi.Request) -> Process:
        process = ProcessHandle(self)
        try:
            process.start(self, request)
            return Process(process)
        except BaseException:  # nobody will ever hear of it
            if process.is_filled:
                process.kill()
            raise

    def stats(self) -> Stats:
        stats = _abi.Stats()
        call(lib.dsh_executor_stats, self, ctypes.byref(stats))
        return Stats(
            live=stats.live,
            ended=stats.ended,
            spill_bytes=stats.spill_bytes,
            threads=stats.threads,
            spawn_path=SpawnPath(stats.spawn_path),
            guard_pid=stats.guard_pid or None,
        )

    def shutdown(self, milliseconds: int) -> None:
        call(lib.dsh_executor_shutdown, self, milliseconds)


#: The executors that were made and not freed.
_living: weakref.WeakSet[ExecutorHandle] = weakref.WeakSet()


def _free(executor: ctypes.c_void_p) -> None:
    """Frees an executor that nobody refers to any more. Unless it was shut down before, that may take as long as a
    shutdown, and nobody knows which thread this is: an event loop's perhaps."""
    stats = _abi.Stats()
    status = lib.dsh_executor_stats(executor, ctypes.byref(stats), None)
    if status == _abi.OK and stats.threads > 0:
        try:
            _thread.start_new_thread(lib.dsh_executor_free, (executor,))
            return
        except RuntimeError:  # the interpreter is on its way out
            pass
    lib.dsh_executor_free(executor)


@atexit.register
def _shut_down_all() -> None:
    """Ends what still runs when the interpreter exits. Nothing is freed: other threads may be in calls."""
    for executor in list(_living):
        if executor.pid == os.getpid():
            lib.dsh_executor_shutdown(executor, 0, None)


class Executor:
    """Runs shell commands, and owns what it runs until nothing of it is alive.

    ::

        with dsh.Executor() as executor:
            result = executor.run("make test", timeout=300, cwd="/src/project")
            print(result.exit_code, result.stdout_text)

    Every command is a fresh, non-interactive ``bash -c``. Any number of threads and event loops may use one executor at
    the same time. At the end of a ``with`` or ``async with`` block it is shut down: every command that still runs is
    ended. An executor that is forgotten is shut down, in the background, when nothing refers to it any more, its
    processes included, with a :class:`ResourceWarning`; one that is alive when the interpreter exits is shut down then.

    Times are in seconds. For every option, leaving it out means the default; a number of 0 is refused.

    :param cwd: Working directory of commands that name none, and the base of relative ones. Default: the host's, at
        each call.
    :param shell: The shell, a bash; a name without ``/`` is looked for in PATH, once. Default ``bash``.
    :param spill_dir: Where the private directory for spill files is made. Default: TMPDIR of the host, or ``/tmp``.
    :param timeout: Timeout of foreground commands that name none. Default 120.
    :param max_timeout: The most that any command gets; it caps the default too. Default 600.
    :param max_output_bytes: Bytes of each stream kept in memory. Default 64,000.
    :param max_spill_bytes: Bytes of each stream kept on disk; a longer stream has no spill file. Default 64 MiB.
    :param max_total_spill_bytes: Bytes of all spill files together, beyond which no new one is begun. Default 1 GiB.
    :param grace: Time from SIGTERM to SIGKILL. Default 3.
    :param drain: Time that open pipes are waited for after the shell has exited. Default: ``grace``.
    :param keep: Which part of a long stream stays in memory. Default: its end.
    :param inherit_env: Whether commands get the host's environment, without what looks like a credential.
    :param env_allow: Globs on names of host variables that are passed on although they look like credentials.
    :param env_deny: Globs on names of host variables that are not passed on.
    :param guard: Whether commands are ended when the host dies.
    :param keep_spill_files: Whether spill files are left behind when the executor ends.
    :param sandbox: The policy under which commands are confined, where they say nothing else: a :class:`Sandbox`, or
        its fields by name. Default: they are not. The first confined command tries what can confine it, which blocks
        for some milliseconds, and for 10 seconds at most when something hangs. An event loop is spared that by
        ``await asyncio.to_thread(executor.run, "true")``.
    :raises InvalidValueError: for an option that can't be used; the message names it.
    :raises ShellMissingError: when there is no such shell.
    :raises SystemCallError: when the system refuses threads or descriptors.
    """

    _closed = True  # there is nothing to be closed until it has been made

    def __init__(
        self,
        *,
        cwd: _values.StrPath | None = None,
        shell: _values.StrPath | None = None,
        spill_dir: _values.StrPath | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        max_output_bytes: int | None = None,
        max_spill_bytes: int | None = None,
        max_total_spill_bytes: int | None = None,
        grace: float | None = None,
        drain: float | None = None,
        keep: Keep = Keep.TAIL,
        inherit_env: bool = True,
        env_allow: Iterable[str] = (),
        env_deny: Iterable[str] = (),
        guard: bool = True,
        keep_spill_files: bool = False,
        sandbox: Policy = None,
    ) -> None:
        self._handle = ExecutorHandle(
            _settings.config(
                cwd=cwd,
                shell=shell,
                spill_dir=spill_dir,
                timeout=timeout,
                max_timeout=max_timeout,
                max_output_bytes=max_output_bytes,
                max_spill_bytes=max_spill_bytes,
                max_total_spill_bytes=max_total_spill_bytes,
                grace=grace,
                drain=drain,
                keep=keep,
                inherit_env=inherit_env,
                env_allow=env_allow,
                env_deny=env_deny,
                guard=guard,
                keep_spill_files=keep_spill_files,
                sandbox=sandbox,
            )
        )
        self._closed = False
        #: Whether commands may be confined that don't ask for it.
        self._confines = sandbox is not None

    def configure(
        self,
        *,
        cwd: _values.StrPath | None = None,
        shell: _values.StrPath | None = None,
        spill_dir: _values.StrPath | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        max_output_bytes: int | None = None,
        max_spill_bytes: int | None = None,
        max_total_spill_bytes: int | None = None,
        grace: float | None = None,
        drain: float | None = None,
        keep: Keep = Keep.TAIL,
        inherit_env: bool = True,
        env_allow: Iterable[str] = (),
        env_deny: Iterable[str] = (),
        guard: bool = True,
        keep_spill_files: bool = False,
        sandbox: Policy = None,
    ) -> None:
        """Replaces all budgets, as if the executor had been made with these options. Commands that run keep theirs, the
        next one gets the new ones. ``spill_dir`` can't change. Options that can't be used are refused, and the executor
        stays on its last good ones.

        To change only some, begin with :attr:`settings`.
        """
        config = _settings.config(
            cwd=cwd,
            shell=shell,
            spill_dir=spill_dir,
            timeout=timeout,
            max_timeout=max_timeout,
            max_output_bytes=max_output_bytes,
            max_spill_bytes=max_spill_bytes,
            max_total_spill_bytes=max_total_spill_bytes,
            grace=grace,
            drain=drain,
            keep=keep,
            inherit_env=inherit_env,
            env_allow=env_allow,
            env_deny=env_deny,
            guard=guard,
            keep_spill_files=keep_spill_files,
            sandbox=sandbox,
        )
        self._confines = self._confines or sandbox is not None  # for good: commands keep what they were started with
        call(lib.dsh_executor_configure, self._handle, ctypes.byref(config))

    @property
    def settings(self) -> Settings:
        """The budgets in force, with every default filled in."""
        with SettingsHandle(self._handle) as handle:
            return handle.settings()

    @property
    def stats(self) -> Stats:
        """What it is doing now."""
        return self._handle.stats()

    def run(
        self,
        command: _values.Text,
        *,
        timeout: float | None = None,
        cwd: _values.StrPath | None = None,
        env: _values.Env | None = None,
        input: _values.Input | None = None,
        check: bool = False,
        cancel: CancelToken | None = None,
        merge_stderr: bool = False,
        survivors: Survivors = Survivors.KEEP,
        stdout_max_bytes: int | None = None,
        dsh_env: _values.Env | None = None,
        tag: int = 0,
        sandbox: Policy = None,
    ) -> Result:
        """Runs a command and blocks this thread until there is a result; other threads run meanwhile.

        Everything that a command can do is a result: a non-zero exit, and also a timeout (``result.timed_out``).
        An exception means that the command was not run, or that it was interrupted: when a signal handler raises on
        the main thread (Ctrl-C: ``KeyboardInterrupt``), the command is killed, and the exception goes on as soon as
        nothing of it is left, within the grace and a second. A second Ctrl-C does not wait for that.

        :param command: The text for ``bash -c``, of any length; ``str`` is passed as UTF-8.
        :param timeout: Seconds, capped by the executor's ``max_timeout``. ``None`` means the executor's ``timeout``,
            infinity its ``max_timeout``. 0 is refused.
        :param cwd: Working directory; a relative one is taken from the executor's ``cwd``.
        :param env: Variables over the host's; ``None`` as a value removes one. (Unlike ``subprocess``, which replaces
            the whole environment: see ``inherit_env`` of :class:`Executor` for that.)
        :param input: Bytes for stdin, which is closed after them. ``None`` gives it ``/dev/null``.
        :param check: Raise :class:`CommandFailedError` unless the result is ``ok``: exit code 0, and neither a timeout
            nor another stop.
        :param cancel: Ends the command when it is thrown: ``result.aborted``.
        :param merge_stderr: Send stderr through stdout's pipe, so that both are kept in their order of arrival.
        :param survivors: What happens to descendants that outlive the command.
        :param stdout_max_bytes: Bytes of stdout kept in memory, in place of the executor's ``max_output_bytes``.
        :param dsh_env: Trusted variables in the ``DSH_`` namespace, which ``env`` may not set.
        :param tag: Any number of the caller's.
        :param sandbox: The policy to confine the command under, where it differs from the executor's.
        :raises InvalidValueError: for an argument that can't be used.
        :raises WorkdirError: when the working directory can't be used.
        :raises ShellMissingError: when the shell is not there.
        :raises AlreadyCancelledError: when ``cancel`` was thrown before.
        :raises ShutdownError: when the executor has been shut down.
        :raises SpawnError: when the system refuses to start the command.
        :raises SandboxUnavailableError: when nothing can confine it as asked, or what was to confine it failed.
        """
        asked = request(
            command,
            foreground=True,
            timeout=timeout,
            cwd=cwd,
            env=env,
            input=input,
            cancel=cancel,
            merge_stderr=merge_stderr,
            survivors=survivors,
            stdout_max_bytes=stdout_max_bytes,
            dsh_env=dsh_env,
            tag=tag,
            sandbox=sandbox,
        )
        result = self._handle.run(asked, sandbox is not None or self._confines)
        return result.check() if check else result

    async def run_async(
        self,
        command: _values.Text,
        *,
        timeout: float | None = None,
        cwd: _values.StrPath | None = None,
        env: _values.Env | None = None,
        input: _values.Input | None = None,
        check: bool = False,
        cancel: CancelToken | None = None,
        merge_stderr: bool = False,
        survivors: Survivors = Survivors.KEEP,
        stdout_max_bytes: int | None = None,
        dsh_env: _values.Env | None = None,
        tag: int = 0,
        sandbox: Policy = None,
    ) -> Result:
        """As :meth:`run`, waiting in the running event loop: no thread waits for the command.

        When the task is cancelled (``asyncio.wait_for`` and ``asyncio.timeout`` do that too), the command is killed,
        and the cancellation goes on as soon as nothing of it is left, within the grace and a second, however often the
        task is cancelled meanwhile.

        The executor's first confined command blocks the loop while it is found out what can confine it, see ``sandbox``
        of :class:`Executor`.
        """
        asked = request(
            command,
            foreground=True,
            timeout=timeout,
            cwd=cwd,
            env=env,
            input=input,
            cancel=cancel,
            merge_stderr=merge_stderr,
            survivors=survivors,
            stdout_max_bytes=stdout_max_bytes,
            dsh_env=dsh_env,
            tag=tag,
            sandbox=sandbox,
        )
        result = await self._handle.run_async(asked, sandbox is not None or self._confines)
        return result.check() if check else result

    def start(
        self,
        command: _values.Text,
        *,
        cwd: _values.StrPath | None = None,
        env: _values.Env | None = None,
        input: _values.Input | None = None,
        cancel: CancelToken | None = None,
        merge_stderr: bool = False,
        survivors: Survivors = Survivors.KEEP,
        dsh_env: _values.Env | None = None,
        tag: int = 0,
        sandbox: Policy = None,
    ) -> Process:
        """Starts a command in the background and returns at once, in event loops too (but for the executor's first
        confined command, see ``sandbox`` of :class:`Executor`). No timeout applies; arguments and errors are otherwise
        those of :meth:`run`.

        When what was to confine it fails after the start, the command does not run, and
        ``info().sandbox.runner_failed`` says why.
        """
        asked = request(
            command,
            foreground=False,
            cwd=cwd,
            env=env,
            input=input,
            cancel=cancel,
            merge_stderr=merge_stderr,
            survivors=survivors,
            dsh_env=dsh_env,
            tag=tag,
            sandbox=sandbox,
        )
        return self._handle.start(asked)

    def resolve(
        self,
        command: _values.Text,
        *,
        timeout: float | None = None,
        cwd: _values.StrPath | None = None,
        env: _values.Env | None = None,
        input: _values.Input | None = None,
        cancel: CancelToken | None = None,
        merge_stderr: bool = False,
        survivors: Survivors = Survivors.KEEP,
        stdout_max_bytes: int | None = None,
        dsh_env: _values.Env | None = None,
        tag: int = 0,
        sandbox: Policy = None,
    ) -> Spec:
        """Tells what would run, and starts nothing. Arguments and errors are those of :meth:`run`; whether the working
        directory can be entered is found out only by running."""
        asked = request(
            command,
            foreground=True,
            timeout=timeout,
            cwd=cwd,
            env=env,
            input=input,
            cancel=cancel,
            merge_stderr=merge_stderr,
            survivors=survivors,
            stdout_max_bytes=stdout_max_bytes,
            dsh_env=dsh_env,
            tag=tag,
            sandbox=sandbox,
        )
        with SpecHandle(self._handle, asked) as handle:
            return handle.spec()

    def shutdown(self, timeout: float | None = None) -> None:
        """Ends every process tree that the executor owns, and blocks until they are gone. No command is started any
        more; processes and results stay readable. Any number of calls, from any thread.

        Waits for ``timeout`` seconds at most; ``None`` means the grace and one second. :class:`WaitTimeoutError` when
        something is still being ended then; the call may be repeated. Ctrl-C on the main thread ends the waiting.
        """
        self._closed = True
        milliseconds = _values.milliseconds("timeout", timeout)
        if on_main_thread():
            aside(self._handle.shutdown, milliseconds).result()
        else:
            self._handle.shutdown(milliseconds)

    async def shutdown_async(self, timeout: float | None = None) -> None:
        """As :meth:`shutdown`, waiting in the running event loop. Cancelling the task ends the waiting."""
        self._closed = True
        milliseconds = _values.milliseconds("timeout", timeout)
        await asyncio.shield(asyncio.wrap_future(aside(self._handle.shutdown, milliseconds)))

    def close(self) -> None:
        """Shuts the executor down; what can't be ended in time goes on being ended without the caller."""
        with suppress(WaitTimeoutError):
            self.shutdown()

    async def aclose(self) -> None:
        """As :meth:`close`, waiting in the running event loop, also when the task is cancelled meanwhile."""
        closing = asyncio.ensure_future(self.shutdown_async())
        cancelled: asyncio.CancelledError | None = None
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError as reason:
                cancelled = reason
        failure = closing.exception()
        if cancelled is not None:
            raise cancelled
        if failure is not None and not isinstance(failure, WaitTimeoutError):
            raise failure

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Executor:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._closed and self._handle.pid == os.getpid():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        return f"<dsh.Executor{' closed' if self._closed else ''} at {id(self):#x}>"
