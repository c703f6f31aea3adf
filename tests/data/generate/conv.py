"""Conv, ConvTranspose and msrt.FusedConv against PyTorch in float64. Padding is applied outside PyTorch (it knows neither
asymmetric pads nor SAME): the input is padded before a convolution, the full result of a transposed one is cropped after it."""
import sys

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from cases import Cases

rng = np.random.default_rng(20)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RTOL = {"f64": 1e-13, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}
CONV = [None, F.conv1d, F.conv2d, F.conv3d]
TRANSPOSED = [None, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d]
ACTIVATIONS = {
    "": lambda v, a, b: v,
    "Relu": lambda v, a, b: F.relu(v),
    "LeakyRelu": lambda v, a, b: F.leaky_relu(v, a),
    "Sigmoid": lambda v, a, b: torch.sigmoid(v),
    "Tanh": lambda v, a, b: torch.tanh(v),
    "HardSigmoid": lambda v, a, b: torch.clamp(a * v + b, 0, 1),
    "HardSwish": lambda v, a, b: F.hardswish(v),
    "Clip": lambda v, a, b: torch.clamp(v, a, b),
    "Gelu": lambda v, a, b: F.gelu(v),
    "GeluTanh": lambda v, a, b: F.gelu(v, approximate="tanh"),
    "Elu": lambda v, a, b: F.elu(v, a),
    "Swish": lambda v, a, b: v * torch.sigmoid(a * v),
    "Mish": lambda v, a, b: F.mish(v),
    "Softplus": lambda v, a, b: F.softplus(v),
}


def random(shape, kind):
    return rng.uniform(-1, 1, shape).astype(TYPES[kind])


def as_torch(a):
    return torch.from_numpy(np.asarray(a, dtype=np.float64))


def spans(kernel, dilations):
    return [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]


def split(total, auto_pad):
    begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
    return begin, total - begin


