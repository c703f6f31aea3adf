"""msrt.ResizeGrad: the transpose of Resize. Each element of the gradient is the product of the given gradient with the image of a unit
vector, by the formulas of resize.py; where PyTorch has the same interpolation, its gradient in float64 is compared here."""
import sys

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from cases import Cases
from resize import COORDINATES, brute

rng = np.random.default_rng(23)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RTOL = {"f64": 1e-12, "f32": 1e-6, "f16": 1e-3, "bf16": 1e-2}


def transposed(grad, shape, scales, sizes, roi, attrs):
    result = np.zeros(shape)
    for at in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[at] = 1
        result[at] = (brute(unit, scales, sizes, roi, attrs) * grad).sum()
    return result


def torch_gradient(grad, shape, mode, coordinates):
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    kind = {"linear": "bilinear", "cubic": "bicubic"}[mode]
    y = F.interpolate(x, grad.shape[2:], mode=kind, align_corners=coordinates == "align_corners")
    return torch.autograd.grad(y, x, torch.from_numpy(grad))[0].numpy()


def add(c, shape, kind="f32", name="", scales=None, sizes=None, roi=None, dynamic=False, like_torch=False, **attrs):
    grad = rng.uniform(-1, 1, brute(np.zeros(shape), scales, sizes, roi, attrs).shape).astype(TYPES[kind])
    wide = np.asarray(grad, np.float64)
    result = transposed(wide, shape, scales, sizes, roi, attrs)
    if like_torch:
        assert np.allclose(result, torch_gradient(wide, shape, attrs["mode"], attrs.get("coordinate_transformation_mode")), 1e-12, 1e-12)
    lists = {"roi": (roi, np.float32), "scales": (scales, np.float32), "sizes": (sizes, np.int64), "input_shape": (shape, np.int64)}
    inputs, kept = [grad], dict(attrs)
    for k, (v, t) in lists.items():
        if dynamic:
            inputs.append(None if v is None else np.array(v, t))
        elif v is not None:
            kept[k] = [int(s) for s in v] if t == np.int64 else [float(np.float32(s)) for s in v]
    c.add("ResizeGrad", inputs, [result.astype(TYPES[kind])], kept, domain="msrt", name=name, rtol=RTOL[kind], atol=RTOL[kind],
          oracle="transposed formulas in exact arithmetic" + (", PyTorch" if like_torch else ""))


def main(path):
    c = Cases("transposed formulas in exact arithmetic")
    for coordinates in COORDINATES:
        add(c, [1, 2, 6, 5], name=f"nearest_{coordinates}", sizes=[1, 2, 14, 3], coordinate_transformation_mode=coordinates)
        for mode in ["linear", "cubic"]:
            add(c, [2, 2, 5, 6], name=f"{mode}_{coordinates}", sizes=[2, 2, 8, 4], mode=mode, coordinate_transformation_mode=coordinates,
                like_torch=coordinates in ("half_pixel", "align_corners"))
            add(c, [1, 1, 4, 5], name=f"{mode}_{coordinates}_scales", scales=[1, 1, 2.3, 0.65], mode=mode, coordinate_transformation_mode=coordinates)
    for rule in ["round_prefer_ceil", "floor", "ceil"]:
        add(c, [1, 2, 6, 5], name=f"nearest_{rule}", sizes=[1, 2, 14, 3], nearest_mode=rule)
    for kind in TYPES:
        add(c, [1, 2, 4, 3], kind, name=f"nearest_{kind}", scales=[1, 1, 2, 3], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        add(c, [3, 2, 6, 5], kind, name=f"linear_{kind}", sizes=[3, 2, 9, 4], mode="linear")
    for mode in ["linear", "cubic"]:
        for outside in [0, 1]:
            add(c, [1, 2, 13, 10], name=f"{mode}_antialias_{outside}", sizes=[1, 2, 5, 4], mode=mode, antialias=1, exclude_outside=outside)
        add(c, [5, 4], name=f"{mode}_2d_exclude_outside", sizes=[9, 3], mode=mode, exclude_outside=1)
        add(c, [3, 4, 5], name=f"{mode}_3d_axes", sizes=[5, 6, 3], axes=[-3, 2, 1], mode=mode)
        add(c, [4, 4, 5], name=f"{mode}_some_axes_kept", sizes=[5, 6], axes=[2, 1], mode=mode)
    add(c, [5, 4], name="nearest_exclude_outside", sizes=[9, 3], exclude_outside=1, coordinate_transformation_mode="half_pixel")
    add(c, [1, 1, 6, 6], name="cubic_a", scales=[1, 1, 1.7, 1.7], mode="cubic", cubic_coeff_a=-0.5)
    add(c, [1, 2, 4, 3, 5], name="linear_5d", scales=[1, 1, 1.5, 2, 0.6], mode="linear")
    for policy in ["not_larger", "not_smaller"]:
        add(c, [1, 2, 3, 4], name=f"{policy}_linear", sizes=[7, 7], axes=[2, 3], mode="linear", keep_aspect_ratio_policy=policy)
    crop = dict(coordinate_transformation_mode="tf_crop_and_resize")
    for mode in ["nearest", "linear", "cubic"]:
        add(c, [1, 2, 6, 5], name=f"crop_{mode}", sizes=[1, 2, 4, 7], roi=[0, 0, 0.2, 0.3, 1, 1, 0.7, 0.9], mode=mode, **crop)
        add(c, [1, 1, 6, 5], name=f"crop_{mode}_outside", sizes=[5, 6], axes=[2, 3], roi=[-0.3, 0.4, 0.8, 1.3], mode=mode, **crop)
    add(c, [1, 2, 4, 5], name="dynamic_scales", scales=[1, 1, 2, 0.6], mode="linear", dynamic=True)
    add(c, [1, 2, 4, 5], name="dynamic_sizes", sizes=[1, 2, 7, 3], dynamic=True)
    add(c, [1, 2, 4, 5], name="dynamic_roi", sizes=[6, 3], axes=[2, 3], roi=[0.1, 0.2, 0.9, 1.1], mode="linear", dynamic=True, **crop)
    add(c, [0, 2, 4, 5], name="empty_batch", scales=[1, 1, 2, 2], mode="linear")
    add(c, [1, 2, 3, 5], name="to_nothing", sizes=[1, 2, 0, 3], mode="linear")
    c.write(path)


if __name__ == "__main__":
    main(sys.argv[1])
