"""Cases of the reduce family. Run from the root of the repository:
    python tests/data/generate/reduce.py tests/data/ops/reduce.cases
"""
import sys

import numpy as np

from cases import BF16, Cases

RNG = np.random.default_rng(20240801)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = [F32, F64, F16, BF16]
INTS = [np.dtype(t) for t in (np.int32, np.int64, np.uint32, np.uint64)]
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3, BF16: 1e-2}
OPS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
       "ReduceSumSquare"]


def random(op, dtype, shape):
    if dtype == np.bool_:
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low = -9 if dtype.kind == "i" and op not in ("ReduceLogSum", "ReduceLogSumExp") else 1
        return RNG.integers(low, 10, shape).astype(dtype)
    if op in ("ReduceLogSum", "ReduceProd"):
        return RNG.uniform(0.5, 1.5, shape).astype(dtype)
    return RNG.normal(size=shape).astype(dtype)


def lowest(dtype):
    return -np.inf if dtype in FLOATS else 0 if dtype == np.bool_ else np.iinfo(dtype).min


def highest(dtype):
    return np.inf if dtype in FLOATS else 1 if dtype == np.bool_ else np.iinfo(dtype).max


def wrap(x, dtype):
    """Integers keep their low bits."""
    if dtype in FLOATS:
        return np.asarray(x, np.float64).astype(dtype)
    bits = dtype.itemsize * 8
    low = np.asarray(x, object) % (1 << bits)
    if dtype.kind == "i":
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return np.asarray(low, object).astype(dtype)


