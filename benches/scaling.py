"""How a training step scales: measured on this machine with one and two threads, and with two processes if the program has MPI; then a model of more.

    cargo build --release --features mpi
    python3 benches/scaling.py target/release/diffclf [--network-gbit 25] [--latency-us 5] [--json benches/scaling-results.json]

A step of DSM + DiffCLF (N = 4, d = 8, 4x128 MLP) takes, on p processes of n threads with a batch of B rows,

    T = s + b ceil(ceil(C / p) / n) (B / C) (1 + e [p n > 1]) + m(p)

s: what one thread does alone (clipping, the sum of the chunks' gradients, waking threads); b: work of a row on one thread; C: chunks of the batch, which
are what is shared out; e: what a second thread costs the first (memory, clock); m(p): the gradient's P numbers go up a tree of processes, as many partial sums as the tree of chunks asks for
(counted), and the sum comes back, in 2 ceil(log2 p) rounds. s and b come from steps of several batches on one thread, e from two threads. Times are differences of
two runs of unlike length, so that start and end of the program do not count; on a machine with other work processor times of one thread are right and
ratios of two threads are not: the script says how much of the machine it had.
"""

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

SETTINGS = (
    "--system mog40 --dim 8 --samples 60000 --levels 4 --width 128 --depth 4 --base gaussian --process vp --objective dsm+diffclf "
    "--score-steps 0 --held-out 0 --no-report --quiet --force"
).split()


