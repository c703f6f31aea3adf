#!/usr/bin/env python3
"""msconvert --verify: comparisons that must fail, given inputs and sizes, random inputs, tolerances by type.

usage: verify_test.py BIN_DIR   (Python's standard library only)

A script stands in for ONNX Runtime where the original has to be run; tests against the real one run where $MSCONVERT_PYTHON has it.
"""
import os
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402

NAN = float("nan")
HERE = os.path.dirname(os.path.abspath(__file__))

# In place of ONNX Runtime: keeps the inputs that it is given in $KEPT, and returns what the body of the test makes of them.
REFERENCE = """#!{python}
import json, os, shutil, sys
sys.path.insert(0, {here!r})
import onnx_file
folder = sys.argv[3]
with open(os.path.join(folder, "request.json")) as f:
    request = json.load(f)
inputs = {{}}
for i, name in enumerate(request["inputs"]):
    file = os.path.join(folder, "input_%d.npy" % i)
    shutil.copy(file, os.path.join(os.environ["KEPT"], name + ".npy"))
    header, values = onnx_file.read_npy(file)
    inputs[name] = (header["shape"], values)
def result(index, shape, values):
    onnx_file.write_npy(os.path.join(folder, "output_%d.npy" % index), shape, values)
{body}
"""


class Verify(ToolCase):
    def convert(self, model, *arguments, code=0, **options):
        done = self.run_tool("msconvert", self.write("m.onnx", model), self.path("m.msrt"), *arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def against_folder(self, model, inputs, outputs, *arguments, code=0):
        """Each tensor is (shape, values) of floats, or (shape, values, descr, code)."""
        os.makedirs(self.path("data"), exist_ok=True)
        for kind, tensors in (("input", inputs), ("output", outputs)):
            for i, tensor in enumerate(tensors):
                onnx.write_npy(self.path(f"data/{kind}_{i}.npy"), *tensor)
        return self.convert(model, "--verify=" + self.path("data"), *arguments, code=code)

    def against_script(self, model, body, *arguments, code=0):
        script = self.write("reference", REFERENCE.format(python=sys.executable, here=HERE, body=body).encode())
        os.chmod(script, 0o755)
        os.makedirs(self.path("kept"), exist_ok=True)
        return self.convert(model, "--verify", *arguments, code=code,
                            env=dict(os.environ, MSCONVERT_PYTHON=script, KEPT=self.path("kept")))

    def kept(self, name, letter):
        header, values = onnx.read_npy(self.path(f"kept/{name}.npy"))
        if isinstance(values, bytes):
            values = [v[0] for v in struct.iter_unpack("<" + letter, values)]
        return header["shape"], values

    # Comparisons that must fail.

    def test_nan_in_both_does_not_pass(self):
        model = onnx.model(onnx.graph([onnx.node("Sqrt", ["x"], ["y"])], [onnx.value("x", [4])], [onnx.value("y", [4])]))
        text = self.against_folder(model, [((4,), [-1, -2, -3, -4])], [((4,), [NAN] * 4)], code=4)
        self.assertIn("nothing was compared: output 'y' f32[4] is NaN in both", text)
        self.assertIn(self.path("data"), text)
        # If only some elements are NaN, the rest is compared.
        text = self.against_folder(model, [((4,), [-1, 4, 9, 16])], [((4,), [NAN, 2, 3, 4])])
        self.assertIn("1 of 4 elements that are NaN in both", text)
        self.against_folder(model, [((4,), [-1, 4, 9, 16])], [((4,), [NAN, 2, 3, 4.1])], code=4)

    def test_empty_outputs_do_not_pass(self):
        nodes = [onnx.node("Greater", ["x", "limit"], ["found"]), onnx.node("NonZero", ["found"], ["where"]),
                 onnx.node("Cast", ["where"], ["y"], to=1)]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("y", [1, "n"])], [onnx.tensor("limit", [], [100.0])]))
        text = self.against_folder(model, [((4,), [1, 2, 3, 4])], [((1, 0), [])], code=4)
        self.assertIn("f32[1, 0] is empty", text)
        self.against_folder(model, [((4,), [1, 200, 3, 400])], [((1, 2), [1, 3])])

    def test_outputs_that_no_input_changes_do_not_pass(self):
        # Relu of something that is negative for every input.
        nodes = [onnx.node("Abs", ["x"], ["a"]), onnx.node("Neg", ["a"], ["b"]), onnx.node("Relu", ["b"], ["y"])]
        dead = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("y", [4])]))
        text = self.against_folder(dead, [((4,), [1, 2, 3, 4])], [((4,), [0] * 4)], code=4)
        self.assertIn("output 'y' f32[4] is one number, whatever the inputs are", text)
        # These pass: an output that is constant for these inputs only, a constant of the model, and one that depends on dims only.
        relu = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", [4])], [onnx.value("y", [4])]))
        self.against_folder(relu, [((4,), [-1, -2, -3, -4])], [((4,), [0] * 4)])
        nodes = [onnx.node("Relu", ["x"], ["y"]), onnx.node("Identity", ["c"], ["z"]), onnx.node("Shape", ["x"], ["s"]),
                 onnx.node("ConstantOfShape", ["s"], ["zeros"])]
        more = [onnx.value("y", [4]), onnx.value("z", [2]), onnx.value("zeros", [4])]
        constants = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], more, [onnx.tensor("c", [2], [7.0, 7.0])]))
        self.against_folder(constants, [((4,), [1, 2, 3, 4])], [((4,), [1, 2, 3, 4]), ((2,), [7, 7]), ((4,), [0] * 4)])
        # A single number cannot vary within itself.
        one = onnx.model(onnx.graph([onnx.node("ReduceSum", ["b"], ["y"], keepdims=0)], [onnx.value("b", [4])], [onnx.value("y", [])]))
        self.against_folder(one, [((4,), [1, 2, 3, 4])], [((), [10])])
        self.against_folder(one, [((4,), [1, 2, 3, 4])], [((), [10.01])], code=4)

    def test_another_shape_is_a_difference(self):
        model = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", [4])], [onnx.value("y", [4])]))
        text = self.against_folder(model, [((4,), [1, 2, 3, 4])], [((2, 2), [1, 2, 3, 4])], code=4)
        self.assertIn("y f32[4]: has shape [4], the reference has [2, 2]", text)

    def test_small_numbers_are_compared_by_their_magnitude(self):
        one = onnx.model(onnx.graph([onnx.node("ReduceSum", ["b"], ["y"], keepdims=0)], [onnx.value("b", [4])], [onnx.value("y", [])]))
        given = [((4,), [0.01, 0, 0, 0])]
        self.against_folder(one, given, [((), [0.01])])
        self.against_folder(one, given, [((), [0.01005])], code=4)  # 5e-3 of it, though only 5e-5 of 1

    def test_msrt_files_are_verified_too(self):
        model = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", [4])], [onnx.value("y", [4])]))
        self.against_folder(model, [((4,), [1, 2, 3, 4])], [((4,), [1, 2, 3, 4])])
        done = self.run_tool("msconvert", self.path("m.msrt"), self.path("again.msrt"), "--verify=" + self.path("data"))
        self.assertEqual(done.returncode, 0, done.stderr)
        onnx.write_npy(self.path("data/output_0.npy"), (4,), [1, 2, 3, 5])
        done = self.run_tool("msconvert", self.path("m.msrt"), self.path("again.msrt"), "--verify=" + self.path("data"))
        self.assertEqual(done.returncode, 4, done.stderr)
        done = self.run_tool("msconvert", self.path("m.msrt"), self.path("again.msrt"), "--verify")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--verify=FOLDER", done.stderr)

    # Inputs.

    def test_sizes_and_inputs_are_given(self):
        a, b = onnx.value("a", ["batch", "length"]), onnx.value("b", ["batch", "length"])
        model = onnx.model(onnx.graph([onnx.node("Add", ["a", "b"], ["y"])], [a, b], [onnx.value("y", ["batch", "length"])]))
        body = "result(0, inputs['a'][0], [p + q for p, q in zip(inputs['a'][1], inputs['b'][1])])"
        for sizes in (["a=2x5"], ["batch=2", "length=5"]):
            text = self.against_script(model, body, *[w for s in sizes for w in ("--verify-shape", s)])
            self.assertEqual(self.kept("b", "f")[0], (2, 5))
            self.assertIn("a 2x5 made up, b 2x5 made up", text)
        values = [float(i) for i in range(12)]
        onnx.write_npy(self.path("given.npy"), (4, 3), values)
        text = self.against_script(model, body, "--input", "a=" + self.path("given.npy"))
        self.assertEqual(self.kept("a", "f"), ((4, 3), values))
        self.assertEqual(self.kept("b", "f")[0], (4, 3))
        self.assertIn("a 4x3 from a file, b 4x3 made up", text)
        text = self.against_script(model, body, "--verify-shape", "c=3", code=1)
        self.assertIn("no input or symbol", text)
        text = self.against_script(model, body, "--input", "c=" + self.path("given.npy"), code=1)
        self.assertIn("it has a, b", text)
        text = self.against_script(model, body, "--verify-shape", "a=2x5", "--verify-shape", "b=2x6", code=1)
        self.assertIn("symbol 'length' is 5 by a=2x5 and 6 by b=2x6", text)

    def test_sizes_that_do_not_fit_suggest_the_option(self):
        # 128 elements, the guessed size, are not a multiple of 7.
        nodes = [onnx.node("Reshape", ["x", "to"], ["y"])]
        weights = [onnx.tensor("to", [2], [-1, 7], onnx.INT64)]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", ["n", "m"])], [onnx.value("y", ["k", 7])], weights))
        fails = "print('Got invalid dimensions', file=sys.stderr)\nsys.exit(1)"
        text = self.against_script(model, fails, code=1)
        self.assertIn("Got invalid dimensions", text)
        self.assertIn("--verify-shape x=1x128", text)
        self.assertIn("--input x=FILE.npy", text)
        self.against_script(model, "result(0, (2, 7), inputs['x'][1])", "--verify-shape", "x=1x14")
        text = self.against_script(model, "result(0, (1, 7), [0.0] * 7)", code=1)
        self.assertIn("the converted model", text)
        self.assertIn("--verify-shape x=1x128", text)

    def test_made_integers_fit_their_tables(self):
        words, places, kinds = [onnx.tensor(n, [rows, 2], [float(i) for i in range(2 * rows)])
                                for n, rows in (("words", 700), ("places", 130), ("kinds", 2))]
        nodes = [onnx.node("Gather", ["words", "ids"], ["w"]), onnx.node("Add", ["position_ids", "two"], ["shifted"]),
                 onnx.node("Gather", ["places", "shifted"], ["p"]), onnx.node("Gather", ["kinds", "token_type_ids"], ["k"]),
                 onnx.node("Add", ["w", "p"], ["wp"]), onnx.node("Add", ["wp", "k"], ["sum"]),
                 onnx.node("Cast", ["lengths"], ["l"], to=1), onnx.node("Add", ["sum", "l"], ["y"])]
        ids = [onnx.value(n, ["batch", "length"], onnx.INT64) for n in ("ids", "position_ids", "token_type_ids")]
        model = onnx.model(onnx.graph(nodes, [*ids, onnx.value("lengths", ["one"], onnx.INT64)], [onnx.value("y", ["batch", "length", 2])],
                                      [words, places, kinds, onnx.tensor("two", [], [2], onnx.INT64)]))
        # The reference is wrong; the test only needs the model to run.
        self.against_script(model, "result(0, (1, 128, 2), [0.0] * 255 + [2000.0])", "--verify-shape", "one=1", "--tolerance", "1")
        tokens = self.kept("ids", "q")[1]
        self.assertLess(max(tokens), 700)
        self.assertGreater(max(tokens), 100)
        self.assertEqual(self.kept("position_ids", "q")[1], list(range(128)))
        self.assertEqual(self.kept("token_type_ids", "q")[1], [0] * 64 + [1] * 64)
        self.assertEqual(self.kept("lengths", "q")[1], [128])

    def test_masks_of_both_conventions_work(self):
        """A softmax over the positions that a mask keeps: NaN if it keeps none."""
        def model(hides, causal):
            bias = [[0.0 if not causal or k <= q else -float("inf") for k in range(8)] for q in range(8)]
            nodes = [onnx.node("Cast", ["mask"], ["given"], to=9)] + ([onnx.node("Not", ["given"], ["hidden"])] if not hides else
                                                                     [onnx.node("Identity", ["given"], ["hidden"])])
            nodes += [onnx.node("Where", ["hidden", "minus", "zero"], ["penalty"]), onnx.node("Add", ["x", "penalty"], ["a"]),
                      onnx.node("Add", ["a", "bias"], ["b"]), onnx.node("Softmax", ["b"], ["y"], axis=-1)]
            weights = [onnx.tensor("minus", [], [-float("inf")]), onnx.tensor("zero", [], [0.0]),
                       onnx.tensor("bias", [8, 8], [v for row in bias for v in row])]
            return onnx.model(onnx.graph(nodes, [onnx.value("x", [8, 8]), onnx.value("mask", [8], onnx.INT64)], [onnx.value("y", [8, 8])],
                                         weights))

        for hides in (False, True):
            for causal in (False, True):
                # The reference's numbers are wrong; the test only needs the model's to be free of NaN from hidden rows.
                text = self.against_script(model(hides, causal), "result(0, (8, 8), [i / 64 for i in range(64)])", "--tolerance", "2")
                self.assertNotIn("inf", text)
                mask = self.kept("mask", "q")[1]
                keeps = [bool(m) != hides for m in mask]
                self.assertTrue(any(keeps), (hides, causal, mask))
                self.assertTrue(not all(keeps), (hides, causal, mask))
                self.assertTrue(keeps[0] or not causal, (hides, causal, mask))

    # Tolerances.

    def test_tolerance_follows_the_type(self):
        x = [i / 16 for i in range(16)]
        for kind, bound in ((onnx.FLOAT, 1e-4), (10, 4e-3), (16, 3e-2), (11, 1e-9)):
            nodes = [onnx.node("Cast", ["x"], ["a"], to=kind), onnx.node("Mul", ["a", "a"], ["b"]), onnx.node("Cast", ["b"], ["y"], to=1)]
            model = onnx.model(onnx.graph(nodes, [onnx.value("x", [16])], [onnx.value("y", [16])]))
            bound = max(bound, 1e-4)  # the output is f32
            spread = x[-1] ** 2
            for share, code in ((0.5, 0), (2, 4)):
                wanted = [v * v for v in x]
                wanted[3] += share * bound * spread
                text = self.against_folder(model, [((16,), x)], [((16,), wanted)], code=code)
            self.assertIn("more than " + {1e-4: "1e-04", 4e-3: "0.004", 3e-2: "0.03"}[bound], text)
        nodes = [onnx.node("Mul", ["x", "x"], ["y"])]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [16], 11)], [onnx.value("y", [16], 11)]))
        for error, code in ((1e-10, 0), (1e-8, 4)):
            wanted = [v * v for v in x]
            wanted[3] += error
            self.against_folder(model, [((16,), x, "<f8", "d")], [((16,), wanted, "<f8", "d")], code=code)
        # Numbers within a small range: one step of f16 at 1 is 2^-10, which is more than the range allows.
        nodes = [onnx.node("Cast", ["x"], ["a"], to=10), onnx.node("Cast", ["a"], ["y"], to=1)]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("y", [4])]))
        close = [1 + i / 1024 for i in range(4)]
        for steps, code in ((1, 0), (3, 4)):
            wanted = [close[0], close[1] + steps / 1024, *close[2:]]
            self.against_folder(model, [((4,), close)], [((4,), wanted)], code=code)
        # Weights that are stored in few bits say nothing about the arithmetic.
        nodes = [onnx.node("Cast", ["w"], ["f"], to=1), onnx.node("Mul", ["x", "f"], ["y"])]
        weights = [onnx.fields(1, [16]) + onnx.field(2, 10) + onnx.field(8, "w") + onnx.field(9, struct.pack("<16e", *x))]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [16])], [onnx.value("y", [16])], weights))
        wanted = [v * v for v in x]
        wanted[3] += 1e-3
        self.against_folder(model, [((16,), x)], [((16,), wanted)], code=4)

    def test_quantised_outputs_may_be_one_step_off(self):
        nodes = [onnx.node("QuantizeLinear", ["x", "scale"], ["q"]), onnx.node("DequantizeLinear", ["q", "scale"], ["y"])]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("y", [4])], [onnx.tensor("scale", [], [0.5])]))
        x = [0, 1, 2, 3]
        self.against_folder(model, [((4,), x)], [((4,), [0, 1.5, 2, 3])])
        self.against_folder(model, [((4,), x)], [((4,), [0, 2, 2, 3])], code=4)
        nodes = [onnx.node("QuantizeLinear", ["x", "scale"], ["q"])]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("q", [4], 2)], [onnx.tensor("scale", [], [0.5])]))
        for wanted, code in (([0, 3, 4, 6], 0), ([0, 4, 4, 6], 4)):
            self.against_folder(model, [((4,), x)], [((4,), wanted, "|u1", "B")], code=code)
        # Other integers are equal or wrong.
        nodes = [onnx.node("Cast", ["x"], ["y"], to=7)]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("y", [4], 7)]))
        for last, code in ((100003, 0), (100004, 4)):
            self.against_folder(model, [((4,), [0, 1, 2, 100003])], [((4,), [0, 1, 2, last], "<i8", "q")], code=code)

    # The runtimes themselves.

    def test_refusal_by_the_original_runtime_is_reported(self):
        model = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", ["n", 4])], [onnx.value("y", ["n", 4])]))
        text = self.against_script(model, "print('no kernel for Relu', file=sys.stderr)\nsys.exit(4)", code=1)
        self.assertIn("cannot load the model", text)
        self.assertIn("no kernel for Relu", text)
        self.assertIn("--verify=FOLDER", text)
        self.assertNotIn("--verify-shape", text)

    def test_agreement_with_either_result_of_the_original_passes(self):
        """ONNX Runtime's results with and without its optimisations may differ by more than the tolerance."""
        model = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", [4])], [onnx.value("y", [4])]))
        body = "result(0, (4,), [max(v, 0) + (0 if request['optimised'] else 0.01) * (i == 1) for i, v in enumerate(inputs['x'][1])])"
        self.assertIn("with and without its optimisations", self.against_script(model, body))
        self.against_script(model, body.replace("(0 if", "(0.02 if"), code=4)

    def test_missing_runtimes_are_named(self):
        model = onnx.model(onnx.graph([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", [4])], [onnx.value("y", [4])]))
        nothing = dict(os.environ, MSCONVERT_PYTHON=self.path("nosuch"))
        text = self.convert(model, "--verify", code=1, env=nothing)
        self.assertIn("ONNX Runtime is missing", text)
        self.assertIn("--verify=FOLDER", text)
        done = self.run_tool("msconvert", self.path("m.onnx"), self.path("m.mindir"))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_tool("msconvert", self.path("m.mindir"), self.path("back.msrt"), "--verify", env=nothing)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("MindSpore is missing", done.stderr)
        self.assertIn("--verify=FOLDER", done.stderr)
        self.assertIn("$MSRT_MINDSPORE_PYTHON", done.stderr)

    def python_with(self, package, *variables):
        for variable in variables:
            python = os.environ.get(variable, "")
            if python and subprocess.run([python, "-c", "import " + package], capture_output=True).returncode == 0:
                return python
        self.skipTest(f"no Python with {package} in {' or '.join(variables)}")

    def test_onnx_runtime_agrees(self):
        self.python_with("onnxruntime", "MSCONVERT_PYTHON")
        nodes = [onnx.node("MatMul", ["x", "w"], ["a"]), onnx.node("Relu", ["a"], ["y"])]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", ["n", 4])], [onnx.value("y", ["n", 4])],
                                      [onnx.tensor("w", [4, 4], [(i * 7 % 5) - 2.0 for i in range(16)])]))
        self.assertIn("against ONNX Runtime, x 3x4 made up", self.convert(model, "--verify", "--verify-shape", "n=3"))

    def test_mindspore_agrees(self):
        python = self.python_with("mindspore", "MSCONVERT_PYTHON", "MSRT_MINDSPORE_PYTHON")
        nodes = [onnx.node("MatMul", ["x", "w"], ["a"]), onnx.node("Relu", ["a"], ["y"])]
        model = onnx.model(onnx.graph(nodes, [onnx.value("x", [3, 4])], [onnx.value("y", [3, 4])],
                                      [onnx.tensor("w", [4, 4], [(i * 7 % 5) - 2.0 for i in range(16)])]))
        done = self.run_tool("msconvert", self.write("m.onnx", model), self.path("m.mindir"))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_tool("msconvert", self.path("m.mindir"), self.path("back.msrt"), "--verify",
                             env=dict(os.environ, MSCONVERT_PYTHON=python))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("against MindSpore", done.stdout)


if __name__ == "__main__":
    ToolCase.BIN = sys.argv.pop(1)
    unittest.main(verbosity=2)
