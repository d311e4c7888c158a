"""``python -m diffclf``."""

from ._command import main

main()
