"""Cases of ops/binary.cc. Oracle: NumPy; floats in double precision, rounded to the element type at the end; integers as they are."""
import sys

import numpy as np

from cases import BF16, Cases

random = np.random.default_rng(12)
cases = Cases("NumPy")

F64, F32, F16 = np.dtype("f8"), np.dtype("f4"), np.dtype("f2")
FLOATS = {F64: 1e-14, F32: 1e-6, F16: 1e-3, BF16: 1e-2}
SIGNED, UNSIGNED = [np.dtype(t) for t in ("i1", "i2", "i4", "i8")], [np.dtype(t) for t in ("u1", "u2", "u4", "u8")]
INTS = SIGNED + UNSIGNED
BOOL = np.dtype(bool)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3.0], np.float32)
# Pairs of shapes: equal, scalars, one-sided, both-sided, ranks 0 to 5, empty ones.
SHAPES = [((), ()), ((7,), ()), ((3, 5), (3, 5)), ((2, 3, 4), (4,)), ((5, 1), (1, 6)), ((2, 1, 3, 1, 5), (4, 1, 2, 1)),
          ((3, 1, 2), (1, 4, 1)), ((0, 3), (1, 3)), ((1,), (0,)), ((2, 3, 8, 9), (3, 1, 1))]


def floats(shape, t, low=-4.0, high=4.0):
    return random.uniform(low, high, shape).astype(t)


def ints(shape, t, least=None, most=None):
    info = np.iinfo(t)
    x = random.integers(info.min if least is None else max(least, info.min), info.max if most is None else min(most, info.max), shape,
                        endpoint=True, dtype=t)
    return np.asarray(x, t)


def bools(shape):
    return np.asarray(random.integers(0, 2, shape), bool)


def double(f, *inputs, t):
    with np.errstate(all="ignore"):
        return np.asarray(f(*[np.asarray(x).astype(np.float64) for x in inputs])).astype(t)


def label(*parts):
    return "_".join(str(p) for p in parts)


def add_floats(op, f, attrs=None, tag="", low=-4.0, high=4.0):
    for i, (a, b) in enumerate(SHAPES):
        t = list(FLOATS)[i % 4]
        x, y = floats(a, t, low, high), floats(b, t, low, high)
        cases.add(op, [x, y], [double(f, x, y, t=t)], attrs, name=label(tag + t.name, i), rtol=FLOATS[t], atol=FLOATS[t] * 1e-2)
    x, y = SPECIAL[:, None], SPECIAL[None, :]
    cases.add(op, [x, y], [double(f, x, y, t=F32)], attrs, name=tag + "special", rtol=1e-6)


def add_ints(op, f, attrs=None, tag="", types=INTS, second=None):
    """f gets arrays of the element type; NumPy wraps."""
    with np.errstate(all="ignore"):
        for k, t in enumerate(types):
            a, b = SHAPES[2 + k % 7]
            x, y = ints(a, t), ints(b, t) if second is None else second(b, t)
            cases.add(op, [x, y], [np.asarray(f(x, y)).astype(t)], attrs, name=tag + t.name)


def nonzero(shape, t):
    x = ints(shape, t, -20, 20)
    return np.where(x == 0, np.array(3, t), x).astype(t)


def trunc_div(a, b):
    """Exact in Python's integers; the least integer over -1 wraps."""
    def one(x, y):
        x, y = int(x), int(y)
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    low, size = int(np.iinfo(a.dtype).min), 1 << (8 * a.dtype.itemsize)
    a, b = np.broadcast_arrays(a, b)
    flat = [(one(x, y) - low) % size + low for x, y in zip(a.ravel(), b.ravel())]
    return np.array(flat, a.dtype).reshape(a.shape)


add_floats("Add", np.add)
add_floats("Sub", np.subtract)
add_floats("Mul", np.multiply)
add_floats("Div", np.divide, low=0.5)
add_ints("Add", np.add)
add_ints("Sub", np.subtract)
add_ints("Mul", np.multiply)
add_ints("Div", trunc_div, second=nonzero)
for t in SIGNED:
    least = np.array([np.iinfo(t).min, 7, -7], t)
    by = np.array([[-1], [2]], t)
    cases.add("Div", [least, by], [trunc_div(least, by)], name=f"least_{t.name}")
    cases.add("Mod", [least, by], [np.mod(least.astype(object), by.astype(object)).astype(t)], name=f"least_{t.name}")
    trunc_mod = (least.astype(object) - by.astype(object) * trunc_div(least, by).astype(object))
    trunc_mod[0, 0] = 0
    cases.add("Mod", [least, by], [trunc_mod.astype(t)], {"fmod": 1}, name=f"fmod_least_{t.name}")
