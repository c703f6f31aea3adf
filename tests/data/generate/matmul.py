"""Cases of MatMul, Gemm and msrt.FusedMatMul. The oracle is NumPy: double precision for floats, wrapping 64 bits for integers."""
import math
import sys

import numpy as np

from cases import BF16, Cases

TOLERANCE = {"float64": (1e-12, 1e-12), "float32": (1e-6, 1e-7), "float16": (1e-3, 1e-6), "bfloat16": (1e-2, 1e-6)}
FLOATS = [np.float64, np.float32, np.float16, BF16]
INTS = [np.int32, np.int64, np.uint32, np.uint64]

random = np.random.default_rng(11)
cases = Cases("NumPy double")


def tensor(shape, dtype=np.float32):
    dtype = np.dtype(dtype)
    if dtype in [np.dtype(t) for t in FLOATS]:
        return random.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)


def tolerance(dtype):
    rtol, atol = TOLERANCE.get(np.dtype(dtype).name, (0, 0))
    return {"rtol": rtol, "atol": atol}


def wide(a):
    """What products are computed in."""
    return a.astype(np.float64) if a.dtype.name in TOLERANCE else a.astype(np.int64).view(np.uint64)


def narrow(a, dtype):
    """Back to the element type; integers keep their low bits."""
    return np.asarray(a).astype(dtype)


def product(a, b):
    return np.matmul(wide(a), wide(b))


def matmul(name, a_shape, b_shape, dtype=np.float32):
    a, b = tensor(a_shape, dtype), tensor(b_shape, dtype)
    cases.add("MatMul", [a, b], [narrow(product(a, b), dtype)], name=name, **tolerance(dtype))


for t in FLOATS + INTS:
    label = np.dtype(t).name
    matmul(f"{label}", (5, 7), (7, 3), t)
    matmul(f"{label}_batch_broadcast", (2, 1, 3, 4), (3, 4, 5), t)
matmul("vector_vector", (9,), (9,))
matmul("vector_matrix", (4,), (4, 6))
matmul("matrix_vector", (6, 4), (4,))
matmul("vector_batch", (4,), (3, 2, 4, 5))
matmul("batch_vector", (3, 2, 5, 4), (4,))
matmul("rank5", (2, 1, 2, 3, 4), (1, 3, 1, 4, 2))
matmul("batch_one_matrix", (3, 4, 5), (5, 6))
matmul("deep", (3, 257), (257, 5))
matmul("one_by_one", (1, 1), (1, 1))
matmul("empty_depth", (3, 0), (0, 4))
matmul("empty_depth_i32", (2, 0), (0, 2), np.int32)
matmul("empty_rows", (0, 3), (3, 4))
matmul("empty_columns", (2, 3), (3, 0))
matmul("empty_batch", (0, 2, 3), (1, 3, 4))
matmul("empty_vectors", (0,), (0,))
x = tensor((2, 3))
x[0, 1] = np.inf
cases.add("MatMul", [x, np.array([[1], [0], [2]], np.float32)], [np.matmul(wide(x), [[1.0], [0], [2]]).astype(np.float32)],
          name="infinity_times_zero", **tolerance(np.float32))


def gemm(name, rows, columns, depth, dtype=np.float32, c_shape=None, **attrs):
    a = tensor((depth, rows) if attrs.get("transA") else (rows, depth), dtype)
    b = tensor((columns, depth) if attrs.get("transB") else (depth, columns), dtype)
    y = product(a.T if attrs.get("transA") else a, b.T if attrs.get("transB") else b)
    factor = float if y.dtype == np.float64 else lambda v: np.int64(v).astype(np.uint64)
    y = y * factor(attrs.get("alpha", 1.0))
    inputs = [a, b]
    if c_shape is not None:
        inputs.append(tensor(c_shape, dtype))
        y = y + factor(attrs.get("beta", 1.0)) * wide(inputs[2])
    cases.add("Gemm", inputs, [narrow(y, dtype)], attrs, name=name, **tolerance(dtype))


for t in FLOATS + INTS:
    gemm(f"{np.dtype(t).name}", 4, 3, 5, t, c_shape=(3,), alpha=2.0, beta=-3.0)
for ta in (0, 1):
    for tb in (0, 1):
        gemm(f"trans_{ta}{tb}", 5, 3, 7, transA=ta, transB=tb, alpha=0.5, beta=1.5, c_shape=(5, 3))
