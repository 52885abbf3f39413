"""The hand-written layouts and numbers, against what a C compiler makes of the header."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

import dsh
from dsh import _abi

_PREFIX = os.environ.get("DSH_PREFIX")
_INCLUDE = Path(_PREFIX) / "include" if _PREFIX else Path(__file__).parents[3] / "include"
_CC = os.environ.get("CC", "cc")

#: Structs that are part of others and never grow.
_FIXED = {"dsh_outcome_t", "dsh_survivor_t", "dsh_captured_t", "dsh_backend_report_t"}

#: Where the numbers of a header prefix are in this package.
_NUMBERS = {
    "DSH_E_": dsh.Code,
    "DSH_FEATURE_": dsh.Feature,
    "DSH_KEEP_": dsh.Keep,
    "DSH_SURVIVORS_": dsh.Survivors,
    "DSH_EXIT_": dsh.Exit,
    "DSH_STOP_STAGE_": dsh.StopStage,
    "DSH_STOP_": dsh.Stop,
    "DSH_PROCESS_": dsh.ProcessStatus,
    "DSH_SPAWN_": dsh.SpawnPath,
    "DSH_EVENT_": dsh.EventKind,
    "DSH_NETWORK_": dsh.Network,
    "DSH_BACKEND_": dsh.Backend,
    "DSH_ENFORCEMENT_": dsh.Enforcement,
    "DSH_SANDBOX_": dsh.SandboxMode,
}

#: What is ``None`` in this package, or a flag.
_NO_MEMBERS = {
    "DSH_EVENT_NONE",
    "DSH_NETWORK_DEFAULT",
    "DSH_BACKEND_NONE",
    "DSH_SANDBOX_DEFAULT",
    "DSH_SANDBOX_GIT_WORKTREE",
    "DSH_SANDBOX_NO_GIT_WORKTREE",
}

pytestmark = pytest.mark.skipif(shutil.which(_CC) is None, reason="needs a C compiler")


def compiled(lines: list[str], tmp_path: Path) -> list[int]:
    """The values of C expressions, one each."""
    body = "".join(f'    printf("%lld\\n", (long long)({line}));\n' for line in lines)
    source = tmp_path / "values.c"
    source.write_text(f"#include <dsh.h>\n#include <stdio.h>\nint main(void)\n{{\n{body}    return 0;\n}}\n")
    program = tmp_path / "values"
    subprocess.run([_CC, "-std=c11", f"-I{_INCLUDE}", source, "-o", program], check=True)
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [int(line) for line in output.split()]


def header() -> str:
    return (_INCLUDE / "dsh.h").read_text()


def test_every_struct_of_the_header_is_known() -> None:
    structs = set(re.findall(r"^} (dsh_\w+_t);", header(), re.MULTILINE))
    assert set(_abi.LAYOUTS) <= structs
    unknown = structs - set(_abi.LAYOUTS)
    if unknown:
        warnings.warn(f"structs that this package does not use: {', '.join(sorted(unknown))}", stacklevel=1)


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("name", _abi.LAYOUTS)
def test_a_layout_is_that_of_the_header(name: str, tmp_path: Path) -> None:
    layout = _abi.LAYOUTS[name]
    fields = [str(field[0]) for field in layout._fields_]
    expressions = [f"sizeof({name})"]
    for field in fields:
        expressions += [f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"]
    size, *placed = compiled(expressions, tmp_path)
    descriptors = [getattr(layout, field) for field in fields]
    assert placed == [value for descriptor in descriptors for value in (descriptor.offset, descriptor.size)]
    if name in _FIXED:
        assert ctypes.sizeof(layout) == size
    else:
        # A struct that is passed with its size may have grown at its end since.
        assert ctypes.sizeof(layout) <= size
        if ctypes.sizeof(layout) < size:
            warnings.warn(f"{name} has fields that this package does not know", stacklevel=1)


@pytest.mark.filterwarnings("default::UserWarning")
def test_every_number_is_that_of_the_header(tmp_path: Path) -> None:
    names = re.findall(r"^#define (DSH_\w+) -?\d", header(), re.MULTILINE)
    values = dict(zip(names, compiled(names, tmp_path)))
    prefixes = sorted(_NUMBERS, key=len, reverse=True)
    seen = set()
    for name, value in values.items():
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
        if prefix is None or name in _NO_MEMBERS:
            continue
        member = _NUMBERS[prefix].__members__.get(name[len(prefix) :])
        if member is None:
            warnings.warn(f"{name} has no name in this package", stacklevel=1)
        else:
            assert member == value, name
            seen.add(member)
    assert seen >= {member for numbers in _NUMBERS.values() for member in numbers}
    for name, value in {
        "DSH_ABI_VERSION": _abi.ABI_VERSION,
        "DSH_OK": _abi.OK,
        "DSH_E_TIMED_OUT": _abi.E_TIMED_OUT,
        "DSH_CONFIG_NO_INHERIT_ENV": _abi.CONFIG_NO_INHERIT_ENV,
        "DSH_CONFIG_NO_GUARD": _abi.CONFIG_NO_GUARD,
        "DSH_CONFIG_KEEP_SPILL_FILES": _abi.CONFIG_KEEP_SPILL_FILES,
        "DSH_REQUEST_MERGE_STDERR": _abi.REQUEST_MERGE_STDERR,
        "DSH_REQUEST_FOREGROUND": _abi.REQUEST_FOREGROUND,
        "DSH_STDOUT": dsh.Stream.STDOUT,
        "DSH_STDERR": dsh.Stream.STDERR,
        "DSH_EVENT_NONE": _abi.EVENT_NONE,
        "DSH_SANDBOX_GIT_WORKTREE": _abi.SANDBOX_GIT_WORKTREE,
        "DSH_SANDBOX_NO_GIT_WORKTREE": _abi.SANDBOX_NO_GIT_WORKTREE,
        "DSH_DENIED_UNKNOWN": _abi.DENIED_UNKNOWN,
        "DSH_DENIED_NO": _abi.DENIED_NO,
        "DSH_DENIED_YES": _abi.DENIED_YES,
        "DSH_NETWORK_DEFAULT": 0,
        "DSH_BACKEND_NONE": 0,
        "DSH_SANDBOX_DEFAULT": 0,
    }.items():
        assert values[name] == value, name


@pytest.mark.parametrize("name", _abi.PROTOTYPES)
def test_a_prototype_has_as_many_parameters_as_in_the_header(name: str) -> None:
    found = re.search(rf"^[\w ]+[ *]{name}\(([^)]*)\);", header(), re.MULTILINE)
    assert found is not None
    parameters = [] if found[1] == "void" else found[1].split(",")
    result, arguments = _abi.PROTOTYPES[name]
    assert len(arguments) == len(parameters)
    assert (result is ctypes.c_int32) == found[0].startswith(("dsh_status_t", "int32_t"))