cases.add("Div", [np.zeros((0, 2), np.int32), np.zeros((1, 2), np.int32)], [np.zeros((0, 2), np.int32)], name="nothing_by_zero")
# Longer than the runs that kernels convert at a time, with and without broadcasting.
x, y = ints((3, 1100), np.dtype("i4")), ints((1100,), np.dtype("i4"))
cases.add("Add", [x, y], [x + y], name="long_rows")
cases.add("Sub", [x, x[:, :1]], [x - x[:, :1]], name="long_rows_column")

add_ints("Mod", np.mod, second=nonzero)
add_ints("Mod", np.fmod, {"fmod": 1}, "fmod_", second=nonzero)
add_floats("Mod", np.fmod, {"fmod": 1}, "fmod_")
add_floats("Mod", np.mod)

# ---- Pow -------------------------------------------------------------------------------------------------------------------------

add_floats("Pow", np.power, low=0.25)
for t in INTS + list(FLOATS):
    y = ints((4, 1), t, 0, 5) if t in INTS else floats((4, 1), t, 0, 3)
    for base, rtol in FLOATS.items():
        x = floats((3, 1, 6), base, 0.5, 2)
        cases.add("Pow", [x, y], [double(np.power, x, y, t=base)], name=label(base.name, t.name), rtol=rtol)
    for base in (np.dtype("i4"), np.dtype("i8")):
        x = ints((6,), base, -9, 9) if t in INTS else ints((6,), base, 0, 9)
        with np.errstate(all="ignore"):
            z = np.power(x, y.astype(base)) if t in INTS else np.trunc(np.power(x.astype(float), y.astype(float))).astype(base)
        cases.add("Pow", [x, y], [z], name=label(base.name, t.name))
x, y = np.array([2, -3, 1, -1, 10], np.int32), np.array([[40], [31], [-1], [-2]], np.int64)
z = np.array([[pow(int(a), int(b)) if b >= 0 else int(1 / int(a) ** -int(b)) for a in x] for b in y.ravel()], object)
z = np.array([[((int(v) + 2 ** 31) % 2 ** 32) - 2 ** 31 for v in row] for row in z], np.int32)
cases.add("Pow", [x, y], [z], name="wraps_and_truncates")
power = np.array([pow(3, 2 ** 64 - 1, 2 ** 64), 0], np.uint64).astype(np.int64)
cases.add("Pow", [np.array([3, 2], np.int64), np.array([2 ** 64 - 1], np.uint64)], [power], name="largest_exponent")
power = np.array([-512, 64, 0.25], np.float32)
cases.add("Pow", [np.array([-8.0, -8.0, 4.0], np.float32), np.array([3, 2, -1], np.int8)], [power], name="negative_base")

# ---- variadic --------------------------------------------------------------------------------------------------------------------

MANY = [[(2, 3, 4)], [(2, 3), (2, 3)], [(3, 1, 2), (4, 1), ()], [(0, 5), (1, 5), (5,)], [(), (), (), ()],
        [(2, 1, 2, 1, 3), (3, 1, 2, 1), (3,), (1,)]]


def fold(f):
    def folded(*xs):
        y = xs[0]
        for x in xs[1:]:
            y = f(y, x)
        return y
    return folded


VARIADIC = {"Max": fold(np.maximum), "Min": fold(np.minimum), "Sum": fold(np.add), "Mean": lambda *xs: fold(np.add)(*xs) / len(xs)}
for op, f in VARIADIC.items():
    for i, shapes in enumerate(MANY):
        t = list(FLOATS)[i % 4]
        xs = [floats(s, t) for s in shapes]
        cases.add(op, xs, [double(f, *xs, t=t)], name=label(t.name, i), rtol=FLOATS[t], atol=FLOATS[t])
        if op in ("Max", "Min"):
            for k, t in enumerate([INTS[i], INTS[(i + 4) % 8]]):
                xs = [ints(s, t) for s in shapes]
                cases.add(op, xs, [np.asarray(f(*xs)).astype(t)], name=label(t.name, i, k))
    xs = [SPECIAL[:, None], SPECIAL[None, :], np.float32(-2)]
    cases.add(op, xs, [double(f, *xs, t=F32)], name="special", rtol=1e-6)

# ---- PRelu -----------------------------------------------------------------------------------------------------------------------

