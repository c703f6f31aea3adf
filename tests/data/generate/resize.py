"""Resize, DepthToSpace, SpaceToDepth. Expected values of Resize come from the specification's formulas, with coordinates in exact
rational arithmetic and sums in float64; each row is compared here with ONNX Runtime and with the onnx package's reference, in
float32, and who agreed is noted in the row. Where they differ from the specification's text and from each other:
- 10 elements at scale 0.7 (a float32): ONNX Runtime and onnx's shape inference multiply in float32 and get 7, the reference
  evaluator multiplies in float64 and gets 6. We get 7.
- A scale is a float32 that stands for a decimal: coordinates use the decimal, so that (3 + 0.5) / 0.7 - 0.5 is a tie. ONNX Runtime,
  in float32, finds the tie too; float64 arithmetic with the float32 nearest to 0.7 would not.
- align_corners with a fractional scale x length: the reference evaluator and ONNX's backend tests divide by that length less one, as the
  text does that defines scale = length_resized / length_original, and so do we; ONNX Runtime divides by the integer length less one.
- tf_crop_and_resize with a fractional scale x length: we and ONNX Runtime use the integer length, the reference evaluator the fraction.
- pytorch_half_pixel with one output: the text and ONNX Runtime take coordinate 0, the reference evaluator -0.5.
- integers, linear: the reference evaluator rounds, ONNX Runtime truncates without antialias. We round.
- tf_crop_and_resize to the same size: ONNX Runtime copies, the text and the reference evaluator crop.
- keep_aspect_ratio_policy with negative axes: ONNX Runtime differs from what it gives for the same axes counted from the front.
- scales with roi: the text multiplies the output size by the roi's extent; ONNX Runtime, onnx's shape inference and the reference
  evaluator do not, and neither do we."""
import sys

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

from cases import Cases

rng = np.random.default_rng(22)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
RTOL = {"f64": 1e-12, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}
HALF = Fraction(1, 2)


def resolve(shape, scales, sizes, roi, attrs):
    """(out, scale, roi) of each axis."""
    axes = [a % len(shape) for a in attrs.get("axes", range(len(shape)))]
    result = [(n, Fraction(1), (0, 1)) for n in shape]
    policy = attrs.get("keep_aspect_ratio_policy", "stretch")
    if sizes is not None and policy != "stretch":
        scale = (min if policy == "not_larger" else max)(Fraction(s, shape[a]) for s, a in zip(sizes, axes))
    for i, a in enumerate(axes):
        n = shape[a]
        if scales is not None:
            out, factor = int(np.float32(n) * np.float32(scales[i])), Fraction(str(np.float32(scales[i])))
        elif policy == "stretch":
            out, factor = sizes[i], Fraction(sizes[i], n) if n else Fraction(1)
        else:
            out, factor = math.floor(scale * n + HALF), scale
        part = (0, 1) if not roi else (Fraction(float(np.float32(roi[i]))), Fraction(float(np.float32(roi[len(axes) + i]))))
        result[a] = (out, factor, part)
    return result


def coordinate(mode, x, n, out, scale, roi):
    if mode == "half_pixel":
        return (x + HALF) / scale - HALF
    if mode == "half_pixel_symmetric":
        return Fraction(n, 2) * (1 - out / (scale * n)) + (x + HALF) / scale - HALF
    if mode == "pytorch_half_pixel":
        return (x + HALF) / scale - HALF if out > 1 else Fraction(0)
    if mode == "align_corners":
        return x * (n - 1) / (scale * n - 1) if out > 1 else Fraction(0)
    if mode == "asymmetric":
        return x / scale
    if out == 1:
        return HALF * (roi[0] + roi[1]) * (n - 1)
    return roi[0] * (n - 1) + x * (roi[1] - roi[0]) * (n - 1) / (out - 1)


def nearest(rule, x):
    rest = x - math.floor(x)
    up = {"round_prefer_floor": rest > HALF, "round_prefer_ceil": rest >= HALF, "floor": False, "ceil": rest > 0}[rule]
    return math.floor(x) + up


def filter_weight(mode, d, a):
    d = abs(d)
    if mode == "linear":
        return max(1 - d, 0)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0


