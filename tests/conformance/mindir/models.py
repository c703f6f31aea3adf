"""Small ONNX models for the export to MindIR, each with its inputs. A case is (name, bytes of the model, lists of inputs).

    models.py FOLDER

writes each as FOLDER/<name>/model.onnx, with FOLDER/<name>/run_<k>/input_<n>.npy and FOLDER/<name>/shapes. Needs nothing but Python itself.
"""
import math
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
from onnx_file import BOOL, FLOAT, INT64, graph, model, node, tensor, value, write_npy  # noqa: E402

OPSET = 22


def weight(name, *dims, scale=0.3, seed=None):
    rng = random.Random(seed if seed is not None else name)
    return tensor(name, dims, [rng.gauss(0, scale) for _ in range(math.prod(dims))])


def ints(name, *values):
    return tensor(name, [len(values)], values, INT64)


def number(name, given, kind=FLOAT):
    return tensor(name, [], [given], kind)


class Array:
    """An input of a run."""

    FORMS = {FLOAT: ("<f4", "f"), INT64: ("<i8", "q"), BOOL: ("|b1", "?")}

    def __init__(self, dims, values, kind=FLOAT):
        self.dims, self.values, self.kind = tuple(dims), list(values), kind

    def map(self, function):
        return Array(self.dims, [function(v) for v in self.values], self.kind)

    def save(self, path):
        write_npy(path, self.dims, self.values, *self.FORMS[self.kind])

    def numpy(self):
        import numpy as np
        return np.array(self.values, self.FORMS[self.kind][0]).reshape(self.dims)


def normal(*dims, seed=1):
    rng = random.Random(seed)
    return Array(dims, [rng.gauss(0, 1) for _ in range(math.prod(dims))])


def whole(number):
    return Array([], [number], INT64)


def one(name, nodes, inputs, outputs, weights, runs, opset=OPSET):
    """Inputs are (name, dims) or (name, dims, kind); outputs the same, dims None: not declared."""
    return name, model(graph(nodes, [value(*i) for i in inputs], [value(*o) for o in outputs], weights), opset), runs


