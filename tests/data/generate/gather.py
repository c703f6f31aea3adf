"""Cases of the gather family. Run from the root of the repository:
    python tests/data/generate/gather.py tests/data/ops/gather.cases
"""
import sys

import numpy as np

from cases import BF16, Cases

RNG = np.random.default_rng(20240803)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = [F32, F64, F16, BF16]
INTS = [np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)]
NUMBERS = FLOATS + INTS
ALL = NUMBERS + [np.dtype(np.bool_)]
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3, BF16: 1e-2}


def random(dtype, shape):
    if dtype == np.bool_:
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return RNG.integers(-9 if dtype.kind == "i" else 0, 10, shape).astype(dtype)
    return RNG.normal(size=shape).astype(dtype)


def indices(extent, shape, dtype=np.int64):
    """Both signs."""
    return RNG.integers(-extent, extent, shape).astype(dtype)


def gather(cases):
    def one(x, index, axis=None, name="", constants=()):
        out = np.take(x, index, axis=axis or 0)
        cases.add("Gather", [x, index], [out], {} if axis is None else {"axis": axis}, name=name, constants=constants)

    for dtype in ALL:
        one(random(dtype, (5, 4, 3)), indices(4, (2, 3)), 1, name=dtype.name)
    x = random(F32, (5, 4, 3))
    one(x, indices(5, (7,), np.int32), name="default_axis_int32")
    one(x, indices(3, (2, 2), np.int32), -1, name="negative_axis")
    one(x, np.array(-2), 1, name="scalar_index")
    one(random(F32, (9,)), np.array(3, np.int32), 0, name="vector_to_scalar")
    one(random(F32, (9,)), indices(9, (2, 3, 2, 2)), 0, name="vector_by_rank4")
    one(random(F64, (2, 3, 4, 2, 3)), indices(4, (5,)), 2, name="rank5")
    one(random(F32, (50, 16)), indices(50, (2, 11)), 0, name="embedding", constants=(0,))
    one(x, indices(4, (0, 2)), 1, name="no_indices")
    one(random(F32, (0, 4)), indices(4, (3,)), 1, name="empty_data")
    one(random(F32, (3, 4, 0)), indices(4, (2,)), 1, name="empty_rows")
    one(random(F32, (0, 4)), indices(4, (0,)), 0, name="empty_axis_without_indices")


def gather_elements(cases):
    def one(x, index, axis=None, name=""):
        a = axis or 0
        within = tuple(slice(None) if d == a % x.ndim else slice(0, index.shape[d]) for d in range(x.ndim))
        out = np.take_along_axis(x[within], index, a)
        cases.add("GatherElements", [x, index], [out], {} if axis is None else {"axis": axis}, name=name)

    for dtype in ALL:
        one(random(dtype, (3, 5, 2)), indices(5, (3, 4, 2)), 1, name=dtype.name)
    one(random(F32, (4, 3)), indices(4, (7, 3), np.int32), name="default_axis_int32")
    one(random(F32, (4, 5, 6)), indices(6, (2, 3, 9)), -1, name="indices_smaller_and_longer")
    one(random(F32, (8,)), indices(8, (3,)), name="vector")
    one(random(F32, (2, 3, 4, 2, 3)), indices(4, (2, 3, 2, 2, 3)), 2, name="rank5")
    one(random(F32, (3, 4)), indices(4, (3, 0)), 1, name="no_indices")
    one(random(F32, (0, 4)), indices(4, (0, 2)), 1, name="empty")


def slices_of(x, index, batch_dims=0):
    """(where in the lead of the indices, which slice of the data), in row-major order."""
    for at in np.ndindex(*index.shape[:-1]):
        yield at, at[:batch_dims] + tuple(int(i) for i in index[at])


