#!/usr/bin/env python3
"""msrun train on several ranks: the same weights for any number of them, resuming with another number, ranks that differ.

usage: train_ranks_test.py BIN_DIR   (Python's standard library only)
"""
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase, mpi_environment  # noqa: E402

CLASSES = 4


def picture(label, rng):
    """8 x 8 pixels of 0 to 16: one quarter is bright, with noise."""
    return [rng.randint(9, 16) if (y // 4) * 2 + x // 4 == label else rng.randint(0, 6) for y in range(8) for x in range(8)]


class TrainRanks(ToolCase):
    def data(self, name="data", train=61):
        folder = self.path(name)
        os.makedirs(folder)
        rng = random.Random(3)
        for part, count in (("train", train), ("test", 23)):  # uneven last batches
            labels = [i % CLASSES for i in range(count)]
            pixels = [p for label in labels for p in picture(label, rng)]
            onnx.write_npy(os.path.join(folder, part + "_images.npy"), (count, 8, 8), pixels, "|u1", "B")
            onnx.write_npy(os.path.join(folder, part + "_labels.npy"), (count,), labels, "<i8", "q")
        return folder

    def train(self, *launcher, output, more=(), code=0, data="data"):
        folder = self.path(data)
        command = [*launcher, os.path.join(self.BIN, "msrun"), "train", "--model", "zoo:lenet", "--data", folder, "--eval", folder,
                   "--size", "28", "--normalize", "scale=1/16", "--epochs", "2", "--batch", "16", "--lr", "0.05", "--augment", "crop:8:1",
                   "--sums", "fixed", "--threads", "1", "--output", self.path(output), "--json", self.path(output + ".json"), *more]
        environment = mpi_environment() if launcher[:1] == ("mpirun",) else None
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        self.assertEqual(done.returncode == 0, code == 0, (done.stdout, done.stderr))
        return done

    def launch(self, ranks):
        return (os.path.join(self.BIN, "msrun"), "launch", "-n", str(ranks), "--")

    def launchers(self):
        yield "alone", ()
        for ranks in (2, 3, 4):
            yield f"launch{ranks}", self.launch(ranks)
        if shutil.which("mpirun") and os.path.exists(os.path.join(self.BIN, "..", "lib", "libmsrt_comm_mpi.so")):
            yield "mpirun2", ("mpirun", "--oversubscribe", "-n", "2")

    def results(self, output):
        """What must not depend on the number of ranks: the trained model, the history without times, the evaluation."""
        with open(self.path(output + "/model.msrt"), "rb") as f:
            model = f.read()
        with open(self.path(output + "/history.csv")) as f:
            columns = ("epoch", "step", "loss", "accuracy", "eval_loss", "eval_accuracy", "eval_top5")
            history = [[row[c] for c in columns] for row in csv.DictReader(f)]
        with open(self.path(output + ".json")) as f:
            report = json.load(f)
        return model, history, report["confusion"], report["accuracy"]

    def test_weights_do_not_depend_on_the_ranks(self):
        self.data()
        alone = None
        for name, launcher in self.launchers():
            with self.subTest(name):
                self.train(*launcher, output=name)
                results = self.results(name)
                alone = alone or results
                self.assertEqual(results[1:], alone[1:])
                self.assertTrue(results[0] == alone[0], "the models differ")
        # One checkpoint for all ranks, and one rank prints.
        self.assertEqual(sorted(os.listdir(self.path("launch4/checkpoints"))), sorted(os.listdir(self.path("alone/checkpoints"))))

    def test_resumes_with_another_number_of_ranks(self):
        self.data()
        self.train(output="whole")
        self.train(*self.launch(4), output="resumed", more=("--epochs", "1", "--checkpoint-every", "3"))
        self.train(*self.launch(2), output="resumed", more=("--resume",))
        self.assertTrue(self.results("resumed") == self.results("whole"))

    def test_sums_in_any_order_learn_the_same(self):
        self.data()
        self.train(output="fixed")
        self.train(*self.launch(2), output="any", more=("--sums", "any"))
        fixed, free = self.results("fixed"), self.results("any")
        for a, b in zip(fixed[1], free[1]):
            self.assertAlmostEqual(float(a[2]), float(b[2]), delta=1e-3)

    def test_ranks_that_differ_are_named(self):
        self.data()
        self.data("other", train=60)
        # The second rank is given other data, or another model.
        for what, option in (("training data", f"--data {self.path('other')}"), ("model, optimizer or options", "--optimizer adam"),
                             ("command line", "--seed 5"), ("command line", "--augment crop:8:2"), ("command line", "--corrupt skip"),
                             ("command line", "--keep 3")):
            with self.subTest(option):
                script = f'[ "$MSRT_RANK" = 1 ] && exec "$@" {option} || exec "$@"'
                done = self.train(*self.launch(2), "sh", "-c", script, "sh", output="differs", code=1)
                self.assertIn(f"rank 1 of group 'world' has another {what} than rank 0", done.stderr)


if __name__ == "__main__":
    ToolCase.BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
