"""Nodes of older opsets, for the rules of tools/msconvert/onnx. Oracle: ONNX Runtime; NumPy where it lacks the op.
    python3 tests/data/generate/onnx_lifts.py tests/data/onnx/lifts"""
import sys

import numpy as np

from onnx_cases import OnnxCases

random = np.random.default_rng(31)
cases = OnnxCases(sys.argv[1])
add = cases.add
F32 = np.float32


def floats(*shape, low=-3.0, high=3.0):
    return random.uniform(low, high, shape).astype(F32)


# ---- resizing: scales, and what is nearest, before opset 11 ----
image = floats(1, 2, 4, 5)
for mode in ("nearest", "linear"):
    for label, scales in (("up", [1, 1, 2, 3]), ("odd", [1, 1, 1.3, 1.7])):
        add(f"upsample9_{mode}_{label}", "Upsample", 9, [image, np.array(scales, F32)], {"mode": mode}, constants=[1])
    for label, scales in (("up", [1, 1, 2, 1.5]), ("down", [1, 1, 0.6, 0.8]), ("both", [1, 1, 1.5, 0.6]), ("same", [1, 1, 1, 1])):
        add(f"resize10_{mode}_{label}", "Resize", 10, [image, np.array(scales, F32)], {"mode": mode}, constants=[1])
    add(f"upsample7_{mode}", "Upsample", 7, [image], {"mode": mode, "scales": [1.0, 1.0, 2.0, 2.0]})
add("upsample9_dynamic", "Upsample", 9, [image, np.array([1, 1, 2, 3], F32)])
add("resize11_empty_roi", "Resize", 11, [image, np.zeros(0, F32), np.array([1, 1, 2, 2], F32)], {"mode": "linear"}, constants=[1, 2])

# ---- splitting and indexing ----
x = floats(6, 4)
add("split2_equal", "Split", 7, [x], {"axis": 0}, outputs=3)
add("split2_sizes", "Split", 11, [x], {"axis": 1, "split": [1, 3]}, outputs=2)
add("split13_equal", "Split", 13, [x], {"axis": 0}, outputs=2)
add("split13_sizes", "Split", 13, [x, np.array([4, 2])], {"axis": 0}, constants=[1], outputs=2)
add("onehot_float_depth", "OneHot", 11, [np.array([0, 2, -1]), np.array([4], F32), np.array([-1, 1], F32)], constants=[1])

# ---- normalisation ----
batch = [floats(2, 3, 4, 2), floats(3), floats(3), floats(3), floats(3, low=0.2)]
add("batchnorm7_spatial", "BatchNormalization", 7, batch, {"spatial": 1, "epsilon": 1e-3})
add("batchnorm9", "BatchNormalization", 9, batch, {"momentum": 0.8})
flat = [floats(2, 3, 2)] + [floats(3, 2) for _ in range(3)] + [floats(3, 2, low=0.2)]
y = (flat[0].astype("f8") - flat[3]) / np.sqrt(flat[4] + 1e-5) * flat[1] + flat[2]
add("batchnorm7_not_spatial", "BatchNormalization", 7, flat, {"spatial": 0}, expected=[y.astype(F32)])
for rank in (2, 3, 5):
    x = floats(*(4, 3, 2, 3, 2)[:rank])
    per_channel = [floats(3), floats(3), floats(3), floats(3, low=0.2)]
    others, shape = tuple(i for i in range(rank) if i != 1), [1, 3] + [1] * (rank - 2)
    mean, variance = x.astype("f8").mean(others), x.astype("f8").var(others)
    scale, bias, old_mean, old_variance = (p.astype("f8") for p in per_channel)
    y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-5) * scale.reshape(shape) + bias.reshape(shape)
    running = [old_mean * 0.7 + mean * 0.3, old_variance * 0.7 + variance * 0.3]
    add(f"batchnorm15_training_{rank}d", "BatchNormalization", 15, [x, *per_channel], {"training_mode": 1, "momentum": 0.7}, outputs=3,
        expected=[a.astype(F32) for a in (y, *running)])
add("dropout7", "Dropout", 7, [floats(3, 4)], {"ratio": 0.4})
x = floats(3, 4)
add("dropout7_mask", "Dropout", 7, [x], {"ratio": 0.4}, outputs=2, expected=[x, np.ones_like(x)])
add("dropout10_mask", "Dropout", 10, [x], {"ratio": 0.4}, outputs=2, expected=[x, np.ones(x.shape, bool)])
add("dropout13_off", "Dropout", 13, [x, np.array(0.4, F32), np.array(False)], constants=[1, 2], outputs=2)
add("dropout13_nothing", "Dropout", 13, [x, np.array(0, F32), np.array(True)], constants=[1, 2], outputs=2,
    expected=[x, np.ones(x.shape, bool)])
for axis in (0, 1, 2):
    add(f"softmax11_axis_{axis}", "Softmax", 11, [floats(2, 3, 4)], {"axis": axis})

# ---- quantisation ----
bytes_, scale, zero = random.integers(0, 256, (1, 2, 4, 5)).astype(np.uint8), np.array(0.05, F32), np.array(120, np.uint8)
add("quantize10", "QuantizeLinear", 10, [floats(3, 4), scale, zero])
add("quantize13_axis", "QuantizeLinear", 13, [floats(3, 4), floats(4, low=0.01, high=0.1), random.integers(-9, 9, 4).astype(np.int8)],
    {"axis": -1})
add("dequantize10", "DequantizeLinear", 10, [bytes_, scale, zero])

# ---- recurrent layers: names of functions in any case ----
x, w, r, b = floats(3, 2, 4), floats(1, 12, 4), floats(1, 12, 3), floats(1, 24)
add("lstm7", "LSTM", 7, [x, w, r, b], {"hidden_size": 3, "activations": ["sigmoid", "tanh", "TANH"]}, outputs=3)
add("gru7", "GRU", 7, [x, w[:, :9], r[:, :9], b[:, :18]], {"hidden_size": 3, "activations": ["hardsigmoid", "softsign"]}, outputs=2)
add("rnn7", "RNN", 7, [x, w[:, :3], r[:, :3], b[:, :6]], {"hidden_size": 3, "activations": ["Relu"], "direction": "reverse"}, outputs=2)

# ---- images and signals: modes had other names, regions were not shifted, the axis was an attribute ----
image, grid = floats(1, 2, 4, 5), floats(1, 3, 4, 2, low=-1.2, high=1.2)
for mode in ("bilinear", "bicubic", "nearest"):
    add(f"gridsample16_{mode}", "GridSample", 16, [image, grid], {"mode": mode, "padding_mode": "border"})
add("gridsample16", "GridSample", 16, [image, grid])
regions = np.array([[0.5, 0.2, 3.9, 2.8], [0, 0, 4.5, 3.5]], F32)
add("roialign10", "RoiAlign", 10, [image, regions, np.array([0, 0])], {"output_height": 2, "output_width": 3, "sampling_ratio": 2})
signal = floats(2, 6, 3, 1)
add("dft17", "DFT", 17, [signal])
add("dft17_axis", "DFT", 17, [signal, np.array(4)], {"axis": 2, "onesided": 1}, constants=[1])

cases.report()
