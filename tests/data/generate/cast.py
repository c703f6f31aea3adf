"""Cases of Cast and Identity (ops/unary.cc): every element type to every other. Oracle: exact Python integers, NumPy and ml_dtypes for the
rounding of floats, the tables of ONNX Cast for what lies beyond the largest number (those of opset 24: the ones of 19 to 23 made an
infinity NaN in the FNUZ types, which ONNX's own tests never did). What ONNX leaves undefined follows our definition: a float beyond an
integer's range gives its nearest value, NaN gives 0."""
import math
import sys

import ml_dtypes
import numpy as np

from cases import BF16, NAMES, Cases, Dtype

random = np.random.default_rng(13)
cases = Cases("NumPy and ml_dtypes")

F64, F32, F16 = np.dtype("f8"), np.dtype("f4"), np.dtype("f2")
FLOATS = (F64, F32, F16, BF16)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, -1e-30, 88.8, -88.8, 1e30, -1e30]
F8 = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")}
SMALL = {**F8, **{name: np.dtype(getattr(ml_dtypes, name)) for name in ("int4", "uint4", "float4_e2m1fn")}}
COMPUTE = [*FLOATS, *(np.dtype(k + w) for k in "iu" for w in "1248"), np.dtype(bool)]
LARGEST = {"float8_e4m3fn": 448, "float8_e4m3fnuz": 240, "float8_e5m2": 57344, "float8_e5m2fnuz": 57344, "float4_e2m1fn": 6}


def values(shape, dtype, low=-4.0, high=4.0):
    return random.uniform(low, high, shape).astype(dtype)


def ints(dtype):
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max] + ([-1, -2] if info.min < 0 else [])
    middle = random.integers(max(info.min, -100), min(info.max, 100), 12, endpoint=True)
    return np.array(edges + [int(m) for m in middle], dtype)


def every_code(t):
    return np.arange(256 if t.name in F8 else 16, dtype=np.uint8).view(t)


def source(t):
    """Values that try a source type: all codes of the small ones, edges and middles of the others."""
    if t.name in SMALL:
        return every_code(t)
    if t == np.dtype(bool):
        return np.array([True, False, True])
    if t in FLOATS:
        edges = SPECIAL + [127.5, 128, -128.9, 255.9, 256, 32767.9, 65519, 65520, 2.0 ** 31, -2.0 ** 31, 2.0 ** 63, -2.0 ** 63, 2.0 ** 64,
                           448, 464, 465, 240, 248, 249, 57344, 61440, 61441, 5, 0.25, 0.75, 2.0 ** -9, 2.0 ** -10, 1.5 * 2.0 ** -10,
                           1 + 2.0 ** -11 + 2.0 ** -40, 1 + 2.0 ** -8 + 2.0 ** -50]
        with np.errstate(over="ignore"):
            return np.concatenate([np.array(edges).astype(t), values(11, t, -20, 20)])
    return np.concatenate([ints(t), np.array([(1 << 24) + 1 if t.itemsize > 2 else 7, 16, 31], t)])


def float_to_int(x, low, high):
    if math.isnan(x):
        return 0
    return low if x <= low else high if x >= high else int(x)


def range_of(t):
    if t.name == "int4":
        return -8, 7
    return (0, 15) if t.name == "uint4" else (np.iinfo(t).min, np.iinfo(t).max)


def is_float(t):
    return t in FLOATS or t.name in LARGEST


def nearest(x, t):
    """Exact integers or doubles rounded once to a float type (through double only where that is exact)."""
    if t in (F64, F32):
        return np.array([t.type(int(v)) for v in x], t) if x.dtype.kind in "iu" else x.astype(t)
    wide = x.astype(np.float64)
    if t == F16:
        return wide.astype(t)
    if t == BF16:  # ml_dtypes goes through float and rounds twice: keep what float loses as a last odd bit
        near = wide.astype(np.float32)
        bits = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(wide))
        odd = np.where((near == wide) | np.isnan(wide), near.view(np.uint32), bits | 1).astype(np.uint32)
        return odd.view(np.float32).astype(t)
    return wide.astype(t)


def to_small_float(x, t, saturate):
    wide = x.astype(np.float64)
    near = nearest(x, t)
    largest = np.array(LARGEST[t.name], np.float64)
    if t.name == "float4_e2m1fn":
        return np.where(np.isnan(wide), largest, np.clip(wide, -largest, largest)).astype(t)
    if saturate:
        near = np.where(np.abs(wide) > largest, np.copysign(largest, wide).astype(t), near)
    return near.astype(t)


def cast(x, t, saturate=True):
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64) if is_float(x.dtype) else x.astype(np.int64) if x.dtype.name in ("int4", "uint4", "bool") else x
        if t == np.dtype(bool):
            return wide != 0
        if t.name in LARGEST:
            return to_small_float(wide, t, saturate)
        if is_float(t):
            return nearest(wide, t)
        low, high = range_of(t)
        if is_float(x.dtype):
            return np.array([float_to_int(v, low, high) for v in wide], np.int64 if low < 0 else np.uint64).astype(t)
        wrapped = [((int(v) - low) % (high - low + 1)) + low for v in wide]
        return np.array(wrapped, np.int64 if low < 0 else np.uint64).astype(t)


for a in COMPUTE + list(SMALL.values()):
    x = source(a)
    cases.add("Identity", [x], [x], name=a.name)
    for b in COMPUTE + list(SMALL.values()):
        cases.add("Cast", [x], [cast(x, b)], {"to": Dtype(NAMES[b.name])}, name=f"{a.name}_to_{b.name}")
        if b.name in F8:
            cases.add("Cast", [x], [cast(x, b, False)], {"to": Dtype(NAMES[b.name]), "saturate": 0}, name=f"{a.name}_to_{b.name}_wild")
for shape in [(), (0,), (3, 5, 7)]:
    x = values(shape, F32)
    cases.add("Identity", [x], [x], name=f"{len(shape)}d")
    cases.add("Cast", [x], [x.astype(np.float16)], {"to": Dtype("f16")}, name=f"{len(shape)}d")
    cases.add("Cast", [x], [cast(x.ravel(), SMALL["int4"]).reshape(shape)], {"to": Dtype("i4")}, name=f"int4_{len(shape)}d")
x = values((1500,), F32)  # longer than the blocks that kernels convert at a time
cases.add("Cast", [x], [cast(x, SMALL["uint4"])], {"to": Dtype("u4")}, name="blocks")

cases.write(sys.argv[1])
