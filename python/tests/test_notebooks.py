"""The notebooks run from beginning to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

BOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path) -> None:
    nbclient: Any = pytest.importorskip("nbclient")
    nbformat: Any = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    book = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "notebooks are kept without their results"
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()


def test_there_are_three() -> None:
    assert [path.stem for path in BOOKS] == ["compose", "density", "free_energy"]
