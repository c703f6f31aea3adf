#!/usr/bin/env python3
"""msrun train: an image folder and .npy arrays to a trained model, reports, resuming after kill -9, errors.

usage: train_test.py BIN_DIR HAS_CODECS   (Python's standard library only)
"""
import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "bench"))
import onnx_file as onnx  # noqa: E402
import shapes_dataset as shapes  # noqa: E402
from tool_case import ToolCase  # noqa: E402

CODECS = True
# The segments of a digit on a display: top, upper left, upper right, middle, lower left, lower right, bottom.
SEGMENTS = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"]
LINES = [((1, 2), (1, 5)), ((1, 2), (3, 2)), ((1, 5), (3, 5)), ((3, 2), (3, 5)), ((3, 2), (6, 2)), ((3, 5), (6, 5)), ((6, 2), (6, 5))]


def digit(number, rng):
    """8 x 8 pixels of 0 to 16: a digit of a display, moved by up to one pixel, with noise."""
    dy, dx = rng.randint(-1, 1), rng.randint(-1, 1)
    pixels = [rng.randint(0, 3) for _ in range(64)]
    for on, ((y0, x0), (y1, x1)) in zip(SEGMENTS[number], LINES):
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                if on == "1":
                    pixels[(y + dy) * 8 + x + dx] = rng.randint(11, 16)
    return pixels