def reduced(op, x, axes, keepdims):
    """NumPy in double precision; integers as Python numbers."""
    dtype = x.dtype
    wide = x.astype(np.float64) if dtype in FLOATS else x.astype(object)
    double = x.astype(np.float64)
    how = {"axis": axes, "keepdims": bool(keepdims)}
    with np.errstate(all="ignore"):
        if op == "ReduceSum":
            return wrap(np.sum(wide, **how), dtype)
        if op == "ReduceProd":
            return wrap(np.prod(wide, **how), dtype)
        if op == "ReduceL1":
            return wrap(np.sum(np.abs(wide), **how), dtype)
        if op == "ReduceSumSquare":
            return wrap(np.sum(wide * wide, **how), dtype)
        if op == "ReduceMax":
            return np.max(x if dtype != BF16 else double, initial=lowest(dtype), **how).astype(dtype)
        if op == "ReduceMin":
            return np.min(x if dtype != BF16 else double, initial=highest(dtype), **how).astype(dtype)
        if op == "ReduceMean":
            count = np.prod([x.shape[a] for a in axes]) if axes else 1
            if dtype not in FLOATS and count == 0:
                return np.zeros_like(np.sum(double, **how)).astype(dtype)
            return np.asarray(np.sum(double, **how) / count).astype(dtype)
        if op == "ReduceL2":
            return np.asarray(np.sqrt(np.sum(double * double, **how))).astype(dtype)
        if op == "ReduceLogSum":
            return np.asarray(np.log(np.sum(double, **how))).astype(dtype)
        top = np.max(double, axis=axes, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        result = np.log(np.sum(np.exp(double - top), axis=axes, keepdims=True)) + top
        return (result if keepdims else np.squeeze(result, axis=axes)).astype(dtype)


def tolerance(op, dtype):
    exact = dtype not in FLOATS or op in ("ReduceMax", "ReduceMin")
    return {} if exact else {"rtol": RTOL[dtype], "atol": RTOL[dtype]}


def add(cases, op, x, axes, keepdims=None, noop=None, form="attribute", name=""):
    """form: axes as an attribute, as a constant input, as an input of the run, or absent."""
    attrs, inputs = {}, [x]
    if keepdims is not None:
        attrs["keepdims"] = keepdims
    if noop is not None:
        attrs["noop_with_empty_axes"] = noop
    if axes is not None and form == "attribute":
        attrs["axes"] = axes
    elif axes is not None:
        inputs.append(np.array(axes, np.int64))
    true_axes = tuple(range(x.ndim)) if not axes and not noop else tuple(a % x.ndim for a in axes or ())
    out = reduced(op, x, true_axes, 1 if keepdims is None else keepdims)
    cases.add(op, inputs, [out], attrs, name=name, constants=(1,) if form == "constant" else (), **tolerance(op, x.dtype))


def reductions(cases):
    for op in OPS:
        for dtype in FLOATS + INTS:
            add(cases, op, random(op, dtype, (3, 5, 4)), [1], name=f"{dtype.name}_middle")
        f = lambda *shape: random(op, F32, shape)
        add(cases, op, f(2, 3, 4, 5), [0, 2], 0, name="two_axes_dropped")
        add(cases, op, f(2, 3, 4, 5), [-1, 1], 1, name="negative_axes_kept")
        add(cases, op, f(2, 3, 2, 3, 4), [1, 2, 4], 0, name="rank5")
        add(cases, op, f(7, 11), None, name="all_kept")
        add(cases, op, f(7, 11), [], 0, name="empty_axes_mean_all")
        add(cases, op, f(3, 4), [], None, 1, name="noop_attribute")
        add(cases, op, f(3, 4), None, 0, 1, name="noop_absent")
        add(cases, op, f(3, 4, 2), [2, 0], 0, form="constant", name="axes_constant_input")
        add(cases, op, f(3, 4, 2), [1], 1, form="dynamic", name="axes_dynamic_input")
        add(cases, op, f(3, 4, 2), [-3], 0, form="dynamic", name="axes_dynamic_dropped")
        add(cases, op, f(6), [0], 0, name="vector_to_scalar")
        add(cases, op, f(), None, name="scalar")
        add(cases, op, f(1, 257, 1), [1], name="odd_long")
        add(cases, op, f(3, 0, 2), [1], 0, name="of_nothing")
        add(cases, op, f(0, 3), [1], 0, name="to_nothing")
        add(cases, op, random(op, INTS[0], (3, 0)), [1], name="of_nothing_int32") if "Log" not in op else None
    for op in ("ReduceMax", "ReduceMin"):
        for dtype in [np.dtype(t) for t in (np.int8, np.uint8, np.bool_)]:
            add(cases, op, random(op, dtype, (4, 5)), [0], name=f"{dtype.name}_axis0")
            add(cases, op, random(op, dtype, (4, 0)), [1], name=f"{dtype.name}_of_nothing")
        add(cases, op, random(op, F16, (2, 0)), [1], name="float16_of_nothing")
        add(cases, op, np.array([[1, np.nan, 3], [-np.inf, 2, np.inf]], F32), [1], name="nan_and_infinities")
        rows = np.repeat(np.array([[-np.inf], [np.inf], [np.finfo(F32).min], [np.finfo(F32).max], [1]], F32), 17, axis=1)
        add(cases, op, rows, [1], name="rows_of_infinities")
    extremes = np.array([[-np.inf, -np.inf], [np.inf, 1], [1e3, 1e3], [-1e3, -1e4]], F32)
    add(cases, "ReduceLogSumExp", extremes, [1], name="extremes")
    wrapping = np.array([[2**31 - 1, 5], [-2**31, -7]], np.int32)
    for op in ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceSumSquare"):
        add(cases, op, wrapping, [1], name="integers_wrap")
    add(cases, "ReduceMean", np.array([[-7, 0], [7, 0]], np.int32), [1], name="integers_round_to_zero")


def cumsum(cases):
    def one(x, axis, exclusive=None, reverse=None, form="attribute", name=""):
        wide = x.astype(np.float64) if x.dtype in FLOATS else x.astype(object)
        flipped = np.flip(wide, axis) if reverse else wide
        total = np.cumsum(flipped, axis)
        if exclusive and x.shape[axis]:
            total = np.roll(total, 1, axis)
            total[tuple(0 if d == axis % x.ndim else slice(None) for d in range(x.ndim))] = 0
        out = wrap(np.flip(total, axis) if reverse else total, x.dtype)
        attrs, inputs = {}, [x]
        if form == "attribute":
            attrs["axis"] = axis
        else:
            inputs.append(np.array(axis if form == "constant" else [axis], np.int32 if form == "constant" else np.int64))
        if exclusive is not None:
            attrs["exclusive"] = exclusive
        if reverse is not None:
            attrs["reverse"] = reverse
        cases.add("CumSum", inputs, [out], attrs, name=name, constants=(1,) if form == "constant" else (), **tolerance("", x.dtype))

    for dtype in FLOATS + INTS:
        one(random("", dtype, (3, 5, 4)), 1, name=dtype.name)
    x = random("", F32, (2, 7, 3))
    for exclusive in (0, 1):
        for reverse in (0, 1):
            one(x, 1, exclusive, reverse, name=f"exclusive{exclusive}_reverse{reverse}")
    one(x, -1, 1, name="negative_axis")
    one(x, 0, reverse=1, form="constant", name="axis_constant_input")
    one(x, 2, form="dynamic", name="axis_dynamic_input")
    one(random("", F32, (9,)), 0, name="vector")
    one(random("", F32, (3, 0, 2)), 1, 1, name="empty_axis")
    one(random("", F32, (0, 4)), 1, name="empty_other")
    one(random("", INTS[1], (2, 3, 2, 2, 3)), 2, 1, 1, name="rank5_int64")
    one(np.array([2**31 - 1, 1, 1], np.int32), 0, name="integers_wrap")


if __name__ == "__main__":
    all_cases = Cases("numpy in double precision")
    reductions(all_cases)
    cumsum(all_cases)
    all_cases.write(sys.argv[1])
