"""The build backend of the folder above: every hook is maturin's, called in ``python/``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import maturin

_PACKAGE = Path(__file__).resolve().parent.parent


def _in_package(hook: str) -> Any:
    def call(*arguments: Any, **keywords: Any) -> Any:
        before = os.getcwd()
        os.chdir(_PACKAGE)
        try:
            return getattr(maturin, hook)(*arguments, **keywords)
        finally:
            os.chdir(before)

    return call


build_wheel = _in_package("build_wheel")
build_sdist = _in_package("build_sdist")
build_editable = _in_package("build_editable")
get_requires_for_build_wheel = _in_package("get_requires_for_build_wheel")
get_requires_for_build_sdist = _in_package("get_requires_for_build_sdist")
get_requires_for_build_editable = _in_package("get_requires_for_build_editable")
prepare_metadata_for_build_wheel = _in_package("prepare_metadata_for_build_wheel")
prepare_metadata_for_build_editable = _in_package("prepare_metadata_for_build_editable")
