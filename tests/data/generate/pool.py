"""Pools. Expected values come from a brute-force window in float64, written from the specification's formulas; each row that
ONNX Runtime accepts is also checked against it here, in float32, and the symmetric ones against PyTorch. Known differences:
with auto_pad = VALID and ceil_mode = 1 ONNX Runtime counts a window that overhangs the input, the specification's formula does
not; the onnx package's reference scales LpPool's sum up where a window overhangs, ONNX Runtime and we do not."""
import sys

import itertools

import ml_dtypes
import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper

from cases import Cases

rng = np.random.default_rng(21)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8}
RTOL = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}


def windows(space, attrs):
    """(outputs, begin pad, end pad) of each axis."""
    rank = len(space)
    kernel, strides, dilations = attrs["kernel_shape"], attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    pads, auto, ceil = attrs.get("pads", [0] * 2 * rank), attrs.get("auto_pad", "NOTSET"), attrs.get("ceil_mode", 0)
    result = []
    for i in range(rank):
        n, s, span = space[i], strides[i], dilations[i] * (kernel[i] - 1) + 1
        if auto.startswith("SAME"):
            out = -(-n // s)
            total = max((out - 1) * s + span - n, 0)
            begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
            result.append((out, begin, total - begin))
            continue
        begin, end = pads[i], pads[rank + i]
        room = n + begin + end - span
        if ceil and auto == "NOTSET":
            out = -(-room // s) + 1
            out -= (out - 1) * s >= n + begin
        else:
            out = room // s + 1
        result.append((out, begin, end))
    return result


def brute(op, x, attrs):
    rank = x.ndim - 2
    axes = windows(x.shape[2:], attrs)
    kernel, strides, dilations = attrs["kernel_shape"], attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    v = x.astype(np.float64)
    out = np.zeros(list(x.shape[:2]) + [a[0] for a in axes])
    indices = np.zeros(out.shape, np.int64)
    order = "F" if attrs.get("storage_order", 0) else "C"
    for at in itertools.product(*[range(d) for d in out.shape]):
        taps = [[at[2 + i] * strides[i] - axes[i][1] + t * dilations[i] for t in range(kernel[i])] for i in range(rank)]
        inside = [[t for t in ts if 0 <= t < n] for ts, n in zip(taps, x.shape[2:])]
        points = list(itertools.product(*inside))
        values = [v[at[:2] + p] for p in points]
        if op == "MaxPool":
            out[at] = max(values, default=-np.inf)
            indices[at] = -1
            if values:
                flat = np.ravel_multi_index(points[int(np.argmax(values))], x.shape[2:], order=order)
                indices[at] = (at[0] * x.shape[1] + at[1]) * np.prod(x.shape[2:]) + flat
        elif op == "AveragePool":
            padded = [len([t for t in taps[i] if t < x.shape[2 + i] + axes[i][2]]) for i in range(rank)]
            count = np.prod(padded) if attrs.get("count_include_pad", 0) else len(values)
            out[at] = sum(values) / count if count else 0
        else:
            p = attrs.get("p", 2)
            out[at] = sum(abs(u) ** p for u in values) ** (1 / p)
    return out, indices


def onnx_runtime(op, x, attrs, outputs):
    node = helper.make_node(op, ["x"], ["y", "i"][:outputs], **attrs)
    infos = [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(x.dtype), None),
             helper.make_tensor_value_info("i", TensorProto.INT64, None)]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", infos[0].type.tensor_type.elem_type, x.shape)], infos[:outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})


def check(op, x, y, indices, attrs, with_indices):
    """Compares with ONNX Runtime and PyTorch in float32 and says who agreed."""
    oracle = "brute force in float64"
    as_f32 = x if x.dtype in (np.int8, np.uint8) else x.astype(np.float32)
    try:
        got = onnx_runtime(op, as_f32, attrs, 2 if with_indices else 1)
    except Exception as e:
        print(f"  ONNX Runtime refuses {op} {list(x.shape)} {attrs}: {str(e)[:110]}")
        got = None
    if got is not None:
        assert got[0].shape == y.shape, (op, attrs, got[0].shape, y.shape)
        np.testing.assert_allclose(got[0].astype(np.float64), y, rtol=1e-5, atol=1e-5, err_msg=f"{op} {attrs}")
        if with_indices:
            np.testing.assert_array_equal(got[1], indices)
        oracle += ", agrees with ONNX Runtime"
    rank = x.ndim - 2
    pads = attrs.get("pads", [0] * 2 * rank)
    symmetric = pads[:rank] == pads[rank:] and all(2 * p <= k for p, k in zip(pads, attrs["kernel_shape"]))
    if "auto_pad" not in attrs and symmetric and op != "LpPool" and (op == "MaxPool" or "dilations" not in attrs) and x.size:
        t, common = torch.from_numpy(x.astype(np.float64)), dict(stride=attrs.get("strides", [1] * rank), padding=pads[:rank],
                                                                 ceil_mode=bool(attrs.get("ceil_mode", 0)))
        if op == "MaxPool":
            got = [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1](t, attrs["kernel_shape"], dilation=attrs.get("dilations", [1] * rank), **common)
        else:
            got = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1](t, attrs["kernel_shape"],
                                                                      count_include_pad=bool(attrs.get("count_include_pad", 0)), **common)
        np.testing.assert_allclose(got.numpy(), y, rtol=1e-12, atol=1e-12, err_msg=f"{op} {attrs}")
        oracle += ", agrees with PyTorch"
    return oracle


