#!/usr/bin/env python3
"""msrun on models with lists and several graphs: lists as folders, and dumps of graphs that call graphs.

usage: values_test.py BIN_DIR   (Python's standard library only)
"""
import json
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


def choice_model(tail):
    """y = c ? [5, 6] : exp(x), times x unless it is the last; the first branch has no node."""
    fixed = onnx.graph([], [], [onnx.value("five", [2])], [onnx.tensor("five", [2], [5.0, 6.0])])
    computed = onnx.graph([onnx.node("Exp", ["x"], ["e"], name="exponent")], [], [onnx.value("e", [2])])
    nodes = [onnx.node("Not", ["c"], ["d"], name="negate"),
             onnx.node("If", ["d"], ["y" if tail else "z"], name="choose", then_branch=computed, else_branch=fixed)]
    nodes += [] if tail else [onnx.node("Mul", ["z", "x"], ["y"], name="after")]
    return onnx.model(onnx.graph(nodes, [onnx.value("c", [], onnx.BOOL), onnx.value("x", [2])], [onnx.value("y", [2])]))


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
        self.assertIn("longer[3]: largest difference 0", self.must("msrun", "run", model, *arguments[:4], "--verify", self.path("out")))
        os.remove(self.path("out/longer/3.npy"))
        shorter = self.run_tool("msrun", "run", model, *arguments[:4], "--verify", self.path("out"))
        self.assertEqual(shorter.returncode, 1)
        self.assertIn("output 'longer' has 4 elements, the reference has 3", shorter.stderr)

    def test_absent_lists_are_random(self):
        model = self.convert(list_model())
        self.assertIn("output     longer list of 2\n", self.must("msrun", "run", model))
        self.assertIn("input      items list of 1\n", self.must("msrun", "bench", model, "--seconds", "0.02"))

    def test_wrong_lists_are_named(self):
        model = self.convert(list_model())
        self.write_numbers("x.npy", [1])
        os.makedirs(self.path("in"))
        for given, message in [("x=" + self.path("in"), self.path("in")),
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
        # A body and two branches, each indented below the node that calls it, with its captures after its inputs.
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


    def test_four_bit_tensors_have_one_element_per_byte(self):
        for kind, values, numbers in ((onnx.INT4, [-8, 7, 0, -1, 3], [-8, 7, 0, -1, 3]), (onnx.UINT4, [0, 15, 8, 1, 3], [0, 15, 8, 1, 3]),
                                      (onnx.FLOAT4, [0, 15, 7, 1, 2], [0, -6, 6, 0.5, 1])):
            nodes = [onnx.node("Identity", ["x"], ["same"]), onnx.node("Cast", ["x"], ["y"], to=onnx.FLOAT)]
            model = self.convert(onnx.model(onnx.graph(nodes, [onnx.value("x", ["n"], kind)],
                                                       [onnx.value("same", ["n"], kind), onnx.value("y", ["n"])]), opset=23))
            raw = [v & 15 for v in values]
            forms = [("|u1", "B", raw)] + ([("|i1", "b", values)] if kind == onnx.INT4 else [])
            for descr, code, given in forms:
                onnx.write_npy(self.path("x.npy"), [5], given, descr, code)
                text = self.must("msrun", "run", model, "--input", "x=" + self.path("x.npy"), "--output-dir", self.path("out"))
                self.assertIn("y f32 5 [" + ", ".join(str(n) for n in numbers) + "]\n", text)
                self.assertEqual(onnx.read_npy(self.path("out/y.npy"))[1], numbers)
                header, data = onnx.read_npy(self.path("out/same.npy"))
                self.assertEqual((header["descr"], list(data)), ("|u1", raw))
            onnx.write_npy(self.path("x.npy"), [2], [3, 16], "|u1", "B")
            done = self.run_tool("msrun", "run", model, "--input", "x=" + self.path("x.npy"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("element 1 is 16", done.stderr)

    def test_optional_input_may_be_a_tensor(self):
        nodes = [onnx.node("OptionalHasElement", ["x"], ["there"]), onnx.node("Cast", ["there"], ["y"], to=onnx.FLOAT)]
        model = self.convert(onnx.model(onnx.graph(nodes, [onnx.optional_value("x", [2])], [onnx.value("y", [])]), opset=18))
        self.write_numbers("x.npy", [1, 2])
        os.makedirs(self.path("nothing"))
        for given, answer in (("x.npy", 1), ("nothing", 0)):
            self.assertIn(f"y f32 scalar [{answer}]", self.must("msrun", "run", model, "--input", "x=" + self.path(given)))

    def test_unsupported_arrays_are_refused_with_a_cure(self):
        model = self.convert(onnx.model(onnx.graph([onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", [1])], [onnx.value("y", [1])])))
        for descr, message in ((">f4", "has big-endian elements ('>f4'); save it with array.astype('<f4')"),
                               ("<c8", "has element type '<c8', which no tensor has; save it with array.astype("),
                               ("<f8", "has element type f64, wanted is f32; save it with array.astype('<f4')")):
            onnx.write_npy(self.path("x.npy"), [1], [1.0, 0.0][:2 if descr == "<c8" else 1], descr, "d" if descr == "<f8" else "f")
            done = self.run_tool("msrun", "run", model, "--input", "x=" + self.path("x.npy"))
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)

    def test_values_of_every_type_are_shown(self):
        nodes = [onnx.node("Cast", ["x"], ["bytes"], to=onnx.UINT8), onnx.node("Cast", ["x"], ["small"], to=onnx.INT8),
                 onnx.node("Cast", ["x"], ["flags"], to=onnx.BOOL), onnx.node("Cast", ["x"], ["long"], to=onnx.INT64)]
        outputs = [("bytes", onnx.UINT8), ("small", onnx.INT8), ("flags", onnx.BOOL), ("long", onnx.INT64)]
        model = self.convert(onnx.model(onnx.graph(nodes, [onnx.value("x", [3])], [onnx.value(n, [3], k) for n, k in outputs])))
        onnx.write_npy(self.path("x.npy"), [3], [0.0, 2.0, 100.0])
        text = self.must("msrun", "run", model, "--input", "x=" + self.path("x.npy"))
        for line in ("bytes u8 3 [0, 2, 100]", "small i8 3 [0, 2, 100]", "flags bool 3 [false, true, true]", "long i64 3 [0, 2, 100]"):
            self.assertIn("output     " + line + "\n", text)

    def profile(self, model, *arguments):
        """The JSON report and the events of the trace of a short measurement."""
        self.must("msrun", "bench", model, "--seconds", "0", "--json", self.path("r.json"), "--trace", self.path("t.json"), *arguments)
        with open(self.path("r.json")) as report, open(self.path("t.json")) as trace:
            return json.load(report), [e for e in json.load(trace)["traceEvents"] if e["ph"] == "X"]

    def test_branches_without_nodes_are_profiled(self):
        for tail in (False, True):
            model = self.convert(choice_model(tail))
            for taken, name in ((True, "five"), (False, "exponent")):
                onnx.write_npy(self.path("c.npy"), [], [taken], "|b1", "?")
                report, events = self.profile(model, "--input", "c=" + self.path("c.npy"))
                names = [s["name"] for s in report["steps"]]
                self.assertEqual(names, ["negate", "choose", name] + ([] if tail else ["after"]))
                self.assertEqual([e["args"]["node"] for e in events if e["cat"] != "run"], names * 5)

    def test_loops_are_profiled_and_explained(self):
        model = self.convert(flow_model())
        onnx.write_npy(self.path("trips.npy"), [], [3], "<i8", "q")
        given = ["--input", "trips=" + self.path("trips.npy"), "--disable", "all"]
        report, events = self.profile(model, *given)
        steps = {s["name"]: s for s in report["steps"] if s["op"] in ("Add", "Loop")}
        self.assertEqual((steps["accumulate"]["count"], steps["repeat"]["count"]), (3, 1))
        self.assertTrue(steps["accumulate"]["graph"])
        self.assertEqual(steps["repeat"]["graph"], "")
        loop = next(e for e in events if e["args"].get("node") == "repeat")
        inside = [e for e in events if (e["name"], e["args"].get("node")) == ("Add", "accumulate")
                  and loop["ts"] <= e["ts"] and e["ts"] + e["dur"] <= loop["ts"] + loop["dur"] + 0.001]
        self.assertEqual(len(inside), 3)
        self.assertRegex(self.must("msrun", "bench", model, "--seconds", "0", *given), r"\n  Add +3 .*[\s\S]*: accumulate +Add")
        text = self.must("msrun", "run", model, *given, "--explain")
        self.assertRegex(text, r"calls graph #\d\n")
        self.assertRegex(text, r"graph #\d '[^']*', which node 0 'repeat' \(Loop\) of graph '\w*' calls:\n[\s\S]* accumulate ")
        self.assertIn(" turn ", text)
        plan = self.must("msrun", "run", model, *given, "--explain=json:" + self.path("p.json"))
        with open(self.path("p.json")) as f:
            plan = json.load(f)
        self.assertLessEqual({"accumulate", "turn"}, {n["node"] for g in plan["graphs"] for n in g["nodes"]})

    def test_sizes_in_data_are_profiled(self):
        nodes = [onnx.node("NonZero", ["x"], ["at"], name="find"), onnx.node("Transpose", ["at"], ["rows"], name="turn")]
        model = self.convert(onnx.model(onnx.graph(nodes, [onnx.value("x", [2, 3])], [onnx.value("rows", None, onnx.INT64)])))
        report, _ = self.profile(model)
        self.assertEqual([(s["name"], s["shape"]) for s in report["steps"]][0], ("find", "2x6"))
        self.assertIn("turn", [s["name"] for s in report["steps"]])


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
