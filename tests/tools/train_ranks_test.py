#!/usr/bin/env python3
"""msrun train and msrun run on several ranks: the same weights for any number of them, resuming with another number, ranks that
differ; models that communicate.

usage: train_ranks_test.py BIN_DIR   (Python's standard library only)
"""
import csv
import json
import os
import random
import shutil
import struct
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

    def test_communication_is_reported_for_the_whole_run(self):
        self.data()
        self.train(*self.launch(2), output="two")
        with open(self.path("two.json")) as f:
            report = json.load(f)["communication"]
        self.assertEqual(report["steps"], 7)  # of 8, without the first
        self.assertGreaterEqual(report["exchanges"], report["steps"])
        # At least the gradients, in each step.
        self.assertGreater(report["bytes_sent"], report["steps"] * 100000)
        self.assertTrue(0 <= report["hidden"] <= 1 and report["bucket_bytes"] >= 65536, report)

    def test_ranks_draw_the_numbers_of_one(self):
        """A network with Dropout."""
        self.data()
        node, weight = onnx.node, onnx.tensor
        rng = random.Random(5)
        nodes = [node("Flatten", ["x"], ["flat"], "flatten"),
                 node("Dropout", ["flat", "ratio", "mode"], ["dropped"], "drop"),
                 node("Gemm", ["dropped", "w", "b"], ["y"], "dense")]
        weights = [weight("w", [64, CLASSES], [rng.uniform(-0.1, 0.1) for _ in range(64 * CLASSES)]), weight("b", [CLASSES], [0.0] * CLASSES),
                   weight("ratio", [], [0.25]), weight("mode", [], [True], onnx.BOOL)]
        main = onnx.graph(nodes, [onnx.value("x", ["batch", 1, 8, 8])], [onnx.value("y", ["batch", CLASSES])], weights)
        self.write("drop.onnx", onnx.model(main))
        self.must("msconvert", self.path("drop.onnx"), self.path("drop.msrt"), "--quiet")
        results = {}
        for name, launcher in (("alone", ()), ("two", self.launch(2)), ("three", self.launch(3))):
            self.train(*launcher, output=name, more=("--model", self.path("drop.msrt"), "--size", "8"))
            results[name] = self.results(name)
        self.assertTrue(results["alone"] == results["two"] == results["three"])


class RunRanks(ToolCase):
    def test_a_graph_gathers_the_rank_numbers_of_four_ranks(self):
        node = onnx.node
        nodes = [node("GroupRank", [], ["rank"], "rank", domain="msrt"),
                 node("Reshape", ["rank", "one"], ["list"], "list"),
                 node("AllGather", ["list"], ["ranks"], "gather", domain="msrt", ranks=4)]
        main = onnx.graph(nodes, [], [onnx.value("ranks", [4], onnx.INT64)], [onnx.tensor("one", [1], [1], onnx.INT64)])
        self.write("ranks.onnx", onnx.model(main, domains=["msrt"]))
        self.must("msconvert", self.path("ranks.onnx"), self.path("ranks.msrt"), "--quiet")
        msrun = os.path.join(self.BIN, "msrun")
        command = [msrun, "launch", "-n", "4", "--", msrun, "run", self.path("ranks.msrt"), "--output-dir", self.path("out")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        for rank in range(4):
            with open(self.path("out" + (f".{rank}" if rank else "") + "/ranks.npy"), "rb") as f:
                self.assertEqual(struct.unpack("<4q", f.read()[-32:]), (0, 1, 2, 3))
        # A model for four ranks says so on another number of them.
        done = subprocess.run([msrun, "run", self.path("ranks.msrt")], capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("AllGather of the model is for 4 ranks, but there are 1", done.stderr)


if __name__ == "__main__":
    ToolCase.BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
