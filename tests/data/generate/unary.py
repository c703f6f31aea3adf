"""Cases of ops/unary.cc. Oracle: the definition of each op in NumPy, in double precision, rounded to the element type at the end."""
import math
import sys

import ml_dtypes
import numpy as np

from cases import BF16, Cases

random = np.random.default_rng(11)
cases = Cases("NumPy in double precision")

F64, F32, F16 = np.dtype("f8"), np.dtype("f4"), np.dtype("f2")
FLOATS = {F64: 1e-14, F32: 1e-6, F16: 1e-3, BF16: 1e-2}
SHAPES = {F64: (), F32: (2, 3, 1, 5, 7), F16: (4, 33), BF16: (3, 0, 2)}
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, -1e-30, 88.8, -88.8, 1e30, -1e30]
SIGNED, UNSIGNED = ["i1", "i2", "i4", "i8"], ["u1", "u2", "u4", "u8"]
vector = np.vectorize


def name_of(dtype):
    return np.dtype(dtype).name


def values(shape, dtype, low=-4.0, high=4.0):
    return random.uniform(low, high, shape).astype(dtype)


def round_to(x, dtype):
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(dtype)


def add_float(op, f, low=-4.0, high=4.0, special=True, attrs=None, tag=""):
    """Four types with their own shapes (one of them empty, one a scalar), and the special values."""
    with np.errstate(all="ignore"):
        for dtype, rtol in FLOATS.items():
            shapes = [SHAPES[dtype]] + ([(37,)] if dtype == BF16 else [])
            for shape in shapes:
                x = values(shape, dtype, low, high)
                y = round_to(f(x.astype(np.float64)), dtype)
                cases.add(op, [x], [y], attrs, name=f"{tag}{name_of(dtype)}_{len(shape)}d", rtol=rtol, atol=rtol * 1e-2)
        if special:
            x = np.array(SPECIAL, np.float32)
            y = round_to(f(x.astype(np.float64)), np.float32)
            cases.add(op, [x], [y], attrs, name=f"{tag}special", rtol=1e-6, atol=1e-30)


def erf(x):
    return vector(math.erf, otypes=[float])(x)


def softplus(x):
    return np.logaddexp(0, x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


f32 = lambda v: float(np.float32(v))  # noqa: E731, attribute defaults are of single precision

add_float("Abs", np.abs)
add_float("Neg", np.negative)
add_float("Sign", np.sign)
add_float("Ceil", np.ceil)
add_float("Floor", np.floor)
add_float("Round", np.rint)
add_float("Sqrt", np.sqrt, 0, 9)
add_float("Reciprocal", np.reciprocal, 0.25, 5)
add_float("Exp", np.exp)
add_float("Log", np.log, 0.01, 50)
add_float("Erf", erf)
add_float("Sin", np.sin, -20, 20, special=False)
add_float("Cos", np.cos, -20, 20, special=False)
add_float("Tan", np.tan, -1.5, 1.5, special=False)
add_float("Asin", np.arcsin, -1, 1)
add_float("Acos", np.arccos, -1, 1)
add_float("Atan", np.arctan)
add_float("Sinh", np.sinh)
add_float("Cosh", np.cosh)
add_float("Tanh", np.tanh)
add_float("Asinh", np.arcsinh)
add_float("Acosh", np.arccosh, 1, 20)
add_float("Atanh", np.arctanh, -0.99, 0.99)
add_float("Sigmoid", sigmoid)
add_float("Relu", lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)))
add_float("LeakyRelu", lambda x: np.where(x < 0, f32(0.01) * x, x), tag="default_")
add_float("LeakyRelu", lambda x: np.where(x < 0, -0.75 * x, x), attrs={"alpha": -0.75}, tag="alpha_")
add_float("Elu", lambda x: np.where(x < 0, np.exp(x) - 1, x), special=False, tag="default_")
add_float("Elu", lambda x: np.where(x < 0, 2.5 * np.expm1(x), x), attrs={"alpha": 2.5}, tag="alpha_")
SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
add_float("Selu", lambda x: SELU_GAMMA * np.where(x < 0, SELU_ALPHA * np.expm1(x), x), tag="default_")
add_float("Selu", lambda x: 0.5 * np.where(x < 0, 3.0 * np.expm1(x), x), attrs={"alpha": 3.0, "gamma": 0.5}, tag="attrs_")
add_float("Celu", lambda x: np.maximum(0, x) + np.minimum(0, np.expm1(x)), tag="default_")
add_float("Celu", lambda x: np.maximum(0, x) + np.minimum(0, 0.25 * np.expm1(x / 0.25)), attrs={"alpha": 0.25}, tag="alpha_")
add_float("Celu", lambda x: np.maximum(0, x) + np.minimum(0, -2.0 * np.expm1(x / -2.0)), attrs={"alpha": -2.0}, tag="negative_",
          special=False)
add_float("ThresholdedRelu", lambda x: np.where(x > 1, x, 0), tag="default_")
add_float("ThresholdedRelu", lambda x: np.where(x > -0.5, x, 0), attrs={"alpha": -0.5}, tag="alpha_")
add_float("HardSigmoid", lambda x: np.clip(f32(0.2) * x + 0.5, 0, 1), tag="default_")
add_float("HardSigmoid", lambda x: np.clip(0.5 * x - 0.25, 0, 1), attrs={"alpha": 0.5, "beta": -0.25}, tag="attrs_")
add_float("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), -5, 5)
add_float("Softplus", softplus)
add_float("Softsign", lambda x: x / (1 + np.abs(x)))
add_float("Gelu", lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), tag="erf_")
add_float("Gelu", lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), attrs={"approximate": "tanh"},
          tag="tanh_")
