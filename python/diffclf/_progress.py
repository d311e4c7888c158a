"""Progress in a terminal, in a notebook or in a log file, with the time left."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any, Protocol, TypeAlias

from . import _native


class Progress(Protocol):
    """Somebody who follows long work: give one as ``progress=`` to show it your own way."""

    def begin(self, label: str, total: int, done: int) -> None:
        """Work of so many steps begins, of which some are done."""

    def update(self, position: int, message: str) -> None:
        """So many steps are done."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def end(self, message: str) -> None:
        """The work has ended."""


ProgressLike: TypeAlias = "bool | Progress"


def progress_of(wanted: ProgressLike) -> Progress | None:
    """The object that follows the work, if anybody does."""
    if isinstance(wanted, bool):
        if not wanted or not _native.company_leads():
            return None
        return _Notebook() if _in_notebook() else _Terminal()
    return wanted


def _in_notebook() -> bool:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) // 60 % 60:02d} min"


class _Clock:
    """What all of them know: how far the work is, and how long it takes."""

    def __init__(self) -> None:
        self.label, self.total, self.before, self.position = "", 0, 0, 0
        self.start = self.shown = time.monotonic()

    def begin(self, label: str, total: int, done: int) -> None:
        self.label, self.total, self.before, self.position = label, total, done, done
        self.start = self.shown = time.monotonic()

    def times(self) -> str:
        gone = time.monotonic() - self.start
        steps = self.position - self.before
        left = _duration(gone / steps * (self.total - self.position)) if steps > 0 else "unknown"
        return f"{_duration(gone)} gone, {left} left"

    def share(self) -> float:
        return self.position / self.total if self.total else 0.0


class _Terminal(_Clock):
    """A line that is written over, or sparse lines where there is no terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.live = sys.stderr.isatty()

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            pass

    def update(self, position: int, message: str) -> None:
        self.position = position
        if self.live:
            bar = "#" * int(24 * self.share())
            self._write(f"\r\x1b[K{self.label} [{bar:<24}] {position}/{self.total}, {self.times()}, {message}"[:200])
        elif time.monotonic() - self.shown >= 10:
            self.shown = time.monotonic()
            self._write(f"{self.label}: {position}/{self.total} ({100 * self.share():.0f} %), {self.times()}, {message}\n")

    def note(self, text: str) -> None:
        self._write(f"\r\x1b[K{text}\n" if self.live else f"{text}\n")

    def end(self, message: str) -> None:
        if message:
            gone = _duration(time.monotonic() - self.start)
            self.note(f"{self.label}: {message} ({gone})")
        elif self.live:
            self._write("\r\x1b[K")


class _Notebook(_Clock):
    """A bar below the cell."""

    def __init__(self) -> None:
        super().__init__()
        self.handle: Any = None
        self.notes: list[str] = []
        self.text = ""

    def _repr_html_(self) -> str:
        notes = "".join(f"<div style='opacity:.75'>{escape(note)}</div>" for note in self.notes)
        return f"{notes}<div>{self.text}</div>"

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": "\n".join([*self.notes, self.label])}

    def _show(self) -> None:
        from IPython.display import display

        if self.handle is None:
            self.handle = display(self, display_id=True)
        else:
            self.handle.update(self)

    def begin(self, label: str, total: int, done: int) -> None:
        super().begin(label, total, done)
        self.update(done, "")

    def update(self, position: int, message: str) -> None:
        self.position = position
        self.text = f"{escape(self.label)} <progress value='{position}' max='{self.total}'></progress> {position}/{self.total}, {self.times()}, {escape(message)}"
        self._show()

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._show()

    def end(self, message: str) -> None:
        gone = _duration(time.monotonic() - self.start)
        self.text = f"{escape(self.label)}: {escape(message)} ({gone})"
        self._show()