class Train(ToolCase):
    def digits(self, train=300, test=100):
        rng = random.Random(3)
        for part, count in (("train", train), ("test", test)):
            labels = [i % 10 for i in range(count)]
            pixels = [p for label in labels for p in digit(label, rng)]
            onnx.write_npy(self.path(part + "_images.npy"), (count, 8, 8), pixels, "|u1", "B")
            onnx.write_npy(self.path(part + "_labels.npy"), (count,), labels, "<i8", "q")
        return self.path("")

    def arguments(self, *more, output="run", epochs=3):
        folder = self.path("")
        return ["train", "--model", "zoo:lenet", "--data", folder, "--eval", folder, "--size", "28", "--normalize", "scale=1/16",
                "--epochs", str(epochs), "--lr", "0.02", "--output", self.path(output), "--json", self.path(output + ".json"), *more]

    def train(self, *more, code=0, **options):
        done = self.run_tool("msrun", *self.arguments(*more, **options))
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        return done

    def report(self, output="run"):
        with open(self.path(output + ".json")) as f:
            return json.load(f)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def test_boost_keeps_the_accuracy_and_lists_its_changes(self):
        self.digits(train=900)
        self.train("--boost", "off", epochs=1, output="off")
        self.assertEqual([change["name"] for change in self.report("off")["changes"]], ["plain"])
        for boost, names in (("O1", []), ("O2", ["bf16 products", "bf16 activations"]),
                             ("O3", ["bf16 products", "bf16 activations", "centralized gradients", "accumulation", "freezing", "freezing"])):
            done = self.train("--boost", boost, epochs=20, output=boost)
            report = self.report(boost)
            self.assertEqual([change["name"] for change in report["changes"]], names)
            self.assertEqual(done.stdout.count("change "), len(names), done.stdout)
            self.assertGreaterEqual(report["accuracy"], 0.95, boost)
        self.train("--precision", "mixed", epochs=1, output="mixed")
        self.assertEqual(len(self.report("mixed")["changes"]), 2)

    def test_activation_memory_is_limited(self):
        self.digits()
        self.train("--sums", "fixed", epochs=1, output="all")
        done = self.train("--sums", "fixed", "--activation-memory", "70%", epochs=1, output="limited")
        memory = self.report("limited")["activations"]
        self.assertLessEqual(memory["planned_bytes"], 0.7 * memory["kept_bytes"])
        self.assertGreater(memory["recomputed"], 0)
        self.assertIn("change     recomputation: activations take", done.stdout)
        self.assertEqual(self.report("limited")["loss"], self.report("all")["loss"])
        done = self.train("--activation-memory", "1kB", output="tiny", code=1)
        self.assertIn("they take at least", done.stderr)

    def test_wrong_speed_options_are_refused(self):
        self.digits()
        for options, message in ((["--boost", "O4"], "must be off, O1, O2 or O3"), (["--precision", "f16"], "must be f32 or mixed"),
                                 (["--activation-memory", "much"], "must look like 2GiB")):
            self.assertIn(message, self.train(*options, output="wrong", code=2).stderr)
        done = self.train("--boost", "O2", "--sums", "fixed", output="fixed", code=1)
        self.assertIn("mixed precision rounds products to bf16", done.stderr)

    def test_digits_are_learned(self):
        self.digits(train=900)
        done = self.train(epochs=20)
        report = self.report()
        self.assertGreaterEqual(report["accuracy"], 0.95, done.stdout)
        self.assertGreater(report["step_ms"], 0)
        self.assertGreater(report["peak_rss_bytes"], 1e6)
        self.assertEqual(report["steps"], 20 * 29)
        self.assertEqual(len(report["class_accuracy"]), 10)
        self.assertEqual(sum(sum(row) for row in report["confusion"]), 100)
        with open(self.path("run/history.csv")) as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([row["epoch"] for row in rows], [str(i) for i in range(1, 21)])
        self.assertLess(float(rows[-1]["loss"]), float(rows[0]["loss"]))
        self.assertEqual(float(rows[-1]["eval_accuracy"]), report["accuracy"])
        page = self.read("run/report.html").decode()
        for name in ("Loss", "Accuracy", "Confusion matrix"):
            self.assertIn(name, page)
        svg = page[page.index("<svg"):page.index("</svg>") + len("</svg>")]
        xml.etree.ElementTree.fromstring(svg)

    def test_trained_model_runs_and_recognises(self):
        self.digits()
        self.train(epochs=20)
        info = json.loads(self.must("msrun", "info", self.path("run/model.msrt"), "--json", "-"))
        self.assertEqual(info["inputs"][0]["dims"][1:], [1, 28, 28])
        self.assertEqual(info["outputs"][0]["dims"][-1], 10)
        # The picture of a 4, enlarged as --size does, is checked by its likeliest class.
        pixels = digit(4, random.Random(9))
        large = [pixels[int((r + 0.5) * 8 / 28) * 8 + int((c + 0.5) * 8 / 28)] / 16 for r in range(28) for c in range(28)]
        onnx.write_npy(self.path("four.npy"), (1, 1, 28, 28), large)
        self.must("msrun", "run", self.path("run/model.msrt"), "--input", info["inputs"][0]["name"] + "=" + self.path("four.npy"), "--output-dir",
                  self.path("out"))
        scores = onnx.read_npy(self.path("out/" + info["outputs"][0]["name"] + ".npy"))[1]
        self.assertEqual(max(range(10), key=lambda c: scores[c]), 4)

    def test_other_losses_and_mixup_learn(self):
        self.digits()
        for output, more in (("mixup", ("--augment", "mixup:0.2")), ("mse", ("--loss", "mse", "--lr", "0.2"))):
            done = self.train(*more, output=output, epochs=20)
            self.assertGreaterEqual(self.report(output)["accuracy"], 0.7, done.stdout)

    def test_runs_are_repeatable(self):
        self.digits()
        self.train("--data-threads", "0", output="a", epochs=1)
        self.train("--data-threads", "3", output="b", epochs=1)
        self.assertEqual(self.read("a/model.msrt"), self.read("b/model.msrt"))

    def test_resume_after_kill_is_bitwise(self):
        self.digits()
        self.train("--augment", "crop:8:1 rotate:5", output="whole", epochs=3)
        rng = random.Random(1)
        for attempt in range(8):
            process = subprocess.Popen([os.path.join(self.BIN, "msrun"), *self.arguments(
                "--augment", "crop:8:1 rotate:5", "--checkpoint-every", "4", "--keep", "2", "--resume", output="killed")],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(rng.uniform(0.2, 1.2))
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
        self.train("--augment", "crop:8:1 rotate:5", "--checkpoint-every", "4", "--keep", "2", "--resume", output="killed")
        self.assertEqual(self.read("killed/model.msrt"), self.read("whole/model.msrt"))
        checkpoints = [name for name in os.listdir(self.path("killed/checkpoints")) if name.startswith("step-")]
        self.assertLessEqual(len(checkpoints), 2)
        with open(self.path("killed/history.csv")) as killed, open(self.path("whole/history.csv")) as whole:
            columns = ("epoch", "step", "loss", "accuracy", "eval_loss", "eval_accuracy")
            self.assertEqual([[row[c] for c in columns] for row in csv.DictReader(killed)],
                             [[row[c] for c in columns] for row in csv.DictReader(whole)])

    def test_interrupt_leaves_a_checkpoint(self):
        self.digits(train=2000)
        process = subprocess.Popen([os.path.join(self.BIN, "msrun"), *self.arguments("--checkpoint-every", "1", epochs=500)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        folder = self.path("run/checkpoints")
        while time.monotonic() < deadline and not (os.path.isdir(folder) and os.listdir(folder)):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("--resume", errors)

    def test_options_come_from_a_file(self):
        self.digits()
        folder = self.path("")
        config = self.write("run.ini", (f'model="zoo:lenet"\ndata="{folder}"\nsize=28\nepochs=1\nbatch=50\nlr=0.02\n'
                                        f'normalize="scale=1/16"\naugment="crop:8:1 rotate:5"\noutput="{self.path("c")}"\n').encode())
        self.must("msrun", "train", "--config", config, "--json", self.path("c.json"))
        self.assertEqual(self.report("c")["steps"], 6)
        # The command line wins.
        self.must("msrun", "train", "--config", config, "--batch", "100", "--output", self.path("d"), "--json", self.path("d.json"))
        self.assertEqual(self.report("d")["steps"], 3)

    def test_wrong_command_lines_are_refused(self):
        self.digits(20, 10)
        for more, part in (
                (("--augment", "blur:3"), "blur:3"),
                (("--optimizer", "magic"), "magic"),
                (("--schedule", "sometimes"), "sometimes"),
                (("--size", "big"), "--size"),
                (("--loss-scale", "-1"), "--loss-scale"),
                (("--model", "missing.msrt"), "missing.msrt")):
            done = self.train(*more, code=2)
            self.assertIn(part, done.stderr)
        done = self.run_tool("msrun", "train", "--model", "zoo:lenet", "--data", self.path(""), "--output", self.path("x"))
        self.assertEqual(done.returncode, 1)  # pictures of 8 x 8 are too small for LeNet

    def test_existing_run_is_not_overwritten(self):
        self.digits(20, 10)
        self.train(epochs=1)
        self.assertIn("--resume", self.train(epochs=1, code=2).stderr)
        self.train("--resume", epochs=2)
        self.assertIn("batch", self.train("--resume", "--batch", "7", epochs=3, code=1).stderr)

    def test_nan_stops_with_the_step(self):
        self.digits(64, 10)
        done = self.train("--lr", "1e25", code=1)
        self.assertIn("loss is", done.stderr)
        self.assertIn("step", done.stderr)
        self.assertIn("first value that is not finite is '", done.stderr)


class TrainImageFolder(ToolCase):
    CLASSES, SIZE = 4, 16

    def setUp(self):
        super().setUp()
        if not CODECS:
            self.skipTest("built without libpng")
        shapes.write_dataset(self.path("data"), {"train": 24, "test": 6}, self.SIZE, self.CLASSES)

    def train(self, *more, code=0):
        done = self.run_tool("msrun", "train", "--model", "zoo:lenet", "--data", self.path("data/train"), "--eval", self.path("data/test"), "--size",
                             "28", "--batch", "16", "--output", self.path("run"), "--json", self.path("run.json"), *more)
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        return done

    def report(self):
        with open(self.path("run.json")) as f:
            return json.load(f)

    def test_shapes_are_learned(self):
        done = self.train("--epochs", "25", "--lr", "0.02", "--augment", "crop:16:1 hflip")
        report = self.report()
        self.assertEqual(report["classes"], sorted(list(shapes.SHAPES)[:self.CLASSES]))
        # A quarter of the answers would be right by chance.
        self.assertGreaterEqual(report["accuracy"], 0.6, done.stdout)

    def test_corrupt_image_is_refused_or_skipped(self):
        path = self.path("data/train/disc/0003.png")
        with open(path, "r+b") as f:
            f.truncate(100)
        self.assertIn("disc/0003.png", self.train("--epochs", "1", code=1).stderr)
        done = self.train("--epochs", "1", "--corrupt", "skip", "--resume")
        self.assertIn("disc/0003.png", done.stderr)
        self.assertEqual([name for name in self.report()["skipped"] if "disc/0003.png" in name], self.report()["skipped"])
        self.assertEqual(len(self.report()["skipped"]), 1)

    def test_empty_class_is_an_error(self):
        os.mkdir(self.path("data/train/nothing"))
        self.assertIn("'nothing' is empty", self.train(code=1).stderr)

    def test_class_that_was_not_trained_is_an_error(self):
        os.rename(self.path("data/test/disc"), self.path("data/test/disk"))
        self.assertIn("'disk'", self.train(code=1).stderr)

    def test_head_and_input_of_a_zoo_model_follow_the_data(self):
        self.must("msrun", "train", "--model", "zoo:resnet18", "--data", self.path("data/train"), "--size", "32", "--batch", "48", "--epochs", "1",
                  "--output", self.path("resnet"), "--quiet")
        info = json.loads(self.must("msrun", "info", self.path("resnet/model.msrt"), "--json", "-"))
        self.assertEqual(info["inputs"][0]["dims"][1:], [3, 32, 32])
        self.assertEqual(info["outputs"][0]["dims"][-1], self.CLASSES)


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    CODECS = sys.argv[2] != "0"
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
