#!/usr/bin/env python3
"""What msrun does with models that have more than tensors in one graph: lists as folders, and dumps of graphs that call graphs.

usage: values_test.py BIN_DIR   (Python's standard library only)
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402


def list_model():
    """joined = all elements in a row; longer = the list with x at its end."""
    nodes = [onnx.node("ConcatFromSequence", ["items"], ["joined"], axis=0), onnx.node("SequenceInsert", ["items", "x"], ["longer"])]
    return onnx.model(onnx.graph(nodes, [onnx.list_value("items", ["n"]), onnx.value("x", ["m"])],
                                 [onnx.value("joined", ["k"]), onnx.list_value("longer", ["n"])]))


def flow_model():
    """total: the sum of x over `trips` iterations; its absolute value, by an If whose branches capture it."""
    body = onnx.graph([onnx.node("Identity", ["go"], ["again"]), onnx.node("Add", ["sum", "x"], ["more"], name="accumulate")],
                      [onnx.value("i", [], onnx.INT64), onnx.value("go", [], 9), onnx.value("sum", [])],
                      [onnx.value("again", [], 9), onnx.value("more", [])])
    plus = onnx.graph([onnx.node("Identity", ["total"], ["kept"])], [], [onnx.value("kept", [])])
    minus = onnx.graph([onnx.node("Neg", ["total"], ["turned"], name="turn")], [], [onnx.value("turned", [])])
    nodes = [onnx.node("Loop", ["trips", "", "zero"], ["total"], name="repeat", body=body),
             onnx.node("Less", ["zero", "total"], ["positive"]),
             onnx.node("If", ["positive"], ["size"], name="choose", then_branch=plus, else_branch=minus)]
    return onnx.model(onnx.graph(nodes, [onnx.value("trips", [], onnx.INT64), onnx.value("x", [])], [onnx.value("size", [])],
                                 [onnx.tensor("zero", [], [0.0])]))


class Values(ToolCase):
    def convert(self, model):
        self.must("msconvert", self.write("m.onnx", model), self.path("m.msrt"))
        return self.path("m.msrt")

    def write_numbers(self, name, values):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        onnx.write_npy(self.path(name), [len(values)], values)

    def test_lists_are_folders(self):
        model = self.convert(list_model())
        self.assertIn("input    items list<f32[", self.must("msrun", "info", model))
        for i, values in enumerate([[1, 2], [3], []]):
            self.write_numbers(f"in/{i}.npy", values)
        self.write_numbers("x.npy", [4, 5, 6])
        for i in range(9):  # of an earlier, longer list
            self.write_numbers(f"out/longer/{i}.npy", [7])
        arguments = ["--input", "items=" + self.path("in"), "--input", "x=" + self.path("x.npy"), "--output-dir", self.path("out")]
        text = self.must("msrun", "run", model, *arguments)
        self.assertIn("output     longer list of 4\n", text)
        self.assertIn("longer[3] f32 3 [4, 5, 6]\n", text)
        self.assertEqual(onnx.read_npy(self.path("out/joined.npy"))[1], [1, 2, 3])
        self.assertEqual(sorted(os.listdir(self.path("out/longer"))), ["0.npy", "1.npy", "2.npy", "3.npy"])
        self.assertEqual(onnx.read_npy(self.path("out/longer/3.npy"))[1], [4, 5, 6])
        self.assertIn("longer[3]: largest difference 0", self.must("msrun", "run", model, *arguments[:4], "--check", self.path("out")))
        os.remove(self.path("out/longer/3.npy"))
        shorter = self.run_tool("msrun", "run", model, *arguments[:4], "--check", self.path("out"))
        self.assertEqual(shorter.returncode, 1)
        self.assertIn("output 'longer' has 4 elements, the reference has 3", shorter.stderr)

    def test_lists_that_nobody_gives_are_made(self):
        model = self.convert(list_model())
        self.assertIn("output     longer list of 2\n", self.must("msrun", "run", model))
        self.assertIn("input      items list of 1\n", self.must("msrun", "bench", model, "--seconds", "0.02"))

    def test_wrong_lists_are_named(self):
        model = self.convert(list_model())
        self.write_numbers("x.npy", [1])
        os.makedirs(self.path("in"))
        for given, message in [("items=" + self.path("x.npy"), "is no folder"), ("x=" + self.path("in"), self.path("in")),
                               ("things=" + self.path("in"), "no input 'things'; it has items, x")]:
            done = self.run_tool("msrun", "run", model, "--input", given)
            self.assertEqual(done.returncode, 1, given)
            self.assertIn(message, done.stderr)

    def test_stages_show_control_flow(self):
        model = self.convert(flow_model())
        onnx.write_npy(self.path("trips.npy"), [], [3], "<i8", "q")
        onnx.write_npy(self.path("x.npy"), [], [-2.5])
        given = ["--input", "trips=" + self.path("trips.npy"), "--input", "x=" + self.path("x.npy")]
        text = self.must("msrun", "run", model, *given, "--disable", "all", "--dump=graph")
        self.assertIn("output     size f32 scalar [7.5]\n", text)
        # A body and two branches, each indented below the node that calls it, with what it captures behind its inputs.
        self.assertRegex(text, r"\n  %total: f32\[\] = Loop\(%trips, _, %zero, %x\) \{.*body=#\d '.*'.*\}  # \d repeat\n"
                               r"    body #\d '[^']*' \(%i: i64\[\], %go: bool\[\], %sum: f32\[\] <- %zero, %x: f32\[\] <- %x\) \{\n")
        self.assertRegex(text, r"\n    else_branch #\d '[^']*' \(%total: f32\[\] <- %total\) \{\n"
                               r"      %turned: f32\[\] = Neg\(%total\)  # 0 turn\n      return %turned\n    \}\n")
        program = self.must("msrun", "run", model, *given, "--disable", "all", "--dump=program")
        self.assertRegex(program, r"= If\(.*\)  #\d  #\d  as a tail call\n")
        self.assertIn("graph #1 '", program)
        self.assertIn("turn", self.must("msrun", "run", model, *given, "--disable", "all", "--dump=placement"))
        self.assertIn("accumulate", self.must("msrun", "run", model, *given, "--dump=passes"))
        self.assertIn("binding of steps 0 to", self.must("msrun", "run", model, *given, "--dump=binding"))


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
