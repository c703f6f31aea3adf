"""Cases of ops/quantization.cc and ops/quantized_product.cc. Oracle: NumPy; divisions in the precision that ONNX names, everything else in
double or exact integers, ml_dtypes for the rounding of small floats, PyTorch's convolution in double, where sums of bytes are exact."""
import sys

import ml_dtypes
import numpy as np
import torch

from cases import BF16, NAMES, Cases, Dtype

random = np.random.default_rng(23)
cases = Cases("NumPy and ml_dtypes")

F32, F16 = np.dtype("f4"), np.dtype("f2")
F8 = [np.dtype(getattr(ml_dtypes, n)) for n in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")]
I4, U4, F4 = (np.dtype(getattr(ml_dtypes, n)) for n in ("int4", "uint4", "float4_e2m1fn"))
RANGES = {**{np.dtype(t): (np.iinfo(t).min, np.iinfo(t).max) for t in ("i1", "u1", "i2", "u2", "i4")}, I4: (-8, 7), U4: (0, 15)}
LARGEST = dict(zip([*F8, F4], (448, 240, 57344, 57344, 6)))


def spread(p, x_shape, axis, block=0):
    """A scale or zero point for every element of x."""
    p = np.asarray(p)
    if p.size == 1 and not block:
        return np.broadcast_to(p.reshape(()), x_shape)
    if block:
        return np.take(p, np.arange(x_shape[axis]) // block, axis)
    shape = [1] * len(x_shape)
    shape[axis] = -1
    return np.broadcast_to(p.reshape(shape), x_shape)


def store(value, t, saturate=True):
    """Doubles, already whole for integer types, as elements of type t."""
    if t in RANGES:
        return np.clip(value, *RANGES[t]).astype(np.int64).astype(t)
    if saturate:
        value = np.where(np.isnan(value), value, np.clip(value, -LARGEST[t], LARGEST[t]))
    return value.astype(t)


def quantize(x, scale, zero, t, axis=1, block=0, precision=None, saturate=True):
    precision = precision or scale.dtype
    with np.errstate(all="ignore"):
        quotient = x.astype(precision) / spread(scale, x.shape, axis, block).astype(precision)
    assert quotient.dtype == precision
    value = quotient.astype(np.float64)
    if t in RANGES:
        value = np.rint(value)
    return store(value + (0 if zero is None else spread(zero, x.shape, axis, block).astype(np.float64)), t, saturate)


def dequantize(x, scale, zero, t, axis=1, block=0):
    shift = 0 if zero is None else spread(zero, x.shape, axis, block).astype(np.float64)
    return ((x.astype(np.float64) - shift) * spread(scale, x.shape, axis, block).astype(np.float64)).astype(t)


def codes(shape, t):
    if t in RANGES:
        low, high = RANGES[t]
        return random.integers(max(low, -1 << 20), min(high, 1 << 20), shape, endpoint=True).astype(t)
    bits = 16 if t == F4 else 256
    values = random.integers(0, bits, shape).astype(np.uint8).view(t)
    return np.where(np.isfinite(values.astype(np.float32)), values, np.zeros((), t)).astype(t)


def zeros_for(shape, t):
    """Zero points; those of small floats are zero in practice."""
    if t not in RANGES or t == np.dtype("i4"):
        return np.zeros(shape, t)
    low, high = RANGES[t]
    return random.integers(max(low // 2, -100), min(high // 2, 100), shape, endpoint=True).astype(t)


def name_of(t):
    return NAMES[t.name]


# ---- QuantizeLinear, DequantizeLinear ----
def add_quantize(name, x, scale, zero, t, attrs=None, **how):
    y = quantize(x, scale, zero, t, **how)
    cases.add("QuantizeLinear", [x, scale] + ([] if zero is None else [zero]), [y], attrs, name=name)


def add_dequantize(name, x, scale, zero, attrs=None, t=None, **how):
    y = dequantize(x, scale, zero, t or scale.dtype, **how)
    cases.add("DequantizeLinear", [x, scale] + ([] if zero is None else [zero]), [y], attrs, name=name)


INTEGERS = [np.dtype(t) for t in ("i1", "u1", "i2", "u2")] + [I4, U4]
for t in [*INTEGERS, *F8, F4]:
    width = RANGES[t][1] - RANGES[t][0] if t in RANGES else 2 * LARGEST[t]
    x = random.uniform(-width, width, (3, 4, 5)).astype(F32)  # half of them out of range
    scale = np.array(random.uniform(0.4, 1.3), F32)
    add_quantize(f"{name_of(t)}", x, scale, zeros_for((), t), t)
    add_quantize(f"{name_of(t)}_axis", x, random.uniform(0.4, 1.3, 4).astype(F32), zeros_for(4, t), t)
    add_quantize(f"{name_of(t)}_output_dtype", x, scale, None, t, {"output_dtype": Dtype(name_of(t))})
    blocks = random.uniform(0.4, 1.3, (3, 2, 5)).astype(F32)
    add_quantize(f"{name_of(t)}_blocks", x, blocks, zeros_for((3, 2, 5), t), t, {"block_size": 3}, block=3)
    q = codes((3, 4, 5), t)
    add_dequantize(f"{name_of(t)}", q, scale, zeros_for((), t))
    add_dequantize(f"{name_of(t)}_axis", q, random.uniform(0.4, 1.3, 4).astype(F32), zeros_for(4, t))
    add_dequantize(f"{name_of(t)}_blocks", q, blocks, zeros_for((3, 2, 5), t), {"block_size": 2}, block=2)
    add_dequantize(f"{name_of(t)}_bare", q, scale, None)
for t in F8:
    wild = np.array([0, -0.0, 1, -1, 1e30, -1e30, np.inf, -np.inf, np.nan, LARGEST[t], -LARGEST[t]], F32)
    code = Dtype(name_of(t))
    add_quantize(f"{name_of(t)}_wild", wild, np.array(0.5, F32), None, t, {"output_dtype": code, "saturate": 0}, saturate=False)
    add_quantize(f"{name_of(t)}_saturated", wild, np.array(0.5, F32), None, t, {"output_dtype": Dtype(name_of(t))})
    add_dequantize(f"{name_of(t)}_every_code", np.arange(256, dtype=np.uint8).view(t), np.array(0.75, F32), None)

ties = np.arange(-9, 10, dtype=np.float32) / 2
add_quantize("ties", ties, np.array(1, F32), np.array(1, np.int8), np.dtype("i1"))
add_quantize("ties_unsigned", ties * 3, np.array(3, F32), np.array(7, np.uint8), np.dtype("u1"))
u1, i1 = np.dtype("u1"), np.dtype("i1")
x = random.uniform(-300, 300, (2, 6)).astype(F32)
add_quantize("default", x, np.array(1.7, F32), None, u1)
add_quantize("scale_of_one", x, np.array([1.7], F32), np.array([3], u1), u1)
add_quantize("zero_point_of_one", x, np.array(1.7, F32), np.array([3], u1), u1)
for precision in (F16, BF16, F32):
    add_quantize(f"precision_{precision.name}", x, np.array(1.7, F32), np.array(3, u1), u1, {"precision": Dtype(name_of(precision))},
                 precision=precision)
    add_quantize(f"typed_{precision.name}", x.astype(precision), np.array(1.7, precision), np.array(3, i1), i1)
    q = codes((2, 6), i1)
    add_dequantize(f"typed_{precision.name}", q, np.array(1.7, precision), np.array(3, i1))
    add_dequantize(f"output_{precision.name}", q, np.array(1.7, F32), np.array(3, i1), {"output_dtype": Dtype(name_of(precision))},
                   t=precision)
add_quantize("short_scale", x, np.array(1.7, F16), np.array(3, u1), u1)
add_quantize("int32", random.integers(-1000, 1000, (4, 3)).astype(np.int32), np.array(2.5, F32), np.array(-3, i1), i1)
add_dequantize("int32", random.integers(-1 << 23, 1 << 23, (4, 3)).astype(np.int32), np.array(0.25, F32), None)
for axis in (0, -1, -2, 3):
    x = random.uniform(-30, 30, (2, 3, 4, 5)).astype(F32)
    n = x.shape[axis]
    add_quantize(f"axis_{axis}".replace("-", "minus_"), x, random.uniform(0.1, 1, n).astype(F32), zeros_for(n, i1), i1, {"axis": axis}, axis=axis)
    add_dequantize(f"axis_{axis}".replace("-", "minus_"), codes(x.shape, i1), random.uniform(0.1, 1, n).astype(F32), zeros_for(n, i1), {"axis": axis}, axis=axis)
for axis, block in ((0, 3), (1, 4), (2, 2), (2, 16), (-2, 1)):
    shape = (7, 10, 5)
    scales = [-(-d // block) if i == axis % 3 else d for i, d in enumerate(shape)]
    attrs = {"axis": axis, "block_size": block}
    scale = random.uniform(0.1, 1, scales).astype(F32)
    x = random.uniform(-30, 30, shape).astype(F32)
    add_quantize(f"block_{axis % 3}_{block}", x, scale, zeros_for(scales, u1), u1, attrs, axis=axis % 3, block=block)
    add_dequantize(f"block_{axis % 3}_{block}", codes(shape, u1), scale, zeros_for(scales, u1), attrs, axis=axis % 3, block=block)
x = random.uniform(-3, 3, 11).astype(F32)
line = random.uniform(0.01, 0.1, 11).astype(F32)
add_quantize("line", x, line, zeros_for(11, i1), i1, axis=0)
add_quantize("line_blocks", x, line[:3], zeros_for(3, i1), i1, {"block_size": 4, "axis": 0}, axis=0, block=4)
for shape in [(), (0,), (3, 0, 2), (1200,)]:
    x = random.uniform(-30, 30, shape).astype(F32)
    label = "x".join(map(str, shape)) or "scalar"
    add_quantize(f"shape_{label}", x, np.array(0.5, F32), np.array(4, u1), u1)
    add_quantize(f"shape_{label}_u4", x, np.array(2.5, F32), np.array(4, U4), U4)
    add_dequantize(f"shape_{label}", codes(shape, i1), np.array(0.5, F32), None)
add_quantize("empty_axis", np.zeros((3, 0, 2), F32), np.zeros(0, F32), np.zeros(0, u1), u1)


# ---- DynamicQuantizeLinear: step by step in single precision, as ONNX writes it out ----
def dynamic(x):
    low = np.minimum(np.min(x, initial=0).astype(F32), F32.type(0))
    high = np.maximum(np.max(x, initial=0).astype(F32), F32.type(0))
    scale = (high - low) / F32.type(255)
    scale = scale if scale != 0 else F32.type(1)
    zero = np.rint(np.clip(F32.type(0) - low / scale, 0, 255)).astype(u1)
    return quantize(x, np.array(scale, F32), np.array(zero), u1), np.array(scale, F32), np.array(zero, u1)


for name, x in (("mixed", random.uniform(-3, 5, (3, 4, 5))), ("positive", random.uniform(2, 5, 17)),
                ("negative", random.uniform(-5, -2, (4, 4))),
                ("zeros", np.zeros((2, 3))), ("empty", np.zeros((0, 3))), ("scalar", np.array(-2.5)), ("long", random.normal(0, 9, 1500))):
    x = x.astype(F32)
    cases.add("DynamicQuantizeLinear", [x], list(dynamic(x)), name=name)


# ---- products ----
def matrix_parameter(p, rows):
    """A list of several belongs to the rows of A, which is the axis before the last; to the columns of B it broadcasts by itself."""
    p = np.asarray(p)
    return p.reshape(-1, 1) if rows and p.ndim == 1 and p.size != 1 else p.reshape(()) if p.size == 1 else p


def sums(a, a_zero, b, b_zero):
    a, b = a.astype(np.float64), b.astype(np.float64)
    if a_zero is not None:
        a = a - matrix_parameter(a_zero, True).astype(np.float64)
    if b_zero is not None:
        b = b - matrix_parameter(b_zero, False).astype(np.float64)
    return np.matmul(a, b)


def add_matmul_integer(name, a_shape, b_shape, a_type, b_type, a_zero=None, b_zero=None):
    a, b = codes(a_shape, np.dtype(a_type)), codes(b_shape, np.dtype(b_type))
    a_zero = None if a_zero is None else zeros_for(a_zero, np.dtype(a_type))
    b_zero = None if b_zero is None else zeros_for(b_zero, np.dtype(b_type))
    inputs = [a, b] + ([a_zero] if a_zero is not None or b_zero is not None else []) + ([b_zero] if b_zero is not None else [])
    cases.add("MatMulInteger", inputs, [sums(a, a_zero, b, b_zero).astype(np.int32)], name=name)


add_matmul_integer("plain", (3, 4), (4, 5), "u1", "i1")
for a_type in ("u1", "i1"):
    for b_type in ("u1", "i1"):
        add_matmul_integer(f"{a_type}_{b_type}", (3, 7), (7, 2), a_type, b_type, (), ())
add_matmul_integer("zero_b_only", (3, 4), (4, 5), "u1", "u1", None, ())
add_matmul_integer("lists", (3, 4), (4, 5), "u1", "i1", (3,), (5,))
add_matmul_integer("one_element_lists", (3, 4), (4, 5), "u1", "i1", (1,), (1,))
add_matmul_integer("batch", (2, 3, 4, 6), (6, 5), "u1", "i1", (2, 3, 4, 1), (1, 5))
add_matmul_integer("batch_of_b", (4, 6), (2, 3, 6, 5), "i1", "u1", (4, 1), (2, 3, 1, 5))
add_matmul_integer("broadcast", (2, 1, 4, 6), (3, 6, 5), "i1", "u1", (2, 1, 4, 1), (3, 1, 5))
add_matmul_integer("vectors", (6,), (6,), "u1", "i1", (), ())
add_matmul_integer("vector_a", (6,), (2, 6, 3), "u1", "i1", (1,), (3,))
add_matmul_integer("vector_b", (2, 5, 6), (6,), "u1", "i1", (5,), ())
add_matmul_integer("no_depth", (2, 0), (0, 3), "u1", "i1", (), ())
add_matmul_integer("no_rows", (0, 4), (4, 3), "u1", "i1", (0,), (3,))


def add_qlinear_matmul(name, a_shape, b_shape, a_type, b_type, y_type, a_p=(), b_p=(), scale=F32):
    a_type, b_type, y_type = np.dtype(a_type), np.dtype(b_type), np.dtype(y_type)
    a, b = codes(a_shape, a_type), codes(b_shape, b_type)
    if a_type not in RANGES:  # small floats: numbers that leave room for the sum
        a, b = random.uniform(-2, 2, a_shape).astype(a_type), random.uniform(-2, 2, b_shape).astype(b_type)
    a_zero, b_zero, y_zero = zeros_for(a_p, a_type), zeros_for(b_p, b_type), zeros_for((), y_type)
    a_scale, b_scale = random.uniform(0.01, 0.1, a_p).astype(scale), random.uniform(0.01, 0.1, b_p).astype(scale)
    y_scale = np.array(random.uniform(0.1, 0.4), scale)
    wide = sums(a, a_zero, b, b_zero)
    factor = matrix_parameter(a_scale, True).astype(np.float64) * matrix_parameter(b_scale, False).astype(np.float64) / np.float64(y_scale)
    if len(b_shape) == 1 and factor.ndim > 1:
        factor = factor[..., 0]
    value = wide * factor
    assert y_type not in RANGES or np.all(np.abs(value - np.floor(value) - 0.5) > 1e-6), "too close to a tie"
    y = store((np.rint(value) if y_type in RANGES else value) + y_zero.astype(np.float64), y_type)
    cases.add("QLinearMatMul", [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero], [y], name=name)


for a_type in ("u1", "i1"):
    for b_type in ("u1", "i1"):
        add_qlinear_matmul(f"{a_type}_{b_type}", (3, 7), (7, 4), a_type, b_type, a_type)
add_qlinear_matmul("mixed_output", (3, 7), (7, 4), "u1", "i1", "i1")
for scale in (F16, BF16):
    add_qlinear_matmul(f"scale_{scale.name}", (3, 7), (7, 4), "u1", "i1", "u1", scale=scale)
for t in F8:
    add_qlinear_matmul(f"{name_of(t)}", (3, 7), (7, 4), t, t, t)
add_qlinear_matmul("lists", (3, 7), (7, 4), "u1", "i1", "u1", (3,), (4,))
add_qlinear_matmul("one_element_lists", (3, 7), (7, 4), "u1", "i1", "u1", (1,), (1,))
add_qlinear_matmul("batch", (2, 3, 5, 7), (2, 3, 7, 4), "u1", "i1", "u1", (2, 3, 5, 1), (2, 3, 1, 4))
add_qlinear_matmul("broadcast", (2, 1, 5, 7), (3, 7, 4), "u1", "i1", "u1", (2, 1, 5, 1), (1, 4))
add_qlinear_matmul("vector_a", (7,), (2, 7, 4), "u1", "i1", "u1", (), (4,))
add_qlinear_matmul("vector_b", (2, 5, 7), (7,), "u1", "i1", "u1", (2, 5, 1), ())
add_qlinear_matmul("vectors", (7,), (7,), "u1", "i1", "u1")
add_qlinear_matmul("no_depth", (2, 0), (0, 3), "u1", "i1", "u1")
add_qlinear_matmul("empty", (0, 4), (4, 3), "u1", "i1", "u1")
a, b = np.arange(-6, 6, dtype=i1).reshape(12, 1), np.array([[1, 2]], i1)
y = np.rint(np.matmul(a.astype(np.float64), b) / 2)  # ties: a tenth cancels, a half stays
tenth, half, none, one = np.array(0.1, F32), np.array(0.5, F32), np.array(0, i1), np.array(1, i1)
cases.add("QLinearMatMul", [a, tenth, none, b, half, none, tenth, one],
          [(y + 1).astype(i1)], name="ties")


def conv_sums(x, x_zero, w, w_zero, attrs):
    x = x.astype(np.float64) - np.float64(x_zero)
    w = w.astype(np.float64) - np.asarray(w_zero, np.float64).reshape([-1] + [1] * (w.ndim - 1))
    space = x.ndim - 2
    pads = attrs.get("pads", [0] * 2 * space)
    widths = [(0, 0), (0, 0)] + list(zip(pads[:space], pads[space:]))
    f = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[space - 1]
    y = f(torch.tensor(np.pad(x, widths)), torch.tensor(w), stride=tuple(attrs.get("strides", [1] * space)),
          dilation=tuple(attrs.get("dilations", [1] * space)), groups=attrs.get("group", 1))
    return y.numpy()


CONVS = {
    "1d": ((2, 3, 9), (4, 3, 3), {}),
    "2d": ((2, 3, 7, 6), (4, 3, 3, 2), {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
    "3d": ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), {"pads": [1, 1, 0, 0, 1, 1], "dilations": [1, 2, 1]}),
    "groups": ((2, 4, 6, 5), (6, 2, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "depthwise": ((1, 5, 6, 6), (5, 1, 3, 3), {"group": 5, "strides": [2, 2]}),
    "same": ((1, 2, 7, 7), (3, 2, 3, 3), {"auto_pad": "SAME_UPPER"}),
    "no_batch": ((0, 2, 5, 5), (3, 2, 3, 3), {}),
}


def add_convs(name, x_shape, w_shape, attrs, x_type, w_type, per_channel, bias):
    x_type, w_type = np.dtype(x_type), np.dtype(w_type)
    x, w = codes(x_shape, x_type), codes(w_shape, w_type)
    p = (w_shape[0],) if per_channel else ()
    x_zero, w_zero, y_zero = zeros_for((), x_type), zeros_for(p, w_type), zeros_for((), x_type)
    padded = dict(attrs)
    if padded.pop("auto_pad", None):
        padded["pads"] = [1, 1, 1, 1]
    wide = conv_sums(x, x_zero, w, w_zero, padded)
    cases.add("ConvInteger", [x, w, x_zero, w_zero], [wide.astype(np.int32)], attrs, name=name, oracle="PyTorch in double")
    x_scale, w_scale = np.array(0.037, F32), random.uniform(0.01, 0.03, p).astype(F32)
    y_scale = np.array(random.uniform(0.4, 0.8), F32)
    per = [1, -1] + [1] * (x.ndim - 2)
    inputs = [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero]
    if bias:
        inputs.append(random.integers(-20000, 20000, w_shape[0]).astype(np.int32))
        wide = wide + inputs[-1].astype(np.float64).reshape(per)
    value = wide * (np.float64(x_scale) * w_scale.astype(np.float64).reshape(per) / np.float64(y_scale))
    assert np.all(np.abs(value - np.floor(value) - 0.5) > 1e-6), "too close to a tie"
    y = store(np.rint(value) + np.float64(y_zero), x_type)
    cases.add("QLinearConv", inputs, [y], attrs, name=name, oracle="PyTorch in double")


for i, (name, (x_shape, w_shape, attrs)) in enumerate(CONVS.items()):
    add_convs(name, x_shape, w_shape, attrs, "ui"[i % 2] + "1", "iu"[i % 3 == 2] + "1", i % 2 == 1, i % 3 == 0)
    add_convs(f"{name}_other", x_shape, w_shape, attrs, "iu"[i % 2] + "1", "i1", i % 2 == 0, i % 3 != 0)
x, w = codes((1, 1, 4), u1), codes((2, 1, 2), i1)
cases.add("ConvInteger", [x, w], [conv_sums(x, 0, w, 0, {}).astype(np.int32)], name="no_zero_points", oracle="PyTorch in double")


def real_to_bytes(value, y_scale, y_zero, t):
    """Quantised again, for values that are not near a tie."""
    steps = value / np.float64(y_scale)
    assert np.all(np.abs(steps - np.floor(steps) - 0.5) > 1e-5), "too close to a tie"
    return store(np.rint(steps) + np.float64(y_zero), t)


def sigmoid(v):
    small = np.exp(-np.abs(v))
    return np.where(v < 0, small, 1) / (1 + small)


ACTIVATIONS = {"": lambda v: v, "Relu": lambda v: np.maximum(v, 0), "Sigmoid": sigmoid}


def add_fused_matmul(name, a_shape, b_shape, a_type, b_type, *, y_type=None, list_scale=False, zeros=True, b_zero=None, bias=False,
                     residual=False, activation="", transposed=False, constant=True):
    a_type, b_type = np.dtype(a_type), np.dtype(b_type)
    a, b = codes(a_shape, a_type), codes(b_shape, b_type)
    a_zero = zeros_for((), a_type) if zeros else None
    b_zero = None if b_zero is None else np.array(b_zero, b_type)
    a_scale = np.array(random.uniform(0.01, 0.1), F32)
    b_scale = random.uniform(0.01, 0.1, (b_shape[-2 if transposed else -1],) if list_scale else ()).astype(F32)
    value = sums(a, a_zero, np.swapaxes(b, -1, -2) if transposed else b, b_zero) * (np.float64(a_scale) * b_scale.astype(np.float64))
    inputs = [a, a_scale, a_zero, b, b_scale, b_zero, None, None, None, None]
    if bias:
        inputs[8] = random.uniform(-2, 2, value.shape[-1]).astype(F32)
        value = value + inputs[8].astype(np.float64)
    if residual:
        inputs[9] = random.uniform(-2, 2, value.shape).astype(F32)
        value = value + inputs[9].astype(np.float64)
    value = ACTIVATIONS[activation](value)
    y = value.astype(F32)
    if y_type:
        inputs[6], inputs[7] = np.array(random.uniform(0.1, 0.4), F32), zeros_for((), np.dtype(y_type))
        y = real_to_bytes(value, inputs[6], inputs[7], np.dtype(y_type))
    while inputs[-1] is None:
        inputs.pop()
    attrs = {k: v for k, v in {"activation": activation, "transB": int(transposed)}.items() if v}
    cases.add("QuantizedMatMul", inputs, [y], attrs, domain="msrt", name=name, rtol=0 if y_type else 1e-6, constants=(3,) if constant else ())


for a_type in ("u1", "i1"):
    for b_type in ("u1", "i1"):
        for constant in (True, False):
            add_fused_matmul(f"{a_type}_{b_type}{'' if constant else '_computed'}", (5, 70), (70, 33), a_type, b_type, constant=constant)
add_fused_matmul("everything", (2, 5, 64), (64, 48), "u1", "i1", list_scale=True, b_zero=0, bias=True, residual=True, activation="Sigmoid")
add_fused_matmul("quantised", (2, 5, 64), (64, 48), "u1", "i1", y_type="u1", list_scale=True, bias=True, activation="Relu")
add_fused_matmul("quantised_signed", (5, 64), (48, 64), "i1", "i1", y_type="i1", list_scale=True, bias=True, transposed=True)
add_fused_matmul("transposed", (2, 3, 40), (24, 40), "u1", "u1", transposed=True, b_zero=131)
add_fused_matmul("weight_zero", (5, 64), (64, 48), "u1", "i1", b_zero=-7)
add_fused_matmul("weight_zero_computed", (5, 64), (64, 48), "i1", "u1", b_zero=9, constant=False)
add_fused_matmul("unsigned_centred", (5, 64), (64, 48), "u1", "u1", b_zero=128, zeros=False)
add_fused_matmul("batch", (2, 3, 5, 16), (3, 16, 20), "u1", "i1", b_zero=3)
add_fused_matmul("deep", (3, 3000), (3000, 17), "u1", "i1", zeros=False)
add_fused_matmul("empty", (0, 4), (4, 3), "u1", "i1")

# Large sums, which have no exact f32, and 16-bit sums of two products that would saturate.
for a_type, b_type in (("u1", "i1"), ("i1", "i1"), ("u1", "u1"), ("i1", "u1")):
    low, high = RANGES[np.dtype(a_type)]
    a = random.choice(np.array([low, low + 1, high - 1, high], np.int64), (3, 2100)).astype(a_type)
    low, high = RANGES[np.dtype(b_type)]
    b = random.choice(np.array([low, high - 1, high], np.int64), (2100, 9)).astype(b_type)
    zero = np.array(130 if a_type == "u1" else -3, a_type)
    cases.add("MatMulInteger", [a, b, zero], [sums(a, zero, b, None).astype(np.int32)], name=f"extreme_{a_type}_{b_type}", constants=(1,))
    cases.add("MatMulInteger", [a, b, zero], [sums(a, zero, b, None).astype(np.int32)], name=f"extreme_computed_{a_type}_{b_type}")
for a_type, b_type in (("u1", "i1"), ("i1", "u1")):
    x = np.full((1, 40, 6, 6), RANGES[np.dtype(a_type)][1], a_type)
    w = codes((19, 40, 3, 3), np.dtype(b_type))
    w[0], w[1] = RANGES[np.dtype(b_type)][1], RANGES[np.dtype(b_type)][0]
    x_zero, w_zero = zeros_for((), np.dtype(a_type)), np.array(128 if b_type == "u1" else 0, b_type)
    cases.add("ConvInteger", [x, w, x_zero, w_zero], [conv_sums(x, x_zero, w, w_zero, {"pads": [1] * 4}).astype(np.int32)],
              {"pads": [1] * 4}, name=f"extreme_{a_type}_{b_type}", constants=(1, 3), oracle="PyTorch in double")


def add_fused_conv(name, x_shape, w_shape, attrs, x_type, w_type, *, y_type=None, list_scale=True, bias=True, residual=False, activation="",
                   constant=True):
    x_type, w_type = np.dtype(x_type), np.dtype(w_type)
    x, w = codes(x_shape, x_type), codes(w_shape, w_type)
    x_zero, w_zero = zeros_for((), x_type), np.array(128, w_type) if w_type == u1 else None
    x_scale, w_scale = np.array(0.037, F32), random.uniform(0.01, 0.03, (w_shape[0],) if list_scale else ()).astype(F32)
    per = [1, -1] + [1] * (x.ndim - 2)
    value = conv_sums(x, x_zero, w, 0 if w_zero is None else w_zero, attrs) * (np.float64(x_scale) * w_scale.astype(np.float64).reshape(per))
    inputs = [x, x_scale, x_zero, w, w_scale, w_zero, None, None, None, None]
    if bias:
        inputs[8] = random.uniform(-2, 2, w_shape[0]).astype(F32)
        value = value + inputs[8].astype(np.float64).reshape(per)
    if residual:
        inputs[9] = random.uniform(-2, 2, value.shape).astype(F32)
        value = value + inputs[9].astype(np.float64)
    value = ACTIVATIONS[activation](value)
    y = value.astype(F32)
    if y_type:
        inputs[6], inputs[7] = np.array(random.uniform(0.1, 0.4), F32), zeros_for((), np.dtype(y_type))
        y = real_to_bytes(value, inputs[6], inputs[7], np.dtype(y_type))
    while inputs[-1] is None:
        inputs.pop()
    attrs = {**attrs, **({"activation": activation} if activation else {})}
    cases.add("QuantizedConv", inputs, [y], attrs, domain="msrt", name=name, rtol=0 if y_type else 1e-6,
              constants=tuple(i for i in (3, 4, 5) if constant and inputs[i] is not None), oracle="PyTorch in double")


for i, (name, (x_shape, w_shape, attrs)) in enumerate(list(CONVS.items())[:5]):
    add_fused_conv(name, x_shape, w_shape, attrs, "ui"[i % 2] + "1", "i1", list_scale=i % 2 == 0, residual=i % 3 == 0)
    add_fused_conv(f"{name}_quantised", x_shape, w_shape, attrs, "iu"[i % 2] + "1", "iu"[i % 2] + "1", y_type="ui"[i % 2] + "1",
                   activation=("Relu", "")[i % 2], constant=i != 1)
add_fused_conv("wide", (2, 40, 9, 8), (33, 40, 3, 3), {"pads": [1, 1, 1, 1]}, "u1", "i1", y_type="u1", activation="Relu")
add_fused_conv("wide_signed", (2, 40, 9, 8), (33, 40, 3, 3), {"pads": [1, 1, 1, 1]}, "i1", "i1", y_type="i1")
add_fused_conv("wide_real", (2, 40, 9, 8), (33, 40, 1, 1), {}, "i1", "u1", residual=True, activation="Sigmoid")

for a_type, b_type, y_type, activation in (("u1", "u1", "u1", "Relu"), ("i1", "i1", "i1", ""), ("u1", "i1", "u1", ""), ("i1", "i1", "u1", "Relu")):
    shape = (2, 16, 5, 9)
    a, b = codes(shape, np.dtype(a_type)), codes(shape, np.dtype(b_type))
    numbers = [np.array(random.uniform(0.01, 0.1), F32) for _ in range(3)]
    zeros = [zeros_for((), np.dtype(t)) for t in (a_type, b_type, y_type)]
    real = [(v.astype(np.float64) - np.float64(z)) * np.float64(n) for v, z, n in zip((a, b), zeros, numbers)]
    y = real_to_bytes(ACTIVATIONS[activation](real[0] + real[1]), numbers[2], zeros[2], np.dtype(y_type))
    cases.add("QuantizedAdd", [a, numbers[0], zeros[0], b, numbers[1], zeros[1], numbers[2], zeros[2]], [y],
              {"activation": activation} if activation else {}, domain="msrt", name=f"{a_type}_{b_type}_{y_type}")

cases.write(sys.argv[1])
