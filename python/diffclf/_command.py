"""The command ``diffclf``: the program itself, in this process."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> None:
    """Runs the program with the arguments of this process and ends it with the program's exit code."""
    # Python only notes an interrupt and acts on it when the program is over; the program has its own way to stop.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = _native.main(["diffclf", *sys.argv[1:]])
    sys.stdout.flush()
    sys.exit(code)