def run(command, folder):
    """Wall and processor seconds of a command."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(command, check=True, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begin, cpu


def step(program, folder, batch, threads, processes, seconds):
    """Wall and processor seconds of a step."""
    launch = [] if processes == 1 else ["mpirun", "--oversubscribe", "--quiet", "--bind-to", "none", "-n", str(processes)]

    def of(steps):
        asked = ["--batch", str(batch), "--steps", str(steps), "--threads", str(threads), "-o", "run"]
        return run([*launch, program, "train", *SETTINGS, *asked], folder)

    few = 4
    once = of(few + 8)
    short = of(few)
    each = max((once[0] - short[0]) / 8, 1e-4)
    many = few + max(8, math.ceil(seconds / each))
    long = of(many)
    return (long[0] - short[0]) / (many - few), (long[1] - short[1]) / (many - few)


# As in core/src/engine/run.rs: a tile has 72 rows of the widest node, here the 12 other energies of a row at four levels; chunks have 12 tiles or more where there
# are many, and their number is a multiple of a power of two.
TILE_UNITS = 72 // 12


def chunks(batch):
    """Chunks of a batch, the leaves of the tree of sums."""
    tiles = math.ceil(batch / TILE_UNITS)
    most = max(tiles // 12, 8)
    evenly = max(1 << (max(most // 3, 1).bit_length() - 1), 8)
    return min(most // evenly * evenly, tiles)


def parts(start, end):
    """Whole parts of the tree that these leaves make up: what a process sends."""
    count = 0
    while start < end:
        fits = (end - start).bit_length() - 1
        level = fits if start == 0 else min(fits, (start & -start).bit_length() - 1)
        start, count = start + (1 << level), count + 1
    return count


def messages(processes, leaves):
    """Gradients that pass one after the other, up the tree of processes and back."""
    share = lambda rank: rank * leaves // processes
    total, stride = 0, 1
    while stride < processes:
        givers = range(stride, processes, 2 * stride)
        total += max(parts(share(rank), share(min(rank + stride, processes))) for rank in givers)
        total, stride = total + 1, 2 * stride
    return total, 2 * math.ceil(math.log2(processes)) if processes > 1 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--network-gbit", type=float, default=25.0)
    parser.add_argument("--latency-us", type=float, default=5.0)
    parser.add_argument("--json")
    asked = parser.parse_args()
    program = str(Path(asked.program).resolve())
    together = shutil.which("mpirun") is not None
    folder = tempfile.mkdtemp(prefix="scaling-")
    cases = [(512, 1, 1), (2048, 1, 1), (8192, 1, 1), (2048, 2, 1)] + ([(2048, 1, 2)] if together else [])
    rounds = {case: [] for case in cases}
    begin, cpu_begin = time.perf_counter(), busy()
    for _ in range(asked.rounds):
        for case in cases:
            rounds[case].append(step(program, folder, *case, asked.seconds))
    others = others_took(begin, cpu_begin)
    median = {case: sorted(found)[len(found) // 2] for case, found in rounds.items()}
    for (batch, threads, processes), (wall, cpu) in median.items():
        print(f"batch {batch:6}, {processes} processes of {threads} threads: {1e3 * wall:9.2f} ms a step, {1e3 * cpu:9.2f} ms of processor time")
    # s and b by the processor times of one thread.
    (b0, t0), (b1, t1) = [(batch, median[batch, 1, 1][1]) for batch in (512, 8192)]
    b = (t1 - t0) / (b1 - b0)
    s = max(t0 - b * b0, 0.0)
    two = median[2048, 2, 1][0]
    e = max((two - s) / (b * 2048 / 2) - 1, 0.0)
    parameters = count_parameters(folder)
    print(f"\ns = {1e3 * s:.3f} ms, b = {1e6 * b:.2f} us a row, e = {e:.3f}, P = {parameters}")
    if (2048, 1, 2) in median:
        print(f"two processes of one thread over two threads of one process: {median[2048, 1, 2][0] / two:.3f} (wall), goal 1.05")
    if others is not None:
        print(f"other programs took {100 * others:.0f} % of the machine: " + ("figures of two threads do not count" if others > 0.1 else "little"))

    bandwidth, latency = asked.network_gbit * 1e9 / 8, asked.latency_us * 1e-6

    def model(batch, processes, threads):
        pieces = chunks(batch)
        each = math.ceil(math.ceil(pieces / processes) / threads) * batch / pieces
        gradients, rounds = messages(processes, pieces)
        message = rounds * latency + gradients * 4 * parameters / bandwidth
        return s + b * each * (1 + (e if processes * threads > 1 else 0.0)) + message, message

    print("\n| batch | processes x threads | step, ms | messages, ms | efficiency |\n| --- | --- | --- | --- | --- |")
    table = []
    for batch in (2048, 32768):
        for processes, threads in [(1, 1), (1, 2), (1, 8), (1, 16), (1, 64), (4, 8), (16, 8)]:
            total, message = model(batch, processes, threads)
            efficiency = model(batch, 1, 1)[0] / (total * processes * threads)
            table.append([batch, processes, threads, total, message, efficiency])
            print(f"| {batch} | {processes} x {threads} | {1e3 * total:.2f} | {1e3 * message:.2f} | {100 * efficiency:.0f} % |")
    if asked.json:
        document = {
            "command": f"python3 benches/scaling.py target/release/diffclf --seconds {asked.seconds} --rounds {asked.rounds}",
            "measured": [[*case, *found] for case, found in median.items()],
            "s": s,
            "b": b,
            "e": e,
            "parameters": parameters,
            "others_took": others,
            "network_gbit": asked.network_gbit,
            "latency_us": asked.latency_us,
            "model": table,
        }
        Path(asked.json).write_text(json.dumps(document, indent=1) + "\n")


def count_parameters(folder):
    """Numbers of the gradient: those of the last run's model, without their average."""
    data = (Path(folder) / "run/model.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__" and not name.startswith("average"))


def busy():
    """Processor seconds of all programs, where the system tells."""
    try:
        fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    except OSError:
        return None
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def others_took(begin, cpu_begin):
    if cpu_begin is None:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours = used.ru_utime + used.ru_stime + time.process_time()
    return max(busy() - cpu_begin - ours, 0.0) / ((time.perf_counter() - begin) * (os.cpu_count() or 1))


if __name__ == "__main__":
    main()
