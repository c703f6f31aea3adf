#!/usr/bin/env python3
"""segment_image against msrun image.

usage: segment_image_test.py BIN_DIR   (Python's standard library only)
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import image_files as files  # noqa: E402
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402


class SegmentImage(ToolCase):
    def test_writes_the_class_of_each_pixel(self):
        model, image = self.path("model.msrt"), self.path("in.npy")
        self.must("msconvert", self.write("model.onnx", files.network()), model, "--quiet")
        onnx.write_npy(image, (3, 60, 50), files.noise(9000, 3), "|u1", "B")
        self.assertIn("60 x 50 classes", self.must("segment_image", model, image, self.path("classes.npy"), "512"))
        self.must("msrun", "image", model, image, self.path("want.npy"), "--classes", "--normalize", "scale=1/255")
        with open(self.path("classes.npy"), "rb") as got, open(self.path("want.npy"), "rb") as want:
            self.assertEqual(got.read(), want.read())

    def test_reports_errors(self):
        done = self.run_tool("segment_image", self.path("none.msrt"), self.path("none.tif"), self.path("out.tif"), "512")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.tif", done.stderr)
        self.assertEqual(self.run_tool("segment_image").returncode, 2)


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
