"""Gradients of pools: a brute-force window in float64, checked here against PyTorch's gradients where PyTorch has the form."""
import itertools
import sys

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from cases import Cases

rng = np.random.default_rng(22)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RTOL = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}
MAX = [None, F.max_pool1d, F.max_pool2d, F.max_pool3d]
AVERAGE = [None, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]


def windows(space, attrs):
    """(outputs, begin pad, end pad) of each axis."""
    result = []
    rank = len(space)
    pads, auto = attrs.get("pads", [0] * 2 * rank), attrs.get("auto_pad", "NOTSET")
    for i, n in enumerate(space):
        s = attrs.get("strides", [1] * rank)[i]
        span = attrs.get("dilations", [1] * rank)[i] * (attrs["kernel_shape"][i] - 1) + 1
        if auto.startswith("SAME"):
            out = -(-n // s)
            total = max((out - 1) * s + span - n, 0)
            begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
            result.append((out, begin, total - begin))
            continue
        begin, end = pads[i], pads[rank + i]
        room = n + begin + end - span
        out = room // s + 1
        if attrs.get("ceil_mode", 0):
            out = -(-room // s) + 1
            out -= (out - 1) * s >= n + begin
        result.append((out, begin, end))
    return result


def brute(op, x, grad, attrs):
    rank = x.ndim - 2
    axes = windows(x.shape[2:], attrs)
    strides, dilations = attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    out = np.zeros(x.shape)
    for at in itertools.product(*[range(d) for d in grad.shape]):
        taps = [[at[2 + i] * strides[i] - axes[i][1] + t * dilations[i] for t in range(attrs["kernel_shape"][i])] for i in range(rank)]
        points = list(itertools.product(*[[t for t in ts if 0 <= t < n] for ts, n in zip(taps, x.shape[2:])]))
        if not points:
            continue
        if op == "MaxPoolGrad":
            values = [float(x[at[:2] + p]) for p in points]
            out[at[:2] + points[int(np.argmax(values))]] += float(grad[at])
            continue
        padded = [len([t for t in taps[i] if t < x.shape[2 + i] + axes[i][2]]) for i in range(rank)]
        count = np.prod(padded) if attrs.get("count_include_pad", 0) else len(points)
        for p in points:
            out[at[:2] + p] += float(grad[at]) / count
    return out


def agrees_with_torch(op, x, grad, attrs, dx):
    rank = x.ndim - 2
    pads = attrs.get("pads", [0] * 2 * rank)
    if "auto_pad" in attrs or pads[:rank] != pads[rank:] or any(2 * p > k for p, k in zip(pads, attrs["kernel_shape"])):
        return False
    if op == "AveragePoolGrad" and "dilations" in attrs:
        return False
    t = torch.from_numpy(x.astype(np.float64)).requires_grad_()
    common = dict(stride=attrs.get("strides", [1] * rank), padding=pads[:rank], ceil_mode=bool(attrs.get("ceil_mode", 0)))
    if op == "MaxPoolGrad":
        y = MAX[rank](t, attrs["kernel_shape"], dilation=attrs.get("dilations", [1] * rank), **common)
    else:
        y = AVERAGE[rank](t, attrs["kernel_shape"], count_include_pad=bool(attrs.get("count_include_pad", 0)), **common)
    (got,) = torch.autograd.grad(y, t, torch.from_numpy(grad.astype(np.float64)))
    np.testing.assert_allclose(dx, got.numpy(), rtol=1e-12, atol=1e-12, err_msg=f"{op} {attrs}")
    return True


def add(c, op, shape, kind="f32", name="", x=None, **attrs):
    x = rng.uniform(-1, 1, shape).astype(TYPES[kind]) if x is None else x
    grad = rng.uniform(-1, 1, list(shape[:2]) + [a[0] for a in windows(shape[2:], attrs)]).astype(TYPES[kind])
    dx = brute(op, x, grad, attrs)
    oracle = "brute force in float64" + (", agrees with PyTorch" if agrees_with_torch(op, x, grad, attrs, dx) else "")
    given = [grad, x] if op == "MaxPoolGrad" else [grad, np.array(shape, np.int64)]
    c.add(op, given, [dx.astype(TYPES[kind])], attrs, domain="msrt", name=name, rtol=RTOL[kind], atol=RTOL[kind], oracle=oracle,
          constants=() if op == "MaxPoolGrad" else (1,))


def shared_cases(c, op):
    for kind in TYPES:
        add(c, op, [2, 3, 7, 6], kind, name=f"{kind}_3x3", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    add(c, op, [1, 2, 11], name="1d", kernel_shape=[4], strides=[3])
    add(c, op, [1, 2, 5, 6, 7], name="3d", kernel_shape=[2, 3, 2], strides=[2, 1, 3], pads=[1, 0, 1, 0, 2, 1])
    add(c, op, [2, 16, 8, 8], name="halves", kernel_shape=[2, 2], strides=[2, 2])
    add(c, op, [1, 16, 13, 11], name="vectors", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    add(c, op, [1, 2, 9, 8], name="dilated", kernel_shape=[3, 2], dilations=[2, 3], pads=[1, 0, 1, 0])
    add(c, op, [1, 2, 8, 9], name="ceil_mode", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    add(c, op, [1, 2, 9, 10], name="stride_beyond_kernel", kernel_shape=[1, 2], strides=[3, 4])
    add(c, op, [1, 1, 3, 4], name="windows_in_padding_only", kernel_shape=[2, 2], pads=[4, 3, 2, 5], strides=[1, 2])
    for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        add(c, op, [1, 2, 9, 8], name=auto, kernel_shape=[4, 3], strides=[2, 2], auto_pad=auto)


c = Cases("brute force in float64")
shared_cases(c, "MaxPoolGrad")
add(c, "MaxPoolGrad", [2, 16, 7, 7], name="ties", x=rng.integers(0, 2, [2, 16, 7, 7]).astype(np.float32), kernel_shape=[3, 3], strides=[2, 2])
shared_cases(c, "AveragePoolGrad")
add(c, "AveragePoolGrad", [1, 2, 7, 6], name="counts_padding", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
add(c, "AveragePoolGrad", [1, 2, 8, 8], name="counts_padding_ceil", kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1],
    count_include_pad=1, ceil_mode=1)
c.add("MaxPoolGrad", [np.zeros([0, 3, 2, 2], np.float32), np.zeros([0, 3, 4, 4], np.float32)], [np.zeros([0, 3, 4, 4], np.float32)],
      {"kernel_shape": [2, 2], "strides": [2, 2]}, domain="msrt", name="empty_batch", oracle="by hand")
c.write(sys.argv[1])