def random(shape, kind):
    if kind == "i8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    if kind == "u8":
        return rng.integers(0, 256, shape).astype(np.uint8)
    return rng.uniform(-1, 1, shape).astype(TYPES[kind])


def add(c, op, shape, kind="f32", name="", indices=False, confirm=True, **attrs):
    x = random(shape, kind)
    y, where = brute(op, x, attrs)
    oracle = check(op, x, y, where, attrs, indices) if confirm else None
    rtol = 0 if op == "MaxPool" else RTOL[kind]
    c.add(op, [x], [y.astype(TYPES[kind])] + ([where] if indices else []), attrs, name=name, rtol=rtol, atol=rtol, oracle=oracle)


def window_cases(c, op):
    """Rows that every sliding pool shares."""
    for kind in ["f64", "f32", "f16", "bf16"]:
        add(c, op, [2, 3, 7, 6], kind, name=f"{kind}_3x3", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    add(c, op, [1, 2, 11], name="1d", kernel_shape=[4], strides=[3])
    add(c, op, [1, 2, 5, 6, 7], name="3d", kernel_shape=[2, 3, 2], strides=[2, 1, 3], pads=[1, 0, 1, 0, 2, 1])
    add(c, op, [1, 2, 8, 9], name="asymmetric_pads", kernel_shape=[3, 4], strides=[2, 2], pads=[2, 0, 1, 3])
    add(c, op, [1, 2, 9, 10], name="dilated", kernel_shape=[3, 2], dilations=[2, 4], pads=[1, 0, 1, 1], strides=[1, 2])
    for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        add(c, op, [1, 2, 8, 7], name=auto, kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto)
    add(c, op, [1, 1, 10], name="SAME_stride_beyond_kernel", kernel_shape=[2], strides=[4], auto_pad="SAME_LOWER")
    add(c, op, [1, 2, 8, 10], name="ceil", kernel_shape=[3, 3], strides=[2, 4], ceil_mode=1)
    add(c, op, [1, 2, 7, 6], name="ceil_pads", kernel_shape=[3, 3], strides=[3, 2], pads=[1, 1, 1, 1], ceil_mode=1)
    add(c, op, [1, 1, 6], name="ceil_drops_window_in_padding", kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1)
    add(c, op, [1, 1, 5, 5, 5], name="ceil_3d", kernel_shape=[2, 2, 2], strides=[2, 2, 2], ceil_mode=1)
    add(c, op, [1, 1, 12], name="ceil_dilated", kernel_shape=[3], strides=[5], dilations=[2], pads=[2, 1], ceil_mode=1)
    add(c, op, [1, 2, 9], name="ceil_SAME", kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER", ceil_mode=1)
    add(c, op, [1, 2, 8], name="ceil_VALID", kernel_shape=[3], strides=[2], auto_pad="VALID", ceil_mode=1, confirm=False)
    add(c, op, [1, 2, 3], name="windows_in_padding_only", kernel_shape=[2], pads=[3, 4], confirm=False)
    add(c, op, [1, 1, 2], name="taps_in_padding_only", kernel_shape=[2], dilations=[4], pads=[2, 3], confirm=False)
    c.add(op, [np.zeros([0, 2, 5], np.float32)], [np.zeros([0, 2, 4], np.float32)], {"kernel_shape": [2]}, name="empty_batch", oracle="by hand")
    c.add(op, [np.zeros([2, 1, 0, 5], np.float32)], [np.zeros([2, 1, 0, 4], np.float32)], {"kernel_shape": [2, 2]}, name="empty_image",
          oracle="by hand")


def max_cases(c):
    op = "MaxPool"
    window_cases(c, op)
    for kind in ["i8", "u8"]:
        add(c, op, [2, 2, 6, 5], kind, name=f"{kind}_indices", indices=True, kernel_shape=[3, 2], strides=[1, 2], pads=[1, 0, 1, 1])
    for order in [0, 1]:
        add(c, op, [2, 3, 9], name=f"indices_1d_order_{order}", indices=True, kernel_shape=[3], strides=[2], storage_order=order)
        add(c, op, [2, 3, 6, 7], name=f"indices_2d_order_{order}", indices=True, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 1],
            storage_order=order)
        add(c, op, [2, 2, 4, 5, 3], name=f"indices_3d_order_{order}", indices=True, kernel_shape=[2, 2, 2], strides=[1, 2, 1], storage_order=order)
    add(c, op, [1, 2, 7, 8], "f64", name="indices_ceil", indices=True, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)
    add(c, op, [2, 2, 9, 8], "f16", name="indices_dilated", indices=True, confirm=False, kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 1, 2, 1])
    add(c, op, [1, 1, 2], name="indices_padding_only", indices=True, confirm=False, kernel_shape=[2], pads=[2, 3])
    ties = np.array([[[3, 3, 1, 3, np.nan, 2, np.nan, -np.inf, -np.inf]]], np.float32)
    c.add(op, [ties], [np.array([[[3, 3, 3, np.nan, np.nan, np.nan, np.nan, -np.inf]]], np.float32), np.array([[[0, 1, 3, 4, 4, 6, 6, 7]]])],
          {"kernel_shape": [2]}, name="ties_and_nan", oracle="by hand")


