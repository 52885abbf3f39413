"""Confinement: policies, facts, and what happens when it can't be had."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import errno
import gc
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

import dsh
from dsh import _abi
from dsh._library import lib
from dsh._sandbox import policy

import support

Run = Callable[..., dsh.Result]

BACKENDS = (dsh.Backend.BUBBLEWRAP, dsh.Backend.LANDLOCK)

each_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.word)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a workspace in it. Not in ``/tmp``, of which a command may have one of its own."""
    with tempfile.TemporaryDirectory(prefix="dsh-confined-", dir="/var/tmp") as folder:
        place = Path(folder).resolve()
        place.chmod(0o755)
        (place / "workspace").mkdir()
        yield place


def confined(place: Path, **terms: Any) -> dsh.Executor:
    """An executor that lets its commands change the workspace of a place."""
    terms = {"mode": "workspace-write", "workspace": place / "workspace", **terms}
    return dsh.Executor(cwd=place, sandbox=dsh.Sandbox(**terms))


def facts_of(result: dsh.Result | dsh.ProcessInfo) -> dsh.SandboxFacts:
    assert result.sandbox is not None
    return result.sandbox


# What is known afterwards.


@each_backend
def test_the_facts_say_what_confined_the_command_and_how_far(place: Path, run: Run, backend: dsh.Backend) -> None:
    with confined(place, backends=[backend]) as executor:
        result = run(executor, "echo x >workspace/made; cat workspace/made; exit 3")
    assert (result.exit_code, result.stdout) == (3, b"x\n")
    partial = backend == dsh.Backend.LANDLOCK
    assert result.sandbox == dsh.SandboxFacts(
        mode=dsh.SandboxMode.WORKSPACE_WRITE,
        backend=backend,
        enforcement=dsh.Enforcement.PARTIAL if partial else dsh.Enforcement.FULL,
        missing=("metadata",) if partial else (),
        network=dsh.Network.FULL,
        workspace=place / "workspace",
        denied=False,
        denied_path=None,
        denied_rule=None,
        runner_failed=None,
    )


@each_backend
def test_what_a_command_was_denied_is_named(place: Path, run: Run, backend: dsh.Backend) -> None:
    with confined(place, backends=[backend]) as executor:
        result = run(executor, "touch outside")
    facts = facts_of(result)
    assert result.exit_code == 1
    assert (facts.denied, facts.denied_path) == (True, place / "outside")
    assert facts.denied_rule == "outside the workspace (workspace-write)"
    assert not (place / "outside").exists()


def test_without_a_policy_there_are_no_facts_and_full_access_says_so(executor: dsh.Executor, run: Run) -> None:
    assert run(executor, "true").sandbox is None
    facts = facts_of(run(executor, "true", sandbox=dsh.Sandbox(mode="danger-full-access")))
    assert (facts.mode, facts.backend) == (dsh.SandboxMode.DANGER_FULL_ACCESS, None)
    assert (facts.enforcement, facts.workspace) == (dsh.Enforcement.NONE, None)


@each_backend
def test_a_process_has_facts_while_it_runs_and_the_verdict_once_it_has_settled(
    place: Path, backend: dsh.Backend
) -> None:
    with confined(place, backends=[backend]) as executor:
        process = executor.start(f"touch outside; cd workspace; touch begun; {support.WAIT_FOR_GO}; exit 1")
        support.until((place / "workspace" / "begun").exists)
        facts = facts_of(process.info())
        assert (facts.backend, facts.denied, facts.denied_path) == (backend, None, None)
        (place / "workspace" / "go").touch()
        assert facts_of(process.wait()).denied is True
        assert facts_of(process.result()).denied_path == place / "outside"


# Policies.


