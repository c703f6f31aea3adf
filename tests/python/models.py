"""Small models for the tests of the Python package, written byte by byte and converted by the package itself."""
import os
import tempfile
import unittest

import msrt
from onnx_file import BOOL, INT64, graph, list_value, model, node, tensor, value

FLOAT16, BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, INT4, FLOAT4E2M1 = 10, 16, 17, 19, 22, 23


def affine(dims=("n", 3)):
    """y = max(2 x + 1, 0)."""
    return model(graph([node("Mul", ["x", "two"], ["p"]), node("Add", ["p", "one"], ["s"]), node("Relu", ["s"], ["y"])],
                       [value("x", dims)], [value("y", dims)], [tensor("two", [], [2.0]), tensor("one", [], [1.0])]))


def two_in_two_out():
    """sum = a + b, product = a b."""
    return model(graph([node("Add", ["a", "b"], ["sum"]), node("Mul", ["a", "b"], ["product"])],
                       [value("a", ["n"]), value("b", ["n"])], [value("sum", ["n"]), value("product", ["n"])]))


def product(extent):
    """y = x w, w: f32[extent, extent] with i % 7 - 3 in row i."""
    weights = [float(i // extent % 7 - 3) for i in range(extent * extent)]
    return model(graph([node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", extent])], [value("y", ["n", extent])],
                       [tensor("w", [extent, extent], weights)]))


def counter():
    """total_out = total + x; with --state total=total_out the session keeps it."""
    return model(graph([node("Add", ["total", "x"], ["total_out"]), node("Neg", ["total_out"], ["y"])],
                       [value("x", [2]), value("total", [2])], [value("total_out", [2]), value("y", [2])]))


def counting_loop():
    """end = the number of iterations, counted one by one."""
    body = graph([node("Add", ["i", "one"], ["i_out"]), node("Identity", ["go"], ["go_out"])],
                 [value("k", [], INT64), value("go", [], BOOL), value("i", [], INT64)],
                 [value("go_out", [], BOOL), value("i_out", [], INT64)], [tensor("one", [], [1], INT64)])
    return model(graph([node("Loop", ["count", "", "start"], ["end"], body=body)], [value("count", [], INT64)],
                       [value("end", [], INT64)], [tensor("start", [], [0], INT64)]))


def lists():
    """joined = the concatenated elements of a list; longer = the list with x appended."""
    return model(graph([node("ConcatFromSequence", ["list", ], ["joined"], axis=0), node("SequenceInsert", ["list", "x"], ["longer"])],
                       [list_value("list", ["n"]), value("x", ["m"])], [value("joined", ["k"]), list_value("longer", ["n"])]))


def identity(kind):
    """y = x, of any type."""
    return model(graph([node("Identity", ["x"], ["y"])], [value("x", ["n"], kind)], [value("y", ["n"], kind)]), opset=23)


def unknown_op():
    return model(graph([node("Frobnicate", ["x"], ["y"], "strange", "acme")], [value("x", [1])], [value("y", [1])]), domains=["acme"])


class ModelCase(unittest.TestCase):
    """A test with a folder for its models."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def converted(self, onnx, **options):
        msrt.convert(self.write("model.onnx", onnx), self.path("model.msrt"), **options)
        return self.path("model.msrt")

    def load(self, onnx, convert_options=None, **options):
        return msrt.load(self.converted(onnx, **(convert_options or {})), **options)