def axis_matrix(mode, x, n, scale, attrs):
    """The weights of all n inputs for one output at source coordinate x."""
    row = np.zeros(n)
    if mode == "nearest":
        row[min(max(nearest(attrs.get("nearest_mode", "round_prefer_floor"), x), 0), n - 1)] = 1
        return row
    stretch = min(float(scale), 1.0) if attrs.get("antialias", 0) else 1.0
    reach = math.ceil(2 / stretch) + 1
    taps = range(math.floor(x) - reach, math.floor(x) + reach + 1)
    weights = [filter_weight(mode, float(t - x) * stretch, attrs.get("cubic_coeff_a", -0.75)) for t in taps]
    if attrs.get("exclude_outside", 0):
        weights = [w if 0 <= t < n else 0 for t, w in zip(taps, weights)]
    for t, w in zip(taps, weights):
        row[min(max(t, 0), n - 1)] += w / sum(weights)
    return row


def brute(x, scales, sizes, roi, attrs):
    mode, coordinates = attrs.get("mode", "nearest"), attrs.get("coordinate_transformation_mode", "half_pixel")
    value, outside = x if mode == "nearest" else x.astype(np.float64), np.zeros([1] * x.ndim, bool)
    for axis, (out, scale, part) in enumerate(resolve(x.shape, scales, sizes, roi, attrs)):
        n = x.shape[axis]
        if n == out == 0 or (scale == 1 and n == out and part == (0, 1)):
            continue
        at = [coordinate(coordinates, i, n, out, scale, part) for i in range(out)]
        matrix = np.array([axis_matrix(mode, c, n, scale, attrs) for c in at]).reshape(out, n)
        if mode == "nearest":
            value = np.take(value, matrix.argmax(1), axis)
        else:
            value = np.moveaxis(np.tensordot(matrix, value, ([1], [axis])), 0, axis)
        if coordinates == "tf_crop_and_resize":
            beyond = np.array([c < 0 or c > n - 1 for c in at]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
            outside = outside | beyond
    extrapolation = attrs.get("extrapolation_value", 0.0)
    value = np.where(outside, np.asarray(extrapolation).astype(value.dtype), value)
    if np.issubdtype(x.dtype, np.integer) and mode != "nearest":
        value = np.clip(np.round(value), np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    return value.astype(x.dtype)


def evaluate(x, scales, sizes, roi, attrs):
    """What ONNX Runtime and the reference evaluator say; None where they refuse."""
    lists = {"roi": (roi, np.float32), "scales": (scales, np.float32), "sizes": (sizes, np.int64)}
    feed = {"x": x} | {k: np.array(v, t) for k, (v, t) in lists.items() if v is not None}
    names = ["x"] + [k if k in feed else "" for k in lists]
    node = helper.make_node("Resize", names, ["y"], **attrs)
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feed.items()]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", infos[0].type.tensor_type.elem_type, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    results = []
    for run in (lambda: onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed)[0],
                lambda: ReferenceEvaluator(model).run(None, feed)[0]):
        try:
            results.append(run())
        except Exception:
            results.append(None)
    return results


def random(shape, kind):
    t = TYPES[kind]
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(t, np.integer):
        info = np.iinfo(t)
        return rng.integers(info.min, info.max, shape, dtype=t, endpoint=True)
    return rng.uniform(-1, 1, shape).astype(t)


def add(c, shape, kind="f32", name="", scales=None, sizes=None, roi=None, dynamic=False, constant=False, x=None, **attrs):
    x = random(shape, kind) if x is None else x
    y = brute(x, scales, sizes, roi, attrs)
    probe = x.astype(np.float32) if kind in ("f64", "f16", "bf16") else x
    agreed = []
    for who, got in zip(["ONNX Runtime", "onnx reference"], evaluate(probe, scales, sizes, roi, attrs)):
        if got is None:
            continue
        tolerance = 1e-5 if kind in RTOL else 0
        if got.shape == y.shape and np.allclose(got.astype(np.float64), brute(probe, scales, sizes, roi, attrs).astype(np.float64), tolerance, tolerance):
            agreed.append(who)
        else:
            print(f"  {name}: {who} differs")
    if not agreed and x.size:
        print(f"  {name}: nobody agrees")
    lists = {"roi": (roi, np.float32), "scales": (scales, np.float32), "sizes": (sizes, np.int64)}
    inputs, kept = [x], dict(attrs)
    for k, (v, t) in lists.items():
        if dynamic or constant:
            inputs.append(None if v is None else np.array(v, t))
        elif v is not None:
            kept[k] = [int(s) for s in v] if k == "sizes" else [float(np.float32(s)) for s in v]
    rtol = RTOL.get(kind, 0) if attrs.get("mode", "nearest") != "nearest" else 0
    c.add("Resize", inputs, [y], kept, name=name, rtol=rtol, atol=rtol, constants=(1, 2, 3) if constant else (),
          oracle="formulas in exact arithmetic" + "".join(f", agrees with {w}" for w in agreed))


COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


def resize_cases(c):
    for coordinates in COORDINATES:
        for rule in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]:
            short = f"{coordinates}_{rule}"
            add(c, [1, 2, 6, 5], name=f"nearest_{short}", sizes=[1, 2, 14, 3], coordinate_transformation_mode=coordinates, nearest_mode=rule)
        for mode in ["linear", "cubic"]:
            short = f"{mode}_{coordinates}"
            add(c, [2, 2, 5, 6], name=f"{short}_sizes", sizes=[2, 2, 8, 4], mode=mode, coordinate_transformation_mode=coordinates)
            add(c, [1, 2, 6, 7], name=f"{short}_scales", scales=[1, 1, 2.3, 0.65], mode=mode, coordinate_transformation_mode=coordinates)
            add(c, [1, 1, 4, 5], name=f"{short}_to_one", sizes=[1, 1, 1, 1], mode=mode, coordinate_transformation_mode=coordinates)
    for kind in TYPES:
        add(c, [1, 2, 4, 3], kind, name=f"nearest_{kind}", scales=[1, 1, 2, 3], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for kind in ["f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32"]:
        add(c, [1, 2, 6, 5], kind, name=f"linear_{kind}", sizes=[1, 2, 9, 4], mode="linear")
        add(c, [1, 1, 6, 5], kind, name=f"cubic_{kind}", sizes=[1, 1, 9, 4], mode="cubic")
    for mode in ["linear", "cubic"]:
        for outside in [0, 1]:
            add(c, [1, 2, 13, 10], name=f"{mode}_antialias_{outside}", sizes=[1, 2, 5, 4], mode=mode, antialias=1, exclude_outside=outside)
            add(c, [1, 1, 9, 8], name=f"{mode}_antialias_mixed_{outside}", scales=[1, 1, 0.35, 1.5], mode=mode, antialias=1, exclude_outside=outside)
        add(c, [1, 1, 16], name=f"{mode}_antialias_1d", scales=[1, 1, 0.25], mode=mode, antialias=1, coordinate_transformation_mode="align_corners")
        add(c, [1, 1, 12, 9], name=f"{mode}_antialias_asymmetric", sizes=[1, 1, 5, 3], mode=mode, antialias=1, coordinate_transformation_mode="asymmetric")
        add(c, [5, 4], name=f"{mode}_2d_exclude_outside", sizes=[9, 3], mode=mode, exclude_outside=1)
        add(c, [3, 4, 5], name=f"{mode}_3d_axes", sizes=[5, 6, 3], axes=[-3, 2, 1], mode=mode)
    add(c, [1, 1, 6, 6], name="cubic_a", scales=[1, 1, 1.7, 1.7], mode="cubic", cubic_coeff_a=-0.5)
    add(c, [1, 1, 6, 6], name="cubic_a_exclude_outside", scales=[1, 1, 0.8, 0.8], mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
    add(c, [1, 2, 4, 3, 5], name="linear_5d", scales=[1, 1, 1.5, 2, 0.6], mode="linear")
    add(c, [7], name="linear_1d", sizes=[11], mode="linear")
    add(c, [1, 1, 10], name="nearest_scale_7_10", scales=[1, 1, 0.7])
    add(c, [1, 1, 6], name="nearest_exact_ratio", sizes=[1, 1, 14], coordinate_transformation_mode="asymmetric", nearest_mode="ceil")
    for policy in ["not_larger", "not_smaller"]:
        add(c, [1, 2, 3, 4], name=f"{policy}_linear", sizes=[7, 7], axes=[2, 3], mode="linear", keep_aspect_ratio_policy=policy)
        add(c, [1, 2, 5, 3], name=f"{policy}_nearest", sizes=[3, 2], axes=[-2, -1], keep_aspect_ratio_policy=policy)
        add(c, [1, 2, 5, 3], name=f"{policy}_symmetric", sizes=[7, 8], axes=[3, 2], mode="cubic", keep_aspect_ratio_policy=policy,
            coordinate_transformation_mode="half_pixel_symmetric")
    crop = dict(coordinate_transformation_mode="tf_crop_and_resize")
    for mode in ["nearest", "linear", "cubic"]:
        add(c, [1, 2, 6, 5], name=f"crop_{mode}", sizes=[1, 2, 4, 7], roi=[0, 0, 0.2, 0.3, 1, 1, 0.7, 0.9], mode=mode, **crop)
        add(c, [1, 1, 6, 5], name=f"crop_{mode}_outside", sizes=[5, 6], axes=[2, 3], roi=[-0.3, 0.4, 0.8, 1.3], mode=mode, extrapolation_value=7.5, **crop)
        add(c, [1, 1, 6, 5], name=f"crop_{mode}_flipped", sizes=[4, 1], axes=[2, 3], roi=[0.9, 0.1, 0.2, 0.8], mode=mode, **crop)
        add(c, [1, 1, 6, 4], name=f"crop_{mode}_same_size", sizes=[6, 4], axes=[2, 3], roi=[0.25, 0, 0.75, 1], mode=mode, **crop)
    for kind in ["u8", "i64", "bool"]:
        add(c, [4, 4], kind, name=f"crop_{kind}_outside", sizes=[5, 5], roi=[-0.5, 0, 1, 1.2], extrapolation_value=1.0, **crop)
    add(c, [1, 1, 6, 5], name="crop_scales", scales=[1, 1, 0.5, 1.6], roi=[0, 0, 0.1, 0.2, 1, 1, 0.7, 1.1], mode="linear", **crop)
    for form in [dict(dynamic=True), dict(constant=True)]:
        tag = next(iter(form))
        add(c, [1, 2, 4, 5], name=f"{tag}_scales", scales=[1, 1, 2, 0.6], mode="linear", **form)
        add(c, [1, 2, 4, 5], name=f"{tag}_sizes", sizes=[1, 2, 7, 3], **form)
        add(c, [1, 2, 4, 5], name=f"{tag}_roi", sizes=[6, 3], axes=[2, 3], roi=[0.1, 0.2, 0.9, 1.1], mode="linear", **crop, **form)
    add(c, [0, 2, 4, 5], name="empty_batch", scales=[1, 1, 2, 2], mode="linear")
    add(c, [1, 2, 0, 5], name="empty_image", sizes=[1, 2, 0, 3])
    add(c, [1, 2, 3, 5], name="to_nothing", sizes=[1, 2, 0, 3], mode="linear")
    infinite = np.array([[1, np.inf, 2, np.nan, 3]], np.float32)
    expected = np.array([[1, np.inf, 2, np.nan, 3]], np.float32)
    c.add("Resize", [infinite], [expected[:, ::2]], {"sizes": [1, 3], "mode": "linear", "coordinate_transformation_mode": "align_corners"},
          name="linear_hits_finite_elements", oracle="by hand")


def block_cases(c):
    for i, (kind, shape, block) in enumerate([("f32", [2, 8, 3, 5], 2), ("f16", [1, 18, 2, 2], 3), ("i64", [1, 4, 1, 3], 2), ("bool", [2, 3, 4, 2], 1),
                                              ("u8", [1, 12, 2, 3], 2), ("bf16", [0, 4, 2, 2], 2), ("f64", [1, 0, 2, 2], 2)]):
        x = random(shape, kind)
        n, d, h, w = shape
        b, ch = block, d // block**2
        dcr = x.reshape(n, b, b, ch, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, ch, h * b, w * b)
        crd = x.reshape(n, ch, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, ch, h * b, w * b)
        c.add("DepthToSpace", [x], [dcr], {"blocksize": block}, name=f"default_{kind}", oracle="NumPy")
        c.add("DepthToSpace", [x], [dcr], {"blocksize": block, "mode": "DCR"}, name=f"DCR_{kind}", oracle="NumPy")
        c.add("DepthToSpace", [x], [crd], {"blocksize": block, "mode": "CRD"}, name=f"CRD_{kind}", oracle="NumPy")
        c.add("SpaceToDepth", [dcr], [x], {"blocksize": block}, name=kind, oracle="NumPy")


def main(path):
    c = Cases("formulas in exact arithmetic")
    resize_cases(c)
    block_cases(c)
    c.write(path)


if __name__ == "__main__":
    main(sys.argv[1])
