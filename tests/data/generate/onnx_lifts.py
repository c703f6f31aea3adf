"""Nodes of older opsets and of ai.onnx.ml, for the rules of tools/msconvert/onnx. Oracle: ONNX Runtime; NumPy where it lacks the op.
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

# ---- cropping and padding; indices of the last axis; thresholds ----
x = floats(5, 6, 3)
for label, shape, attrs in (("crop", [3, 4, 2], {}), ("pad", [8, 7, 4], {}), ("both", [4, 9], {"axes": [0, -1]}), ("none", [5, 6, 3], {})):
    expected = x
    for axis, size in zip(attrs.get("axes", range(3)), shape):
        n = expected.shape[axis]
        keep, before = min(n, size), (size - min(n, size)) // 2
        expected = np.take(expected, range((n - keep) // 2, (n - keep) // 2 + keep), axis)
        pads = [(0, 0)] * 3
        pads[axis] = (before, size - keep - before)
        expected = np.pad(expected, pads)
    for constants in ([1], []):
        add(f"center_crop_pad_{label}_{'fixed' if constants else 'dynamic'}", "CenterCropPad", 18, [x, np.array(shape)], attrs,
            constants=constants, expected=[expected])
ML = "ai.onnx.ml"
for t in (np.float32, np.float64, np.int32, np.int64):
    values = np.array([-2, 0, 1, 2, 3]).astype(t)
    add(f"binarizer_{np.dtype(t).name}", "Binarizer", 15, [values], {"threshold": 1.5}, domain=ML, expected=[(values > 1.5).astype(t)])
add("array_feature_extractor", "ArrayFeatureExtractor", 15, [x, np.array([2, 0])], domain=ML)
add("array_feature_extractor_row", "ArrayFeatureExtractor", 15, [x[0, 0], np.array([[1, 1, 2]])], domain=ML)
whole, real = np.array([[3, 5], [9, 3]]), np.array([1.5, np.nan, 7, 2], F32)
add("label_encoder_ints", "LabelEncoder", 15, [whole], {"keys_int64s": [3, 9, 4], "values_int64s": [30, 90, 40], "default_int64": 7},
    domain=ML, domain_opset=2)
add("label_encoder_to_floats", "LabelEncoder", 15, [whole], {"keys_int64s": [3, 9], "values_floats": [0.5, -2.5]}, domain=ML, domain_opset=2)
add("label_encoder_from_floats", "LabelEncoder", 15, [real], {"keys_floats": [1.5, float("nan"), 2.0], "values_int64s": [4, 5, 6]},
    domain=ML, domain_opset=4)
add("label_encoder_floats", "LabelEncoder", 15, [real], {"keys_floats": [2.0, 1.5], "values_floats": [0.25, 8.0], "default_float": 3.5},
    domain=ML, domain_opset=2)
add("label_encoder_twice", "LabelEncoder", 15, [whole[0]], {"keys_int64s": [3, 5, 3], "values_int64s": [1, 2, 3]}, domain=ML, domain_opset=2,
    expected=[np.array([3, 2])])


# ---- trees ----
def trees(kind, count, targets, per_leaf, low, stump=False):
    """Attributes of count random trees of three levels; with `stump`, one more of nothing but a leaf."""
    lists = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count + stump):
        inner = 3 if tree < count else 0
        for node in range(2 * inner + 1):
            row = (tree, node, int(random.integers(4)), float(F32(random.uniform(-2, 2))),
                   random.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]) if node < inner else "LEAF",
                   2 * node + 1 if node < inner else 0, 2 * node + 2 if node < inner else 0, int(random.integers(2)))
            for key, value in zip(lists, row):
                lists[key].append(value)
            for target in random.choice(targets, per_leaf, replace=False) if node >= inner else []:
                for key, value in zip(leaves, (tree, node, int(target), float(F32(random.uniform(low, 1))))):
                    leaves[key].append(value)
    return {**{f"nodes_{k}": v for k, v in lists.items()}, **{f"{kind}_{k}": v for k, v in leaves.items()}}


x = floats(9, 4)
x[3, 1] = np.nan
for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
    add(f"tree_regressor_{aggregate.lower()}", "TreeEnsembleRegressor", 15, [x],
        {**trees("target", 4, 1, 1, -1), "n_targets": 1, "aggregate_function": aggregate}, domain=ML, domain_opset=3)
add("tree_regressor_base", "TreeEnsembleRegressor", 15, [x],
    {**trees("target", 3, 3, 3, -1, stump=True), "n_targets": 3, "base_values": [0.5, -1.0, 2.0], "post_transform": "LOGISTIC"},
    domain=ML, domain_opset=3)
add("tree_regressor_double", "TreeEnsembleRegressor", 15, [x.astype("f8")], {**trees("target", 3, 2, 1, -1), "n_targets": 2}, domain=ML)
for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
    add(f"tree_classifier_{transform.lower()}", "TreeEnsembleClassifier", 15, [x],
        {**trees("class", 5, 4, 4, -1), "classlabels_int64s": [10, 20, 30, 40], "post_transform": transform}, outputs=2, domain=ML)
two = {"classlabels_int64s": [7, 9]}
add("tree_classifier_two_positive", "TreeEnsembleClassifier", 15, [x], {**trees("class", 2, 1, 1, 0), **two}, outputs=2, domain=ML)
add("tree_classifier_two_signed", "TreeEnsembleClassifier", 15, [x], {**trees("class", 4, 1, 1, -1), **two}, outputs=2, domain=ML)
add("tree_classifier_two_logistic", "TreeEnsembleClassifier", 15, [x],
    {**trees("class", 4, 1, 1, -1), **two, "post_transform": "LOGISTIC", "base_values": [0.25]}, outputs=2, domain=ML)

cases.report()