gemm("no_c", 4, 6, 3, alpha=0.25, beta=7.0)
gemm("scalar_c", 4, 6, 3, c_shape=())
gemm("one_c", 4, 6, 3, c_shape=(1,))
gemm("column_c", 4, 6, 3, c_shape=(4, 1))
gemm("row_c", 4, 6, 3, c_shape=(1, 6))
gemm("empty_depth", 3, 2, 0, c_shape=(2,), beta=2.0)
gemm("empty_rows", 0, 2, 3, c_shape=(1, 2))
gemm("empty_columns", 2, 0, 3, c_shape=(2, 1), transB=1)


def erf(v):
    return np.vectorize(math.erf, otypes=[np.float64])(v)


def softplus(v):
    return np.logaddexp(0, v)


ACTIVATIONS = {
    "": lambda v, a, b: v,
    "Relu": lambda v, a, b: np.maximum(v, 0),
    "LeakyRelu": lambda v, a, b: np.where(v < 0, a * v, v),
    "Sigmoid": lambda v, a, b: 1 / (1 + np.exp(-v)),
    "Tanh": lambda v, a, b: np.tanh(v),
    "HardSigmoid": lambda v, a, b: np.clip(a * v + b, 0, 1),
    "HardSwish": lambda v, a, b: v * np.clip(v / 6 + 0.5, 0, 1),
    "Clip": lambda v, a, b: np.clip(v, a, b),
    "Gelu": lambda v, a, b: 0.5 * v * (1 + erf(v / math.sqrt(2))),
    "GeluTanh": lambda v, a, b: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
    "Elu": lambda v, a, b: np.where(v < 0, a * (np.exp(v) - 1), v),
    "Swish": lambda v, a, b: v / (1 + np.exp(-a * v)),
    "Mish": lambda v, a, b: v * np.tanh(softplus(v)),
    "Softplus": lambda v, a, b: softplus(v),
}


def fused(name, a_shape, b_shape, dtype=np.float32, bias=None, residual=False, **attrs):
    a, b = tensor(a_shape, dtype), tensor(b_shape, dtype)
    left = np.swapaxes(a, -1, -2) if attrs.get("transA") else a
    right = np.swapaxes(b, -1, -2) if attrs.get("transB") else b
    y = product(left, right) * attrs.get("alpha", 1.0)
    inputs = [a, b]
    if bias is not None or residual:
        inputs.append(None if bias is None else tensor(bias, dtype))
    if residual:
        inputs.append(tensor(y.shape, dtype))
    for extra in inputs[2:]:
        if extra is not None:
            y = y + wide(extra)
    act = ACTIVATIONS[attrs.get("activation", "")]
    y = act(y, attrs.get("activation_alpha", 0.0), attrs.get("activation_beta", 0.0))
    cases.add("FusedMatMul", inputs, [narrow(y, dtype)], attrs, domain="msrt", name=name, **tolerance(dtype))


for act in ACTIVATIONS:
    alpha, beta = {"HardSigmoid": (0.2, 0.5), "Clip": (-0.5, 1.5), "LeakyRelu": (0.1, 0.0), "Elu": (1.3, 0.0),
                   "Swish": (1.5, 0.0)}.get(act, (0.0, 0.0))
    fused(f"act_{act or 'none'}", (3, 5), (5, 4), bias=(4,), activation=act, activation_alpha=alpha, activation_beta=beta)
for t in FLOATS:
    fused(f"{np.dtype(t).name}", (2, 3, 4), (4, 5), t, bias=(5,), residual=True, activation="Relu")
fused("plain", (2, 3, 4), (2, 4, 5))
fused("transposes", (2, 4, 3), (5, 4), transA=1, transB=1, alpha=0.125)
fused("attention_scores", (2, 3, 5, 4), (2, 3, 6, 4), transB=1, alpha=0.5, bias=(2, 1, 1, 6))
fused("residual_only", (3, 1, 2, 4), (2, 4, 3), residual=True)
fused("vector", (4,), (4, 6), bias=(1,), activation="Relu")
fused("vector_right", (3, 2, 4), (4,), residual=True)
fused("dot", (4,), (4,), bias=(), residual=True)
fused("vector_transposed_matrix", (4,), (6, 4), transB=1, bias=(6,))
fused("empty_depth", (2, 0), (0, 3), bias=(3,), activation="Relu")
fused("empty_batch", (0, 2, 3), (3, 2), bias=(2,), residual=True)

cases.write(sys.argv[1])
