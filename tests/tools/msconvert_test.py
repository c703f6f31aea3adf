#!/usr/bin/env python3
"""msconvert on small ONNX models: weights stored small, verification, reports of what cannot be converted, files that survive a failure.

usage: msconvert_test.py BIN_DIR   (Python's standard library only)
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

import onnx_file as onnx

BIN = None
DEPTH, WIDTH = 64, 128
ROWS = 2


def run(tool, *arguments, **options):
    return subprocess.run([os.path.join(BIN, tool), *arguments], capture_output=True, text=True, timeout=120, **options)


def some(count, modulus=101):
    return [((i * 37) % modulus) / modulus - 0.5 for i in range(count)]


def product(x, w):
    return [sum(x[r * DEPTH + k] * w[k * WIDTH + c] for k in range(DEPTH)) for r in range(ROWS) for c in range(WIDTH)]


class Msconvert(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        x, y = onnx.value("x", [ROWS, DEPTH]), onnx.value("y", [ROWS, WIDTH])
        cls.x, cls.w = some(ROWS * DEPTH), some(DEPTH * WIDTH, 8191)
        weights = [onnx.tensor("w", [DEPTH, WIDTH], cls.w)]
        cls.product = cls.write("product.onnx", onnx.model(onnx.graph([onnx.node("MatMul", ["x", "w"], ["y"], "mm")], [x], [y], weights)))
        onnx.write_npy(cls.path("x.npy"), (ROWS, DEPTH), cls.x)
        done = run("msconvert", "--check", cls.product)
        if "reads zoo:NAME only" in done.stderr:
            raise unittest.SkipTest("a build without ONNX")
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def write(cls, name, data):
        with open(cls.path(name), "wb") as f:
            f.write(data)
        return cls.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def convert(self, *arguments, code=0, **options):
        done = run("msconvert", *arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def output(self, model, name="y", given="x.npy"):
        done = run("msrun", "run", self.path(model), "--input", f"x={self.path(given)}", "--output-dir", self.path("out"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return onnx.read_npy(os.path.join(self.path("out"), name + ".npy"))[1]

    def problems(self, data, *arguments):
        report = self.path("report.json")
        text = self.convert("--check", self.write("bad.onnx", data), "--json", report, *arguments, code=3)
        with open(report) as f:
            found = json.load(f)["problems"]
        for p in found:
            self.assertIn(p["reason"], text)
            self.assertIn(p["cure"], text)
            self.assertTrue(p["cure"], p)
        return found

    def test_weights_are_stored_small_and_close(self):
        want = product(self.x, self.w)
        spread = max(want) - min(want)
        self.convert(self.product, self.path("f32.msrt"))
        plain = os.path.getsize(self.path("f32.msrt"))
        # A bound on each weight's error, relative to the largest: half a step. The error of a sum of 64 of them stays below 8 such steps.
        for kind, share, bound in (("f16", 2, 0.0006), ("bf16", 2, 0.004), ("int8", 4, 0.5 / 127), ("int4", 6, 0.5 / 7)):
            report = self.path("weights.json")
            text = self.convert(self.product, self.path("small.msrt"), "--weights", kind, "--json", report)
            with open(report) as f:
                weights = json.load(f)["weights"]
            self.assertEqual([w["name"] for w in weights["stored"]], ["w"])
            self.assertEqual(weights["bytes_before"], 4 * DEPTH * WIDTH)
            self.assertLessEqual(weights["bytes_after"], 4 * DEPTH * WIDTH / share + 4 * WIDTH)
            self.assertIn("w f32[64, 128]", text)
            error = weights["stored"][0]["error"]
            self.assertGreater(error, 0)
            self.assertLessEqual(error, bound * 1.0001)
            self.assertLess(os.path.getsize(self.path("small.msrt")), plain / share * 1.5 + 4096)
            got = self.output("small.msrt")
            apart = max(abs(a - b) for a, b in zip(got, want))
            self.assertLess(apart, 8 * bound * spread, kind)
            self.assertGreater(apart, 0)

    def test_native_files_contain_packed_weights(self):
        portable, native, again = (self.path(name) for name in ("portable.msrt", "native.msrt", "again.msrt"))
        self.convert(self.product, portable)
        report = self.path("native.json")
        text = self.convert(self.product, native, "--target", "native", "--json", report)
        with open(report) as f:
            stored = json.load(f)["native"]
        self.assertEqual(stored["packed_weights"], 1)
        self.assertIn(f"native: {stored['packed_weights']} packed weights", text)
        self.assertEqual(self.output("native.msrt"), self.output("portable.msrt"))
        packed = [json.loads(run("msrun", "info", path, "--json", "-").stdout)["packed"] for path in (portable, native)]
        self.assertIsNone(packed[0])
        self.assertEqual((packed[1]["weights"], packed[1]["bytes"]), (1, stored["packed_bytes"]))
        self.assertEqual(packed[1]["isa"], stored["isa"])
        self.assertGreater(os.path.getsize(native), os.path.getsize(portable) + stored["packed_bytes"] - 8192)
        used = [json.loads(run("msrun", path, "--seconds", "0.01", "--json", "-").stdout) for path in (portable, native)]
        self.assertEqual((used[0]["packed_bytes"], used[0]["packed_in_file_bytes"]), (stored["packed_bytes"], 0))
        self.assertEqual((used[1]["packed_bytes"], used[1]["packed_in_file_bytes"]), (0, stored["packed_bytes"]))
        packed = [sum(form["constants"] for form in report["packings"]) for report in used]
        self.assertGreater(packed[0], 0)
        self.assertEqual(packed[1], 0)
        # From a .msrt file the same, and back again.
        self.convert(portable, again, "--target", "native")
        self.assertEqual(self.read("again.msrt"), self.read("native.msrt"))
        self.convert(native, again)
        self.assertEqual(self.read("again.msrt"), self.read("portable.msrt"))

    def test_native_files_use_typical_shapes(self):
        weights = [onnx.tensor("w", [DEPTH, WIDTH], self.w)]
        x, y = onnx.value("x", ["rows", DEPTH]), onnx.value("y", ["rows", WIDTH])
        path = self.write("open.onnx", onnx.model(onnx.graph([onnx.node("MatMul", ["x", "w"], ["y"], "mm")], [x], [y], weights)))
        self.convert(path, self.path("open.msrt"), "--target", "native", "--typical", f"x=32x{DEPTH}")
        self.assertEqual(len(self.output("open.msrt")), ROWS * WIDTH)
        self.assertIn("no input or symbol of that name; its inputs are x", self.convert(path, self.path("no.msrt"), "--target", "native", "--typical", "z=1x2", code=1))
        self.assertIn("must look like", self.convert(path, self.path("no.msrt"), "--target", "native", "--typical", "x", code=2))
        self.convert(path, self.path("open.msrt"), "--target", "native", "--threads", "1")
        self.assertEqual(len(self.output("open.msrt")), ROWS * WIDTH)
        for wrong in (["--typical", "x=1x64"], ["--threads", "2"], ["--target", "native", "--weights", "int8"], ["--target", "native", "--optimize", "none"]):
            self.convert(path, self.path("no.msrt"), *wrong, code=2)
        self.assertFalse(os.path.exists(self.path("no.msrt")))

    def test_blocks_are_finer_than_channels(self):
        errors = []
        w = list(self.w)
        w[0] = 50.0  # spoils the scale of all weights that share it
        weights = [onnx.tensor("w", [DEPTH, WIDTH], w)]
        data = onnx.model(onnx.graph([onnx.node("MatMul", ["x", "w"], ["y"])], [onnx.value("x", [ROWS, DEPTH])],
                                     [onnx.value("y", [ROWS, WIDTH])], weights))
        path = self.write("spoiled.onnx", data)
        want = product(self.x, w)
        for block in ("0", "16"):
            self.convert(path, self.path("block.msrt"), "--weights", "int8", "--weights-block", block)
            got = self.output("block.msrt")
            errors.append(sum(abs(a - b) for a, b in zip(got[::WIDTH], want[::WIDTH])))  # of the spoiled channel
        self.assertLess(errors[1], errors[0] / 2)
        self.assertIn("has no scales", self.convert(path, self.path("x.msrt"), "--weights", "f16", "--weights-block", "8", code=2))

    def test_scales_follow_the_axes(self):
        """With ones on the diagonal an output is the weight itself, as it was stored. Odd extents, blocks that end early."""
        inputs, outputs = 65, 127
        w = some(inputs * outputs, 8191)  # [inputs, outputs]
        turned = [w[i * outputs + o] for o in range(outputs) for i in range(inputs)]
        ones = [float(i == k) for i in range(inputs) for k in range(inputs)]

        def stored(top, block):
            """The weight after a round trip, by columns: groups of neighbours of one output."""
            out = list(w)
            for o in range(outputs):
                for begin in range(0, inputs, block):
                    at = [i * outputs + o for i in range(begin, min(begin + block, inputs))]
                    scale = max(max(w[k] for k in at) / top, max(-w[k] for k in at) / (top + 1))
                    for k in at:
                        out[k] = round(w[k] / scale) * scale
            return out

        square, tall = [inputs, inputs], [inputs, inputs, 1, 1]
        models = {
            "MatMul": (onnx.node("MatMul", ["x", "w"], ["y"]), square, [inputs, outputs], w),
            "Gemm": (onnx.node("Gemm", ["x", "w"], ["y"], transB=1), square, [outputs, inputs], turned),
            "Conv": (onnx.node("Conv", ["x", "w"], ["y"]), tall, [outputs, inputs, 1, 1], turned),
            "ConvTranspose": (onnx.node("ConvTranspose", ["x", "w"], ["y"]), tall, [inputs, outputs, 1, 1], w),
        }
        for op, (node, dims, weight_dims, values) in models.items():
            y = onnx.value("y", [inputs, outputs] + dims[2:])
            data = onnx.model(onnx.graph([node], [onnx.value("x", dims)], [y], [onnx.tensor("w", weight_dims, values)]))
            path = self.write("axes.onnx", data)
            onnx.write_npy(self.path("ones.npy"), dims, ones)
            for kind, top, block in (("int8", 127, inputs), ("int4", 7, 32)):
                self.convert(path, self.path("axes.msrt"), "--weights", kind)
                got = self.output("axes.msrt", given="ones.npy")
                apart = max(abs(a - b) for a, b in zip(got, stored(top, block)))
                self.assertLess(apart, 1e-6, (op, kind))

    def test_weights_out_of_range_are_left_alone(self):
        w = list(self.w)
        w[5] = 1e6
        data = onnx.model(onnx.graph([onnx.node("MatMul", ["x", "w"], ["y"])], [onnx.value("x", [ROWS, DEPTH])],
                                     [onnx.value("y", [ROWS, WIDTH])], [onnx.tensor("w", [DEPTH, WIDTH], w)]))
        text = self.convert(self.write("large.onnx", data), self.path("large.msrt"), "--weights", "f16")
        self.assertIn("beyond 65504", text)

    def test_quantised_models_are_left_alone(self):
        q = [i % 255 - 127 for i in range(DEPTH * WIDTH)]
        weights = [onnx.tensor("q", [DEPTH, WIDTH], q, onnx.INT8), onnx.tensor("s", [], [0.01])]
        nodes = [onnx.node("DequantizeLinear", ["q", "s"], ["w"]), onnx.node("MatMul", ["x", "w"], ["y"])]
        data = onnx.model(onnx.graph(nodes, [onnx.value("x", [ROWS, DEPTH])], [onnx.value("y", [ROWS, WIDTH])], weights))
        path = self.write("qdq.onnx", data)
        self.convert(path, self.path("qdq.msrt"))
        self.convert(path, self.path("qdq4.msrt"), "--weights", "int4")
        self.assertEqual(self.read("qdq.msrt"), self.read("qdq4.msrt"))
        self.assertLess(os.path.getsize(self.path("qdq.msrt")), DEPTH * WIDTH + 16384)
        want = product(self.x, [0.01 * v for v in q])
        for a, b in zip(self.output("qdq.msrt"), want):
            self.assertAlmostEqual(a, b, places=4)

    def test_verify_compares_with_files(self):
        folder = self.path("data")
        os.makedirs(folder, exist_ok=True)
        want = product(self.x, self.w)
        onnx.write_npy(os.path.join(folder, "input_0.npy"), (ROWS, DEPTH), self.x)
        with open(os.path.join(folder, "output_0.pb"), "wb") as f:
            f.write(onnx.tensor("y", [ROWS, WIDTH], want))
        text = self.convert(self.product, self.path("v.msrt"), f"--verify={folder}")
        self.assertIn("of the range", text)
        # int8 shifts the outputs: this is reported, and an error if a tolerance is given.
        self.assertIn("as they are stored", self.convert(self.product, self.path("v.msrt"), f"--verify={folder}", "--weights", "int8"))
        self.convert(self.product, self.path("v.msrt"), f"--verify={folder}", "--weights", "int8", "--tolerance", "1e-6", code=4)
        want[3] += 1
        with open(os.path.join(folder, "output_0.pb"), "wb") as f:
            f.write(onnx.tensor("y", [ROWS, WIDTH], want))
        self.assertIn("differs from the reference", self.convert(self.product, self.path("v.msrt"), f"--verify={folder}", code=4))
        self.assertIn("no such folder", self.convert(self.product, self.path("v.msrt"), "--verify=" + self.path("nothing"), code=2))
        self.assertIn("no original", self.convert("zoo:lenet", self.path("v.msrt"), "--verify", code=2))

    def test_verify_names_the_first_difference(self):
        """Uses a fake ONNX Runtime, which is wrong from the second of three tensors on."""
        reference = self.write("reference", f"""#!{sys.executable}
