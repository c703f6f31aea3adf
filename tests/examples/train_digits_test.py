#!/usr/bin/env python3
"""train_digits learns, and its exported model is one that msrun runs.

usage: train_digits_test.py BIN_DIR   (Python's standard library only)
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from tool_case import ToolCase  # noqa: E402


class TrainDigits(ToolCase):
    def test_learns_to_read_digits(self):
        self.must("msconvert", "zoo:lenet", self.path("lenet.msrt"), "--quiet")
        printed = self.must("train_digits", self.path("lenet.msrt"), self.path("digits.msrt"))
        before = float(re.search(r"before: accuracy ([\d.]+)", printed).group(1))
        accuracies = [float(number) for number in re.findall(r"test accuracy ([\d.]+)", printed)]
        self.assertLess(before, 0.4, printed)
        self.assertEqual(len(accuracies), 3, printed)
        self.assertGreaterEqual(accuracies[-1], 0.95, printed)
        self.assertGreaterEqual(int(re.search(r"exported: (\d+) of 32", printed).group(1)), 29, printed)
        self.must("msrun", self.path("digits.msrt"), "--seconds", "0.1", "--quiet")

    def test_reports_errors(self):
        done = self.run_tool("train_digits", self.path("none.msrt"), self.path("out.msrt"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.msrt", done.stderr)
        self.assertFalse(os.path.exists(self.path("out.msrt")))
        self.assertEqual(self.run_tool("train_digits").returncode, 2)


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
