#!/usr/bin/env python3
"""A plugin for msconvert from the outside: its importer and its pass make a file that only those can run who have the kernel.

usage: convert_plugin_test.py BIN_DIR PLUGIN_DIR   (Python's standard library only)
"""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

BIN, LIB = None, None


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a protobuf message: a number, or bytes (a string, a message)."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def image(name, rows, columns):
    """ValueInfoProto of an f32 tensor."""
    shape = b"".join(field(1, field(1, d)) for d in (1, rows, columns))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def node(op, inputs, outputs, domain="", attrs=b""):
    return b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op) + field(7, domain) + attrs


def soften_model():
    """y = Soften(Neg(Neg(x)), radius = 1), on an image of 4 x 5."""
    radius = field(5, field(1, "radius") + field(3, 1) + field(20, 2))
    nodes = [node("Neg", ["x"], ["a"]), node("Neg", ["a"], ["b"]), node("Soften", ["b"], ["y"], "com.example", radius)]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + field(11, image("x", 4, 5)) + field(12, image("y", 4, 5))
    opsets = field(8, field(1, "") + field(2, 17)) + field(8, field(1, "com.example") + field(2, 1))
    return field(1, 8) + field(7, graph) + opsets


class ConvertPlugin(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.onnx, self.msrt = self.path("photo.onnx"), self.path("photo.msrt")
        with open(self.onnx, "wb") as f:
            f.write(soften_model())

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_tool(self, tool, *arguments):
        return subprocess.run([os.path.join(BIN, tool), *arguments], capture_output=True, text=True, timeout=120)

    def convert(self, *arguments):
        return self.run_tool("msconvert", self.onnx, self.msrt, *arguments)

    def test_without_it_the_op_is_not_known(self):
        done = self.convert()
        self.assertEqual(done.returncode, 3)
        self.assertIn("com.example.Soften", done.stderr)
        self.assertFalse(os.path.exists(self.msrt))

    def test_the_file_runs_where_the_kernel_is(self):
        plugin, kernel = os.path.join(LIB, "convert_plugin.so"), os.path.join(LIB, "custom_op.so")
        done = self.convert("--plugin", plugin)
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
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 5), }"
        header += " " * (-(11 + len(header)) % 64) + "\n"
        with open(values, "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<20f", *pixels))
        done = self.run_tool("msrun", "run", self.msrt, "--plugin", kernel, "--input", "x=" + values, "--output-dir", result)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(result, "y.npy"), "rb") as f:
            y = struct.unpack("<20f", f.read()[-80:])
        for r in range(4):
            for c in range(5):
                near = [pixels[i * 5 + j] for i in range(max(r - 1, 0), min(r + 2, 4)) for j in range(max(c - 1, 0), min(c + 2, 5))]
                self.assertAlmostEqual(y[r * 5 + c], sum(near) / len(near), places=5)


if __name__ == "__main__":
    BIN, LIB = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
