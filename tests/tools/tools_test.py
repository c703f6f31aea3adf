#!/usr/bin/env python3
"""msconvert and msrun as a user runs them: their output, their files, and their errors for bad input.

usage: tools_test.py BIN_DIR IDLE_PLUGIN   (Python's standard library only)
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

from onnx_file import read_npy, write_npy

BIN, PLUGIN = None, None


def run(tool, *arguments):
    return subprocess.run([os.path.join(BIN, tool), *arguments], capture_output=True, text=True, timeout=120)


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.path("lenet.msrt")
        done = run("msconvert", "zoo:lenet", cls.model)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def good(self, tool, *arguments):
        done = run(tool, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def bad(self, expected, tool, *arguments):
        done = run(tool, *arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertGreaterEqual(done.returncode, 0, "died of a signal")
        self.assertIn(expected, done.stderr + done.stdout)

    def test_bench_report(self):
        report, trace = self.path("a.json"), self.path("trace.json")
        text = self.good("msrun", self.model, "--seconds", "0.1", "--json", report, "--trace", trace)
        for word in ("load", "first run", "latency", "throughput", "GFLOP/s", "arena", "slowest steps"):
            self.assertIn(word, text)
        with open(report) as f:
            j = json.load(f)
        for key in ("load_ms", "first_run_ms", "latency_ms", "peak_rss_bytes", "arena_bytes", "gflops", "peak_gflops", "steps"):
            self.assertIn(key, j)
        latency = j["latency_ms"]
        self.assertLessEqual(latency["min"], latency["median"])
        self.assertLessEqual(latency["median"], latency["p99"])
        self.assertGreaterEqual(j["load_ms"], sum(j["load_parts_ms"].values()) * 0.9)
        whole = sum(s["ms"] for s in j["steps"]) + j["between_steps_ms"]
        self.assertAlmostEqual(sum(s["share"] for s in j["steps"]) + j["between_steps_ms"] / whole, 1, places=6)
        with open(trace) as f:
            events = json.load(f)["traceEvents"]
        self.assertEqual({e["name"] for e in events if e["ph"] == "M"}, {"process_name", "thread_name"})
        runs = [e for e in events if e.get("cat") == "run"]
        self.assertEqual([e["name"] for e in runs], [f"run {i + 1}" for i in range(5)])
        steps = [e for e in events if e["ph"] == "X" and e["cat"] != "run"]
        self.assertEqual(len(steps), 5 * len(j["steps"]))
        self.assertIn("f32 1x1x28x28 plain", [i for e in steps for i in e["args"]["inputs"]])
        self.assertIn("B / A", self.good("msrun", "--compare", report, report))
        self.assertEqual(json.loads(self.good("msrun", "bench", self.model, "--seconds", "0", "--json", "-"))["model"], self.model)

    def test_info(self):
        j = json.loads(self.good("msrun", "info", self.model, "--json", "-"))
        self.assertEqual(j["inputs"], [{"name": "image", "type": "f32", "dims": ["batch", 1, 28, 28]}])
        self.assertEqual(j["outputs"][0]["name"], "probabilities")
        self.assertIn("image", self.good("msrun", "info", self.model))

    def test_outputs_and_check(self):
        image, out = self.path("image.npy"), self.path("out")
        write_npy(image, (2, 1, 28, 28), [((i * 37) % 101) / 101 for i in range(2 * 784)])
        self.good("msrun", "run", self.model, "--input", f"image={image}", "--delegate", "reference", "--output-dir", out)
        header, values = read_npy(os.path.join(out, "probabilities.npy"))
        self.assertEqual(header["shape"], (2, 10))
        self.assertAlmostEqual(sum(values), 2, places=4)
        arguments = ("run", self.model, "--input", f"image={image}", "--verify", out, "--tolerance", "1e-4")
        self.assertIn("of the range", self.good("msrun", *arguments))
        values[3] += 0.5
        write_npy(os.path.join(out, "probabilities.npy"), (2, 10), values)
        self.bad("differs from the reference", "msrun", *arguments)

    def test_stages_print_themselves(self):
        for stage, word in (("graph", "FusedConv"), ("passes", "fuse_epilogue"), ("placement", "estimated"), ("program", "steps"), ("binding", "arena")):
            self.assertIn(word, self.good("msrun", "run", self.model, f"--dump={stage}"))

    def test_explain(self):
        text = self.good("msrun", "run", "--explain", self.model)
        for word in ("a run expected", "partition", "estimated"):
            self.assertIn(word, text)
        self.assertIn("not reference", text)
        plan_file, picture = self.path("plan.json"), self.path("plan.svg")
        self.good("msrun", "run", self.model, "--explain=json:" + plan_file)
        with open(plan_file) as f:
            plan = json.load(f)
        unexplained = [n["node"] for n in plan["nodes"] if not n["others"] and n["delegate"] != "host"]
        self.assertEqual(unexplained, [])
        self.assertAlmostEqual(sum(s["us"] for s in plan["steps"]) * 1e-3, plan["expected_ms"], places=9)
        self.assertEqual(sorted(n for p in plan["partitions"] for n in p["nodes"]), list(range(len(plan["nodes"]))))
        self.good("msrun", "run", self.model, "--explain=svg:" + picture)
        boxes = [g for g in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "box"]
        views = [s for s in plan["steps"] if s["kind"] == "view"]
        self.assertEqual(len(boxes), len(plan["nodes"]) - len(views) + 2)
        hostile = "</title></svg><script>&\"'\x1b\x7f"
        self.good("msrun", "run", self.model, "--plugin", PLUGIN + ":" + hostile, "--explain=svg:" + picture)
        details = [t.text for t in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
        shown = hostile.replace("\x1b", "\ufffd").replace("\x7f", "\ufffd")
        self.assertTrue(any(shown in d for d in details), details)
        self.bad("must be text, json or svg", "msrun", "run", self.model, "--explain=png")

    def test_pins(self):
        def delegates(*arguments):
            self.good("msrun", "run", self.model, "--explain=json:" + self.path("pins.json"), *arguments)
            with open(self.path("pins.json")) as f:
                return {n["node"]: n["delegate"] for n in json.load(f)["nodes"]}
        name = next(iter(delegates()))
        self.assertEqual(delegates("--pin", f"node:{name}=reference")[name], "reference")
        self.assertEqual(set(delegates("--pin", "*=reference").values()) - {"host"}, {"reference"})
        self.bad("pinned by the user", "msrun", "run", self.model, "--pin", f"node:{name}!=reference", "--delegate", "reference")
        self.bad("must look like", "msrun", "run", self.model, "--pin", "conv")
        self.assertIn("matches no node", run("msrun", "run", self.model, "--pin", "op:Conf=reference").stderr)

    def test_plugins(self):
        def names(*arguments):
            return [d["name"] for d in json.loads(self.good("msrun", "info", "--json", "-", *arguments))["delegates"]]
        self.assertIn("reference", names())
        self.assertEqual(names("--plugin", PLUGIN), names() + ["idle"])
        self.assertIn("delegate idle", self.good("msrun", "info", "--plugin", PLUGIN))
        self.assertIn("idle with options 'a=b:c'", self.good("msrun", "run", self.model, "--plugin", PLUGIN + ":a=b:c", "--explain"))
        self.bad("told to fail", "msrun", "info", "--plugin", PLUGIN + ":fail")
        self.bad("there is a delegate 'idle' already", "msrun", "info", "--plugin", PLUGIN, "--plugin", PLUGIN)
        self.bad("nosuch.so", "msrun", "info", "--plugin", self.path("nosuch.so"))
        self.bad("no delegate can run it", "msrun", self.model, "--plugin", PLUGIN, "--delegate", "idle")

    def test_calibrate(self):
        costs, plan_file = self.path("lenet.costs"), self.path("costs.json")
        text = self.good("msrun", "calibrate", self.model, "--output", costs)
        for word in ("GFLOP/s", "candidates", costs):
            self.assertIn(word, text)
        self.good("msrun", "run", self.model, "--costs", costs, "--explain=json:" + plan_file)
        with open(plan_file) as f:
            nodes = [n for n in json.load(f)["nodes"] if n["delegate"] != "host"]
        self.assertTrue(nodes and all(n["measured"] and n["us"] > 0 for n in nodes), nodes)
        self.assertIn("measured", self.good("msrun", "run", self.model, "--costs", costs, "--explain"))
        self.assertIn(" 0 candidates", self.good("msrun", "calibrate", self.model, "--costs", costs, "--output", self.path("2.costs")))
        # A file with the opposite costs reverses the placement.
        with open(costs) as f:
            lines = f.read().splitlines(keepends=True)
        with open(costs, "w") as f:
            f.writelines("1000 " + l.split(" ", 1)[1] if l[0].isdigit() and " reference " not in l.split("|")[0] else l for l in lines)
        self.good("msrun", "run", self.model, "--costs", costs, "--explain=json:" + plan_file)
        with open(plan_file) as f:
            self.assertEqual({n["delegate"] for n in json.load(f)["nodes"]} - {"host"}, {"reference"})
        self.assertIn("measured elsewhere", run("msrun", "run", self.model, "--costs", costs, "--threads", "1").stderr)
        with open(costs, "a") as f:
            f.write("soon key\n")
        self.bad(f"line {len(lines) + 1}: 'soon'", "msrun", "run", self.model, "--costs", costs)
        self.bad("nosuch.costs", "msrun", "run", self.model, "--costs", self.path("nosuch.costs"))

    def test_bad_input_is_named(self):
        self.bad("nosuch.msrt", "msrun", self.path("nosuch.msrt"))
        self.bad("picture", "msrun", self.model, "--shape", "picture=1x1x28x28")
        self.bad("dim 2 must be 28", "msrun", "run", self.model, "--shape", "image=1x1x29x28")
        self.bad("1x3x224x224", "msrun", self.model, "--shape", "image=1xbx3")
        self.bad("no delegate 'tpu'", "msrun", self.model, "--delegate", "tpu")
        self.bad("fuse_epilogue", "msrun", self.model, "--disable", "everything")
        self.bad("the zoo has no 'vgg'", "msconvert", "zoo:vgg", self.path("x.msrt"))
        self.assertFalse(os.path.exists(self.path("x.msrt")))
        text, wrong = self.path("text.npy"), self.path("wrong.npy")
        with open(text, "w") as f:
            f.write("hello, this is no array")
        self.bad("is not a .npy file", "msrun", "run", self.model, "--input", f"image={text}")
        write_npy(wrong, (1, 1, 28, 28), [1] * 784, "<i4", "i")
        self.bad("i32", "msrun", "run", self.model, "--input", f"image={wrong}")
        cut = self.path("cut.msrt")
        with open(self.model, "rb") as f, open(cut, "wb") as g:
            g.write(f.read()[:-100])
        self.bad("cut.msrt", "msrun", cut)
        self.bad("not a report", "msrun", "--compare", text, text)


if __name__ == "__main__":
    BIN, PLUGIN = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
