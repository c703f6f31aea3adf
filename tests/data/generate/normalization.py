"""Cases of the normalizations. The oracle is NumPy in double precision."""
import sys

import numpy as np

from cases import BF16, Cases, Dtype, NAMES

TOLERANCE = {"float64": (1e-11, 1e-12), "float32": (1e-6, 1e-6), "float16": (1e-3, 1e-6), "bfloat16": (1e-2, 1e-6)}
FLOATS = [np.float64, np.float32, np.float16, BF16]

random = np.random.default_rng(13)
cases = Cases("NumPy double")


def normal(shape, dtype=np.float32, shift=0.0):
    return (random.standard_normal(shape) * 1.5 + shift).astype(dtype)


def wide(a):
    return None if a is None else a.astype(np.float64)


def add(op, name, inputs, outputs, attrs, dtype):
    rtol, atol = TOLERANCE[np.dtype(dtype).name]
    cases.add(op, inputs, outputs, attrs, name=name, rtol=rtol, atol=atol)


def per_channel(p, x):
    """A parameter of shape [C] so that it broadcasts against x."""
    return p.astype(np.float64).reshape((1, -1) + (1,) * (x.ndim - 2)) if x.ndim >= 2 else p.astype(np.float64)


def standardize(x, axes, epsilon):
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = x.sum(axis=axes, keepdims=True) / np.prod([x.shape[a] for a in axes])
        var = ((x - mean) ** 2).sum(axis=axes, keepdims=True) / np.prod([x.shape[a] for a in axes])
        inverse = 1 / np.sqrt(var + epsilon)
        return (x - mean) * inverse, mean, inverse


# BatchNormalization
def batch(name, shape, dtype=np.float32, scale_dtype=None, mean_dtype=None, **attrs):
    channels = shape[1] if len(shape) > 1 else 1
    x = normal(shape, dtype, 0.5)
    scale, bias = (normal((channels,), scale_dtype or dtype) for _ in range(2))
    mean = normal((channels,), mean_dtype or dtype)
    var = np.abs(random.standard_normal(channels)).astype(mean_dtype or dtype)
    s, b, m, v = (per_channel(p, x) for p in (scale, bias, mean, var))
    y = (wide(x) - m) / np.sqrt(v + attrs.get("epsilon", 1e-5)) * s + b
    add("BatchNormalization", name, [x, scale, bias, mean, var], [y.astype(dtype)], attrs, dtype)


for t in FLOATS:
    batch(np.dtype(t).name, (2, 3, 4, 5), t)
batch("epsilon", (2, 3, 5), epsilon=0.125, momentum=0.5, training_mode=0)
batch("mixed_types", (2, 3, 4), np.float16, np.float32, np.float64)
batch("rank1", (5,))
batch("rank2", (3, 7))
batch("rank5", (2, 3, 2, 3, 2))
batch("one_pixel", (1, 1, 1, 1))
batch("empty_batch", (0, 3, 2, 2))
batch("empty_channels", (2, 0, 3))
batch("empty_space", (2, 3, 0))


# InstanceNormalization and GroupNormalization
def instance(name, shape, dtype=np.float32, **attrs):
    x, scale, bias = normal(shape, dtype, 2.0), normal((shape[1],), dtype), normal((shape[1],), dtype)
    y = standardize(wide(x), tuple(range(2, x.ndim)), attrs.get("epsilon", 1e-5))[0]
    y = y * per_channel(scale, x) + per_channel(bias, x)
    add("InstanceNormalization", name, [x, scale, bias], [y.astype(dtype)], attrs, dtype)


for t in FLOATS:
    instance(np.dtype(t).name, (2, 3, 4, 5), t)
instance("epsilon", (3, 2, 7), epsilon=0.5)
instance("rank5", (2, 3, 2, 3, 4))
instance("one_pixel", (2, 3, 1, 1))
instance("empty_batch", (0, 3, 4))
instance("empty_space", (2, 3, 0, 2))