@each_backend
def test_a_policy_of_a_request_says_what_differs_from_the_executor_s(
    place: Path, run: Run, backend: dsh.Backend
) -> None:
    with confined(place, backends=[backend]) as executor:
        facts = facts_of(run(executor, "touch workspace/made", sandbox=dsh.Sandbox(mode=dsh.SandboxMode.READ_ONLY)))
        assert (facts.mode, facts.backend, facts.denied) == (dsh.SandboxMode.READ_ONLY, backend, True)
        assert (facts.denied_path, facts.denied_rule) == (place / "workspace" / "made", "read-only mode")
        facts = facts_of(run(executor, "touch workspace/made", sandbox={"network": "none"}))
        assert (facts.mode, facts.network) == (dsh.SandboxMode.WORKSPACE_WRITE, dsh.Network.NONE)
        assert (place / "workspace" / "made").exists()


@each_backend
def test_a_network_of_none_has_no_internet(place: Path, backend: dsh.Backend) -> None:
    with confined(place, backends=[backend]) as executor:
        udp = "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'"
        assert executor.run(udp).ok
        result = executor.run(udp, sandbox=dsh.Sandbox(network=dsh.Network.NONE))
        assert not result.ok
        assert facts_of(result).network == dsh.Network.NONE


@each_backend
def test_further_paths_are_writable_and_hidden_ones_are_not_read(place: Path, backend: dsh.Backend) -> None:
    for name in ("more", "secret"):
        (place / name).mkdir()
    (place / "secret" / "key").write_text("very secret")
    with confined(place, writable=[place / "more"], hidden=[str(place / "secret")], backends=[backend]) as executor:
        result = executor.run("touch more/made; cat secret/key")
    assert (place / "more" / "made").exists()
    assert b"very secret" not in result.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_linked_worktree_commits_only_when_it_may(place: Path) -> None:
    with dsh.Executor(cwd=place) as executor:
        executor.run(
            "git init -q r && cd r && git config user.name a && git config user.email a@b && "
            "git commit -q --allow-empty -m first && git worktree add -q ../w",
            check=True,
        )
    commit = "cd w && git commit -q --allow-empty -m second"
    with confined(place, workspace=place / "w", git_worktree=True, backends=["landlock"]) as executor:
        assert not executor.run(commit, sandbox=dsh.Sandbox(git_worktree=False)).ok
        assert executor.run(commit).ok
        executor.configure(cwd=place, sandbox=dataclasses.replace(executor.settings.sandbox, git_worktree=False))  # type: ignore[type-var]
        assert not executor.run(commit).ok


def test_the_policy_can_be_read_and_set_again(place: Path) -> None:
    terms: dict[str, Any] = {
        "mode": dsh.SandboxMode.WORKSPACE_WRITE,
        "workspace": place,
        "writable": (Path("/var/tmp"), Path("/dev/shm")),
        "hidden": (Path("/root"),),
        "network": dsh.Network.NONE,
        "backends": (dsh.Backend.RUNNER, dsh.Backend.LANDLOCK),
        "runner": ("env", "--"),
        "runner_failures": ("env: ",),
        "git_worktree": True,
    }
    with dsh.Executor(sandbox=dsh.Sandbox(**terms)) as executor:
        assert dataclasses.asdict(executor.settings)["sandbox"] == terms
        assert executor.resolve("true").sandbox_mode == dsh.SandboxMode.WORKSPACE_WRITE
        executor.configure(**{**dataclasses.asdict(executor.settings), "grace": 1.0})
        assert executor.settings.sandbox == dsh.Sandbox(**terms)
        executor.configure()
        assert executor.settings.sandbox is None
        assert executor.resolve("true").sandbox_mode is None


def test_a_policy_that_says_nothing_is_read_only(place: Path) -> None:
    with dsh.Executor(cwd=place, sandbox=dsh.Sandbox()) as executor:
        assert executor.settings.sandbox == dsh.Sandbox(mode="read-only", network="full", git_worktree=False)
        assert executor.resolve("true").sandbox_mode == dsh.SandboxMode.READ_ONLY