import json, os, sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import onnx_file
folder = sys.argv[3]
with open(os.path.join(folder, "request.json")) as f:
    request = json.load(f)
x = onnx_file.read_npy(os.path.join(folder, "input_0.npy"))[1]
error = float(os.environ["ERROR"])
if request["patch"] and os.environ.get("ONLY_OUTPUTS"):
    error = 0
a = [max(v, 0) for v in x]
b = [v + v + error * (i == 7) for i, v in enumerate(a)]
values = {{"a": a, "b": b, "c": [-v for v in b]}}
for i, name in enumerate(request["outputs"]):
    onnx_file.write_npy(os.path.join(folder, "output_%d.npy" % i), (2, 8), values[name])
""".encode())
        os.chmod(reference, 0o755)
        nodes = [onnx.node("Relu", ["x"], ["a"], "first"), onnx.node("Add", ["a", "a"], ["b"], "second"), onnx.node("Neg", ["b"], ["c"], "third")]
        path = self.write("chain.onnx", onnx.model(onnx.graph(nodes, [onnx.value("x", ["batch", 8])], [onnx.value("c", ["batch", 8])])))
        arguments = (path, self.path("chain.msrt"), "--verify", "--shape", "x=2x8")
        environment = dict(os.environ, MSCONVERT_PYTHON=reference, ERROR="0")
        self.convert(*arguments, env=environment)
        text = self.convert(*arguments, code=4, env=dict(environment, ERROR="0.25"))
        self.assertIn("the first tensor that differs is 'b', made by node 'second' (Add)", text)
        text = self.convert(*arguments, code=4, env=dict(environment, ERROR="0.25", ONLY_OUTPUTS="1"))
        self.assertIn("every tensor agrees when it is looked at", text)
        for missing in (self.path("nosuch"), "/bin/false"):
            said = self.convert(*arguments, code=1, env=dict(environment, MSCONVERT_PYTHON=missing))
            self.assertIn("ONNX Runtime", said)
        self.assertIn("$MSCONVERT_PYTHON", self.convert(*arguments, code=1, env=dict(environment, MSCONVERT_PYTHON=self.path("nosuch"))))

    def test_verify_names_the_pass(self):
        """A fused Relu does not keep the NaN of its product, the op alone does (see the limits in the README)."""
        if "onednn" not in run("msrun", "info", "--json", "-").stdout:
            self.skipTest("the plain kernels keep it")
        reference = self.write("nan", f"""#!{sys.executable}