def convnet():
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1, 0, 1, 2], strides=[2, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["m"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Conv", ["m", "w2"], ["c2"], kernel_shape=[3, 3], group=8, auto_pad="SAME_UPPER"),
        node("BatchNormalization", ["c2", "s", "b2", "mean", "var"], ["n"]),
        node("AveragePool", ["n"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("ConvTranspose", ["a", "w3"], ["t"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["t"], ["f"]),
        node("Gemm", ["f", "w4", "b4"], ["g"], transB=1, alpha=0.5),
        node("Softmax", ["g"], ["y"]),
    ]
    weights = [weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("w2", 8, 1, 3, 3), weight("s", 8), weight("b2", 8), weight("mean", 8),
               tensor("var", [8], [1.0 + i / 8 for i in range(8)]), weight("w3", 8, 4, 2, 2), weight("w4", 10, 128), weight("b4", 10)]
    return one("convnet", nodes, [("x", [2, 3, 16, 16])], [("y", [2, 10])], weights, [[normal(2, 3, 16, 16)]])


def conv_one_axis():
    nodes = [
        node("Conv", ["x", "w"], ["c"], kernel_shape=[5], pads=[2, 2], strides=[2], dilations=[1]),
        node("LeakyRelu", ["c"], ["l"], alpha=0.1),
        node("MaxPool", ["l"], ["m"], kernel_shape=[3], strides=[2]),
        node("ReduceMean", ["m", "axes"], ["y"], keepdims=0),
    ]
    return one("conv_one_axis", nodes, [("x", [2, 4, 40])], [("y", [2, 6])], [weight("w", 6, 4, 5), ints("axes", 2)], [[normal(2, 4, 40)]])


def lstm():
    weights = [weight("w", 2, 24, 5), weight("r", 2, 24, 6), weight("b", 2, 48)]
    nodes = [node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y", "yh", "yc"], hidden_size=6, direction="bidirectional")]
    return one("lstm", nodes, [("x", [7, 3, 5]), ("h", [2, 3, 6]), ("c", [2, 3, 6])],
               [("y", [7, 2, 3, 6]), ("yh", [2, 3, 6]), ("yc", [2, 3, 6])], weights,
               [[normal(7, 3, 5), normal(2, 3, 6, seed=2), normal(2, 3, 6, seed=3)]])


def gru():
    """Ops exported as a loop, and functions exported as several primitives."""
    weights = [weight("w", 2, 12, 3), weight("r", 2, 12, 4), weight("b", 2, 24), weight("wr", 1, 4, 3), weight("rr", 1, 4, 4), weight("scale", 4)]
    nodes = [node("GRU", ["x", "w", "r", "b"], ["y", "last"], hidden_size=4, direction="bidirectional", linear_before_reset=1),
             node("RNN", ["x", "wr", "rr"], ["z", ""], hidden_size=4, direction="reverse"), node("Gelu", ["y"], ["g"]),
             node("LayerNormalization", ["z", "scale"], ["n", "mean"], axis=-1)]
    return one("gru", nodes, [("x", [3, 2, 3])], [("g", [3, 2, 2, 4]), ("last", [2, 2, 4]), ("n", [3, 1, 2, 4]), ("mean", [3, 1, 2, 1])], weights,
               [[normal(3, 2, 3)]])


def several_primitives():
    """Small, for a committed file: ops exported as several primitives, one of them with two results."""
    nodes = [node("Gelu", ["x"], ["g"]), node("LayerNormalization", ["g", "scale"], ["n", "mean"], axis=-1), node("Clip", ["n", "low", "high"], ["y"])]
    return one("several_primitives", nodes, [("x", [2, 4])], [("y", [2, 4]), ("mean", [2, 1])],
               [weight("scale", 4), number("low", -0.5), number("high", 0.25)], [[normal(2, 4)]])


def branch():
    then = graph([node("Mul", ["x", "w"], ["t"]), node("Exp", ["t"], ["u"])], [], [value("t", [2, 3]), value("u", [2, 3])])
    other = graph([node("Sub", ["x", "w"], ["t2"]), node("Neg", ["x"], ["u2"])], [], [value("t2", [2, 3]), value("u2", [2, 3])])
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "zero"], ["c"]),
        node("If", ["c"], ["a", "b"], then_branch=then, else_branch=other),
        node("Add", ["a", "b"], ["y"]),
    ]
    x = normal(2, 3).map(abs)
    return one("branch", nodes, [("x", [2, 3])], [("y", [2, 3]), ("b", [2, 3])], [weight("w", 3), number("zero", 0.0)], [[x], [x.map(lambda v: -v)]])


def branch_that_cannot_be_taken():
    """Has branches for inputs of two lengths: at the declared length, the ops of the other branch do not fit."""
    then = graph([node("MatMul", ["x", "w6"], ["y6"])], [], [value("y6", ["n", 3])])
    fitting = graph([node("Identity", ["x"], ["same"])], [], [value("same", None)])
    wrong = graph([node("Unsqueeze", ["x", "axes"], ["up"])], [], [value("up", None)])
    other = graph([node("Shape", ["x"], ["dims"]), node("Gather", ["dims", "one"], ["length"]), node("Equal", ["length", "four"], ["fits"]),
                   node("If", ["fits"], ["v"], then_branch=fitting, else_branch=wrong), node("MatMul", ["v", "w4"], ["y4"])],
                  [], [value("y4", None)])
    nodes = [node("Equal", ["kind", "four"], ["is_four"]), node("Not", ["is_four"], ["c"]),
             node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    weights = [weight("w6", 6, 3), weight("w4", 4, 3), number("one", 1, INT64), number("four", 4, INT64), ints("axes", 0)]
    return one("branch_that_cannot_be_taken", nodes, [("x", [2, 6]), ("kind", [], INT64)], [("y", [2, 3])], weights, [[normal(2, 6), whole(6)]])


def silero_vad():
    """The real model with its Ifs, if $MSRT_SILERO_VAD names the file. Its two branches are for two lengths of input."""
    path = os.environ.get("MSRT_SILERO_VAD", "")
    if not path:
        return []
    runs = [[normal(1, 576).map(lambda v: v / 10), normal(2, 1, 128, seed=2), whole(16000)]]
    return [("silero_vad", pathlib.Path(path).read_bytes(), runs, {"input": "1x576", "state": "2x1x128"})]


def loop_with_scan_outputs():
    body = graph(
        [node("Identity", ["go"], ["go2"]), node("Mul", ["a", "w"], ["a2"]), node("Cast", ["i"], ["fi"], to=1), node("Add", ["a2", "fi"], ["s"])],
        [value("i", [], INT64), value("go", [], BOOL), value("a", [3])], [value("go2", [], BOOL), value("a2", [3]), value("s", [3])])
    nodes = [node("Loop", ["trips", "", "x"], ["y", "all"], body=body)]
    return one("loop_with_scan_outputs", nodes, [("x", [3])], [("y", [3]), ("all", [5, 3])],
               [number("trips", 5, INT64), tensor("w", [3], [0.5, 2.0, -1.0])], [[normal(3)]])


def loop_that_stops():
    """Ends when the sum is large: a while loop that also collects, with room for at most 12 rounds."""
    body = graph(
        [node("Add", ["a", "a"], ["a2"]), node("ReduceSum", ["a2"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["go2"])],
        [value("i", [], INT64), value("go", [], BOOL), value("a", [2, 2])], [value("go2", [], BOOL), value("a2", [2, 2]), value("sum", [])])
    nodes = [node("Loop", ["trips", "true", "x"], ["y", "sums"], body=body)]
    return one("loop_that_stops", nodes, [("x", [2, 2])], [("y", [2, 2]), ("sums", ["n"])],
               [number("trips", 12, INT64), number("true", True, BOOL), number("limit", 100.0)],
               [[normal(2, 2).map(abs)], [Array([2, 2], [30.0] * 4)]])


def while_loop():
    """Neither the number of rounds nor the first condition is known before the run."""
    body = graph([node("Mul", ["a", "half"], ["a2"]), node("ReduceMax", ["a2"], ["m"], keepdims=0), node("Greater", ["m", "one"], ["go2"]),
                  node("Add", ["n", "one"], ["n2"])],
                 [value("i", [], INT64), value("go", [], BOOL), value("a", [4]), value("n", [])],
                 [value("go2", [], BOOL), value("a2", [4]), value("n2", [])])
    nodes = [
        node("ReduceMax", ["x"], ["first"], keepdims=0),
        node("Greater", ["first", "one"], ["go"]),
        node("Loop", ["", "go", "x", "zero"], ["y", "count"], body=body),
    ]
    return one("while_loop", nodes, [("x", [4])], [("y", [4]), ("count", [])],
               [number("half", 0.5), number("one", 1.0), number("zero", 0.0)],
               [[Array([4], [1.0, 50.0, 3.0, 4.0])], [Array([4], [0.1, 0.2, 0.3, 0.4])]])


def loop_of_unknown_length():
    """Scans as many times as an input says, and carries a growing tensor."""
    body = graph([node("Identity", ["go"], ["go2"]), node("Cast", ["i"], ["fi"], to=1), node("Mul", ["x", "fi"], ["s"]),
                  node("Unsqueeze", ["fi", "front"], ["row"]), node("Concat", ["a", "row"], ["a2"], axis=0)],
                 [value("i", [], INT64), value("go", [], BOOL), value("a", ["m"])],
                 [value("go2", [], BOOL), value("a2", ["k"]), value("s", [3])])
    nodes = [node("Loop", ["n", "", "a0"], ["grown", "all"], body=body)]
    return one("loop_of_unknown_length", nodes, [("x", [3]), ("n", [], INT64)], [("grown", ["l"]), ("all", ["n", 3])],
               [tensor("a0", [1], [7.0]), ints("front", 0)], [[normal(3), whole(4)], [normal(3), whole(1)]])


def branch_inside_loop():
    then = graph([node("Add", ["a", "x"], ["t"])], [], [value("t", [3])])
    other = graph([node("Mul", ["a", "w"], ["t2"])], [], [value("t2", [3])])
    body = graph([node("Identity", ["go"], ["go2"]), node("Mod", ["i", "two"], ["odd"]), node("Cast", ["odd"], ["c"], to=9),
                  node("If", ["c"], ["a2"], then_branch=then, else_branch=other)],
                 [value("i", [], INT64), value("go", [], BOOL), value("a", [3])], [value("go2", [], BOOL), value("a2", [3])])
    nodes = [node("Loop", ["n", "", "x"], ["y"], body=body)]
    return one("branch_inside_loop", nodes, [("x", [3]), ("n", [], INT64)], [("y", [3])],
               [number("two", 2, INT64), tensor("w", [3], [0.5, 0.25, -1.0])],
               [[normal(3), whole(5)], [normal(3), whole(0)]])


def scan():
    body = graph([node("Add", ["s", "a"], ["s2"]), node("Mul", ["s2", "b"], ["out"])],
                 [value("s", [2]), value("a", [2]), value("b", [2])], [value("s2", [2]), value("out", [2])])
    nodes = [node("Scan", ["s0", "a", "b"], ["last", "all"], body=body, num_scan_inputs=2, scan_input_directions=[0, 1],
                  scan_output_directions=[1], scan_input_axes=[0, 1], scan_output_axes=[1])]
    return one("scan", nodes, [("s0", [2]), ("a", [6, 2]), ("b", [2, 6])], [("last", [2]), ("all", [2, 6])], [],
               [[normal(2), normal(6, 2, seed=2), normal(2, 6, seed=3)]])


def transformer_block():
    heads, width, hidden = 4, 8, 32
    nodes, weights = [], [ints("split", 0, 0, heads, width), ints("join", 0, 0, hidden), number("scale", width ** -0.5), number("sqrt2", 2 ** 0.5),
                          number("one", 1.0), number("half", 0.5), weight("f1", hidden, 64), weight("fb1", 64), weight("f2", 64, hidden)]
    for n in ("g1", "n1", "g2", "n2"):
        weights.append(weight(n, hidden))
    for p in "qkv":
        weights += [weight("w" + p, hidden, hidden), weight("b" + p, hidden)]
        nodes += [node("MatMul", ["x", "w" + p], [p + "0"]), node("Add", [p + "0", "b" + p], [p + "1"]),
                  node("Reshape", [p + "1", "split"], [p + "2"]),
                  node("Transpose", [p + "2"], [p], perm=[0, 2, 3, 1] if p == "k" else [0, 2, 1, 3])]
    nodes += [
        node("MatMul", ["q", "k"], ["s0"]), node("Mul", ["s0", "scale"], ["s1"]), node("Add", ["s1", "mask"], ["s2"]),
        node("Softmax", ["s2"], ["p"]), node("MatMul", ["p", "v"], ["o0"]), node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "join"], ["o2"]), node("Add", ["o2", "x"], ["h0"]),
        node("LayerNormalization", ["h0", "g1", "n1"], ["h"], axis=-1, epsilon=1e-6),
        node("MatMul", ["h", "f1"], ["u0"]), node("Add", ["u0", "fb1"], ["u1"]), node("Div", ["u1", "sqrt2"], ["u2"]),
        node("Erf", ["u2"], ["u3"]), node("Add", ["u3", "one"], ["u4"]), node("Mul", ["u1", "u4"], ["u5"]),
        node("Mul", ["u5", "half"], ["u6"]), node("MatMul", ["u6", "f2"], ["d"]), node("Add", ["d", "h"], ["e"]),
        node("LayerNormalization", ["e", "g2", "n2"], ["y"], axis=-1),
    ]
    masks = [0.0] * 12 + [-1e9] * 2  # the second of a batch of two is shorter
    one_mask = Array([1, 1, 1, 7], masks[:7])
    return one("transformer_block", nodes, [("x", ["batch", "tokens", hidden]), ("mask", ["batch", 1, 1, "tokens"])],
               [("y", ["batch", "tokens", hidden])], weights, [[normal(2, 7, hidden), Array([2, 1, 1, 7], masks)], [normal(1, 7, hidden), one_mask]])


def attention():
    nodes = [node("Attention", ["q", "k", "v", "mask"], ["y"], q_num_heads=4, kv_num_heads=2, is_causal=1, softcap=5.0)]
    mask = Array([5, 5], [row != 3 and column != 2 for row in range(5) for column in range(5)], BOOL)
    return one("attention", nodes, [("q", [2, 5, 32]), ("k", [2, 5, 16]), ("v", [2, 5, 16]), ("mask", [5, 5], BOOL)], [("y", [2, 5, 32])], [],
               [[normal(2, 5, 32), normal(2, 5, 16, seed=2), normal(2, 5, 16, seed=3), mask]], opset=23)


def elementwise():
    unary = ["Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Erf",
             "Sigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
             "Gelu", "Mish", "Shrink"]
    nodes = [node(op, ["x"], [op]) for op in unary]
    nodes += [node("Clip", ["x", "low", "high"], ["Clip"]), node("PRelu", ["x", "slope"], ["PRelu"]), node("Div", ["x", "slope"], ["Div"]),
              node("Max", ["x", "slope", "low"], ["Max"]), node("Greater", ["x", "slope"], ["g"]), node("Where", ["g", "x", "slope"], ["Where"]),
              node("Abs", ["x"], ["positive"]), node("Pow", ["positive", "slope"], ["Pow"]), node("Sqrt", ["positive"], ["Sqrt"]),
              node("Mod", ["n", "three"], ["Mod"]), node("Div", ["n", "three"], ["IntDiv"]), node("Equal", ["n", "three"], ["Equal"])]
    outputs = [(op, [2, 3]) for op in unary + ["Clip", "PRelu", "Div", "Max", "Where", "Pow", "Sqrt"]]
    outputs += [("Mod", [5], INT64), ("IntDiv", [5], INT64), ("Equal", [5], BOOL)]
    return one("elementwise", nodes, [("x", [2, 3]), ("n", [5], INT64)], outputs,
               [number("low", -0.5), number("high", 0.7), tensor("slope", [3], [0.1, 0.5, -0.3]), number("three", 3, INT64)],
               [[normal(2, 3).map(lambda v: 2 * v), Array([5], [-7, -3, 0, 3, 8], INT64)]])


def movement():
    nodes = [
        node("Slice", ["x", "s0", "e0", "a0", "t0"], ["slice"]),
        node("Slice", ["x", "s1", "e1", "a1", "t1"], ["backwards"]),
        node("Pad", ["x", "pads", "fill"], ["pad"]), node("Pad", ["x", "pads"], ["reflect"], mode="reflect"),
        node("Split", ["x", "parts"], ["p0", "p1"], axis=2), node("Concat", ["p1", "p0"], ["concat"], axis=2),
        node("Transpose", ["x"], ["turned"], perm=[3, 0, 2, 1]), node("Gather", ["x", "where"], ["gather"], axis=3),
        node("GatherElements", ["x", "each"], ["elements"], axis=1), node("Expand", ["row", "shape"], ["expand"]),
        node("Tile", ["row", "twice"], ["tile"]), node("Unsqueeze", ["row", "front"], ["up"]), node("Squeeze", ["up", "front"], ["down"]),
        node("DepthToSpace", ["x"], ["space"], blocksize=2), node("TopK", ["x", "k"], ["best", "at"], axis=2),
        node("ArgMax", ["x"], ["arg"], axis=1, keepdims=0), node("CumSum", ["x", "k"], ["sums"]), node("Trilu", ["x"], ["upper"], upper=1),
        node("ScatterND", ["row", "rows", "news"], ["scattered"]),
    ]
    weights = [ints("s0", 1, 0), ints("e0", 2**31 - 1, -1), ints("a0", 2, 3), ints("t0", 2, 1), ints("s1", -1), ints("e1", -(2**31)), ints("a1", 2),
               ints("t1", -2), ints("pads", 0, 0, 1, 2, 0, 0, 0, 1), number("fill", 0.5), ints("parts", 1, 4), ints("where", -1, 0, 2, -2),
               tensor("each", [2, 1, 5, 6], [(i % 4) - (i % 3 == 0) * (i % 4 > 0) * 4 for i in range(60)], INT64), weight("row", 3, 1),
               ints("shape", 2, 3, 4), ints("twice", 1, 2), ints("front", 0), ints("k", 2), tensor("rows", [2, 1], [2, -3], INT64), weight("news", 2, 1)]
    names = ["slice", "backwards", "pad", "reflect", "concat", "turned", "gather", "elements", "expand", "tile", "up", "down", "space", "best",
             "at", "arg", "sums", "upper", "scattered"]
    kinds = {"at": INT64, "arg": INT64}
    return one("movement", nodes, [("x", [2, 4, 5, 6])], [(n, None, kinds.get(n, FLOAT)) for n in names], weights, [[normal(2, 4, 5, 6)]])


def resizing():
    forms = [("nearest", "asymmetric", "floor"), ("nearest", "half_pixel", "round_prefer_floor"), ("linear", "half_pixel", "floor"),
             ("linear", "align_corners", "floor"), ("linear", "asymmetric", "floor"), ("cubic", "half_pixel", "floor"),
             ("linear", "pytorch_half_pixel", "floor")]
    nodes, outputs = [], []
    for i, (mode, coordinates, rounding) in enumerate(forms):
        nodes.append(node("Resize", ["x", "", "", "sizes"], [f"y{i}"], mode=mode, coordinate_transformation_mode=coordinates,
                          nearest_mode=rounding))
        outputs.append((f"y{i}", [1, 2, 9, 7]))
    return one("resizing", nodes, [("x", [1, 2, 5, 10])], outputs, [ints("sizes", 1, 2, 9, 7)], [[normal(1, 2, 5, 10)]])


def reductions():
    ops = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"]
    nodes = [node(op, ["x", "axes"], [op], keepdims=i % 2) for i, op in enumerate(ops)]
    nodes += [node("LogSoftmax", ["x"], ["LogSoftmax"], axis=1), node("InstanceNormalization", ["x", "s", "b"], ["InstanceNormalization"]),
              node("LpNormalization", ["x"], ["LpNormalization"], axis=1), node("GlobalMaxPool", ["x"], ["GlobalMaxPool"])]
    names = ops + ["LogSoftmax", "InstanceNormalization", "LpNormalization", "GlobalMaxPool"]
    return one("reductions", nodes, [("x", [2, 3, 4])], [(n, None) for n in names], [ints("axes", 0, -1), weight("s", 3), weight("b", 3)],
               [[normal(2, 3, 4)]])


def running_state():
    """The state is read before it is written, and used after."""
    nodes = [node("Mul", ["s", "half"], ["faded"]), node("Add", ["faded", "x"], ["s2"]), node("Sub", ["s2", "s"], ["y"])]
    x = normal(2, 3)
    return one("running_state", nodes, [("x", [2, 3]), ("s", [2, 3])], [("y", [2, 3]), ("s2", [2, 3])], [number("half", 0.5)], [[x], [x.map(lambda v: -2 * v)], [x.map(lambda v: v * v)]])


def stateful_cases():
    """Cases with the pair of input and output that becomes state."""
    return [(*running_state(), ("s", "s2"))]


def cases():
    """Cases with a fourth field: the dims of inputs on import."""
    makers = (convnet, conv_one_axis, lstm, gru, several_primitives, branch, branch_that_cannot_be_taken, loop_with_scan_outputs, loop_that_stops, while_loop,
              loop_of_unknown_length, branch_inside_loop, scan, transformer_block, attention, elementwise, movement, resizing, reductions)
    return [(*make(), {}) for make in makers] + silero_vad()


def main():
    for name, content, runs, shapes in cases():
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(content)
        (folder / "shapes").write_text("".join(f"{key} {dims}\n" for key, dims in shapes.items()))
        for k, inputs in enumerate(runs):
            (folder / f"run_{k}").mkdir()
            for n, array in enumerate(inputs):
                array.save(folder / f"run_{k}" / f"input_{n}.npy")


if __name__ == "__main__":
    main()