def test_a_policy_keeps_alive_what_it_points_to() -> None:
    def request() -> _abi.Request:
        return _abi.Request(
            sandbox=policy(
                dsh.Sandbox(
                    workspace="/home/" + "w" * 99,
                    writable=[f"/{number:0100}" for number in range(50)],
                    backends=["landlock", "bubblewrap"],
                    runner=["r" * 99],
                    runner_failures=["f" * 99],
                )
            )
        )

    asked = request()
    gc.collect()
    _ = [ctypes.create_string_buffer(b"x" * size) for size in range(1, 2000)]
    sandbox = asked.sandbox.contents
    assert sandbox.workspace == b"/home/" + b"w" * 99
    assert sandbox.writable[: sandbox.writable_len] == [f"/{number:0100}".encode() for number in range(50)]
    assert sandbox.backends[: sandbox.backends_len] == [2, 1]
    assert (sandbox.runner[0], sandbox.runner_failures[0]) == (b"r" * 99, b"f" * 99)


@pytest.mark.parametrize(
    ("terms", "kind", "message"),
    [
        ({"mode": "read-olny"}, ValueError, "sandbox.mode: 'read-olny': must be one of 'read-only', 'workspace-write'"),
        ({"mode": 1}, TypeError, "sandbox.mode: must be a SandboxMode or its word, not int"),
        ({"mode": dsh.Network.FULL}, TypeError, "sandbox.mode: must be a SandboxMode or its word, not Network"),
        ({"network": "off"}, ValueError, "sandbox.network: 'off': must be one of 'full', 'loopback', 'none'"),
        ({"backends": ["landlock", "jail"]}, ValueError, "sandbox.backends[1]: 'jail': must be one of 'bubblewrap', "),
        ({"backends": "landlock"}, TypeError, "sandbox.backends: must be several, in a list, not one str"),
        ({"workspace": 3}, TypeError, "sandbox.workspace: must be str, bytes or a path, not int"),
        ({"workspace": ""}, ValueError, "sandbox.workspace: '': is no path"),
        ({"writable": "/tmp"}, TypeError, "sandbox.writable: must be several, in a list, not one str"),
        ({"writable": ["/tmp", None]}, TypeError, "sandbox.writable[1]: must be str, bytes or a path, not None"),
        ({"hidden": ["a\0b"]}, ValueError, "sandbox.hidden[0]: b'a\\x00b': holds a NUL byte"),
        ({"hidden": 3}, TypeError, "sandbox.hidden: must be several, in a list, not one int"),
        ({"runner_failures": [3]}, TypeError, "sandbox.runner_failures[0]: must be str, bytes or a path, not int"),
        ({"git_worktree": "on"}, TypeError, "sandbox.git_worktree: must be a bool, not str"),
    ],
)
def test_a_value_that_can_be_no_part_of_a_policy_is_refused_by_name(
    terms: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match="^" + re.escape(message)):
        dsh.Sandbox(**terms)
    with pytest.raises(kind, match="^" + re.escape(message)):
        dsh.Executor(sandbox=terms)