add_float("Mish", lambda x: x * np.tanh(softplus(x)))
add_float("Swish", lambda x: x * sigmoid(x), tag="default_", special=False)
add_float("Swish", lambda x: x * sigmoid(-1.5 * x), attrs={"alpha": -1.5}, tag="alpha_", special=False)


def shrink(x, bias, lambd):
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


add_float("Shrink", lambda x: shrink(x, 0, 0.5), tag="default_")
add_float("Shrink", lambda x: shrink(x, 0.25, 1.25), attrs={"bias": 0.25, "lambd": 1.25}, tag="attrs_")

# ---- integers: every result has the same bits ------------------------------------------------------------------------------------


def ints(dtype, count=40):
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max] + ([-1, -2] if info.min < 0 else [])
    middle = random.integers(max(info.min, -100), min(info.max, 100), count - len(edges), endpoint=True)
    return np.array(edges + [int(m) for m in middle], dtype).reshape(4, -1)


with np.errstate(all="ignore"):
    for t in SIGNED + UNSIGNED:
        x = ints(t)
        label = name_of(t)
        cases.add("Abs", [x], [np.abs(x)], name=label)
        cases.add("Sign", [x], [np.sign(x)], name=label)
        cases.add("BitwiseNot", [x], [np.invert(x)], name=label)
        cases.add("Shrink", [x], [np.where(np.abs(x.astype(object)) > 3, x, 0).astype(t)], {"lambd": 3.0}, name=label)
        if t in SIGNED:
            cases.add("Neg", [x], [np.negative(x)], name=label)
            cases.add("Relu", [x], [np.maximum(x, np.array(0, t))], name=label)
    x = values((5, 9), np.int32, -50, 50)
    cases.add("Shrink", [x], [np.trunc(shrink(x.astype(float), 1.5, 7.25)).astype(np.int32)], {"bias": 1.5, "lambd": 7.25}, name="int_bias")
for shape in [(), (0, 3), (3, 5, 7)]:
    x = random.integers(0, 2, shape).astype(bool)
    cases.add("Not", [x], [~x], name=f"{len(shape)}d")

# ---- IsNaN, IsInf ----------------------------------------------------------------------------------------------------------------

F8 = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")}
for t in [F64, F32, F16, BF16] + list(F8.values()):
    x = np.arange(256, dtype=np.uint8).view(t).reshape(16, 16) if t.itemsize == 1 else round_to(SPECIAL, t)
    wide = x.astype(np.float64)
    cases.add("IsNaN", [x], [np.isnan(wide)], name=t.name)
    cases.add("IsInf", [x], [np.isinf(wide)], name=t.name)
    cases.add("IsInf", [x], [np.isposinf(wide)], {"detect_negative": 0}, name=f"positive_{t.name}")
    cases.add("IsInf", [x], [np.isneginf(wide)], {"detect_positive": 0}, name=f"negative_{t.name}")
cases.add("IsInf", [round_to(SPECIAL, F32)], [np.zeros(len(SPECIAL), bool)], {"detect_negative": 0, "detect_positive": 0}, name="neither")
cases.add("IsNaN", [np.zeros((2, 0), np.float32)], [np.zeros((2, 0), bool)], name="empty")

# ---- Clip ------------------------------------------------------------------------------------------------------------------------


def clip(x, low, high):
    with np.errstate(invalid="ignore"):
        y = x if low is None else np.where(x < low, low, x)
        return (y if high is None else np.where(y > high, high, y)).astype(x.dtype)


for t in FLOATS:
    x = values((5, 2, 7), t)
    low, high = np.array(-1.25, t), np.array(2.5, t)
    cases.add("Clip", [x], [clip(x, low, high)], {"min": -1.25, "max": 2.5}, name=f"attrs_{name_of(t)}")
    cases.add("Clip", [x, low, high], [clip(x, low, high)], name=f"inputs_{name_of(t)}")
x = np.array(SPECIAL, np.float32)
cases.add("Clip", [x], [x], name="unbounded")
cases.add("Clip", [x], [clip(x, np.float32(0), np.float32(6))], {"min": 0.0, "max": 6.0}, name="relu6_special")
cases.add("Clip", [x], [clip(x, np.float32(1), None)], {"min": 1.0}, name="min_only")
cases.add("Clip", [x, None, np.array([1], np.float32)], [clip(x, None, np.float32(1))], name="max_input_of_one")
cases.add("Clip", [np.float32(3)], [np.float32(1)], {"min": 2.0, "max": 1.0}, name="crossed")
cases.add("Clip", [np.float32(3), np.array([-1], np.float32), np.array([1], np.float32)], [np.float32(1)], name="scalar_with_bounds_of_one")
cases.add("Clip", [np.zeros((0, 4), np.float32)], [np.zeros((0, 4), np.float32)], {"max": 1.0}, name="empty")
for t in SIGNED + UNSIGNED:
    x = ints(t)
    cases.add("Clip", [x], [clip(x, np.array(3, t), np.array(17, t))], {"min": 2.5, "max": 17.5}, name=f"attrs_{name_of(t)}")
    cases.add("Clip", [x], [clip(x, np.array(max(np.iinfo(t).min, -5), t), None)], {"min": -5.0, "max": 1e30}, name=f"wide_{name_of(t)}")
    low, high = np.array(np.iinfo(t).min + 1, t), np.array(np.iinfo(t).max - 1, t)
    cases.add("Clip", [x, low, high], [clip(x, low, high)], name=f"inputs_{name_of(t)}")

cases.write(sys.argv[1])
