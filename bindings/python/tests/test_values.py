"""What is refused before anything is started, by name and value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import dsh
from dsh import _values

import support


@pytest.mark.parametrize("value", [0, 0.0, -1, -0.001, -math.inf, math.nan])
@pytest.mark.parametrize("option", ["timeout", "max_timeout", "grace", "drain"])
def test_a_time_that_is_none_is_refused_by_the_executor(option: str, value: float) -> None:
    with pytest.raises(dsh.InvalidValueError) as failure:
        dsh.Executor(**{option: value})  # type: ignore[arg-type]
    assert str(failure.value).startswith(f"{option}: {value!r}: ")
    assert (failure.value.code, failure.value.errno, failure.value.stage) == (dsh.Code.INVALID, None, "argument")


@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_timeout_that_is_none_is_refused_and_nothing_runs(
    executor: dsh.Executor, tmp_path: Path, value: float
) -> None:
    for run in (support.run_in_main, support.run_in_thread, support.run_in_loop):
        with pytest.raises(ValueError, match=r"^timeout: "):
            run(executor, "touch ran", timeout=value)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("option", ["max_output_bytes", "max_spill_bytes", "max_total_spill_bytes"])
def test_a_size_that_is_none_is_refused(option: str) -> None:
    for value in (0, -1, 2**64):
        with pytest.raises(dsh.InvalidValueError, match=rf"^{option}: {value}: "):
            dsh.Executor(**{option: value})  # type: ignore[arg-type]


def test_a_value_of_another_type_is_a_type_error_that_names_it(executor: dsh.Executor) -> None:
    wrong: list[dict[str, Any]] = [
        {"timeout": "1"},
        {"timeout": True},
        {"stdout_max_bytes": 1.5},
        {"tag": None},
        {"input": 3},
        {"cwd": 3},
        {"cancel": 3},
    ]
    for options in wrong:
        with pytest.raises(TypeError, match=rf"^{next(iter(options))}: "):
            executor.run("true", **options)
    with pytest.raises(TypeError, match=r"^command: "):
        executor.run(["echo", "list"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^env_allow: "):
        dsh.Executor(env_allow="A_*")
    with pytest.raises(TypeError):
        dsh.Executor(no_such_option=1)  # type: ignore[call-arg]


def test_times_become_whole_milliseconds() -> None:
    times = [(None, 0), (1, 1000), (0.3, 300), (0.07, 70), (1.001, 1001), (1e-9, 1), (119.9996, 120_000)]
    assert [_values.milliseconds("timeout", seconds) for seconds, _ in times] == [expected for _, expected in times]
    for beyond in (math.inf, 1e300, 2**70):
        assert _values.milliseconds("timeout", beyond) == 2**64 - 1
    assert _values.milliseconds("timeout", 2**64 // 1000) == 2**64 // 1000 * 1000


def test_a_nul_byte_is_refused_where_it_would_end_the_text(executor: dsh.Executor) -> None:
    refused: list[dict[str, Any]] = [
        {"cwd": "a\0b"},
        {"env": {"A\0B": "x"}},
        {"env": {"A": "x\0y"}},
        {"dsh_env": {"DSH_A": "\0"}},
    ]
    for options in refused:
        with pytest.raises(dsh.InvalidValueError, match="NUL"):
            executor.run("true", **options)
    with pytest.raises(dsh.InvalidValueError, match="NUL") as failure:
        executor.run("echo a\0b")
    assert failure.value.code == dsh.Code.COMMAND_NUL
    with pytest.raises(dsh.InvalidValueError, match="NUL"):
        dsh.Executor(env_deny=["A\0"])


def test_names_of_variables_are_checked_and_values_not_shown(executor: dsh.Executor) -> None:
    refused = [
        ({"env": {"A=secret": "x"}}, dsh.Code.ENV_NAME),
        ({"env": {"": "secret"}}, dsh.Code.ENV_NAME),
        ({"env": {"DSH_A": "secret"}}, dsh.Code.ENV_RESERVED),
        ({"dsh_env": {"A": "secret"}}, dsh.Code.ENV_NAME),
        ({"env": {"A": "secret\0"}}, dsh.Code.INVALID),
    ]
    for options, code in refused:
        with pytest.raises(dsh.InvalidValueError) as failure:
            executor.run("true", **options)  # type: ignore[arg-type]
        assert failure.value.code == code
        assert "secret" not in str(failure.value)


def test_a_budget_that_the_library_refuses_is_named() -> None:
    with pytest.raises(dsh.ShellMissingError, match="no-such-shell"):
        dsh.Executor(shell="no-such-shell")
    with pytest.raises(dsh.InvalidValueError, match="cwd"):
        dsh.Executor(cwd="")
