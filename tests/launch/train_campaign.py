#!/usr/bin/env python3
"""Kills msrun train with -9 at random moments, alone and on several ranks, and resumes it, each time with another number of ranks: the
trained model and the history must have the bits of a run that was not disturbed. Then kills it while it writes checkpoints: the next start
must load a checkpoint that is at least as new as the last one that was complete.

usage: train_campaign.py BIN_DIR [--kills 20] [--writes 200] [--network zoo:resnet18] [--ranks 1,2,4] [--seed 0]

Prints a line for each kill and exits with 1 if one had a problem. The suite runs a few kills with LeNet.
(Python's standard library only)
"""
import argparse
import csv
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path += [FOLDER, os.path.join(FOLDER, "..", "tools")]
import onnx_file as onnx  # noqa: E402
from launching import wait_until  # noqa: E402

CLASSES, SAMPLES, BATCH, EPOCHS = 4, 72, 16, 4  # the last batch of an epoch is not full
COLUMNS = ("epoch", "step", "loss", "accuracy", "eval_loss", "eval_accuracy")
RESUMED = re.compile(r"resumed    at step (\d+)")


def write_pictures(folder, channels, size):
    """Noise in which one quarter is bright: its number is the class."""
    rng = random.Random(3)
    half = size // 2
    for part, count in (("train", SAMPLES), ("test", 16)):
        labels = [i % CLASSES for i in range(count)]
        pixels = [rng.randrange(130, 256) if (y // half) * 2 + x // half == label else rng.randrange(0, 120)
                  for label in labels for _ in range(channels) for y in range(size) for x in range(size)]
        onnx.write_npy(os.path.join(folder, part + "_images.npy"), (count, channels, size, size), pixels, "|u1", "B")
        onnx.write_npy(os.path.join(folder, part + "_labels.npy"), (count,), labels, "<i8", "q")


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as f:
        return [int(pid) for pid in f.read().split()]


def steps_in(folder):
    """The steps of the complete checkpoints, oldest first."""
    if not os.path.isdir(folder):
        return []
    return sorted(int(name[len("step-"):-len(".ckpt")]) for name in os.listdir(folder) if name.startswith("step-") and name.endswith(".ckpt"))


class Campaign:
    def __init__(self, options):
        self.options, self.random = options, random.Random(options.seed)
        self.msrun = os.path.join(os.path.abspath(options.bin), "msrun")
        self.ranks = [int(n) for n in options.ranks.split(",")]
        lenet = options.network == "zoo:lenet"
        write_pictures(".", 1 if lenet else 3, 28 if lenet else 32)

    def command(self, output, ranks, *more):
        launch = [self.msrun, "launch", "-n", str(ranks), "--grace", "1", "--"] if ranks > 1 else []
        return [*launch, self.msrun, "train", "--model", self.options.network, "--data", ".", "--eval", ".", "--batch", str(BATCH), "--epochs",
                str(EPOCHS), "--lr", "0.01", "--augment", "crop:28:2" if self.options.network == "zoo:lenet" else "crop:32:4 hflip", "--sums", "fixed",
                "--threads", "1", "--keep", "2", "--output", output, *more]

    def results(self, output):
        with open(os.path.join(output, "model.msrt"), "rb") as f:
            model = f.read()
        with open(os.path.join(output, "history.csv")) as f:
            return model, [[row[c] for c in COLUMNS] for row in csv.DictReader(f)]

    def start(self, output, ranks, *more):
        # A session of its own, so that all its processes can be killed together.
        return subprocess.Popen(self.command(output, ranks, *more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)

    def kill(self, process, ranks):
        """Kills everything, or one rank alone; returns which."""
        victims = children_of(process.pid) if ranks > 1 and self.random.random() < 0.5 else []
        if victims:
            os.kill(self.random.choice(victims), signal.SIGKILL)
            return "one rank of"
        os.killpg(process.pid, signal.SIGKILL)
        return "all of"

    def resume_chain(self, number, whole, seconds, kills):
        """One run, killed until it ends by itself. Returns the number of kills and problems."""
        output, done = f"killed{number}", 0
        while True:
            ranks = self.random.choice(self.ranks)
            process = self.start(output, ranks, "--checkpoint-every", str(self.random.choice((1, 2, 3))), "--resume")
            moment = self.random.uniform(0.05, 1) * seconds
            try:
                text = process.communicate(timeout=moment if done < kills else 600)[0]
            except subprocess.TimeoutExpired:
                who = self.kill(process, ranks)
                process.communicate()
                done += 1
                print(f"killed {who} {ranks} ranks after {moment:.2f} s, complete checkpoints {steps_in(output + '/checkpoints')}", flush=True)
                continue
            if process.returncode != 0:
                return done, [f"{ranks} ranks failed with exit code {process.returncode}:\n{text}"]
            break
        problems = []
        for what, one, other in zip(("model", "history"), self.results(output), whole):
            if one != other:
                problems.append(f"the {what} differs from that of a run that was not disturbed")
        print(f"run {number}: resumed {done} times: {'; '.join(problems) or 'identical bits'}", flush=True)
        return done, problems

    def resume(self, kills):
        began = time.monotonic()
        subprocess.run(self.command("whole", 1, "--quiet"), check=True)
        seconds, whole = time.monotonic() - began, self.results("whole")
        done = bad = number = 0
        while done < kills:
            more, problems = self.resume_chain(number, whole, seconds, kills - done)
            for problem in problems:
                print(problem, flush=True)
            done, bad, number = done + more, bad + bool(problems), number + 1
            if more == 0 and number > 20 * kills:
                print("runs end before they are killed")
                return bad + 1
        print(f"resumed: {done} kills in {number} runs, {bad} bad", flush=True)
        return bad

    def write(self, number, newest):
        """Kills a run while it writes a checkpoint. Returns the newest complete step and problems."""
        folder = "writing/checkpoints"
        process = self.start("writing", 1, "--checkpoint-every", "1", "--epochs", "1000000", "--resume")
        began = time.monotonic()

        def is_writing():
            return os.path.isdir(folder) and any(".ckpt.tmp-" in name for name in os.listdir(folder))
        # The start removes what the killed run left; then there are some writes.
        skipped = self.random.randrange(1, 4)
        seen = set(steps_in(folder))
        wait_until(lambda: len(set(steps_in(folder)) - seen) >= skipped or process.poll() is not None, 120)
        wait_until(lambda: is_writing() or process.poll() is not None, 120)
        time.sleep(self.random.uniform(0, self.span))
        os.killpg(process.pid, signal.SIGKILL)
        text = process.communicate()[0]
        hit = is_writing()
        problems = []
        if process.returncode != -signal.SIGKILL:
            problems.append(f"ended by itself with exit code {process.returncode}:\n{text}")
        match = RESUMED.search(text)
        loaded = int(match[1]) if match else None
        if newest is not None and (loaded is None or loaded < newest):
            problems.append(f"loaded step {loaded}, but step {newest} was complete:\n{text}")
        if "unreadable" in text or "damaged" in text or "truncated" in text:
            problems.append(f"a checkpoint under its own name is not whole:\n{text}")
        steps = steps_in(folder)
        print(f"write {number}: killed after {time.monotonic() - began:.2f} s {'in' if hit else 'after'} a write, loaded step {loaded}, complete {steps}",
              flush=True)
        return steps[-1] if steps else newest, problems, hit

    def writes(self, count):
        if count == 0:
            return 0
        self.span = 0.002 if self.options.network == "zoo:lenet" else 0.1  # of a write, about
        newest, hits, bad = None, 0, 0
        for number in range(count + 1):  # each start checks what the kill before has left
            newest, problems, hit = self.write(number, newest)
            hits += hit
            bad += bool(problems)
            for problem in problems:
                print(problem, flush=True)
        print(f"writes: {count} kills, {hits} in the middle of a write, {bad} bad", flush=True)
        return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--network", default="zoo:resnet18", choices=("zoo:resnet18", "zoo:lenet"))
    parser.add_argument("--ranks", default="1,2,4", help="numbers of ranks to choose from")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            campaign = Campaign(options)
            bad = campaign.resume(options.kills) + campaign.writes(options.writes)
        finally:
            os.chdir("/")
    return 1 if bad else 0


sys.exit(main())
