"""Errors: their classes, and what they tell."""

from __future__ import annotations

import copy
import errno
import os
import pickle
from pathlib import Path
from typing import Callable

import pytest

import dsh
from dsh._errors import error_of
from dsh._library import call, lib

import support

Run = Callable[..., dsh.Result]


def test_a_missing_working_directory_is_a_file_not_found_error(executor: dsh.Executor, run: Run) -> None:
    with pytest.raises(FileNotFoundError, match=r'workdir ".*nowhere"') as failure:
        run(executor, "true", cwd="nowhere")
    error = failure.value
    assert isinstance(error, dsh.WorkdirMissingError)
    assert isinstance(error, dsh.WorkdirError)
    assert isinstance(error, dsh.Error)
    assert (error.code, error.errno, error.stage) == (dsh.Code.WORKDIR_MISSING, errno.ENOENT, "workdir")
    assert error.strerror == os.strerror(errno.ENOENT)
    assert str(error) == error.message


def test_a_working_directory_that_is_a_file_is_a_not_a_directory_error(
    executor: dsh.Executor, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as failure:
        run(executor, "true", cwd="file")
    assert isinstance(failure.value, dsh.WorkdirNotDirectoryError)


def test_a_shell_that_is_gone_is_not_blamed_on_the_directory(tmp_path: Path, run: Run) -> None:
    shell = tmp_path / "shell"
    shell.symlink_to("/bin/bash")
    with dsh.Executor(shell=shell) as executor:
        shell.unlink()
        with pytest.raises(dsh.ShellMissingError, match="shell") as failure:
            run(executor, "true")
    assert isinstance(failure.value, FileNotFoundError)
    assert failure.value.stage == "exec"


def test_an_executor_that_was_shut_down_starts_nothing(executor: dsh.Executor, run: Run) -> None:
    executor.close()
    for make in (lambda: run(executor, "true"), lambda: executor.start("true")):
        with pytest.raises(dsh.ShutdownError) as failure:
            make()
        assert isinstance(failure.value, RuntimeError)


def test_an_environment_that_is_too_big_is_named(executor: dsh.Executor, run: Run) -> None:
    with pytest.raises(dsh.InvalidValueError, match="BIG") as failure:
        run(executor, "true", env={f"BIG_{number}": "x" * 100_000 for number in range(100)})
    assert failure.value.code == dsh.Code.ENV_TOO_BIG


def test_errors_can_be_copied_and_pickled() -> None:
    for code in dsh.Code:
        error = error_of(code, "the message", errno.EAGAIN, "clone")
        for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(twin) is type(error)
            assert (twin.code, twin.message, twin.errno, twin.stage) == (code, "the message", errno.EAGAIN, "clone")
            assert str(twin) == "the message"


def test_every_code_has_a_class_and_a_new_one_is_passed_on() -> None:
    plain = [code for code in dsh.Code if type(error_of(code, "", None, "")) is dsh.Error]
    assert plain == []
    error = error_of(dsh.Code(-99), "of a newer library", None, "new")
    assert (type(error), error.code, error.code.name) == (dsh.Error, -99, "UNKNOWN_MINUS_99")


def test_a_call_that_this_package_got_wrong_is_an_internal_error(executor: dsh.Executor) -> None:
    with pytest.raises(dsh.InternalError, match="result: is NULL") as failure:
        call(lib.dsh_run, executor._handle, None, None)
    assert failure.value.code == dsh.Code.NULL


def test_a_command_that_failed_is_no_error_of_the_library(executor: dsh.Executor) -> None:
    result = executor.run("exit 1")
    with pytest.raises(dsh.CommandFailedError) as failure:
        result.check()
    assert not isinstance(failure.value, dsh.Error)
    twin = pickle.loads(pickle.dumps(failure.value))
    assert twin.result == result


def test_an_interrupted_wait_says_so_and_changes_nothing(executor: dsh.Executor) -> None:
    process = executor.start("sleep 60")
    for wait in (process.wait, lambda timeout: support.in_thread(lambda: process.wait(timeout))):
        for timeout in (0, 0.05):
            with pytest.raises(TimeoutError) as failure:
                wait(timeout)
            assert isinstance(failure.value, dsh.WaitTimeoutError)
    with pytest.raises(dsh.WaitTimeoutError):
        process.result()
    assert process.status == dsh.ProcessStatus.RUNNING