def test_what_is_no_policy_is_refused_by_name(executor: dsh.Executor, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^sandbox: must be a Sandbox, not str$"):
        executor.run("touch ran", sandbox="read-only")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^sandbox: 'modus': is no field of a policy$"):
        executor.start("touch ran", sandbox={"modus": "read-only"})
    assert not (tmp_path / "ran").exists()


def test_a_policy_that_can_not_be_used_is_refused_by_field_and_value_and_nothing_runs(place: Path, run: Run) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"workspace": "here"}, 'sandbox.workspace "here"'),
        ({"workspace": "/not/there"}, 'sandbox.workspace "/not/there"'),
        ({"writable": ["/tmp", "/not/there"]}, 'sandbox.writable[1] "/not/there"'),
        ({"hidden": ["x"]}, 'sandbox.hidden[0] "x"'),
        ({"backends": ["landlock", "landlock"]}, "sandbox.backends[1] landlock"),
        ({"backends": ["runner"]}, "sandbox.runner"),
        ({"runner": ["x"]}, "sandbox.runner_failures"),
        ({"runner_failures": ["x"]}, "sandbox.runner_failures"),
        ({"mode": dsh.SandboxMode(9)}, "sandbox.mode 9"),
    ]
    with confined(place) as executor:
        before = executor.settings
        for terms, message in refused:
            sandbox = dsh.Sandbox(**terms)
            with pytest.raises(dsh.InvalidValueError, match=re.escape(message)) as failure:
                run(executor, "touch workspace/ran", sandbox=sandbox)
            assert failure.value.code == dsh.Code.INVALID
            if "/not/there" not in message:  # what depends on the file system is found out by running
                with pytest.raises(dsh.InvalidValueError, match=re.escape(message)):
                    executor.configure(cwd=place, sandbox=sandbox)
        assert executor.settings == before
    assert not (place / "workspace" / "ran").exists()


# When confinement can't be had.


def test_what_no_backend_can_enforce_is_an_error_and_nothing_runs(place: Path, run: Run) -> None:
    with confined(place, network="loopback", backends=["landlock"]) as executor:
        for ask in (lambda: run(executor, "touch workspace/ran"), lambda: executor.start("touch workspace/ran")):
            with pytest.raises(dsh.SandboxUnavailableError, match="loopback") as failure:
                ask()
            error = failure.value
            assert (error.code, error.errno, error.stage) == (dsh.Code.SANDBOX_UNAVAILABLE, None, "sandbox")
    assert not (place / "workspace" / "ran").exists()


def test_a_backend_that_is_not_of_this_system_is_an_error_with_its_reason(place: Path) -> None:
    with confined(place, backends=["seatbelt"]) as executor:
        with pytest.raises(dsh.SandboxUnavailableError, match="macOS") as failure:
            executor.run("true")
        assert failure.value.errno == errno.ENOSYS


@pytest.fixture
def runner(place: Path) -> Callable[[str], Path]:
    """Writes a sandbox of one's own."""

    def write(text: str) -> Path:
        path = place / "runner"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


def test_a_runner_of_one_s_own_stands_before_the_shell(place: Path, run: Run, runner: Callable[[str], Path]) -> None:
    program = runner('echo "$1 $DSH_SANDBOX_MODE $DSH_SANDBOX_NETWORK"; shift; exec "$@"')
    with confined(place, runner=[program, "--flag"], runner_failures=["runner: fatal"]) as executor:
        result = run(executor, "echo ran; exit 5")
    assert (result.stdout, result.exit_code) == (b"--flag workspace-write full\nran\n", 5)
    assert facts_of(result).backend == dsh.Backend.RUNNER


def test_a_runner_that_failed_is_no_exit_code_of_the_command(
    place: Path, run: Run, runner: Callable[[str], Path]
) -> None:
    program = runner("echo 'Runner: FATAL: no luck' >&2; exit 7")
    with confined(place, runner=[program], runner_failures=["runner: fatal"]) as executor:
        with pytest.raises(dsh.SandboxUnavailableError, match="no luck"):
            run(executor, "true")
        process = executor.start("true")
        facts = facts_of(process.wait())
        assert facts.runner_failed is not None
        assert "no luck" in facts.runner_failed
        with pytest.raises(dsh.SandboxUnavailableError, match="no luck"):
            process.result()