def group(name, shape, groups, dtype=np.float32, **attrs):
    x, scale, bias = normal(shape, dtype, -1.0), normal((shape[1],), dtype), normal((shape[1],), dtype)
    if x.size:
        grouped = wide(x).reshape((shape[0], groups, -1))
        y = standardize(grouped, (2,), attrs.get("epsilon", 1e-5))[0].reshape(shape)
        y = y * per_channel(scale, x) + per_channel(bias, x)
    else:
        y = wide(x)
    add("GroupNormalization", name, [x, scale, bias], [y.astype(dtype)], {"num_groups": groups, **attrs}, dtype)


for t in FLOATS:
    group(np.dtype(t).name, (2, 6, 3, 4), 3, t)
group("stash", (2, 6, 5), 2, np.float16, stash_type=Dtype("f32"))
group("epsilon", (2, 4, 5), 2, epsilon=0.25)
group("one_group", (3, 5, 4), 1)
group("every_channel", (2, 4, 3), 4)
group("rank2", (3, 8), 4)
group("rank5", (1, 4, 2, 3, 2), 2)
group("empty_batch", (0, 4, 3), 2)
group("empty_channels", (2, 0, 3), 2)
group("empty_space", (2, 4, 0), 2)


# LayerNormalization
def layer(name, shape, dtype=np.float32, scale_shape=None, bias_shape=None, outputs=1, bias=True, shift=1.0, **attrs):
    axis = attrs.get("axis", -1) % len(shape)
    x = normal(shape, dtype, shift)
    scale = normal(shape[axis:] if scale_shape is None else scale_shape, dtype)
    b = normal(shape[axis:] if bias_shape is None else bias_shape, dtype) if bias else None
    y, mean, inverse = standardize(wide(x), tuple(range(axis, x.ndim)), attrs.get("epsilon", 1e-5))
    y = y * wide(scale) + (0 if b is None else wide(b))
    stash = {v: k for k, v in NAMES.items()}[attrs.get("stash_type", "f32")]
    stash = BF16 if stash == "bfloat16" else np.dtype(stash)
    results = [y.astype(dtype), mean.astype(stash), inverse.astype(stash)][:outputs]
    loosest = max([dtype, stash] if outputs > 1 else [dtype], key=lambda d: TOLERANCE[np.dtype(d).name][0])
    add("LayerNormalization", name, [x, scale] + ([b] if bias else []), results, attrs, loosest)


for t in FLOATS:
    layer(np.dtype(t).name, (3, 4, 9), t)
    layer(f"{np.dtype(t).name}_statistics", (4, 9), t, outputs=3)
for axis in range(-3, 3):
    layer(f"axis{axis}".replace("-", "m"), (2, 3, 5), axis=axis, outputs=3)
layer("no_bias", (3, 7), bias=False)
layer("mean_only", (3, 7), outputs=2)
layer("epsilon", (3, 7), epsilon=0.5, outputs=3)
layer("stash_bf16", (5, 6), BF16, outputs=3, stash_type=Dtype("bf16"))
layer("stash_f64", (5, 6), np.float64, outputs=3, stash_type=Dtype("f64"))
layer("scalar_parameters", (2, 3, 4), scale_shape=(), bias_shape=(1,), axis=1)
layer("broadcast_parameters", (2, 3, 4), scale_shape=(3, 1), bias_shape=(2, 1, 4), axis=1)
layer("rank1", (11,))
layer("rank5", (2, 1, 3, 2, 4), axis=3)
layer("far_from_zero", (2, 64), outputs=3, epsilon=0.0, shift=4096.0)
layer("empty_rows", (0, 4), outputs=3)
layer("empty_length", (3, 0), outputs=3)


# RMSNormalization
def rms(name, shape, dtype=np.float32, scale_dtype=None, scale_shape=None, **attrs):
    axis = attrs.get("axis", -1) % len(shape)
    out = np.dtype(scale_dtype or dtype)
    x, scale = normal(shape, dtype), normal(shape[axis:] if scale_shape is None else scale_shape, out)
    y = wide(x)
    if x.size:
        y = y / np.sqrt((y**2).mean(axis=tuple(range(axis, x.ndim)), keepdims=True) + attrs.get("epsilon", 1e-5))
    add("RMSNormalization", name, [x, scale], [(y * wide(scale)).astype(out)], attrs, out)


for t in FLOATS:
    rms(np.dtype(t).name, (3, 4, 9), t)
