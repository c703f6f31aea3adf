#!/usr/bin/env python3
"""A plugin for msconvert: its importer and its pass make a file that runs only with the kernel of custom_op.c.

usage: convert_plugin_test.py BIN_DIR PLUGIN_DIR   (Python's standard library only)
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402

LIB = None


def soften_model():
    """y = Soften(Neg(Neg(x)), radius = 1), on an image of 4 x 5."""
    nodes = [onnx.node("Neg", ["x"], ["a"]), onnx.node("Neg", ["a"], ["b"]),
             onnx.node("Soften", ["b"], ["y"], domain="com.example", radius=1)]
    image = [1, 4, 5]
    return onnx.model(onnx.graph(nodes, [onnx.value("x", image)], [onnx.value("y", image)]), domains=["com.example"])


class ConvertPlugin(ToolCase):
    def setUp(self):
        super().setUp()
        self.onnx, self.msrt = self.write("photo.onnx", soften_model()), self.path("photo.msrt")

    def convert(self, *arguments):
        return self.run_tool("msconvert", self.onnx, self.msrt, *arguments)

    def test_without_plugin_the_op_is_unknown(self):
        done = self.convert()
        self.assertEqual(done.returncode, 3)
        self.assertIn("com.example.Soften", done.stderr)
        self.assertFalse(os.path.exists(self.msrt))

    def test_file_runs_with_the_kernel(self):
        plugin, kernel = os.path.join(LIB, "convert_plugin.so"), os.path.join(LIB, "custom_op.so")
        done = self.convert("--plugin", plugin, "--verbose")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("drop_double_negation", done.stdout)

        graph = self.run_tool("msrun", "run", self.msrt, "--plugin", kernel, "--dump=graph").stdout
        self.assertIn("Blur", graph)
        self.assertNotIn("Neg", graph)
        self.assertEqual(self.convert("--plugin", plugin, "--disable", "drop_double_negation").returncode, 0)
        self.assertIn("Neg", self.run_tool("msrun", "run", self.msrt, "--plugin", kernel, "--dump=graph").stdout)

        refused = self.run_tool("msrun", "run", self.msrt)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("com.example.Blur", refused.stderr)

        pixels = [float(i * i % 7) for i in range(20)]
        values, result = self.path("x.npy"), self.path("out")
        onnx.write_npy(values, (1, 4, 5), pixels)
        done = self.run_tool("msrun", "run", self.msrt, "--plugin", kernel, "--input", "x=" + values, "--output-dir", result)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, y = onnx.read_npy(os.path.join(result, "y.npy"))
        for r in range(4):
            for c in range(5):
                near = [pixels[i * 5 + j] for i in range(max(r - 1, 0), min(r + 2, 4)) for j in range(max(c - 1, 0), min(c + 2, 5))]
                self.assertAlmostEqual(y[r * 5 + c], sum(near) / len(near), places=5)


if __name__ == "__main__":
    ToolCase.BIN, LIB = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
