"""Langevin dynamics of alanine dipeptide in implicit solvent (OBC1): diffclf beside OpenMM's CPU platform, one thread each.

    cargo build --release -p diffclf --example bench_molecule
    python -m venv venv && venv/bin/pip install openmm
    venv/bin/python benches/molecule.py --program target/release/examples/bench_molecule

Both take steps of 1 fs with friction 1/ps. The two alternate, and CPU seconds are counted, not those of the clock, so that neighbours on the same machine
matter less. `copies` are replicas in one process: diffclf computes eight side by side in the lanes of a register, OpenMM one after the other.
Writes benches/molecule-results.json.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "experiments" / "aldp-solvation"
FILES = [str(DATA / "alanine-dipeptide.prmtop"), str(DATA / "alanine-dipeptide.crd")]


def simulation(model):
    """OpenMM on its CPU platform with one thread."""
    import openmm
    from openmm import app, unit

    topology, crd = app.AmberPrmtopFile(FILES[0]), app.AmberInpcrdFile(FILES[1])
    system = topology.createSystem(implicitSolvent=app.OBC1 if model else None, constraints=None, removeCMMotion=False)
    integrator = openmm.LangevinMiddleIntegrator(300, 1 / unit.picosecond, 0.001 * unit.picosecond)
    place = openmm.Platform.getPlatformByName("CPU")
    held = openmm.Context(system, integrator, place, {"Threads": "1"})
    held.setPositions(crd.getPositions())
    held.setVelocitiesToTemperature(300)
    integrator.step(500)
    return openmm.__version__, integrator, held


def theirs(integrator, held, steps):
    """Steps a second of CPU time."""
    begin = time.process_time()
    integrator.step(steps)
    held.getState(getEnergy=True)
    return steps / (time.process_time() - begin)


def ours(program, copies, sweeps, solvent):
    """Steps a second of CPU time, all copies together; starting the program is part of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([program, *FILES, str(copies), str(sweeps), *solvent], check=True, capture_output=True, text=True)
    return copies * (sweeps + 1) * 100 / (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", default=str(ROOT / "benches" / "molecule-results.json"))
    arguments = parser.parse_args()
    results = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "rounds": arguments.rounds, "cases": []}
    for name, model, solvent, steps in [("obc1", True, [], 3000), ("vacuum", False, ["vacuum"], 10000)]:
        results["openmm"], integrator, held = simulation(model)
        figures = {"openmm": [], "one copy": [], "eight copies": []}
        for _ in range(arguments.rounds):
            figures["openmm"].append(theirs(integrator, held, steps))
            figures["one copy"].append(ours(arguments.program, 1, 100, solvent))
            figures["eight copies"].append(ours(arguments.program, 8, 100, solvent))
        medians = {key: statistics.median(values) for key, values in figures.items()}
        case = {"case": name, "steps per CPU second": {key: round(value) for key, value in medians.items()}}
        case["times openmm"] = {key: round(medians[key] / medians["openmm"], 1) for key in figures if key != "openmm"}
        case["spread"] = {key: [round(min(values)), round(max(values))] for key, values in figures.items()}
        results["cases"].append(case)
        print(json.dumps(case, indent=1))
    pathlib.Path(arguments.output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