def with_bwrap(text: str, folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a program for which ``bwrap`` is another one."""
    fake = folder / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\n{text}\n")
    fake.chmod(0o755)
    path = f"{fake.parent}{os.pathsep}{os.environ['PATH']}"
    return support.run_script(script, cwd=folder, env={**os.environ, "PATH": path})


def test_a_backend_that_does_not_work_gives_way_to_the_next_one_and_the_doctor_says_why(place: Path) -> None:
    program = with_bwrap(
        "echo 'bwrap: out of order' >&2; exit 1",
        place,
        """
import dsh
with dsh.Executor(sandbox=dsh.Sandbox()) as executor:
    print(executor.run("true").sandbox.backend.word)
    try:
        executor.run("true", sandbox=dsh.Sandbox(backends=["bubblewrap"]))
    except dsh.SandboxUnavailableError as error:
        print("out of order" in error.message)
report = dsh.sandbox_doctor().backends[0]
print(report.backend.word, report.usable, "out of order" in report.message, report.remedy is not None)
""",
    )
    assert (program.stdout, program.stderr) == ("landlock\nTrue\nbubblewrap False True True\n", "")


def test_a_backend_that_breaks_after_it_was_tried_is_an_error(place: Path) -> None:
    program = with_bwrap(
        f"[ -e '{place}/broken' ] && {{ echo 'bwrap: broken now' >&2; exit 1; }}\nexec {shutil.which('bwrap')} \"$@\"",
        place,
        """
import asyncio, dsh, pathlib
with dsh.Executor(sandbox=dsh.Sandbox(backends=["bubblewrap"])) as executor:
    print(executor.run("exit 4").exit_code)
    pathlib.Path("broken").touch()
    for run in (lambda: executor.run("exit 4"), lambda: asyncio.run(executor.run_async("exit 4"))):
        try:
            print(run())
        except dsh.SandboxUnavailableError as error:
            print("broken now" in error.message)
    process = executor.start("exit 4")
    print("broken now" in process.wait().sandbox.runner_failed)
""",
    )
    assert (program.stdout, program.stderr) == ("4\nTrue\nTrue\nTrue\n", "")


# The vocabulary, and the doctor.


def test_wider_modes_are_named_the_narrowest_first() -> None:
    read_only, write, full = dsh.SandboxMode
    assert (read_only.wider, write.wider, full.wider) == ((write, full), (full,), ())
    assert dsh.SandboxMode(99).wider == ()


def test_words_are_those_of_the_library() -> None:
    for mode in dsh.SandboxMode:
        assert lib.dsh_sandbox_mode_str(mode).decode() == mode.word
        assert dsh.SandboxMode(mode.word) is mode  # type: ignore[arg-type]
    assert [network.word for network in dsh.Network] == ["full", "loopback", "none"]
    assert [backend.word for backend in dsh.Backend] == ["bubblewrap", "landlock", "seatbelt", "runner"]
    with pytest.raises(ValueError, match="off"):
        dsh.Network("off")  # type: ignore[arg-type]


def test_the_doctor_reports_each_backend() -> None:
    reports = [dsh.sandbox_doctor(), support.in_thread(dsh.sandbox_doctor), asyncio.run(dsh.sandbox_doctor_async())]
    for report in reports:
        assert [found.backend for found in report.backends] == list(BACKENDS)
        for found in report.backends:
            assert (found.usable, found.network, found.errno, found.remedy) == (True, True, None, None), str(report)
            assert found.tried
            assert found.message
        assert report.backends[0].version is None
        assert report.backends[1].version == dsh.feature(dsh.Feature.LANDLOCK)
        assert "bubblewrap: works" in str(report)
        assert dict(report.facts)["bwrap"] == shutil.which("bwrap")
    assert dsh.feature(dsh.Feature.BUBBLEWRAP) == 1


def test_the_loop_goes_on_while_the_doctor_works() -> None:
    async def main() -> None:
        turns = 0
        examination = asyncio.ensure_future(dsh.sandbox_doctor_async())
        while not examination.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 2
        cancelled = asyncio.ensure_future(dsh.sandbox_doctor_async())
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(main())
    support.until(lambda: "dsh-aside" not in [thread.name for thread in threading.enumerate()])