SLOPES = [((2, 3, 4, 5), (3, 1, 1)), ((4, 5), (5,)), ((6,), ()), ((3, 2), (3, 2)), ((), ()), ((0, 3), (3,)), ((2, 3, 4), (1, 1, 1))]
for i, (a, b) in enumerate(SLOPES):
    t = list(FLOATS)[i % 4]
    x, slope = floats(a, t), floats(b, t)
    y = double(lambda p, q: np.where(p < 0, p * q, p), x, slope, t=t)
    cases.add("PRelu", [x, slope], [y], name=label(t.name, i), rtol=FLOATS[t], atol=1e-30)
for t in (np.dtype("i4"), np.dtype("i8"), np.dtype("u4"), np.dtype("u8")):
    x, slope = ints((3, 7), t), ints((7,), t)
    with np.errstate(all="ignore"):
        cases.add("PRelu", [x, slope], [np.where(x < np.array(0, t), x * slope, x).astype(t)], name=t.name)

# ---- bits ------------------------------------------------------------------------------------------------------------------------

add_ints("BitwiseAnd", np.bitwise_and)
add_ints("BitwiseOr", np.bitwise_or)
add_ints("BitwiseXor", np.bitwise_xor)


def shift(x, n, left):
    """In Python's integers: a count outside [0, width) leaves what the sign fills in."""
    width = 8 * x.dtype.itemsize
    low = int(np.iinfo(x.dtype).min)
    a, b = np.broadcast_arrays(x, n)

    def one(v, s):
        s = s if 0 <= s < width else width
        return (((v << s) - low) % (1 << width)) + low if left else v >> s
    return np.array([one(int(v), int(s)) for v, s in zip(a.ravel(), b.ravel())], x.dtype).reshape(a.shape)


for t in INTS:
    x = ints((3, 9), t)
    width = 8 * t.itemsize
    counts = np.array([0, 1, 2, width - 1, width, width + 1, min(100, np.iinfo(t).max), np.iinfo(t).max, np.iinfo(t).min], t)
    cases.add("BitShift", [x, counts], [shift(x, counts, True)], {"direction": "LEFT"}, name=f"left_{t.name}")
    cases.add("BitShift", [x, counts], [shift(x, counts, False)], {"direction": "RIGHT"}, name=f"right_{t.name}")
cases.add("BitShift", [np.zeros((0,), np.uint8), np.array(1, np.uint8)], [np.zeros((0,), np.uint8)], {"direction": "LEFT"}, name="empty")

# ---- logic, comparisons, Where ---------------------------------------------------------------------------------------------------

for op, f in [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)]:
    for i, (a, b) in enumerate(SHAPES):
        x, y = bools(a), bools(b)
        cases.add(op, [x, y], [np.asarray(f(x, y))], name=str(i))


def few_values(shape, t):
    """Small whole numbers, so that equal ones meet."""
    if t == BOOL:
        return bools(shape)
    return ints(shape, t, -2, 2) if t in INTS else np.rint(floats(shape, t, -2, 2)).astype(t)


COMPARISONS = {"Equal": np.equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less, "LessOrEqual": np.less_equal}
for op, f in COMPARISONS.items():
    for i, t in enumerate(list(FLOATS) + INTS + ([BOOL] if op == "Equal" else [])):
        a, b = SHAPES[i % len(SHAPES)]
        x, y = few_values(a, t), few_values(b, t)
        cases.add(op, [x, y], [np.asarray(f(x, y))], name=label(t.name, i))
    with np.errstate(all="ignore"):
        cases.add(op, [SPECIAL[:, None], SPECIAL[None, :]], [f(SPECIAL[:, None], SPECIAL[None, :])], name="special")
    for t in (np.dtype("i8"), np.dtype("u8")):  # beyond what double tells apart
        x = np.array([np.iinfo(t).max, np.iinfo(t).max - 1, np.iinfo(t).min, np.iinfo(t).min + 1], t)
        cases.add(op, [x[:, None], x], [f(x[:, None], x)], name=f"wide_{t.name}")

for i, t in enumerate(list(FLOATS) + INTS + [BOOL]):
    a, b = SHAPES[i % len(SHAPES)]
    condition = bools(b)
    x, y = (bools(a), bools(b)) if t == BOOL else (ints(a, t), ints(b, t)) if t in INTS else (floats(a, t), floats(b, t))
    cases.add("Where", [condition, x, y], [np.asarray(np.where(condition, x, y)).astype(t)], name=label(t.name, i))
condition, x, y = bools((3, 1, 1)), SPECIAL[:5][None, :, None], SPECIAL[5:9]
cases.add("Where", [condition, x, y], [np.where(condition, x, y)], name="three_shapes")

cases.write(sys.argv[1])
