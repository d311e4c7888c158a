"""``join``: several processes as one."""

from __future__ import annotations

from typing import Any

from . import _native
from .errors import UsageError


def join(communicator: Any) -> None:
    """Joins the processes of a communicator of mpi4py: from now on they share the batches of all work, and all get the same results.

    Every process runs the same script and makes the same calls, in the same order, with the same rows; what it finds are the bits that one process
    alone finds, for any number of them. The first process writes files and shows progress. Start the script through mpi4py, as below, so that an error in one
process ends all; they would wait for it otherwise.

    Examples
    --------
    In a script that is started with ``mpirun -n 4 python -m mpi4py script.py``::

        from mpi4py import MPI
        import diffclf

        diffclf.join(MPI.COMM_WORLD)
        model = diffclf.fit("samples.npy", threads=8)
    """
    for name in ("Get_rank", "Get_size", "Send", "Recv", "Dup"):
        if not callable(getattr(communicator, name, None)):
            raise UsageError(f"{communicator!r} is no communicator; give mpi4py's, such as MPI.COMM_WORLD")
    if communicator.Get_size() > 1:
        _native.join_company(communicator)
