"""Cases of Softmax, LogSoftmax and Hardmax. The oracle is NumPy in double precision."""
import sys

import numpy as np

from cases import BF16, Cases

TOLERANCE = {"float64": (1e-12, 1e-300), "float32": (1e-6, 1e-44), "float16": (1e-3, 1e-7), "bfloat16": (1e-2, 1e-40)}
FLOATS = [np.float64, np.float32, np.float16, BF16]

random = np.random.default_rng(12)
cases = Cases("NumPy double")


def log_softmax(x, axis):
    if x.size == 0:
        return x
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def softmax(x, axis):
    if x.size == 0:
        return x
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def hardmax(x, axis):
    if x.size == 0:
        return x
    y = np.zeros_like(x)
    np.put_along_axis(y, np.expand_dims(x.argmax(axis=axis), axis), 1, axis)
    return y


FUNCTIONS = {"Softmax": softmax, "LogSoftmax": log_softmax, "Hardmax": hardmax}


def add(op, name, x, axis=None):
    x = np.asarray(x)
    with np.errstate(invalid="ignore", over="ignore"):
        y = FUNCTIONS[op](x.astype(np.float64), -1 if axis is None else axis).astype(x.dtype)
    rtol, atol = (0, 0) if op == "Hardmax" else TOLERANCE[x.dtype.name]
    if op == "LogSoftmax" and rtol:
        atol = {"float64": 1e-12, "float32": 1e-7}.get(x.dtype.name, atol)  # cancels near 0
    cases.add(op, [x], [y], {} if axis is None else {"axis": axis}, name=name, rtol=rtol, atol=atol)


def normal(shape, dtype=np.float32, scale=3.0):
    return (random.standard_normal(shape) * scale).astype(dtype)


for op in FUNCTIONS:
    for t in FLOATS:
        add(op, np.dtype(t).name, normal((4, 9), t))
        add(op, f"{np.dtype(t).name}_axis1", normal((2, 5, 3), t), 1)
    for axis in range(-4, 4):
        add(op, f"rank4_axis{axis}".replace("-", "m"), normal((2, 3, 4, 5)), axis)
    add(op, "rank1", normal((7,)))
    add(op, "rank5", normal((2, 1, 3, 2, 4)), 2)
    add(op, "one_element_axis", normal((3, 1)), 1)
    add(op, "long_line", normal((2, 1001)))
    add(op, "large_values", np.array([[1e4, 1e4 - 1, -1e4], [3e38, -3e38, 0], [-3e38, -3e38, -3e38]], np.float32))
    add(op, "minus_infinity", np.array([[-np.inf, 0, 1], [2, -np.inf, -np.inf]], np.float32))
    add(op, "empty_axis", np.zeros((3, 0), np.float32))
    add(op, "empty_outer", np.zeros((0, 3), np.float32))
    add(op, "empty_other", np.zeros((2, 3, 0), np.float32), 1)
for op in ("Softmax", "LogSoftmax"):
    add(op, "nan_and_infinity", np.array([[np.nan, 0, 1], [np.inf, 0, 1], [0, 1, np.nan]], np.float32))
add("Softmax", "all_masked", np.full((2, 3), -np.inf, np.float32))
add("Hardmax", "ties", np.array([[1, 2, 2], [3, 3, 3], [0, -0.0, -1]], np.float32))
add("Hardmax", "nan", np.array([[1, np.nan, 2], [np.nan, 3, np.nan]], np.float32))

cases.write(sys.argv[1])
