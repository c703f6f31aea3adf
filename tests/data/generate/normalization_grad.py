"""msrt.BatchNormTraining, msrt.BatchNormTrainingGrad and msrt.LayerNormGrad against PyTorch in float64."""
import sys

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from cases import Cases

rng = np.random.default_rng(23)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RTOL = {"f64": 1e-12, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}


def random(shape, kind, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(TYPES[kind])


def wide(a):
    return torch.from_numpy(np.asarray(a, np.float64))


def batch(c, shape, kind="f32", parameters=None, name="", **attrs):
    parameters = parameters or kind
    epsilon = attrs.get("epsilon", 1e-5)
    x, scale, bias = random(shape, kind), random(shape[1:2], parameters, 0.5, 2.0), random(shape[1:2], parameters)
    axes = [0] + list(range(2, len(shape)))
    mean, variance = wide(x).mean(axes), wide(x).var(axes, unbiased=False)
    y = F.batch_norm(wide(x), None, None, wide(scale), wide(bias), training=True, eps=epsilon)
    narrow = [y.numpy().astype(TYPES[kind]), mean.numpy().astype(TYPES[parameters]), variance.numpy().astype(TYPES[parameters])]
    tolerance = dict(rtol=RTOL[kind], atol=RTOL[kind])
    c.add("BatchNormTraining", [x, scale, bias], narrow, attrs, domain="msrt", name=name, **tolerance)
    # The op's statistics are inputs, which are rounded: the formula with those, checked against PyTorch's gradient.
    grad = random(shape, kind)
    t, s, b = wide(x).requires_grad_(), wide(scale).requires_grad_(), wide(bias).requires_grad_()
    out = F.batch_norm(t, None, None, s, b, training=True, eps=epsilon)
    exact = torch.autograd.grad(out, [t, s, b], wide(grad))
    channel = [1, -1] + [1] * (len(shape) - 2)
    inverse = 1 / np.sqrt(np.asarray(narrow[2], np.float64).reshape(channel) + epsilon)
    n = (np.asarray(x, np.float64) - np.asarray(narrow[1], np.float64).reshape(channel)) * inverse
    dy = np.asarray(grad, np.float64)
    average = lambda v: v.mean(tuple(axes), keepdims=True)
    dx = np.asarray(scale, np.float64).reshape(channel) * inverse * (dy - average(dy) - n * average(dy * n))
    gradients = [dx, (dy * n).sum(tuple(axes)), dy.sum(tuple(axes))]
    for mine, theirs in zip(gradients, exact):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=10 * RTOL[parameters], atol=10 * RTOL[parameters])
    types = [TYPES[kind], TYPES[parameters], TYPES[parameters]]
    c.add("BatchNormTrainingGrad", [grad, x, scale] + narrow[1:], [g.astype(k) for g, k in zip(gradients, types)], attrs, domain="msrt",
          name=name, **tolerance)


def layer(c, shape, axis=-1, kind="f32", name="", **attrs):
    inner = shape[axis:]
    x, scale, grad = random(shape, kind), random(inner, kind, 0.5, 2.0), random(shape, kind)
    t, s = wide(x).requires_grad_(), wide(scale).requires_grad_()
    b = torch.zeros(inner, dtype=torch.float64, requires_grad=True)
    gradients = torch.autograd.grad(F.layer_norm(t, inner, s, b, attrs.get("epsilon", 1e-5)), [t, s, b], wide(grad))
    c.add("LayerNormGrad", [grad, x, scale], [g.numpy().astype(TYPES[kind]) for g in gradients], dict(attrs, axis=axis), domain="msrt",
          name=name, rtol=RTOL[kind], atol=RTOL[kind])


c = Cases("PyTorch in float64")
for kind in TYPES:
    batch(c, [2, 3, 4, 5], kind, name=f"{kind}_2d")
batch(c, [2, 4, 3, 3], "f16", "f32", name="half_with_float_parameters")
batch(c, [6, 5], name="no_space")
batch(c, [3, 4, 7], name="1d", epsilon=0.125)
batch(c, [2, 3, 2, 3, 4], name="3d")
batch(c, [4, 16, 5, 6], name="vectors")
batch(c, [2, 48, 9, 9], name="many_channels")
for kind in TYPES:
    layer(c, [2, 3, 8], -1, kind, name=f"{kind}_last")
layer(c, [2, 3, 4, 5], 2, name="two_axes")
layer(c, [3, 4], 0, name="all_axes", epsilon=0.01)
layer(c, [5, 37], name="odd_length")
layer(c, [33, 64], name="many_rows")
c.write(sys.argv[1])
