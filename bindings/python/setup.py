"""Puts the shared library into the wheel, when ``DSH_BUNDLE`` names one.

    DSH_BUNDLE=/usr/local/lib/libdsh.so.0 python -m pip wheel --no-deps .

gives a wheel for this platform that needs nothing else; without the variable it is a wheel for every platform, which
looks for an installed library.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

BUNDLE = os.environ.get("DSH_BUNDLE")
NAME = "libdsh.0.dylib" if sys.platform == "darwin" else "libdsh.so.0"


class BuildWithLibrary(build_py):
    """Copies the library beside the modules."""

    def run(self) -> None:
        super().run()
        if BUNDLE:
            # The file itself, whatever link to it was named.
            shutil.copyfile(Path(BUNDLE).resolve(strict=True), Path(self.build_lib, "dsh", NAME))


class WheelOfPlatform(bdist_wheel):
    """For any Python 3, but, with the library, for this platform only."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


class WithLibrary(Distribution):
    """A distribution that is not the same on every platform when it has the library."""

    def has_ext_modules(self) -> bool:
        return bool(BUNDLE)


setup(distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfPlatform})
