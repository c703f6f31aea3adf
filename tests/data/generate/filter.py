"""Cases of the ops whose sizes depend on data. Run from the root of the repository:
    python tests/data/generate/filter.py tests/data/ops/filter.cases
"""
import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from cases import BF16, Cases

RNG = np.random.default_rng(20240911)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = [F32, F64, F16, BF16]
INTS = [np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)]
ALL = FLOATS + INTS + [np.dtype(np.bool_)]


def few(dtype, shape, low=-2, high=3):
    """Few different values, so that zeros and equals are common."""
    if dtype == np.bool_:
        return RNG.integers(0, 2, shape).astype(bool)
    values = RNG.integers(0 if dtype.kind == "u" else low, high, shape)
    return (values * (0.5 if dtype in FLOATS else 1)).astype(dtype)


def nonzero(cases):
    def one(x, name, constants=()):
        found = np.nonzero(x.astype(np.float64) if x.dtype == BF16 else x) if x.ndim else ()
        out = np.array(found, np.int64).reshape(x.ndim, -1) if x.ndim else np.zeros((0, int(x != 0)), np.int64)
        cases.add("NonZero", [x], [out], name=name, constants=constants, oracle="numpy.nonzero")

    for dtype in ALL:
        one(few(dtype, (4, 5)), dtype.name)
    one(np.array([0.0, -0.0, np.nan, np.inf, -1, 5e-324], F64), "specials")
    one(few(F32, (2, 3, 2, 2, 3)), "rank5")
    one(few(np.dtype(np.int64), (1200,)), "vector")
    one(np.array(3, np.int32), "scalar")
    one(np.array(0, np.int32), "scalar_zero")
    one(np.zeros((3, 4), F32), "all_zero")
    one(np.zeros((0, 4), F32), "empty")
    one(few(F32, (3, 3)), "constant", constants=(0,))


def compress(cases):
    def one(x, condition, axis, name, constants=()):
        out = np.compress(condition, x, axis=axis)
        cases.add("Compress", [x, np.array(condition, bool)], [out], {} if axis is None else {"axis": axis}, name=name,
                  constants=constants, oracle="numpy.compress")

    for dtype in ALL:
        one(few(dtype, (3, 4)), [True, False, True, True], 1, dtype.name)
    x = few(F32, (3, 4, 5))
    one(x, RNG.integers(0, 2, 60).astype(bool), None, "flat")
    one(x, [False, True, True], None, "flat_short")
    one(x, [True, False], 0, "short")
    one(x, [False, True, False, True, True], -1, "negative_axis")
    one(x, [True, True, False], -3, "negative_first_axis", constants=(1,))
    one(x, [False] * 4, 1, "nothing")
    one(x, [], 1, "no_condition")
    one(few(F32, (0, 4)), [True, False, True], 1, "empty")
    one(few(F32, (2, 3, 2, 2, 3)), [True, False], 3, "rank5")


def first_order(x, axis):
    """numpy.unique in the order in which values appear."""
    y, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    order = np.argsort(first)
    return np.take(y, order, axis or 0), first[order], np.argsort(order)[inverse.reshape(-1)], counts[order]


def unique(cases):
    def one(x, axis=None, sort=1, name="", outputs=4):
        narrow = x.astype(F64) if x.dtype in (BF16, F16) else x
        if sort:
            results = np.unique(narrow, return_index=True, return_inverse=True, return_counts=True, axis=axis)
        else:
            results = first_order(narrow, axis)
        results = [results[0].astype(x.dtype)] + [r.reshape(-1).astype(np.int64) for r in results[1:]]
        attrs = {n: v for n, v in (("axis", axis), ("sorted", None if sort else 0)) if v is not None}
        cases.add("Unique", [x], results[:outputs], attrs, name=name, oracle="numpy.unique")

    for dtype in ALL:
        one(few(dtype, (3, 5)), name=dtype.name)
        one(few(dtype, (6, 2)), 0, name=f"rows_{dtype.name}")
    one(few(F32, (20,), -9, 10), sort=0, name="in_order_of_appearance")
    one(few(F32, (7, 2)), 0, 0, name="rows_in_order_of_appearance")
    one(few(F32, (2, 7, 2)), 1, name="middle_axis")
    one(few(F32, (2, 2, 9)), -1, name="last_axis")
    one(few(F32, (2, 2, 6)), -1, 0, name="last_axis_in_order")
    one(few(F32, (2, 1, 3, 2, 2)), 2, name="rank5")
    one(np.array([np.nan, 1, np.inf, np.nan, -np.inf, 0.0, -0.0, 1], F32), name="specials")
    one(few(F32, (12,)), outputs=1, name="values_only")
    one(few(F32, (12,)), outputs=2, name="two_outputs")
    one(np.array(3, np.int64), name="scalar")
    one(np.zeros((0,), F32), name="empty")
    one(np.zeros((0, 3), F32), 0, name="no_rows")
    one(few(np.dtype(np.int64), (900,), -200, 200), name="vector")