import json, os, sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import onnx_file
folder = sys.argv[3]
with open(os.path.join(folder, "request.json")) as f:
    request = json.load(f)
x = onnx_file.read_npy(os.path.join(folder, "input_0.npy"))[1]
values = {{"a": [v * v for v in x], "m": [float("nan")] * len(x), "y": [float("nan")] * len(x)}}
for i, name in enumerate(request["outputs"]):
    onnx_file.write_npy(os.path.join(folder, "output_%d.npy" % i), (64, 256), values[name])
""".encode())
        os.chmod(reference, 0o755)
        weights = [onnx.tensor("w", [256, 256], [float("inf") if i // 256 % 2 == 0 else -float("inf") for i in range(256 * 256)])]
        nodes = [onnx.node("Mul", ["x", "x"], ["a"]), onnx.node("MatMul", ["a", "w"], ["m"]), onnx.node("Relu", ["m"], ["y"])]
        path = self.write("nan.onnx", onnx.model(onnx.graph(nodes, [onnx.value("x", [64, 256])], [onnx.value("y", [64, 256])], weights)))
        environment = dict(os.environ, MSCONVERT_PYTHON=reference)
        self.assertIn("pass fuse_epilogue is the first", self.convert(path, self.path("nan.msrt"), "--verify", code=4, env=environment))

    def test_made_tokens_are_in_the_tables(self):
        nodes = [onnx.node("Unsqueeze", ["ids", "axes"], ["more"]), onnx.node("Gather", ["table", "more"], ["y"])]
        weights = [onnx.tensor("table", [2, 4], some(8)), onnx.tensor("axes", [1], [0], onnx.INT64)]
        data = onnx.model(onnx.graph(nodes, [onnx.value("ids", [64], onnx.INT64)], [onnx.value("y", [1, 64, 4])], weights))
        self.convert(self.write("ids.onnx", data), self.path("ids.msrt"))
        done = run("msrun", "run", self.path("ids.msrt"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_problems_have_cures(self):
        x, y = onnx.value("x", [2, 8]), onnx.value("y", [2, 8])

        def one(op, domain="", opset=17, domains=(), kind=onnx.FLOAT, inputs=("x",), **attributes):
            main = onnx.graph([onnx.node(op, inputs, ["y"], "n", domain, **attributes)], [onnx.value("x", [2, 8], kind)], [y])
            return self.problems(onnx.model(main, opset, domains))

        unknown = one("Frobnicate", "my.domain", domains=["my.domain"])
        self.assertEqual((unknown[0]["op"], unknown[0]["opset"], unknown[0]["count"], unknown[0]["nodes"]), ("my.domain.Frobnicate", 1, 1, ["n"]))
        self.assertIn("--keep-unknown", unknown[0]["cure"])
        self.assertIn("function", unknown[0]["cure"])
        self.assertIn("imports no opset of 'my.domain'", one("Frobnicate", "my.domain")[0]["cure"])
        self.assertIn("opset 23 or older", one("Frobnicate", opset=25)[0]["cure"])
        self.assertIn("before its optimisation", one("NhwcMaxPool", "com.microsoft", domains=["com.microsoft"])[0]["cure"])
        self.assertIn("28 or older", one("Relu", opset=99)[0]["cure"])
        self.assertIn("words to numbers", one("Identity", kind=onnx.STRING)[0]["cure"])
        attribute = one("Relu", slope=1)[0]
        self.assertEqual(attribute["attribute"], "slope")
        sparse = onnx.graph([onnx.node("Relu", ["x"], ["y"])], [x], [y]) + onnx.field(15, b"")
        self.assertIn("dense", self.problems(onnx.model(sparse))[0]["cure"])
        # A cure that is tried: the shape that it asks for.
        softmax = onnx.model(onnx.graph([onnx.node("Softmax", ["x"], ["y"])], [onnx.value("x", None)], [onnx.value("y", None)]), 11)
        self.assertIn("--shape", self.problems(softmax)[0]["cure"])
        self.convert("--check", self.path("bad.onnx"), "--shape", "x=2x3x4")
        # Inside a branch, and twice.
        branch = onnx.graph([onnx.node("Frobnicate", ["x"], ["b"], "inner", "my.domain")], [], [onnx.value("b", [2, 8])])
        main = onnx.graph([onnx.node("If", ["c"], ["y"], "if", then_branch=branch, else_branch=branch)],
                          [onnx.value("c", [], 9), x], [y])
        inside = self.problems(onnx.model(main, domains=["my.domain"]))
        self.assertEqual((inside[0]["op"], inside[0]["count"], inside[0]["nodes"]), ("my.domain.Frobnicate", 2, ["inner", "inner"]))

    def test_unknown_ops_are_kept_for_kernels(self):
        x, y = onnx.value("x", [2, 8]), onnx.value("y", [2, 8])
        nodes = [onnx.node("Frobnicate", ["x"], ["t"], "f", "my.domain", depth=3), onnx.node("Relu", ["t"], ["y"])]
        declared = onnx.model(onnx.graph(nodes, [x], [y], known=[onnx.value("t", [2, 8])]), domains=["my.domain"])
        self.convert(self.write("custom.onnx", declared), self.path("custom.msrt"), "--keep-unknown")
        done = run("msrun", "run", self.path("custom.msrt"))
        self.assertIn("my.domain.Frobnicate", done.stderr)
        undeclared = self.problems(onnx.model(onnx.graph(nodes, [x], [y]), domains=["my.domain"]), "--keep-unknown")
        self.assertIn("does not declare", undeclared[0]["reason"])

    def test_training_dropout_draws(self):
        count = ROWS * DEPTH
        x, y, mask = onnx.value("x", [ROWS, DEPTH]), onnx.value("y", [ROWS, DEPTH]), onnx.value("mask", [ROWS, DEPTH], onnx.BOOL)

        def one(mode, inputs=(), seed=None):
            node = onnx.node("Dropout", ["x", "ratio", "mode"], ["y", "mask"], "drop", **({} if seed is None else {"seed": seed}))
            weights = [onnx.tensor("ratio", [], [0.25])] + ([] if mode is None else [onnx.tensor("mode", [], [mode], onnx.BOOL)])
            return onnx.model(onnx.graph([node], [x, *inputs], [y, mask], weights))

        def drawn(**options):
            self.convert(self.write("drop.onnx", one(True, **options)), self.path("drop.msrt"))
            values = self.output("drop.msrt")
            kept = onnx.read_npy(os.path.join(self.path("out"), "mask.npy"))[1]
            for given, got, keep in zip(self.x, values, kept):
                self.assertAlmostEqual(got, given / 0.75 if keep else 0.0, places=5)
            # Six standard deviations of a fair draw.
            self.assertLess(abs(sum(kept) / count - 0.75), 6 * (0.25 * 0.75 / count)**0.5)
            return bytes(kept)

        self.assertEqual(drawn(), drawn())  # of two new sessions
        self.assertNotEqual(drawn(), drawn(seed=7))
        self.convert(self.write("off.onnx", one(False)), self.path("off.msrt"))
        for given, got in zip(self.x, self.output("off.msrt")):
            self.assertAlmostEqual(given, got, places=6)
        found = self.problems(one(None, inputs=[onnx.value("mode", [], onnx.BOOL)]))
        self.assertIn("training_mode is an input of the model", found[0]["reason"])

    def test_progress_is_shown(self):
        text = self.convert(self.product, self.path("p.msrt"), "--progress")
        for stage in ("reading", "importing", "optimising", "writing"):
            self.assertRegex(text, stage + r" \d+ %")
        self.assertIn("writing 100 %", text)
        self.assertNotIn("writing", self.convert(self.product, self.path("p.msrt")))

    def test_a_failure_leaves_the_old_file(self):
        def full_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        folder = self.path("full")
        os.makedirs(folder)
        old = os.path.join(folder, "old.msrt")
        self.convert("zoo:lenet", old)
        before = self.read("full/old.msrt")
        for name in ("full/old.msrt", "full/new.msrt"):
            text = self.convert(self.product, self.path(name), code=1, preexec_fn=full_disk)
            self.assertIn("File too large", text)
        self.assertEqual(self.read("full/old.msrt"), before)
        self.assertEqual(os.listdir(folder), ["old.msrt"])
        os.makedirs(os.path.join(folder, "taken.msrt"))
        self.convert(self.product, os.path.join(folder, "taken.msrt"), code=2)
        self.convert(self.path("nosuch.onnx"), old, code=1)
        self.convert("--weights", "int8", self.write("bad2.onnx", b"\x08garbage"), old, code=1)
        self.assertEqual(self.read("full/old.msrt"), before)
        self.assertEqual(sorted(os.listdir(folder)), ["old.msrt", "taken.msrt"])

    def training_net(self, name, mode):
        """Conv, BatchNormalization, Relu, Dropout; with mode = 1 as exported for training."""
        dims = [4]
        weights = [onnx.tensor("w", [4, 3, 3, 3], some(108)), *(onnx.tensor(n, dims, v) for n, v in (
            ("scale", [1.0] * 4), ("shift", [0.0] * 4), ("mean", some(4)), ("variance", [1.0] * 4))),
            onnx.tensor("ratio", [], [0.25]), onnx.tensor("training", [], [bool(mode)], onnx.BOOL)]
        norm = ["b", "running_mean", "running_variance"] if mode else ["b"]
        nodes = [onnx.node("Conv", ["x", "w"], ["c"], "conv", kernel_shape=[3, 3]),
                 onnx.node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], norm, "norm", momentum=0.75, training_mode=mode),
                 onnx.node("Relu", ["b"], ["r"], "relu"), onnx.node("Dropout", ["r", "ratio", "training"], ["y"], "dropout")]
        return self.write(name, onnx.model(onnx.graph(nodes, [onnx.value("x", ["n", 3, 8, 8])], [onnx.value("y", ["n", 4, 6, 6])], weights)))

    def ops_of(self, path):
        done = run("msrun", "info", path, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["op"] if isinstance(row, dict) else row for row in json.loads(done.stdout)["ops"]}

    def test_train_keeps_what_training_needs(self):
        for mode in (0, 1):
            with self.subTest(training_mode=mode):
                source, target = self.training_net("net.onnx", mode), self.path("net.msrt")
                done = run("msconvert", source, target, "--train")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLessEqual({"Conv", "BatchNormalization", "Relu", "Dropout"}, self.ops_of(target))
        self.assertEqual(run("msconvert", self.training_net("net.onnx", 0), target).returncode, 0)
        self.assertFalse({"BatchNormalization", "Dropout"} & self.ops_of(target))
        for option in (("--weights", "int8"), ("--target", "native"), ("--disable", "fold_pad"), ("--state", "x=y")):
            self.assertEqual(run("msconvert", source, target, "--train", *option).returncode, 2)
        self.assertEqual(run("msconvert", target, self.path("again.msrt"), "--train").returncode, 2)


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    unittest.main()
