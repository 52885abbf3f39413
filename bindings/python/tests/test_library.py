"""Finding and loading the library."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import dsh
from dsh import _library

import support

_PACKAGE = Path(dsh.__file__).parent


def imported(environment: dict[str, str], *, package: Path = _PACKAGE) -> str:
    """What an import of the package ends with."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("LIBDSH_PATH", "LD_LIBRARY_PATH")}
    program = support.run_script(
        """
try:
    import dsh
    print("loaded", dsh._library.lib._name)
except ImportError as error:
    print(type(error).__name__, error.name, error.path, error)
""",
        env={**inherited, "PYTHONPATH": str(package.parent), **environment},
    )
    assert program.stderr == ""
    return program.stdout.strip()


def the_library() -> Path:
    return Path(_library.lib._name).resolve()


def copied_package(folder: Path) -> Path:
    return Path(shutil.copytree(_PACKAGE, folder / "dsh", ignore=shutil.ignore_patterns("__pycache__", "libdsh*")))


def test_a_file_or_folder_can_be_named(tmp_path: Path) -> None:
    library = shutil.copy(the_library(), tmp_path / "libdsh.so.0")
    assert imported({"LIBDSH_PATH": str(library)}) == f"loaded {library}"
    assert imported({"LIBDSH_PATH": str(tmp_path)}) == f"loaded {library}"


def test_a_library_inside_the_package_is_taken(tmp_path: Path) -> None:
    package = copied_package(tmp_path)
    bundled = shutil.copy(the_library(), package / "libdsh.so.0")
    assert imported({}, package=package) == f"loaded {bundled}"
    assert imported({"LIBDSH_PATH": ""}, package=package) == f"loaded {bundled}"


def test_a_library_that_was_named_is_taken_before_the_one_inside(tmp_path: Path) -> None:
    package = copied_package(tmp_path)
    shutil.copy(the_library(), package / "libdsh.so.0")
    library = str(the_library())
    assert imported({"LIBDSH_PATH": library}, package=package) == f"loaded {library}"


def test_the_loader_s_own_places_come_last(tmp_path: Path) -> None:
    package = copied_package(tmp_path)
    shutil.copy(the_library(), tmp_path / "libdsh.so.0")
    assert imported({"LD_LIBRARY_PATH": str(tmp_path)}, package=package) == "loaded libdsh.so.0"


def test_a_library_that_is_not_there_is_an_import_error_that_helps(tmp_path: Path) -> None:
    message = imported({"LIBDSH_PATH": "/nowhere/libdsh.so.0"})
    assert message.startswith("ImportError dsh /nowhere/libdsh.so.0 dsh: can't load the library '/nowhere/libdsh.so.0'")
    message = imported({}, package=copied_package(tmp_path))
    assert message.startswith("ImportError dsh libdsh.so.0 ")
    assert "LIBDSH_PATH" in message


def test_what_is_no_libdsh_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "libother.so"
    source = tmp_path / "other.c"
    source.write_text("int other(void) { return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", source, "-o", other], check=True)
    assert "is no libdsh, or too old for this package" in imported({"LIBDSH_PATH": str(other)})
    source.write_text("unsigned dsh_abi_version(void) { return 7; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", source, "-o", other], check=True)
    assert "has ABI version 7, and this package knows 0" in imported({"LIBDSH_PATH": str(other)})