def suppression(cases):
    def one(boxes, scores, most=None, overlap=None, score=None, center=0, form="attribute", name=""):
        scalars = [None if most is None else np.array([most], np.int64), None if overlap is None else np.array([overlap], F32),
                   None if score is None else np.array([score], F32)]
        names = ["boxes", "scores"] + ["" if s is None else f"s{i}" for i, s in enumerate(scalars)]
        while not names[-1]:
            names.pop()
        node = helper.make_node("NonMaxSuppression", names, ["out"], center_point_box=center)
        feeds = {"boxes": boxes, "scores": scores, **{f"s{i}": s for i, s in enumerate(scalars) if s is not None}}
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT64 if n == "s0" else TensorProto.FLOAT, list(v.shape)) for n, v in feeds.items()]
        graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("out", TensorProto.INT64, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
        out = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0].reshape(-1, 3)
        attrs = {"center_point_box": center} if center else {}
        if form == "attribute":
            for n, v in (("max_output_boxes_per_class", most), ("iou_threshold", overlap), ("score_threshold", score)):
                if v is not None:
                    attrs[n] = int(v) if n.startswith("max") else float(np.float32(v))
            scalars = []
        cases.add("NonMaxSuppression", [boxes, scores] + scalars, [out], attrs, name=name, oracle="ONNX Runtime")

    def corners(batch, count):
        low = RNG.uniform(0, 1, (batch, count, 2))
        box = np.concatenate([low, low + RNG.uniform(0.1, 0.6, (batch, count, 2))], -1).astype(F32)
        flip = RNG.integers(0, 2, (batch, count, 1)).astype(bool)
        return np.where(flip, box[..., [2, 1, 0, 3]], box)

    def scores(batch, classes, count):
        return RNG.permutation(batch * classes * count).reshape(batch, classes, count).astype(F32) / 100

    one(corners(1, 12), scores(1, 1, 12), 5, 0.3, 0.02, name="one_class")
    one(corners(2, 9), scores(2, 3, 9), 4, 0.2, 0.1, name="batches_and_classes")
    one(corners(2, 9), scores(2, 3, 9), 4, 0.2, 0.1, form="input", name="dynamic_limits")
    one(corners(1, 10), scores(1, 1, 10), 100, 0.4, name="no_score_limit")
    one(corners(1, 10), scores(1, 1, 10), 100, name="no_limits_but_one")
    one(corners(1, 10), scores(1, 2, 10), name="default_keeps_nothing")
    centers = np.concatenate([RNG.uniform(0, 1, (2, 8, 2)), RNG.uniform(0.1, 0.6, (2, 8, 2))], -1).astype(F32)
    one(centers, scores(2, 2, 8), 5, 0.25, 0.05, center=1, name="centers")
    equal = np.round(scores(1, 2, 15), 1)
    one(corners(1, 15), equal, 10, 0.3, 0.0, name="equal_scores")
    one(np.tile(corners(1, 1), (1, 6, 1)), scores(1, 1, 6), 3, 0.5, 0.0, name="identical_boxes")
    flat = corners(1, 6)
    flat[0, :3, 2] = flat[0, :3, 0]
    one(flat, scores(1, 1, 6), 6, 0.1, name="boxes_without_area")
    one(corners(1, 1), scores(1, 1, 1), 3, 0.5, 0.0, name="single_box")
    cases.add("NonMaxSuppression", [np.zeros((1, 0, 4), F32), np.zeros((1, 2, 0), F32)], [np.zeros((0, 3), np.int64)],
              {"max_output_boxes_per_class": 3}, name="no_boxes", oracle="by definition")


if __name__ == "__main__":
    all_cases = Cases("numpy")
    nonzero(all_cases)
    compress(all_cases)
    unique(all_cases)
    suppression(all_cases)
    all_cases.write(sys.argv[1])
