"""Cases of the select family. Run from the root of the repository:
    python tests/data/generate/selection.py tests/data/ops/select.cases
"""
import sys

import numpy as np

from cases import BF16, Cases

RNG = np.random.default_rng(20240802)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
INTS = [np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)]
NUMBERS = [F32, F64, F16, BF16] + INTS


def random(dtype, shape):
    """Few different values, so that ties are common."""
    low = 0 if dtype.kind == "u" else -4
    return RNG.integers(low, 5, shape).astype(dtype)


def comparable(x):
    return x.astype(np.float64) if x.dtype == BF16 else x


def arg_cases(cases):
    def one(op, x, axis=None, keepdims=None, last=None, name=""):
        pick = np.argmax if op == "ArgMax" else np.argmin
        true_axis = 0 if axis is None else axis
        if last:
            out = x.shape[true_axis] - 1 - pick(np.flip(comparable(x), true_axis), true_axis)
        else:
            out = pick(comparable(x), true_axis)
        if keepdims != 0:
            out = np.expand_dims(out, true_axis)
        attrs = {k: v for k, v in (("axis", axis), ("keepdims", keepdims), ("select_last_index", last)) if v is not None}
        cases.add(op, [x], [np.asarray(out).astype(np.int64)], attrs, name=name)

    for op in ("ArgMax", "ArgMin"):
        for dtype in NUMBERS:
            one(op, random(dtype, (4, 7, 3)), 1, name=dtype.name)
        x = random(F32, (3, 5, 2, 4))
        one(op, x, name="defaults")
        one(op, x, -1, 0, name="negative_axis_dropped")
        one(op, x, 1, 1, 1, name="last_kept")
        one(op, x, -2, 0, 1, name="last_dropped")
        one(op, x, 2, 0, 0, name="first_dropped")
        one(op, RNG.normal(size=(301,)).astype(F32), 0, 0, name="vector_to_scalar")
        one(op, random(F64, (2, 3, 2, 3, 2)), 3, name="rank5")
        one(op, random(F32, (0, 4)), 1, name="empty")
        one(op, random(F32, (1,)), name="one_element")
        nans = np.array([[1, np.nan, 3, np.nan], [np.inf, 2, -np.inf, np.inf]], F32)
        one(op, nans, 1, name="nan_and_infinities")
        one(op, nans, 1, last=1, name="nan_and_infinities_last")


def topk_cases(cases):
    def one(x, k, axis=None, largest=None, is_sorted=None, form="attribute", name=""):
        true_axis = -1 if axis is None else axis
        keys = comparable(x)
        # A stable sort keeps ties in the order of their indices; the reversed one must be stable in the original order too.
        if largest == 0:
            order = np.argsort(keys, true_axis, kind="stable")
        else:
            flipped = np.argsort(np.flip(keys, true_axis), true_axis, kind="stable")
            order = np.flip(x.shape[true_axis] - 1 - flipped, true_axis)
        order = np.take(order, np.arange(k), true_axis).astype(np.int64)
        attrs = {n: v for n, v in (("axis", axis), ("largest", largest), ("sorted", is_sorted)) if v is not None}
        inputs = [x]
        if form == "attribute":
            attrs["k"] = k
        else:
            inputs.append(np.array([k], np.int64))
        cases.add("TopK", inputs, [np.take_along_axis(x, order, true_axis), order], attrs, name=name,
                  constants=(1,) if form == "constant" else ())

    for dtype in NUMBERS:
        one(random(dtype, (3, 9, 2)), 4, 1, name=dtype.name)
        one(random(dtype, (3, 9)), 3, largest=0, name=f"{dtype.name}_smallest")
    x = random(F32, (2, 5, 3, 4))
    one(x, 2, name="defaults")
    one(x, 2, -2, 1, 0, name="unsorted")
    one(x, 5, 1, 0, 1, name="all_of_the_axis")
    one(x, 0, 1, name="none")
    one(x, 1, 0, form="constant", name="k_constant_input")
    one(x, 3, 1, form="dynamic", name="k_dynamic_input")
    one(RNG.normal(size=(257,)).astype(F32), 17, name="vector")
    one(random(F32, (0, 4)), 2, name="empty")
    one(random(F32, (3, 0)), 0, name="empty_axis")
    one(random(F64, (2, 2, 3, 2, 3)), 2, 2, 0, name="rank5")
    nans = np.array([[1, np.nan, 3, np.nan, -1], [np.inf, 2, -np.inf, 0, np.inf]], F32)
    one(nans, 3, largest=0, name="nan_smallest")
    order = np.array([[1, 3, 2], [0, 4, 1]], np.int64)
    cases.add("TopK", [nans], [np.take_along_axis(nans, order, 1), order], {"k": 3}, name="nan_largest",
              oracle="by hand: NaN counts as the greatest")


if __name__ == "__main__":
    all_cases = Cases("numpy")
    arg_cases(all_cases)
    topk_cases(all_cases)
    all_cases.write(sys.argv[1])
