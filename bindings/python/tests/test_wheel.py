"""A wheel with the library inside works in a fresh environment that has nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import dsh
from dsh import _library

import support

SOURCE = Path(__file__).parents[1]


def pip(*arguments: str, **environment: str) -> None:
    """Runs pip, without any index."""
    command = [sys.executable, "-m", "pip", "--quiet", "--no-input", *arguments, "--no-index"]
    subprocess.run(command, env={**os.environ, **environment}, check=True, timeout=support.LIMIT)


def wheel(folder: Path, bundle: str) -> Path:
    """A wheel, built from a copy of the source so that nothing is written beside it."""
    pytest.importorskip("setuptools", minversion="77")
    source = folder / "source"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "tests", ".*"))
    pip("wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", str(source), DSH_BUNDLE=bundle)
    [built] = folder.glob("*.whl")
    return built


def test_a_wheel_with_the_library_needs_nothing_else(tmp_path: Path) -> None:
    built = wheel(tmp_path, _library.lib._name)
    assert built.name.startswith(f"dsh-{dsh.__version__}-py3-none-")
    assert not built.name.endswith("-any.whl")
    names = zipfile.ZipFile(built).namelist()
    assert {"dsh/libdsh.so.0", "dsh/py.typed"} <= set(names)

    venv.create(tmp_path / "fresh", symlinks=True)
    python = tmp_path / "fresh" / "bin" / "python"
    pip("--python", str(python), "install", str(built))
    clean = {name: value for name, value in os.environ.items() if name not in ("LIBDSH_PATH", "PYTHONPATH")}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [python, *arguments],
            env=clean,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=support.LIMIT,
        ).stdout

    loaded = run("-c", "import dsh; print(dsh._library.lib._name)").strip()
    assert Path(loaded).is_relative_to(tmp_path / "fresh")
    shown = run(str(SOURCE / "examples" / "agent_step.py"), '{"command": "echo fresh; exit 3"}')
    assert shown == "$ echo fresh; exit 3\nfresh\n[exit code: 3]\n\n"


def test_a_wheel_without_the_library_is_for_every_platform(tmp_path: Path) -> None:
    built = wheel(tmp_path, "")
    assert built.name == f"dsh-{dsh.__version__}-py3-none-any.whl"
    assert not any("libdsh" in name for name in zipfile.ZipFile(built).namelist())


def test_a_library_to_be_bundled_that_is_not_there_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        wheel(tmp_path, str(tmp_path / "nowhere"))