for axis in range(-3, 3):
    rms(f"axis{axis}".replace("-", "m"), (2, 3, 5), axis=axis)
rms("mixed_types", (4, 6), np.float16, np.float32)
rms("mixed_types_narrow", (4, 6), np.float32, BF16, stash_type=Dtype("f32"))
rms("epsilon", (3, 7), epsilon=0.5)
rms("scalar_scale", (3, 7), scale_shape=())
rms("broadcast_scale", (2, 3, 4), scale_shape=(2, 1, 4), axis=1)
rms("empty_rows", (0, 4))
rms("empty_length", (3, 0))


# LpNormalization
def lp(name, x, **attrs):
    axis, p = attrs.get("axis", -1), attrs.get("p", 2)
    norm = (np.abs(wide(x)) ** p).sum(axis=axis, keepdims=True) ** (1 / p)
    y = np.divide(wide(x), norm, out=np.zeros(x.shape), where=norm != 0)
    add("LpNormalization", name, [x], [y.astype(x.dtype)], attrs, x.dtype)


for t in FLOATS:
    lp(f"{np.dtype(t).name}_p1", normal((3, 5), t), p=1)
    lp(f"{np.dtype(t).name}_p2", normal((3, 5), t))
for axis in range(-3, 3):
    lp(f"axis{axis}".replace("-", "m"), normal((2, 3, 5)), axis=axis, p=1 + axis % 2)
lp("zero_line", np.array([[0, 0, 0], [1, -2, 0]], np.float32))
lp("rank1", normal((7,)))
lp("rank5", normal((2, 1, 3, 2, 2)), axis=2)
lp("empty_axis", normal((3, 0)))
lp("empty_other", normal((0, 3)))


# MeanVarianceNormalization
def mean_variance(name, shape, dtype=np.float32, **attrs):
    x = normal(shape, dtype, 1.0)
    axes = attrs.get("axes", [0, 2, 3])
    axes = tuple(a % len(shape) for a in axes) or tuple(range(len(shape)))
    y = wide(x)
    if x.size:
        y = (y - y.mean(axis=axes, keepdims=True)) / (y.std(axis=axes, keepdims=True) + 1e-9)
    add("MeanVarianceNormalization", name, [x], [y.astype(dtype)], attrs, dtype)


for t in FLOATS:
    mean_variance(np.dtype(t).name, (2, 3, 4, 5), t)
mean_variance("axis1", (2, 5, 3), axes=[1])
mean_variance("negative_axes", (2, 5, 3), axes=[-1, -3])
mean_variance("all_axes", (2, 5), axes=[])
mean_variance("unsorted_axes", (2, 3, 4), axes=[2, 0])
mean_variance("rank5", (2, 2, 3, 2, 2), axes=[1, 3])
mean_variance("empty", (2, 0, 3, 2))


# msrt.FusedBatchNormalization
def fused_batch(name, shape, activation, function, dtype=np.float32, alpha=0.0, beta=0.0):
    x = normal(shape, dtype, 0.5)
    scale, bias, mean = (normal((shape[1],), dtype) for _ in range(3))
    var = np.abs(random.standard_normal(shape[1])).astype(dtype)
    s, b, m, v = (per_channel(p, x) for p in (scale, bias, mean, var))
    y = function((wide(x) - m) / np.sqrt(v + 1e-5) * s + b)
    rtol, atol = TOLERANCE[np.dtype(dtype).name]
    attrs = {"activation": activation, "activation_alpha": alpha, "activation_beta": beta}
    cases.add("FusedBatchNormalization", [x, scale, bias, mean, var], [y.astype(dtype)], attrs, domain="msrt", name=name, rtol=rtol, atol=atol)


for t in FLOATS:
    fused_batch(f"relu_{np.dtype(t).name}", (2, 3, 4, 5), "Relu", lambda y: np.maximum(y, 0), t)
fused_batch("sigmoid", (2, 16, 3, 3), "Sigmoid", lambda y: 1 / (1 + np.exp(-y)))
fused_batch("clip", (1, 8, 7), "Clip", lambda y: np.clip(y, -0.5, 0.75), alpha=-0.5, beta=0.75)
fused_batch("none", (3, 7), "", lambda y: y)

cases.write(sys.argv[1])