def pads_of(attrs, space, kernel):
    """(begin, end) of each axis of a convolution."""
    rank = len(space)
    strides = attrs.get("strides", [1] * rank)
    auto = attrs.get("auto_pad", "NOTSET")
    if auto.startswith("SAME"):
        span = spans(kernel, attrs.get("dilations", [1] * rank))
        return [split(max((-(-n // s) - 1) * s + e - n, 0), auto) for n, s, e in zip(space, strides, span)]
    pads = attrs.get("pads", [0] * 2 * rank)
    return list(zip(pads[:rank], pads[rank:]))


def conv(x, w, b, attrs):
    rank = x.ndim - 2
    pads = pads_of(attrs, x.shape[2:], w.shape[2:])
    padded = np.pad(np.asarray(x, np.float64), [(0, 0), (0, 0)] + pads)
    bias = None if b is None else as_torch(b)
    return CONV[rank](as_torch(padded), as_torch(w), bias, stride=attrs.get("strides", [1] * rank),
                      dilation=attrs.get("dilations", [1] * rank), groups=attrs.get("group", 1))


def conv_transpose(x, w, b, attrs):
    rank = x.ndim - 2
    strides, dilations = attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    more = attrs.get("output_padding", [0] * rank)
    auto = attrs.get("auto_pad", "NOTSET")
    full = TRANSPOSED[rank](as_torch(x), as_torch(w), None, stride=strides, dilation=dilations, groups=attrs.get("group", 1)).numpy()
    pads = attrs.get("pads", [0] * 2 * rank)
    for i in range(rank):
        n = full.shape[2 + i]
        size = attrs["output_shape"][i] if "output_shape" in attrs else x.shape[2 + i] * strides[i] if auto.startswith("SAME") else None
        begin, end = (pads[i], pads[rank + i]) if size is None else split(max(n + more[i] - size, 0), auto)
        size = n + more[i] - begin - end if size is None else size
        wide = np.pad(full, [(0, 0)] * (2 + i) + [(0, max(begin + size - n, 0))] + [(0, 0)] * (rank - 1 - i))
        full = np.take(wide, range(begin, begin + size), axis=2 + i)
    if b is not None:
        full = full + np.asarray(b, np.float64).reshape([1, -1] + [1] * rank)
    return torch.from_numpy(full)


def add(c, op, x_shape, w_shape, kind="f32", bias=True, name="", **attrs):
    x, w = random(x_shape, kind), random(w_shape, kind)
    outputs = w_shape[1] * attrs.get("group", 1) if op == "ConvTranspose" else w_shape[0]
    b = random([outputs], kind) if bias else None
    y = (conv_transpose if op == "ConvTranspose" else conv)(x, w, b, attrs).numpy().astype(TYPES[kind])
    c.add(op, [x, w] + ([b] if bias else []), [y], attrs, name=name, rtol=RTOL[kind], atol=RTOL[kind])


def add_fused(c, x_shape, w_shape, activation, kind="f32", bias=True, residual=True, alpha=0.0, beta=0.0, **attrs):
    x, w = random(x_shape, kind), random(w_shape, kind)
    b = random([w_shape[0]], kind) if bias else None
    y = conv(x, w, b, attrs)
    z = random(y.shape, kind) if residual else None
    if residual:
        y = y + as_torch(z)
    y = ACTIVATIONS[activation](y, alpha, beta).numpy().astype(TYPES[kind])
    attrs = dict(attrs, activation=activation, activation_alpha=float(alpha), activation_beta=float(beta))
    c.add("FusedConv", [x, w, b, z] if residual else [x, w, b], [y], attrs, domain="msrt", name=f"{activation or 'none'}_{len(c.cases)}",
          rtol=RTOL[kind], atol=RTOL[kind])


def conv_cases(c):
    for kind in TYPES:
        add(c, "Conv", [2, 3, 7, 6], [4, 3, 3, 3], kind, name=f"{kind}_3x3", pads=[1, 1, 1, 1])
    add(c, "Conv", [1, 3, 11], [2, 3, 4], name="1d", strides=[2], pads=[2, 1])
    add(c, "Conv", [1, 2, 5, 6, 7], [3, 2, 3, 2, 3], name="3d", strides=[1, 2, 1], pads=[1, 0, 2, 0, 1, 1], dilations=[2, 1, 1])
    add(c, "Conv", [2, 4, 5, 5], [6, 4, 1, 1], bias=False, name="pointwise", strides=[2, 2])
    add(c, "Conv", [1, 3, 9, 10], [2, 3, 3, 4], name="asymmetric_pads", strides=[2, 3], pads=[0, 3, 2, 1], kernel_shape=[3, 4])
    add(c, "Conv", [1, 2, 13, 12], [2, 2, 3, 3], name="dilated", dilations=[3, 2], pads=[3, 2, 3, 2])
    add(c, "Conv", [1, 2, 8, 9], [2, 2, 1, 2], name="stride_beyond_kernel", strides=[3, 4], pads=[1, 0, 0, 1])
    add(c, "Conv", [1, 1, 3, 3], [2, 1, 2, 2], name="windows_in_padding_only", pads=[5, 4, 4, 6], strides=[2, 1])
    add(c, "Conv", [1, 1, 4], [2, 1, 2], name="dilated_windows_in_padding_only", pads=[9, 9], dilations=[3], strides=[2])
    for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        add(c, "Conv", [1, 2, 9, 8], [3, 2, 4, 3], name=f"{auto}_stride_2", auto_pad=auto, strides=[2, 2])
        add(c, "Conv", [1, 2, 10], [3, 2, 3], name=f"{auto}_dilated", auto_pad=auto, dilations=[2], strides=[3])
    add(c, "Conv", [1, 2, 7], [2, 2, 1], name="SAME_stride_beyond_kernel", auto_pad="SAME_UPPER", strides=[3])
    add(c, "Conv", [2, 6, 6, 5], [9, 2, 3, 2], name="groups_of_3", group=3, pads=[1, 1, 1, 0])
    add(c, "Conv", [1, 8, 5], [12, 2, 3], "f64", name="groups_of_4", group=4, strides=[2], pads=[1, 1])
    add(c, "Conv", [1, 5, 6, 6], [5, 1, 3, 3], name="depthwise", group=5, pads=[1, 1, 1, 1])
    add(c, "Conv", [1, 4, 6, 6], [8, 1, 3, 3], "f16", bias=False, name="depthwise_multiplier", group=4, strides=[2, 2])
    add(c, "Conv", [0, 3, 5, 5], [2, 3, 3, 3], name="empty_batch")
    c.add("Conv", [random([1, 3, 5], "f32"), np.zeros([0, 3, 3], np.float32)], [np.zeros([1, 0, 3], np.float32)], name="no_outputs",
          oracle="by hand")
    c.add("Conv", [np.zeros([2, 0, 4], np.float32), np.zeros([3, 0, 2], np.float32), np.array([1, 2, 3], np.float32)],
          [np.tile(np.array([1, 2, 3], np.float32).reshape(1, 3, 1), [2, 1, 3])], name="no_inputs", oracle="by hand")
    c.add("Conv", [np.zeros([1, 2, 0, 4], np.float32), np.zeros([3, 2, 3, 3], np.float32)], [np.zeros([1, 3, 0, 2], np.float32)],
          name="empty_image", oracle="by hand")


def transposed_cases(c):
    op = "ConvTranspose"
    for kind in TYPES:
        add(c, op, [2, 3, 4, 5], [3, 4, 3, 3], kind, name=f"{kind}_stride_2", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    add(c, op, [1, 3, 6], [3, 2, 4], name="1d", strides=[3], pads=[0, 2])
    add(c, op, [1, 2, 3, 4, 3], [2, 2, 2, 3, 2], name="3d", strides=[2, 1, 3], pads=[1, 0, 0, 0, 2, 1], dilations=[1, 2, 1])
    add(c, op, [1, 2, 5, 5], [2, 3, 2, 2], bias=False, name="kernel_is_stride", strides=[2, 2])
    add(c, op, [1, 2, 4, 3], [2, 2, 2, 1], name="stride_beyond_kernel", strides=[5, 3], pads=[1, 0, 0, 0], output_padding=[3, 2])
    add(c, op, [1, 2, 5, 4], [2, 2, 3, 3], name="dilated", dilations=[3, 2], strides=[2, 1], pads=[3, 1, 2, 4])
    add(c, op, [1, 1, 4], [1, 1, 3], name="dilated_output_padding", dilations=[3], output_padding=[2])
    for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        add(c, op, [1, 2, 5, 4], [2, 3, 4, 3], name=auto, auto_pad=auto, strides=[3, 2])
        add(c, op, [1, 2, 5], [2, 3, 3], name=f"{auto}_dilated", auto_pad=auto, dilations=[2], strides=[2])
    add(c, op, [1, 2, 4], [2, 2, 2], name="SAME_stride_beyond_kernel", auto_pad="SAME_UPPER", strides=[4])
    add(c, op, [1, 1, 4, 4], [1, 2, 3, 3], name="output_shape", output_shape=[8, 7], strides=[2, 2])
    add(c, op, [1, 1, 4, 4], [1, 2, 3, 3], name="output_shape_SAME_UPPER", output_shape=[8, 7], strides=[2, 2], auto_pad="SAME_UPPER")
    add(c, op, [1, 1, 4], [1, 2, 3], name="output_shape_and_padding", output_shape=[8], strides=[2], output_padding=[1])
    add(c, op, [1, 2, 3], [2, 1, 2], name="output_shape_beyond_cover", output_shape=[14], strides=[3])
    add(c, op, [2, 6, 3, 4], [6, 3, 3, 2], name="groups_of_2", group=3, strides=[2, 1], pads=[1, 0, 0, 1])
    add(c, op, [1, 4, 5], [4, 3, 3], "f64", name="groups_of_1", group=4, strides=[2])
    add(c, op, [1, 4, 3, 3], [4, 1, 3, 3], "f16", name="depthwise", group=4, strides=[2, 2], pads=[1, 1, 1, 1])
    add(c, op, [0, 2, 3, 3], [2, 3, 2, 2], name="empty_batch")
    c.add(op, [random([1, 2, 3], "f32"), np.zeros([2, 0, 2], np.float32)], [np.zeros([1, 0, 4], np.float32)], name="no_outputs",
          oracle="by hand")
    c.add(op, [np.zeros([1, 2, 0], np.float32), np.zeros([2, 3, 2], np.float32)], [np.zeros([1, 3, 0], np.float32)], name="empty_image",
          oracle="by hand")
    c.add(op, [np.zeros([1, 0, 3], np.float32), np.zeros([0, 2, 2], np.float32), np.array([3, 4], np.float32)],
          [np.tile(np.array([3, 4], np.float32).reshape(1, 2, 1), [1, 1, 4])], name="no_inputs", oracle="by hand")


def fused_cases(c):
    parameters = {"LeakyRelu": (0.1, 0), "HardSigmoid": (0.2, 0.5), "Clip": (-0.5, 0.75), "Elu": (1.3, 0), "Swish": (1.5, 0)}
    for activation in ACTIVATIONS:
        alpha, beta = parameters.get(activation, (0, 0))
        add_fused(c, [1, 3, 5, 4], [4, 3, 3, 3], activation, alpha=alpha, beta=beta, pads=[1, 1, 1, 1])
    add_fused(c, [2, 4, 6, 5], [6, 2, 3, 3], "Relu", "f64", group=2, strides=[2, 2], pads=[1, 1, 1, 1])
    add_fused(c, [1, 4, 5, 5], [4, 1, 3, 3], "Relu", "f16", residual=False, group=4, auto_pad="SAME_UPPER", strides=[2, 2])
    add_fused(c, [1, 3, 8], [2, 3, 3], "Clip", "bf16", bias=False, alpha=0, beta=6, dilations=[2])
    add_fused(c, [1, 2, 4, 4, 3], [3, 2, 2, 2, 2], "Sigmoid", bias=False, residual=False)
    add_fused(c, [0, 2, 4], [3, 2, 2], "Relu")


c = Cases("PyTorch in float64")
conv_cases(c)
transposed_cases(c)
fused_cases(c)
c.write(sys.argv[1])
