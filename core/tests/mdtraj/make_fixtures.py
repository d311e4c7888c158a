"""Files of mdtraj (1.11.1) that the readers are compared with: python make_fixtures.py, in this folder.

Frames of 3 atoms (not packed in .xtc), of 25 atoms near each other and of 25 atoms far apart (packed by differences, and not). The numbers
of a file as mdtraj reads them back stand beside it as .npy, in nm, with which the tests compare.
"""
import mdtraj
import numpy as np


def topology(atoms):
    top = mdtraj.Topology()
    chain = top.add_chain()
    for k in range(atoms):
        residue = top.add_residue(["ALA", "GLY"][k % 2], chain, resSeq=k + 1)
        top.add_atom(["CA", "N", "O"][k % 3], getattr(mdtraj.element, ["carbon", "nitrogen", "oxygen"][k % 3]), residue)
    return top


rng = np.random.default_rng(1)
for name, atoms, spread in [("few", 3, 1.0), ("near", 25, 0.0), ("far", 25, 40.0)]:
    steps = rng.normal(size=(4, atoms, 3)) * 0.15
    xyz = np.cumsum(steps, axis=1) + spread * rng.normal(size=(4, atoms, 3))
    frames = mdtraj.Trajectory(xyz.astype(np.float32), topology(atoms), time=np.arange(4) * 2.0)
    for kind in ["xtc", "dcd", "pdb"]:
        if kind == "pdb" and name == "far":
            continue
        frames.save(f"{name}.{kind}")
        again = mdtraj.load(f"{name}.{kind}", top=frames.topology)
        np.save(f"{name}-{kind}.npy", again.xyz.astype(np.float32))
