"""Several processes of Python give what one gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import diffclf
import pytest

SCRIPT = """
import sys
import numpy as np
import diffclf

if sys.argv[1] == "together":
    from mpi4py import MPI

    diffclf.join(MPI.COMM_WORLD)
    assert MPI.COMM_WORLD.Get_size() == 3
x = np.random.default_rng(1).normal(size=(900, 3))
x[:300] += 4
small = dict(steps=6, score_steps=6, width=16, depth=2, features=8, grid_levels=16, batch=600, progress=True, threads=1)
model = diffclf.fit(x, base="gaussian", **small)
new = model.sample(700, seed=3, steps=5)
model.save(sys.argv[2] + ".safetensors") if sys.argv[1] == "alone" or MPI.COMM_WORLD.Get_rank() == 0 else None
name = sys.argv[2] + ("" if sys.argv[1] == "alone" else str(MPI.COMM_WORLD.Get_rank()))
np.save(name + ".npy", np.concatenate([new, model.score(new)]))
kept = diffclf.train(x, sys.argv[2] + "-run", base="gaussian", report=False, **small)
assert kept == model
"""


def test_processes_share_their_batches(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun was not found (on Debian: apt-get install openmpi-bin)")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    usable = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, text=True)
    if usable.returncode:
        pytest.skip(f"mpi4py finds no library of MPI: {usable.stderr.splitlines()[-1]}")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run([sys.executable, script, "alone", "one"], cwd=tmp_path, check=True, env=environment)
    together = ["mpirun", "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py", str(script), "together", "three"]
    found = subprocess.run(together, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    # Only the first shows progress: two trainings, a line each in the end.
    assert found.stderr.count("12 steps") == 2, found.stderr
    assert (tmp_path / "three.safetensors").read_bytes() == (tmp_path / "one.safetensors").read_bytes()
    for rank in range(3):
        assert (tmp_path / f"three{rank}.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()


def test_what_is_no_communicator_is_refused() -> None:
    with pytest.raises(diffclf.UsageError, match="communicator"):
        diffclf.join(3)