def average_cases(c):
    op = "AveragePool"
    window_cases(c, op)
    for name, attrs in {
            "pads": dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
            "asymmetric": dict(kernel_shape=[3, 4], strides=[2, 3], pads=[2, 0, 1, 3]),
            "dilated": dict(kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 2, 1, 2]),
            "ceil": dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 0], ceil_mode=1),
            "ceil_beyond_pads": dict(kernel_shape=[3, 3], strides=[3, 4], pads=[1, 1, 1, 1], ceil_mode=1),
            "SAME": dict(kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    }.items():
        add(c, op, [1, 2, 8, 9], name=f"include_pad_{name}", count_include_pad=1, **attrs)
    add(c, op, [1, 1, 2], name="include_pad_padding_only", confirm=False, count_include_pad=1, kernel_shape=[2], pads=[2, 3])


def lp_cases(c):
    op = "LpPool"
    window_cases(c, op)
    for p in [1, 3, 4]:
        add(c, op, [1, 2, 6, 7], name=f"p_{p}", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=p)


def global_cases(c):
    ops = {"GlobalAveragePool": lambda v, axes: v.mean(axes, keepdims=True), "GlobalMaxPool": lambda v, axes: v.max(axes, keepdims=True),
           "GlobalLpPool": lambda v, axes: np.sqrt((v * v).sum(axes, keepdims=True))}
    for op, f in ops.items():
        for kind, shape in {"f64": [2, 3, 5], "f32": [2, 3, 4, 5], "f16": [1, 4, 3, 2, 3], "bf16": [3, 2, 6, 1]}.items():
            x = random(shape, kind)
            y = f(x.astype(np.float64), tuple(range(2, x.ndim))).astype(TYPES[kind])
            rtol = 0 if op == "GlobalMaxPool" else RTOL[kind]
            c.add(op, [x], [y], name=kind, rtol=rtol, atol=rtol, oracle="NumPy in float64")
        c.add(op, [np.zeros([2, 0, 3], np.float32)], [np.zeros([2, 0, 1], np.float32)], name="empty", oracle="by hand")
    x = random([2, 3, 4], "f32")
    y = (np.abs(x.astype(np.float64))**3).sum(2, keepdims=True)**(1 / 3)
    c.add("GlobalLpPool", [x], [y.astype(np.float32)], {"p": 3}, name="p_3", rtol=1e-6, oracle="NumPy in float64")
    nothing = np.zeros([1, 2, 0, 3], np.float32)
    for op, value in {"GlobalAveragePool": np.nan, "GlobalMaxPool": -np.inf, "GlobalLpPool": 0}.items():
        c.add(op, [nothing], [np.full([1, 2, 1, 1], value, np.float32)], name="empty_image", oracle="by hand")
    depths = np.full([1, 8, 4, 4], -np.inf, np.float32)
    depths[0, 1], depths[0, 2, 0, 0], depths[0, 3] = 5, np.finfo(np.float32).min, np.inf
    c.add("GlobalMaxPool", [depths], [depths.max(axis=(2, 3), keepdims=True)], name="infinities", oracle="by hand")
    pairs = depths.reshape(1, 8, 2, 2, 2, 2).max(axis=(3, 5))
    c.add("MaxPool", [depths], [pairs], {"kernel_shape": [2, 2], "strides": [2, 2]}, name="infinities", oracle="by hand")


c = Cases("brute force in float64")
max_cases(c)
average_cases(c)
lp_cases(c)
global_cases(c)
c.write(sys.argv[1])
