#!/usr/bin/env python3
"""Training of ResNet-18 (64 x 3 x 32 x 32) on several ranks: what the same bits for any number of ranks cost, and ranks against threads.

usage: train_ranks.py [--bin build/release/bin] [--rounds 3] [--steps 24] [--engine shm] [--json FILE]   (Python's standard library only)

A round is one run of msrun train in each of four ways, one after the other:
  any        one rank, two threads, sums in any order: the fast mode
  fixed      one rank, two threads, sums in the fixed tree
  ranks any, ranks fixed   two ranks with a thread each, by msrun launch
The time is the mean of the steps without the first. Figures are medians over rounds of the quotient within a round, so that noise of
the machine hits both sides alike. Exits with 1 if
  fixed / any                  is above --fixed-limit (1.1)
  throughput of ranks / threads, with fixed sums, is below --ranks-limit (0.95)
  the part of the communication that computation hides, with fixed sums, is below --hidden-limit (0.8)
It needs two idle cores. --cpu-time compares processor time of all threads and ranks instead, for a machine that others use; what is
hidden is then shown but not judged.
"""
import argparse
import json
import os
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, CLASSES = 64, 10


def write_npy(path, dims, kind, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(dims)}, }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def make_data(folder, samples):
    rng = random.Random(1)
    write_npy(os.path.join(folder, "train_images.npy"), (samples, 3, 32, 32), "|u1", rng.randbytes(samples * 3 * 32 * 32))
    labels = [i % CLASSES for i in range(samples)]
    write_npy(os.path.join(folder, "train_labels.npy"), (samples,), "<i8", struct.pack(f"<{samples}q", *labels))


def processor_seconds():
    """Of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(a, folder, name, ranks, threads, sums, epochs=1):
    """Returns the report of one run, with its processor time."""
    msrun = os.path.join(a.bin, "msrun")
    output = os.path.join(folder, name)
    command = [msrun, "launch", "-n", str(ranks), "--"] if ranks > 1 else []
    command += [msrun, "train", "--model", "zoo:resnet18", "--data", folder, "--size", "32", "--batch", str(BATCH), "--epochs", str(epochs),
                "--optimizer", "momentum:0.9", "--lr", "0.01", "--sums", sums, "--threads", str(threads), "--output", output,
                "--json", output + ".json", "--quiet"]
    environment = os.environ | ({"MSRT_ENGINE": a.engine} if a.engine else {})
    before = processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    with open(output + ".json") as f:
        return json.load(f) | {"processor_seconds": processor_seconds() - before}


def measure(a, folder, name, *way):
    """Returns the milliseconds of a step and the communication."""
    report = train(a, folder, name, *way)
    milliseconds = report["step_ms"]
    if a.cpu_time:  # without the start of the process and its first step
        longer = train(a, folder, name + "-longer", *way, epochs=3)
        milliseconds = (longer["processor_seconds"] - report["processor_seconds"]) / (2 * a.steps) * 1000
    return report.get("communication", {}) | {"step_ms": milliseconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(HERE, "../../build/release/bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=24, help="of a run")
    parser.add_argument("--engine", help="of the communication; by default the one that msrun chooses")
    parser.add_argument("--fixed-limit", type=float, default=1.1)
    parser.add_argument("--ranks-limit", type=float, default=0.95)
    parser.add_argument("--hidden-limit", type=float, default=0.8)
    parser.add_argument("--cpu-time", action="store_true", help="processor time instead of time")
    parser.add_argument("--json", help="file for all numbers")
    a = parser.parse_args()
    ways = {"any": (1, 2, "any"), "fixed": (1, 2, "fixed"), "ranks any": (2, 1, "any"), "ranks fixed": (2, 1, "fixed")}
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        make_data(folder, BATCH * a.steps)
        for r in range(a.rounds):
            rounds.append({way: measure(a, folder, f"{way.replace(' ', '-')}{r}", *options) for way, options in ways.items()})
            print(f"round {r + 1}   " + "   ".join(f"{way} {x['step_ms']:.1f} ms" for way, x in rounds[-1].items()), flush=True)

    def median(figure):
        return statistics.median(figure(x) for x in rounds)

    misses = []

    def show(text, value, limit, misses_limit, kind):
        print(f"{text:58} {value:6.3f}   {kind} {limit}{'   MISSED' if misses_limit else ''}")
        if misses_limit:
            misses.append(text)

    fixed = median(lambda x: x["fixed"]["step_ms"] / x["any"]["step_ms"])
    show("fixed-tree sums / fast mode", fixed, a.fixed_limit, fixed > a.fixed_limit, "at most")
    figures = {"fixed_over_any": fixed}
    for sums in ("fixed", "any"):
        ratio = median(lambda x: x[sums]["step_ms"] / x["ranks " + sums]["step_ms"])
        hidden = median(lambda x: x["ranks " + sums]["hidden"])
        figures[f"ranks_{sums}"], figures[f"hidden_{sums}"] = ratio, hidden
        if sums == "fixed":
            show("throughput of 2 ranks x 1 thread / 1 rank x 2 threads", ratio, a.ranks_limit, ratio < a.ranks_limit, "at least")
            show("part of the communication that is hidden", hidden, a.hidden_limit, hidden < a.hidden_limit and not a.cpu_time, "at least")
        else:
            print(f"with sums in any order: throughput {ratio:.3f}, hidden {hidden:.3f}")
    last = rounds[-1]["ranks fixed"]
    print(f"a step: {last['exchanges'] / last['steps']:.0f} exchanges, {last['bytes_sent'] / last['steps'] / 2**20:.1f} MiB sent, "
          f"{last['ms'] / last['steps']:.1f} ms, {last['exposed_ms'] / last['steps']:.1f} ms exposed; buckets of {last['bucket_bytes'] >> 10} KiB")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"rounds": rounds, "figures": figures}, f, indent=1)
    sys.exit(1 if misses else 0)


if __name__ == "__main__":
    main()
