#!/usr/bin/env python3
"""Kills and stops random ranks at random moments and lets ranks call different collectives, many times; prints how long the others took
to name the culprit. The suite runs each case once (launch_test.py).

usage: fault_campaign.py BIN_DIR [--kills 200] [--stops 50] [--mismatches 50] [--engine shm] [--limit 0.5] [--seed 0]

With --engine mpi, mpirun starts the ranks, and ends them all when one is killed; stopped ranks and other collectives are left out.
"""
import argparse
import os
import random
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launching  # noqa: E402


def campaign(name, trials, run, rng):
    """`run(ranks)` returns the delays and problems of one job. Returns the number of bad jobs."""
    delays, bad = [], 0
    for trial in range(trials):
        ranks = rng.choice((2, 3, 4, 8))
        took, problems = run(ranks)
        delays += took
        bad += bool(problems)
        for problem in problems:
            print(f"{name} {trial}, {ranks} ranks: {problem}", flush=True)
    delays.sort()
    if delays:
        said = "jobs ended" if name.endswith("mpirun") else "ranks named the culprit"
        print(f"{name}: {trials} jobs, {bad} bad; {len(delays)} {said}, median {delays[len(delays) // 2]:.3f} s, "
              f"largest {delays[-1]:.3f} s", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--mismatches", type=int, default=50)
    parser.add_argument("--engine", help="ranks communicate by it: shm, gloo, mpi; otherwise through the store")
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    launching.BIN = options.bin
    rng = random.Random(options.seed)

    if options.engine == "mpi":
        return 1 if campaign("killed under mpirun", options.kills, lambda ranks: launching.kill_under_mpirun(ranks, rng), rng) else 0

    def hurt(number, limit=None):
        program = ("reduce",) if options.engine else ("work",)
        return lambda ranks: launching.hurt_one(ranks, number, rng, limit, program, options.engine)[1:]

    bad = campaign("killed", options.kills, hurt(signal.SIGKILL), rng)
    bad += campaign(f"stopped (after the limit of {options.limit} s)", options.stops, hurt(signal.SIGSTOP, options.limit), rng)
    bad += campaign("other collective or size", options.mismatches, lambda ranks: launching.diverge(ranks, 0 if options.engine else rng.choice((0, 8192)), options.engine), rng)
    return 1 if bad else 0


sys.exit(main())
