"""Writes the .npy files beside this script with NumPy itself, so that the reader is tested against the real thing.

The numbers: array[i, j] = 10 i + j - 3 for floats and signed integers (shape 3 x 4 unless the name says otherwise),
10 i + j for unsigned ones. Run it only to add a case; the files are kept.
"""

import numpy as np

base = np.add.outer(10 * np.arange(3), np.arange(4)) - 3
for name in ["f2", "f4", "f8", "i1", "i2", "i4", "i8"]:
    for order, label in [("<", "le"), (">", "be")]:
        np.save(f"{name}_{label}.npy", base.astype(order + name))
for name in ["u1", "u2", "u4", "u8"]:
    np.save(f"{name}_be.npy", (base + 3).astype(">" + name))
np.save("bool.npy", base % 2 == 0)
np.save("f4_fortran.npy", np.asfortranarray(base.astype("<f4")))
np.save("f8_fortran_be.npy", np.asfortranarray(base.astype(">f8")))
cube = np.arange(24, dtype="<f4").reshape(2, 3, 4)
np.save("cube.npy", cube)
np.save("cube_fortran.npy", np.asfortranarray(cube))
np.save("line.npy", np.arange(5, dtype="<f8") - 0.5)
np.save("special.npy", np.array([[1.0, -0.0], [6.1e-5, 65504.0], [6e-8, -np.inf], [np.nan, 0.1]], dtype="<f2"))
np.save("objects.npy", np.array([[1, 2], [3]], dtype=object), allow_pickle=True)
np.save("complex.npy", np.array([[1 + 2j]]))
np.save("text.npy", np.array(["a", "bc"]))
np.save("bytes.npy", np.array([b"a", b"bc"]))
np.save("dates.npy", np.array(["2026-01-01"], dtype="datetime64[D]"))
np.save("structured.npy", np.array([(1.0, 2)], dtype=[("x", "<f4"), ("n", "<i4")]))
np.save("raw.npy", np.zeros((2, 2), dtype="V2"))
np.save("long_double.npy", np.zeros((2, 2), dtype="longdouble"))
np.save("single.npy", np.float32(3.0))
np.save("no_rows.npy", np.zeros((0, 3), dtype="<f4"))
np.save("no_columns.npy", np.zeros((3, 0), dtype="<f4"))
with open("version2.npy", "wb") as file:
    np.lib.format.write_array(file, base.astype("<f4"), version=(2, 0))
with open("version3.npy", "wb") as file:
    np.lib.format.write_array(file, base.astype("<f4"), version=(3, 0))
np.savez("archive.npz", x=np.zeros((2, 2)))