def gather_nd(cases):
    def one(x, index, batch_dims=None, name=""):
        b, k = batch_dims or 0, index.shape[-1]
        out = np.empty(index.shape[:-1] + x.shape[b + k:], x.dtype)
        for at, which in slices_of(x, index, b):
            out[at] = x[which]
        cases.add("GatherND", [x, index], [out], {} if batch_dims is None else {"batch_dims": batch_dims}, name=name)

    def tuples(shape, extents, dtype=np.int64):
        if not extents:
            return np.zeros(shape + (0,), dtype)
        return np.stack([indices(e, shape, dtype) for e in extents], -1)

    for dtype in ALL:
        one(random(dtype, (3, 4, 5)), tuples((2, 3), (3, 4)), name=dtype.name)
    x = random(F32, (2, 3, 4, 5))
    one(x, tuples((6,), (2, 3, 4, 5), np.int32), 0, name="elements_int32")
    one(x, tuples((3, 2), (2,)), name="large_slices")
    one(x, tuples((2, 7), (3,)), 1, name="batch1")
    one(x, tuples((2, 3, 2), (4, 5)), 2, name="batch2")
    one(x, tuples((2, 3), (4,)), 2, name="batch2_one_tuple_each")
    one(random(F32, (6,)), tuples((4,), (6,)), name="vector")
    one(random(F32, (6,)), np.array([-1]), name="one_tuple_to_scalar")
    one(random(F32, (2, 2, 3, 2, 2)), tuples((2, 5), (2, 3)), 1, name="rank5")
    one(x, tuples((0, 2), (2, 3)), name="no_indices")
    one(random(F32, (0, 3, 2)), tuples((0, 4), (3,)), 1, name="empty_batch")
    one(random(F32, (3, 0)), tuples((2,), (3,)), name="empty_slices")


def folded(reduction, a, b):
    if reduction == "none":
        return b
    if reduction == "add":
        return a + b
    if reduction == "mul":
        return a * b
    if a != a or b != b:
        return float("nan")
    return max(a, b) if reduction == "max" else min(a, b)


def scattered(x, targets, updates, reduction):
    """targets: an index of x for each update."""
    if reduction == "none":
        out = x.copy()
        for which, update in zip(targets, updates):
            out[which] = update
        return out
    wide = x.astype(np.float64) if x.dtype in FLOATS else x.astype(object)
    for which, update in zip(targets, updates):
        wide[which] = folded(reduction, wide[which], float(update) if x.dtype in FLOATS else int(update))
    if x.dtype in FLOATS:
        return wide.astype(x.dtype)
    bits = x.dtype.itemsize * 8
    low = wide % (1 << bits)
    return (np.where(low >= 1 << (bits - 1), low - (1 << bits), low) if x.dtype.kind == "i" else low).astype(x.dtype)


def tolerance(reduction, dtype):
    return {"rtol": RTOL[dtype], "atol": RTOL[dtype]} if dtype in FLOATS and reduction in ("add", "mul") else {}


def scatter_elements(cases):
    def one(x, index, axis=None, reduction=None, name=""):
        updates = random(x.dtype, index.shape)
        a = (axis or 0) % x.ndim
        positions = list(np.ndindex(*index.shape))
        targets = [p[:a] + (int(index[p]),) + p[a + 1:] for p in positions]
        out = scattered(x, targets, [updates[p] for p in positions], reduction or "none")
        attrs = {n: v for n, v in (("axis", axis), ("reduction", reduction)) if v is not None}
        cases.add("ScatterElements", [x, index, updates], [out], attrs, name=name, **tolerance(reduction, x.dtype))

    for dtype in ALL:
        one(random(dtype, (3, 5, 2)), indices(5, (3, 4, 2)), 1, name=dtype.name)
    for reduction in ("add", "mul", "max", "min"):
        for dtype in NUMBERS:
            one(random(dtype, (3, 4)), indices(4, (3, 7)), 1, reduction, name=f"{reduction}_{dtype.name}")
    one(random(F32, (4, 3)), indices(4, (2, 3), np.int32), name="default_axis_int32")
    one(random(F32, (4, 5, 6)), indices(6, (2, 3, 9)), -1, "add", name="indices_smaller_and_longer")
    one(random(F32, (4, 5, 6)), indices(4, (6, 2, 5)), 0, "none", name="duplicates_last_one_stays")
    one(random(F32, (8,)), indices(8, (3,)), 0, "max", name="vector")
    one(random(F32, (2, 3, 4, 2, 3)), indices(4, (2, 3, 2, 2, 3)), 2, "mul", name="rank5")
    one(random(F32, (3, 4)), indices(4, (3, 0)), 1, name="no_updates")
    one(random(F32, (3, 4)), indices(4, (0, 3)), 1, "add", name="no_updates_off_axis")
    one(random(F32, (0, 4)), indices(4, (0, 2)), 1, name="empty")
    with_nan = np.array([1, np.nan, 3, -1], F32)
    for reduction in ("max", "min"):
        one(with_nan, np.array([0, 1, 2, 0]), 0, reduction, name=f"{reduction}_nan")


