"""msrt.ConvWeightGrad against PyTorch in float64: the gradient of a convolution, whose padding is part of its input."""
import sys

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from cases import Cases

rng = np.random.default_rng(21)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RTOL = {"f64": 1e-13, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}
CONV = [None, F.conv1d, F.conv2d, F.conv3d]


def random(shape, kind):
    return rng.uniform(-1, 1, shape).astype(TYPES[kind])


def same_pads(auto, size, kernel, stride, dilation):
    total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
    return begin, total - begin


def add(c, x_shape, outputs, kernel, kind="f32", name="", **attrs):
    rank = len(kernel)
    strides, dilations = attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    auto, groups = attrs.get("auto_pad", "NOTSET"), attrs.get("group", 1)
    pads = attrs.get("pads", [0] * 2 * rank)
    pairs = list(zip(pads[:rank], pads[rank:]))
    if auto.startswith("SAME"):
        pairs = [same_pads(auto, *axis) for axis in zip(x_shape[2:], kernel, strides, dilations)]
    x = random(x_shape, kind)
    padded = torch.from_numpy(np.pad(np.asarray(x, np.float64), [(0, 0), (0, 0)] + pairs))
    w = torch.zeros([outputs, x_shape[1] // groups] + kernel, dtype=torch.float64, requires_grad=True)
    y = CONV[rank](padded, w, stride=strides, dilation=dilations, groups=groups)
    grad = random(list(y.shape), kind)
    (dw,) = torch.autograd.grad(y, w, torch.from_numpy(np.asarray(grad, np.float64)))
    c.add("ConvWeightGrad", [x, grad], [dw.numpy().astype(TYPES[kind])], dict(attrs, kernel_shape=kernel), domain="msrt", name=name,
          rtol=RTOL[kind], atol=RTOL[kind])


def main(path):
    c = Cases("PyTorch in float64")
    for kind in TYPES:
        add(c, [2, 3, 7, 6], 4, [3, 3], kind, name=f"{kind}_3x3", pads=[1, 1, 1, 1])
    add(c, [2, 3, 11], 2, [4], name="1d", strides=[2], pads=[2, 1])
    add(c, [1, 2, 5, 6, 7], 3, [3, 2, 3], name="3d", strides=[1, 2, 1], pads=[1, 0, 2, 0, 1, 1], dilations=[2, 1, 1])
    add(c, [2, 4, 5, 5], 6, [1, 1], name="pointwise", strides=[2, 2])
    add(c, [2, 16, 9, 9], 32, [3, 3], name="vectors", strides=[2, 2], pads=[1, 1, 1, 1])
    add(c, [2, 3, 14, 14], 16, [7, 7], name="stem", strides=[2, 2], pads=[3, 3, 3, 3])
    add(c, [1, 3, 9, 10], 2, [3, 4], name="asymmetric_pads", strides=[2, 3], pads=[0, 3, 2, 1])
    add(c, [1, 2, 13, 12], 2, [3, 3], name="dilated", dilations=[3, 2], pads=[3, 2, 3, 2])
    add(c, [1, 2, 8, 9], 2, [1, 2], name="stride_beyond_kernel", strides=[3, 4], pads=[1, 0, 0, 1])
    add(c, [1, 1, 3, 3], 2, [2, 2], name="windows_in_padding_only", pads=[5, 4, 4, 6], strides=[2, 1])
    for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        add(c, [1, 2, 9, 8], 3, [4, 3], name=f"{auto}_stride_2", auto_pad=auto, strides=[2, 2])
    add(c, [2, 6, 6, 5], 9, [3, 2], name="groups_of_3", group=3, pads=[1, 1, 1, 0])
    add(c, [1, 8, 5], 12, [3], "f64", name="groups_of_4", group=4, strides=[2], pads=[1, 1])
    add(c, [2, 5, 6, 6], 5, [3, 3], name="depthwise", group=5, pads=[1, 1, 1, 1])
    add(c, [1, 4, 6, 6], 8, [3, 3], "f16", name="depthwise_multiplier", group=4, strides=[2, 2])
    c.add("ConvWeightGrad", [np.zeros([0, 3, 5, 5], np.float32), np.zeros([0, 2, 3, 3], np.float32)], [np.zeros([2, 3, 3, 3], np.float32)],
          {"kernel_shape": [3, 3]}, domain="msrt", name="empty_batch", oracle="by hand")
    c.add("ConvWeightGrad", [np.zeros([1, 2, 0, 4], np.float32), np.zeros([1, 3, 0, 2], np.float32)], [np.zeros([3, 2, 3, 3], np.float32)],
          {"kernel_shape": [3, 3]}, domain="msrt", name="empty_image", oracle="by hand")
    c.write(path)


if __name__ == "__main__":
    main(sys.argv[1])
