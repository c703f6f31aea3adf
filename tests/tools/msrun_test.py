#!/usr/bin/env python3
"""The command line of msrun: exit codes, checks before any work, files that are never replaced, help, version, streams.

usage: msrun_test.py BIN_DIR IDLE_PLUGIN   (Python's standard library only)
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402

PLUGIN = None
DONE, FAILED, WRONG = 0, 1, 2
# Longer than any test may take: errors must be found before the measurement.
LONG = ("--seconds", "1000")


class Msrun(ToolCase):
    def setUp(self):
        super().setUp()
        self.model = self.path("lenet.msrt")
        self.must("msconvert", "zoo:lenet", self.model, "--quiet")
        self.image = self.path("image.npy")
        onnx.write_npy(self.image, (1, 1, 28, 28), [i / 784 for i in range(784)])

    def contents(self):
        """Returns the contents of all files in the folder."""
        found = {}
        for name in os.listdir(self.folder.name):
            if os.path.isfile(self.path(name)):
                with open(self.path(name), "rb") as f:
                    found[name] = f.read()
        return found

    def refuse(self, expected, *arguments, code=WRONG):
        before = self.contents()
        done = self.run_tool("msrun", *arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        self.assertIn(expected, done.stderr)
        self.assertEqual(before, self.contents(), arguments)

    def test_networks_of_the_zoo_run_without_a_file(self):
        files = self.must("msrun", "run", self.model, "--output-dir", self.path("a"), "--input", f"image={self.image}", "--quiet")
        zoo = self.must("msrun", "run", "zoo:lenet", "--output-dir", self.path("b"), "--input", f"image={self.image}", "--quiet")
        self.assertEqual(files, zoo)
        for name in os.listdir(self.path("a")):
            with open(self.path(f"a/{name}"), "rb") as a, open(self.path(f"b/{name}"), "rb") as b:
                self.assertEqual(a.read(), b.read())
        self.assertIn('"image"', self.must("msrun", "info", "zoo:lenet", "--json", "-"))
        self.refuse("lenet", "zoo:nothing", code=1)
        self.refuse("--output FILE", "calibrate", "zoo:lenet")

    def test_wrong_command_lines_are_refused_before_any_work(self):
        bench = ("bench", self.model, *LONG)
        for expected, *arguments in [
                ("--threads", *bench, "--threads", "-3"), ("--threads", *bench, "--threads", "many"),
                ("--warmup", *bench, "--warmup", "-1"), ("--seconds", "bench", self.model, "--seconds", "-1"),
                ("--memory-cap", *bench, "--memory-cap", "-5"), ("--seed", *bench, "--seed", "-5"),
                ("--tolerance", *bench, "--verify", self.folder.name, "--tolerance", "-1"), ("--verify", *bench, "--tolerance", "1"),
                ("--accuracy", *bench, "--accuracy", "some"), ("--colour", *bench, "--colour"),
                ("--json '/no/such/dir/x' cannot be written", *bench, "--json", "/no/such/dir/x"),
                ("--trace '/no/such/dir/x' cannot be written", *bench, "--trace", "/no/such/dir/x"),
                ("--explain=svg '/no/such/dir/x' cannot be written", *bench, "--explain=svg:/no/such/dir/x"),
                ("is no folder", *bench, "--output-dir", self.image), ("is no folder", *bench, "--output-dir", self.image + "/deeper"),
                ("is a folder", *bench, "--json", self.folder.name), ("--verify", *bench, "--verify", self.path("nothing")),
                ("nosuch.msrt': there is no such file", self.path("nosuch.msrt")), ("is a folder", self.folder.name),
                ("there is no file 'nothing.npy'", *bench, "--input", "image=nothing.npy"),
                ("1x3x224x224", *bench, "--shape", "image=1xbx3"), ("must look like NAME=", *bench, "--input", "image"), ("given twice", *bench, *["--input", "image=" + self.image] * 2),
                ("must look like", *bench, "--pin", "conv"), ("there is no file './nothing.so'", *bench, "--plugin", "./nothing.so"),
                ("--costs", *bench, "--costs", self.path("nothing.costs")), ("which model", "--explain"),
                ("both write", *bench, "--json", self.path("a"), "--trace", self.path("a")),
                ("there is no file", "--compare", "a.json", "b.json"), ("--compare", "--compare", "a.json"),
                ("each stream runs on one thread", *bench, "--streams", "2", "--threads", "2"), ("--streams", *bench, "--streams", "0"),
                ("model", "run"), ("subcommand",)]:
            self.refuse(expected, *arguments)
        # Names of inputs are known only when the model is loaded: not a wrong command line, but an error before the run.
        self.refuse("no input 'picture'; it has image", *bench, "--input", "picture=" + self.image, code=FAILED)
        os.mkdir(self.path("ref"))
        self.refuse("probabilities.npy' for output 'probabilities'", *bench, "--verify", self.path("ref"), code=FAILED)

    def test_files_that_are_read_are_never_replaced(self):
        link = self.path("link.json")
        os.symlink(self.model, link)
        for name in (self.model, link, self.image):
            given = ("bench", self.model, "--input", "image=" + self.image, *LONG)
            for option in (("--json", name), ("--trace", name), ("--explain=svg:" + name,), ("--explain=text:" + name,)):
                self.refuse("is also read", *given, *option)
        self.refuse("is also read", "calibrate", self.model, "--output", self.model)
        with open(self.path("notes.txt"), "w") as f:
            f.write("not JSON")
        self.refuse("is not a JSON file", "bench", self.model, *LONG, "--json", self.path("notes.txt"))
        os.mkdir(self.path("out"))
        given = shutil.copy(self.image, self.path("out/probabilities.npy"))
        self.refuse("is also read", "run", self.model, "--input", "image=" + given, "--output-dir", self.path("out"), code=FAILED)
        self.assertEqual(onnx.read_npy(given), onnx.read_npy(self.image))
        # A report, a trace and a picture may replace those of an earlier run.
        for _ in range(2):
            self.must("msrun", self.model, "--seconds", "0", "--json", self.path("r"), "--trace", self.path("t"), "--explain=svg:" + self.path("s"))

    def test_exit_codes_of_runs(self):
        given = ("run", self.model, "--input", "image=" + self.image)
        self.must("msrun", *given, "--output-dir", self.path("new/out"))
        self.assertEqual(self.run_tool("msrun", *given, "--verify", self.path("new/out")).returncode, DONE)
        onnx.write_npy(self.path("new/out/probabilities.npy"), (1, 10), [0.5] * 10)
        self.refuse("differs from the reference", *given, "--verify", self.path("new/out"), code=FAILED)
        self.refuse("damaged.msrt", self.write("damaged.msrt", b"MSRT" + bytes(99)), code=FAILED)

    def test_help_is_complete(self):
        text = self.must("msrun", "--help")
        for word in ("bench", "run", "calibrate", "info", "msrun --compare A.json B.json", "--version", "Exit codes", "2  wrong command line"):
            self.assertIn(word, text)
        self.assertIn("--streams", self.must("msrun", "bench", "--help"))
        self.assertIn("--compare", self.must("msrun", "bench", "--help"))

    def test_version_and_reports_name_the_build(self):
        text = self.must("msrun", "--version")
        self.assertRegex(text, r"^msrt \d+\.\d+\.\d+ \(\w+, \w+ [\d.]+")
        self.assertIn("processor: ", text)
        build = json.loads(self.must("msrun", self.model, "--seconds", "0", "--json", "-"))["build"]
        self.assertIn("msrt " + build["version"], text)
        self.assertIn(build["processor"]["name"], text)

    def test_plugin_in_the_current_folder_is_found_by_its_name(self):
        shutil.copy(PLUGIN, self.path("libmine.so"))
        for name in ("libmine.so", "./libmine.so", "libmine.so:a=b"):
            done = subprocess.run([os.path.join(self.BIN, "msrun"), "info", "--json", "-", "--plugin", name], cwd=self.folder.name,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertIn("idle", [d["name"] for d in json.loads(done.stdout)["delegates"]])
        self.refuse("nosuch.so", "info", "--plugin", "nosuch.so", code=FAILED)
        done = subprocess.run([os.path.join(self.BIN, "msconvert"), "zoo:lenet", "again.msrt", "--plugin", "libmine.so:a=b"],
                              cwd=self.folder.name, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_quiet_and_verbose(self):
        for verb in (("bench", self.model, "--seconds", "0"), ("run", self.model), ("calibrate", self.model, "--seconds", "0")):
            done = self.run_tool("msrun", *verb, "--quiet")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (DONE, "", ""))
        self.assertIn("a run expected", self.must("msrun", "run", self.model, "--quiet", "--explain"))
        json.loads(self.must("msrun", self.model, "--seconds", "0", "--quiet", "--json", "-"))
        self.assertEqual(self.run_tool("msrun", "run", self.model, "--quiet", "--verbose").returncode, WRONG)

    def test_streams_are_measured_together(self):
        text = self.must("msrun", self.model, "--seconds", "0.2", "--streams", "2", "--shape", "image=4x1x28x28", "--json", self.path("r"))
        self.assertRegex(text, r"throughput \d+\.\d runs/s = \d+\.\d items/s by 2 streams of one thread each\n")
        with open(self.path("r")) as f:
            report = json.load(f)
        self.assertEqual((report["streams"], report["threads"]), (2, 1))
        self.assertAlmostEqual(report["items_per_second"], 4 * report["throughput_per_second"])
        self.assertGreater(report["runs"], 2)

    def test_sizes_beyond_memory_are_named(self):
        done = self.run_tool("msrun", "run", self.model, "--shape", "image=10000000000000x1x28x28")
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, r"image.*(no memory for \d+ bytes|more elements)")
        done = self.run_tool("msrun", "run", self.model, "--shape", "image=9000000000000000000x1x28x28")
        self.assertEqual(done.returncode, FAILED, done.stderr)


if __name__ == "__main__":
    ToolCase.BIN, PLUGIN = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
