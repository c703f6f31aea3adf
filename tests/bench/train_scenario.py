#!/usr/bin/env python3
"""Trains a network on an image folder of drawn shapes alone, under mpirun with 2 and 4 ranks and under msrun launch with 4; exits with 1
unless all reach the same accuracy of at least 0.9, with the same bits in the trained model and one set of checkpoints.

usage: train_scenario.py BIN_DIR [--network zoo:resnet50] [--size 100] [--epochs 20] [--classes 26] [--train 100] [--test 25] [--folder DIR] [-- OPTIONS of msrun train]

The options of the run are those of a public tutorial of MindSpore: batch 32, random crop with padding, flip, resize, normalise, momentum 0.9
at 0.01, loss scale 1024, a checkpoint after each epoch. The default network takes hours on two cores. In about a quarter of an hour:

    train_scenario.py BIN_DIR --network zoo:resnet18 --size 32 --epochs 12 --classes 20 --train 60 --test 20

(Python's standard library only)
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path += [FOLDER, os.path.join(FOLDER, "..", "tools")]
import shapes_dataset as shapes  # noqa: E402
from tool_case import mpi_environment  # noqa: E402

PICTURE, KEEP = 32, 35
COLUMNS = ("epoch", "step", "loss", "accuracy", "eval_loss", "eval_accuracy", "eval_top5")  # that do not measure time


class Scenario:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.msrun = os.path.join(os.path.abspath(options.bin), "msrun")
        self.environment = mpi_environment()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def launchers(self):
        launch = [self.msrun, "launch", "-n", "4", "--"]
        mpi = os.path.join(os.path.dirname(self.msrun), "..", "lib", "libmsrt_comm_mpi.so")
        yield "alone", []
        if shutil.which("mpirun") and os.path.exists(mpi):
            yield "mpirun2", ["mpirun", "--oversubscribe", "-n", "2"]
            yield "mpirun4", ["mpirun", "--oversubscribe", "-n", "4"]
        else:
            print("mpirun or the engine mpi is missing: only msrun launch is run", flush=True)
            yield "launch2", [self.msrun, "launch", "-n", "2", "--"]
        yield "launch4", launch

    def train(self, name, launcher):
        """Trains once; returns accuracy, model, history and names of checkpoints."""
        o = self.options
        began = time.monotonic()
        done = subprocess.run([*launcher, self.msrun, "train", "--model", o.network, "--data", self.path("data", "train"), "--eval",
                               self.path("data", "test"), "--epochs", str(o.epochs), "--batch", str(o.batch), "--size", str(o.size), "--augment",
                               f"crop:{PICTURE}:4 hflip", "--normalize", o.normalize, "--optimizer", "momentum:0.9", "--lr", str(o.lr),
                               "--loss-scale", "1024", "--keep", str(KEEP), "--seed", str(o.seed), "--sums", "fixed", "--output", self.path(name),
                               "--json", self.path(name + ".json"), *o.more], env=self.environment, stdout=subprocess.DEVNULL, check=False)
        seconds = time.monotonic() - began
        if done.returncode != 0:
            print(f"{name}: msrun failed with exit code {done.returncode}", flush=True)
            return None
        with open(self.path(name + ".json")) as f:
            report = json.load(f)
        with open(self.path(name, "model.msrt"), "rb") as f:
            model = f.read()
        with open(self.path(name, "history.csv")) as f:
            history = [[row[c] for c in COLUMNS] for row in csv.DictReader(f)]
        print(f"{name}: accuracy {report['accuracy']:.4f}, loss {report['loss']:.4f}, {report['step_ms']:.1f} ms a step, {seconds:.0f} s",
              flush=True)
        return report["accuracy"], model, history, sorted(os.listdir(self.path(name, "checkpoints")))

    def run(self):
        o = self.options
        shapes.write_dataset(self.path("data"), {"train": o.train, "test": o.test}, PICTURE, o.classes, o.seed)
        results, problems = {}, []
        for name, launcher in self.launchers():
            results[name] = self.train(name, launcher)
            if results[name] is None:
                problems.append(f"{name} failed")
                continue
            if results[name][0] < o.limit:
                problems.append(f"{name}: accuracy {results[name][0]:.4f} is below {o.limit}")
            alone = results["alone"]
            for what, one, other in zip(("accuracy", "trained model", "history", "set of checkpoints"), results[name], alone or results[name]):
                if one != other:
                    problems.append(f"{name} has another {what} than one rank alone")
            steps = [entry for entry in results[name][3] if entry.startswith("step-")]
            if len(steps) != min(o.epochs, KEEP):
                problems.append(f"{name} has {len(steps)} checkpoints, not {min(o.epochs, KEEP)}")
        for problem in problems:
            print(problem)
        print("failed" if problems else f"{len(results)} runs: the same accuracy of at least {o.limit}, identical weights, one set of checkpoints")
        return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--network", default="zoo:resnet50")
    parser.add_argument("--size", type=int, default=100, help="of the pictures that the network gets")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--normalize", default="mean=127.5,127.5,127.5 std=64,64,64")
    parser.add_argument("--classes", type=int, default=len(shapes.SHAPES))
    parser.add_argument("--train", type=int, default=100, help="pictures per class")
    parser.add_argument("--test", type=int, default=25, help="pictures per class")
    parser.add_argument("--limit", type=float, default=0.9, help="the least accuracy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="keeps data and results; otherwise they are removed")
    # Further options of msrun train come after --.
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:end])
    options.more = sys.argv[end + 1:]
    if options.folder:
        os.makedirs(options.folder, exist_ok=True)
        return Scenario(options, options.folder).run()
    with tempfile.TemporaryDirectory() as folder:
        return Scenario(options, folder).run()


sys.exit(main())