def scatter_nd(cases):
    def one(x, index, reduction=None, name=""):
        k = index.shape[-1]
        updates = random(x.dtype, index.shape[:-1] + x.shape[k:])
        pairs = [(which + rest, updates[at + rest]) for at, which in slices_of(x, index) for rest in np.ndindex(*x.shape[k:])]
        out = scattered(x, [p[0] for p in pairs], [p[1] for p in pairs], reduction or "none")
        attrs = {} if reduction is None else {"reduction": reduction}
        cases.add("ScatterND", [x, index, updates], [out], attrs, name=name, **tolerance(reduction, x.dtype))

    def tuples(shape, extents, dtype=np.int64):
        return np.stack([indices(e, shape, dtype) for e in extents], -1)

    for dtype in ALL:
        one(random(dtype, (3, 4, 2)), tuples((5,), (3, 4)), name=dtype.name)
    for reduction in ("add", "mul", "max", "min"):
        for dtype in (F32, F16, BF16, INTS[0], INTS[3], INTS[7]):
            one(random(dtype, (3, 4)), tuples((6,), (3,)), reduction, name=f"{reduction}_{dtype.name}")
    x = random(F32, (2, 3, 4, 5))
    one(x, tuples((6,), (2, 3, 4, 5), np.int32), "none", name="elements_int32")
    one(x, tuples((3, 2), (2,)), "add", name="large_slices")
    one(random(F32, (6,)), np.array([-1]), name="one_tuple")
    one(random(F32, (2, 2, 3, 2, 2)), tuples((2, 5), (2, 2, 3)), "add", name="rank5")
    one(x, tuples((0,), (2, 3)), "mul", name="no_updates")
    one(random(F32, (3, 0)), tuples((2,), (3,)), name="empty_slices")


def one_hot(cases):
    def one(index, depth, values, axis=None, form="attribute", name=""):
        a = -1 if axis is None else axis
        out_rank = index.ndim + 1
        whole = index.astype(np.int64)
        classes = np.where(whole < 0, whole + depth, whole)
        shape = [1] * out_rank
        shape[a % out_rank] = depth
        hot = np.expand_dims(classes, a % out_rank) == np.arange(depth).reshape(shape)
        out = np.where(hot, values[1], values[0]).astype(values.dtype)
        attrs, inputs = {} if axis is None else {"axis": axis}, [index, None, values]
        if form == "attribute":
            attrs["depth"] = depth
        else:
            inputs[1] = np.array(depth if form == "constant" else [depth], np.int32 if form == "constant" else np.int64)
        cases.add("OneHot", inputs, [out], attrs, name=name, constants=(1,) if form == "constant" else ())

    for dtype in ALL:
        one(indices(5, (2, 3)), 5, np.array([0, 1]).astype(dtype), name=dtype.name)
    for dtype in NUMBERS:
        one(RNG.integers(0, 6, (4, 2)).astype(dtype), 6, np.array([-1.5, 2.5], F32), 1, name=f"indices_{dtype.name}")
    values = np.array([-2, 7], F32)
    for axis in (0, 1, 2, -1, -3):
        one(indices(4, (3, 2)), 4, values, axis, name=f"axis_{axis}".replace("-", "minus"))
    one(np.array([-9, -5, -4, 0, 3, 4, 100, 2**40]), 4, values, name="beyond_depth_is_off")
    one(np.array([0.9, 1.5, -0.5, 2.0], F32), 3, values, name="fractions_are_cut")
    one(np.array(2), 5, values, name="scalar_index")
    one(indices(3, (2, 2)), 3, values, 0, form="constant", name="depth_constant_input")
    one(indices(3, (2, 2)), 3, values, 1, form="dynamic", name="depth_dynamic_input")
    one(indices(2, (2, 1, 3, 2)), 3, values, 2, name="rank4")
    one(indices(2, (0, 3)), 3, values, 1, name="empty")
    one(indices(2, (3,)), 0, values, name="no_classes")


if __name__ == "__main__":
    all_cases = Cases("numpy, integers and sums in Python")
    gather(all_cases)
    gather_elements(all_cases)
    gather_nd(all_cases)
    scatter_elements(all_cases)
    scatter_nd(all_cases)
    one_hot(all_cases)
    all_cases.write(sys.argv[1])
