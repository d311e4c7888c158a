"""Energies and forces of alanine dipeptide by OpenMM, for the tests of core/src/molecule.

    python -m venv venv && venv/bin/pip install openmm numpy
    venv/bin/python core/tests/openmm/make_fixtures.py

Writes fixtures.json beside this file: the shipped coordinates, and frames of a hot trajectory with random displacements. OpenMM's Reference
platform computes in double precision. Given a topology and coordinates, prints the energies of those instead:

    venv/bin/python core/tests/openmm/make_fixtures.py other.prmtop other.rst7
"""

import json
import pathlib
import sys

import numpy as np
import openmm
from openmm import app, unit

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parents[2] / "experiments" / "aldp-solvation"
KJ = unit.kilojoule_per_mole
GROUPS = {"HarmonicBondForce": 0, "HarmonicAngleForce": 1, "PeriodicTorsionForce": 2, "NonbondedForce": 3, "CustomGBForce": 4, "GBSAOBCForce": 4}


def context(topology, model, charge_factor=1.0, temperature=600.0):
    """A context whose force groups are the kinds of terms; the charges of generalised Born are multiplied by `charge_factor`."""
    system = topology.createSystem(implicitSolvent=model, constraints=None, removeCMMotion=False)
    for force in system.getForces():
        force.setForceGroup(GROUPS[type(force).__name__])
        if isinstance(force, openmm.CustomGBForce):
            for i in range(force.getNumParticles()):
                charge, *rest = force.getParticleParameters(i)
                force.setParticleParameters(i, [charge * charge_factor, *rest])
    integrator = openmm.LangevinMiddleIntegrator(temperature, 1 / unit.picosecond, 0.001 * unit.picosecond)
    integrator.setRandomNumberSeed(7)
    return openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))


def energy(context, groups=-1):
    return context.getState(getEnergy=True, groups=groups).getPotentialEnergy().value_in_unit(KJ)


def forces(context):
    return context.getState(getForces=True).getForces(asNumpy=True).value_in_unit(KJ / unit.nanometer)


def main():
    paths = sys.argv[1:] or [str(DATA / "alanine-dipeptide.prmtop"), str(DATA / "alanine-dipeptide.crd")]
    topology, crd = app.AmberPrmtopFile(paths[0]), app.AmberInpcrdFile(paths[1])
    start = np.array(crd.getPositions(asNumpy=True).value_in_unit(unit.nanometer), dtype=float)
    states = {
        "vacuum": context(topology, None),
        "lambda0": context(topology, app.OBC1, 0.0),
        "lambda07": context(topology, app.OBC1, 0.7),
        "obc1": context(topology, app.OBC1),
    }
    if sys.argv[1:]:
        for name, held in states.items():
            held.setPositions(start)
            print(f"{name} {energy(held):.10f}")
        return
    generator = np.random.default_rng(11)
    frames = [start]
    hot = states["obc1"]
    hot.setPositions(start)
    hot.setVelocitiesToTemperature(600.0, 7)
    for _ in range(4):
        hot.getIntegrator().step(400)
        frame = hot.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.nanometer)
        frames.append(np.array(frame) + 0.004 * generator.standard_normal(start.shape))
    cases = []
    for frame in frames:
        frame = np.round(frame, 9)
        for held in states.values():
            held.setPositions(frame)
        vacuum = states["vacuum"]
        case = {
            "positions": frame.ravel().tolist(),
            "bonds": energy(vacuum, 1),
            "angles": energy(vacuum, 2),
            "torsions": energy(vacuum, 4),
            "nonbonded": energy(vacuum, 8),
            "surface": energy(states["lambda0"], 16),
            "born": energy(states["obc1"], 16),
        }
        for name, held in states.items():
            case[name] = {"energy": energy(held), "forces": np.round(forces(held), 7).ravel().tolist()}
        cases.append(case)
    document = {"openmm": openmm.__version__, "cases": cases}
    (HERE / "fixtures.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
