#!/usr/bin/env python3
"""Small data for the pages that are looked at: rows.py FOLDER. Nothing but the standard library, and the same numbers every time."""

import array
import math
import pathlib
import random
import sys


def npy(path, shape, values):
    """An array of doubles as a .npy file."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("d", values).tobytes())


def csv(path, names, rows):
    path.write_text("\n".join([",".join(names), *(",".join(f"{x:.6f}" for x in row) for row in rows)]) + "\n")


def main():
    folder, rng = pathlib.Path(sys.argv[1]), random.Random(1)
    normal = rng.gauss
    csv(folder / "line.csv", ["end-to-end distance (nm)"], [[normal(1.0 + (k % 3 == 0), 0.2)] for k in range(600)])
    rows = []
    for _ in range(600):
        first = normal(0.0, 1.0)
        rows.append([first, 0.8 * first + normal(0.0, 0.4)] + [normal(j, 0.5 + 0.2 * j) for j in range(8)])
    csv(folder / "ten.csv", [f"feature {k}" for k in range(10)], rows)
    wrap = lambda x: math.remainder(x, 2.0 * math.pi)
    csv(folder / "angles.csv", ["phi", "psi"], [[wrap(normal(3.0 if k % 3 else -1.2, 0.7)), wrap(normal(2.8, 0.9))] for k in range(900)])
    # Four harmonic wells, the second of them without samples.
    centres, energies = (0.0, 0.7, 1.4, 2.3), []
    samples = [normal(c, 1.0) for c, n in zip(centres, (60, 0, 60, 60)) for _ in range(n)]
    for c in centres:
        energies += [0.5 * (x - c) ** 2 for x in samples]
    npy(folder / "u_kn.npy", (4, len(samples)), energies)
    for k in range(3):
        npy(folder / f"l{k}.npy", (80,), [normal(2.0 - k, 0.6) for _ in range(80)])


if __name__ == "__main__":
    main()
