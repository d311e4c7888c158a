"""What can go wrong. Every exception of this package is a :class:`DiffclfError`."""

from __future__ import annotations

__all__ = [
    "DiffclfError",
    "FileError",
    "InputError",
    "InternalError",
    "InterruptedWarning",
    "NumericalError",
    "UsageError",
]


class DiffclfError(Exception):
    """Something went wrong; the message says what was found, what was expected and what to do."""


class InputError(DiffclfError, ValueError):
    """An argument has a value that cannot be used."""


class UsageError(InputError, TypeError):
    """An argument is of the wrong kind, or has a name that is not known."""


class FileError(DiffclfError, OSError):
    """A file or a run folder cannot be used."""


class NumericalError(DiffclfError, ArithmeticError):
    """The numbers went wrong: not finite, not converged, no overlap."""


class InternalError(DiffclfError, RuntimeError):
    """A fault of this package; please report it."""


class InterruptedWarning(UserWarning):
    """The work was interrupted; what there is so far is returned."""
