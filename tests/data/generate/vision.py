"""Cases of ops on images: sampling between pixels, unpooling, deformed convolution, LRN. Run from the root of the repository:
    python tests/data/generate/vision.py tests/data/ops/vision.cases
"""
import sys

import numpy as np
import onnxruntime as ort
import torch
from onnx import TensorProto, helper

from cases import BF16, Cases

RNG = np.random.default_rng(20240915)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = [F32, F64, F16, BF16]
INTS = [np.dtype(t) for t in (np.int8, np.int32, np.int64, np.uint8, np.uint64)]
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}


def normal(shape, dtype=F32):
    return RNG.normal(size=shape).astype(dtype)


def close(dtype, expected):
    most = float(np.abs(expected.astype(F64)).max()) if expected.size else 0.0
    return {"rtol": RTOL[dtype], "atol": RTOL[dtype] * most}


def wide(x):
    return torch.from_numpy(x.astype(F64))


def run_ort(op, inputs, attrs, opset):
    """One node in ONNX Runtime, in f32."""
    names = ["" if x is None else f"i{i}" for i, x in enumerate(inputs)]
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
    feeds = {n: x for n, x in zip(names, inputs) if n}
    graph = helper.make_graph([helper.make_node(op, names, ["out"], **attrs)], "g",
                              [helper.make_tensor_value_info(n, kinds[x.dtype], list(x.shape)) for n, x in feeds.items()],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def grid_sample(cases):
    torch_modes = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}

    def one(shape, out, mode=None, padding=None, align=None, dtype=F32, grid_type=F32, reach=1.3, name=""):
        x, grid = normal(shape, dtype), RNG.uniform(-reach, reach, (shape[0],) + out + (len(out),)).astype(grid_type)
        expected = torch.nn.functional.grid_sample(wide(x), wide(grid), torch_modes[mode or "linear"], padding or "zeros", bool(align)).numpy()
        attrs = {n: v for n, v in (("mode", mode), ("padding_mode", padding), ("align_corners", align)) if v is not None}
        cases.add("GridSample", [x, grid], [expected.astype(dtype)], attrs, name=name, oracle="PyTorch in double precision",
                  **close(dtype, expected))

    for mode in torch_modes:
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                one((2, 3, 5, 6), (4, 3), mode, padding, align, name=f"{mode}_{padding}_{align}")
                if mode != "cubic":
                    one((2, 2, 3, 4, 5), (2, 3, 2), mode, padding, align, name=f"volume_{mode}_{padding}_{align}")
    for dtype in FLOATS:
        one((1, 2, 4, 4), (3, 3), dtype=dtype, name=dtype.name)
    for dtype in (F64, F16, BF16):
        one((1, 2, 4, 4), (3, 3), grid_type=dtype, name=f"grid_{dtype.name}")
    for padding in ("zeros", "border", "reflection"):
        one((1, 2, 4, 5), (6, 6), "linear", padding, 1, reach=9, name=f"far_{padding}")
        one((1, 2, 4, 5), (6, 6), "cubic", padding, 0, reach=9, name=f"far_cubic_{padding}")
        one((1, 1, 1, 1), (3, 3), "linear", padding, 0, name=f"one_pixel_{padding}")
    one((0, 2, 4, 4), (3, 3), name="no_batch")
    one((1, 0, 4, 4), (3, 3), name="no_channels")
    x, grid = np.arange(12).reshape(1, 1, 3, 4), RNG.uniform(-1, 1, (1, 4, 4, 2)).astype(F32)
    for dtype in INTS:
        expected = torch.nn.functional.grid_sample(wide(x), wide(grid), "nearest", "zeros", False).numpy()
        cases.add("GridSample", [x.astype(dtype), grid], [expected.astype(dtype)], {"mode": "nearest"}, name=dtype.name, oracle="PyTorch")
    line, places = normal((2, 3, 7)), RNG.uniform(-1.2, 1.2, (2, 5, 1)).astype(F32)
    # One spatial axis is the middle row of an image of three equal ones.
    image, on_image = np.repeat(line[:, :, None], 3, 2), np.stack([places[..., 0], np.zeros((2, 5))], -1)[:, None]
    expected = torch.nn.functional.grid_sample(wide(image), wide(on_image), "bilinear", "zeros", False).numpy()[:, :, 0]
    cases.add("GridSample", [line, places], [expected.astype(F32)], name="one_axis", oracle="PyTorch in double precision", **close(F32, expected))


def affine_grid(cases):
    def one(size, align=None, dtype=F32, form="attribute", name=""):
        space = len(size) - 2
        theta = normal((size[0], space, space + 1), dtype)
        expected = torch.nn.functional.affine_grid(wide(theta), list(size), bool(align)).numpy()
        attrs, inputs = {} if align is None else {"align_corners": align}, [theta]
        if form == "attribute":
            attrs["size"] = list(size)
        else:
            inputs.append(np.array(size, np.int64))
        cases.add("AffineGrid", inputs, [expected.astype(dtype)], attrs, name=name, constants=(1,) if form == "constant" else (),
                  oracle="PyTorch in double precision", **close(dtype, expected))

    for dtype in FLOATS:
        one((2, 3, 4, 5), dtype=dtype, name=dtype.name)
    for align in (0, 1):
        one((2, 1, 5, 6), align, name=f"image_{align}")
        one((2, 1, 3, 4, 5), align, name=f"volume_{align}")
        one((1, 1, 1, 3), align, name=f"one_row_{align}")
    one((2, 3, 4, 5), 1, form="input", name="dynamic")
    one((2, 3, 4, 5), form="constant", name="constant_size")
    cases.add("AffineGrid", [np.zeros((0, 2, 3), F32)], [np.zeros((0, 4, 5, 2), F32)], {"size": [0, 1, 4, 5]}, name="no_batch",
              oracle="by definition")


def roi_align(cases):
    def one(shape, rois, batch, name, dtype=F32, **attrs):
        x, rois, batch = normal(shape), np.array(rois, F32).reshape(-1, 4), np.array(batch, np.int64)
        if dtype == F32:
            expected = run_ort("RoiAlign", [x, rois, batch], attrs, 16)
            tolerance = {"rtol": 1e-4, "atol": 1e-5}
        else:
            x, rois = x.astype(dtype), rois.astype(dtype)
            expected = run_ort("RoiAlign", [x.astype(F32), rois.astype(F32), batch], attrs, 16)
            tolerance = close(dtype, expected) if dtype != F64 else {"rtol": 1e-4, "atol": 1e-5}
        cases.add("RoiAlign", [x, rois, batch], [expected.astype(dtype)], attrs, name=name, oracle="ONNX Runtime in f32", **tolerance)

    rois = [[0, 0, 9, 9], [2.5, 1, 7, 4], [-3, -2, 4, 5], [5, 5, 14, 13], [3, 3, 3.2, 3.1]]
    batch = [0, 1, 0, 1, 1]
    for mode in ("avg", "max"):
        for transform in ("half_pixel", "output_half_pixel"):
            for ratio in (0, 2):
                one((2, 3, 10, 10), rois, batch, f"{mode}_{transform}_{ratio}", mode=mode, coordinate_transformation_mode=transform,
                    sampling_ratio=ratio, output_height=3, output_width=2)
    for dtype in (F64, F16, BF16):
        one((2, 3, 10, 10), rois, batch, dtype.name, dtype, sampling_ratio=2, output_height=2, output_width=2)
    one((2, 3, 10, 10), rois, batch, "defaults")
    one((2, 3, 10, 12), np.array(rois) * 4, batch, "scaled", spatial_scale=0.25, output_height=4, output_width=5)
    cases.add("RoiAlign", [normal((2, 3, 4, 4)), np.zeros((0, 4), F32), np.zeros((0,), np.int64)], [np.zeros((0, 3, 2, 2), F32)],
              {"output_height": 2, "output_width": 2}, name="no_regions", oracle="by definition")


def col2im(cases):
    def one(image, block, strides=None, pads=None, dilations=None, dtype=F32, form="attribute", channels=3, batch=2, name=""):
        s, d = strides or [1] * len(image), dilations or [1] * len(image)
        p = pads or [0] * (2 * len(image))
        rank = len(image)
        counts = [(image[i] + p[i] + p[rank + i] - d[i] * (block[i] - 1) - 1) // s[i] + 1 for i in range(rank)]
        shape = (batch, channels * int(np.prod(block)), int(np.prod(counts)))
        x = normal(shape, dtype) if dtype in FLOATS else RNG.integers(0, 9, shape).astype(dtype)
        padded = np.zeros([batch, channels] + [image[i] + p[i] + p[rank + i] for i in range(rank)], F64 if dtype in FLOATS else dtype)
        columns = x.reshape([batch, channels] + list(block) + counts)
        for tap in np.ndindex(*block):
            where = tuple(slice(t * d[i], t * d[i] + s[i] * (counts[i] - 1) + 1, s[i]) for i, t in enumerate(tap))
            padded[(slice(None), slice(None)) + where] += columns[(slice(None), slice(None)) + tap].astype(padded.dtype)
        expected = padded[(slice(None), slice(None)) + tuple(slice(p[i], p[i] + image[i]) for i in range(rank))]
        if dtype in FLOATS and rank == 2 and p[:2] == p[2:]:
            fold = torch.nn.functional.fold(wide(x), image, block, d, p[:2], s).numpy()
            assert np.allclose(fold, expected)
        attrs = {n: v for n, v in (("strides", strides), ("pads", pads), ("dilations", dilations)) if v is not None}
        inputs = [x]
        if form == "attribute":
            attrs |= {"image_shape": list(image), "block_shape": list(block)}
        else:
            inputs += [np.array(image, np.int64), np.array(block, np.int64)]
        tolerance = close(dtype, expected) if dtype in FLOATS else {}
        cases.add("Col2Im", inputs, [expected.astype(dtype)], attrs, name=name, constants=(1, 2) if form == "constant" else (),
                  oracle="slices in numpy, checked with torch's fold", **tolerance)

    for dtype in FLOATS + INTS:
        one([4, 5], [2, 3], dtype=dtype, name=dtype.name)
    one([5, 5], [1, 5], name="rows")
    one([6, 7], [3, 3], strides=[2, 2], name="strides")
    one([6, 7], [3, 2], pads=[1, 0, 1, 0], name="pads")
    one([6, 7], [3, 2], pads=[1, 0, 2, 1], strides=[2, 1], name="uneven_pads")
    one([6, 7], [2, 2], dilations=[1, 3], name="dilations")
    one([4, 3, 5], [2, 1, 3], name="volume")
    one([9], [4], strides=[2], name="line")
    one([4, 5], [2, 2], form="input", name="dynamic")
    one([4, 5], [2, 2], form="constant", name="constant_shapes")
    one([4, 5], [2, 2], batch=0, name="no_batch")


def max_unpool(cases):
    def one(shape, kernel, strides=None, pads=None, larger=None, dtype=F32, form="attribute", name=""):
        """Pools an image with PyTorch, then puts the maxima back where they were."""
        image = torch.from_numpy(RNG.permutation(int(np.prod(shape))).reshape(shape).astype(F64))
        space = len(kernel)
        pool = {1: torch.nn.functional.max_pool1d, 2: torch.nn.functional.max_pool2d, 3: torch.nn.functional.max_pool3d}[space]
        y, plane_index = pool(image, kernel, strides or [1] * space, (pads or [0] * space)[:space], return_indices=True)
        planes = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *[1] * space) * int(np.prod(shape[2:]))
        indices, y = plane_index.numpy() + planes, y.numpy()
        expected = np.zeros(int(np.prod(shape)))
        expected[indices.reshape(-1)] = y.reshape(-1)
        expected = expected.reshape(shape)
        attrs = {n: v for n, v in (("kernel_shape", kernel), ("strides", strides), ("pads", pads)) if v is not None}
        inputs = [y.astype(dtype), indices.astype(np.int64)]
        if larger is not None:
            expected = np.pad(expected, [(0, l - s) for l, s in zip(larger, shape)])
            if form == "attribute":
                attrs["unpooled_shape"] = list(larger)
            else:
                inputs.append(np.array(larger, np.int64))
        cases.add("MaxUnpool", inputs, [expected.astype(dtype)], attrs, name=name, oracle="PyTorch's pools")

    for dtype in FLOATS:
        one((1, 2, 4, 4), [2, 2], [2, 2], dtype=dtype, name=dtype.name)
    one((2, 3, 6, 8), [2, 2], [2, 2], name="image")
    one((2, 3, 7, 5), [3, 3], [2, 2], name="overlapping")
    one((2, 3, 5, 5), [3, 3], [2, 2], [1, 1, 1, 1], name="padded")
    one((2, 2, 8), [2], [2], name="line")
    one((1, 2, 4, 4, 6), [2, 2, 2], [2, 2, 2], name="volume")
    one((1, 1, 4, 5), [2, 2], name="no_strides")
    one((1, 1, 4, 4), [2, 2], [2, 2], larger=(1, 1, 5, 6), name="larger")
    one((1, 1, 4, 4), [2, 2], [2, 2], larger=(1, 1, 5, 5), form="input", name="larger_dynamic")


def lrn(cases):
    def one(shape, size, name, dtype=F32, **attrs):
        x = (RNG.normal(size=shape) * 3).astype(dtype)
        squares = np.pad(x.astype(F64) ** 2, [(0, 0), ((size - 1) // 2, size // 2)] + [(0, 0)] * (len(shape) - 2))
        window = sum(squares[:, i:i + shape[1]] for i in range(size))
        scale = attrs.get("bias", 1.0) + attrs.get("alpha", 1e-4) / size * window
        expected = x.astype(F64) / scale ** attrs.get("beta", 0.75)
        if size % 2 and dtype == F64 and len(shape) >= 3:
            t = torch.nn.functional.local_response_norm(wide(x), size, attrs.get("alpha", 1e-4), attrs.get("beta", 0.75), attrs.get("bias", 1.0))
            assert np.allclose(t.numpy(), expected)
        cases.add("LRN", [x], [expected.astype(dtype)], {"size": size} | attrs, name=name, oracle="its definition in numpy, checked with PyTorch",
                  rtol=RTOL[dtype])

    for dtype in FLOATS:
        one((2, 6, 3, 3), 3, dtype.name, dtype, alpha=0.01, beta=0.5, bias=2.0)
    one((2, 6, 3, 3), 5, "defaults")
    one((2, 6, 3, 3), 4, "even_size", alpha=0.1)
    one((2, 3, 4), 9, "wider_than_the_channels", alpha=0.1)
    one((3, 7), 3, "matrix", alpha=0.1)
    one((1, 4, 2, 2, 3), 1, "volume", alpha=0.1)
    one((2, 4, 0, 3), 3, "empty")


def deform_conv(cases):
    def sample(image, position):
        """N-linear, zero outside."""
        total = 0.0
        low = np.floor(position).astype(int)
        for corner in np.ndindex(*[2] * len(position)):
            at = low + np.array(corner)
            if all(0 <= a < e for a, e in zip(at, image.shape)):
                total += image[tuple(at)] * np.prod(1 - np.abs(position - at))
        return total

    def one(n, channels, image, outputs, kernel, name, group=1, offset_group=1, strides=None, pads=None, dilations=None, bias=False,
            mask=False, dtype=F32, reach=1.5, given_kernel=False):
        rank = len(image)
        s, d, p = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
        out = [(image[i] + p[i] + p[rank + i] - d[i] * (kernel[i] - 1) - 1) // s[i] + 1 for i in range(rank)]
        taps = int(np.prod(kernel))
        x, w = normal([n, channels] + image, dtype), normal([outputs, channels // group] + kernel, dtype)
        offset = RNG.uniform(-reach, reach, [n, offset_group * taps * rank] + out).astype(dtype)
        b = normal((outputs,), dtype) if bias else None
        m = RNG.uniform(0, 1, [n, offset_group * taps] + out).astype(dtype) if mask else None
        expected = np.zeros([n, outputs] + out)
        moves = offset.astype(F64).reshape([n, offset_group, taps, rank] + out)
        weights = np.ones([n, offset_group, taps] + out) if m is None else m.astype(F64).reshape([n, offset_group, taps] + out)
        for i in range(n):
            for place in np.ndindex(*out):
                for c in range(channels):
                    g = c // (channels // offset_group)
                    for t, tap in enumerate(np.ndindex(*kernel)):
                        at = np.array([s[a] * place[a] - p[a] + tap[a] * d[a] for a in range(rank)]) + moves[(i, g, t, slice(None)) + place]
                        value = sample(x[i, c].astype(F64), at) * weights[(i, g, t) + place]
                        of_group = slice(c // (channels // group) * (outputs // group), (c // (channels // group) + 1) * (outputs // group))
                        expected[(i, of_group) + place] += value * w.astype(F64)[(of_group, c % (channels // group)) + tap]
        if b is not None:
            expected += b.astype(F64).reshape([1, -1] + [1] * rank)
        attrs = {k: v for k, v in (("strides", strides), ("pads", pads), ("dilations", dilations)) if v is not None}
        attrs |= ({"group": group} if group != 1 else {}) | ({"offset_group": offset_group} if offset_group != 1 else {})
        attrs |= {"kernel_shape": kernel} if given_kernel else {}
        inputs = [x, w, offset, b, m]
        while inputs[-1] is None:
            inputs.pop()
        cases.add("DeformConv", inputs, [expected.astype(dtype)], attrs, name=name, oracle="its definition in numpy", **close(dtype, expected))

    for dtype in FLOATS:
        one(1, 2, [4, 4], 2, [2, 2], dtype.name, dtype=dtype, bias=True, mask=True)
    one(2, 3, [5, 6], 4, [3, 3], "padded", pads=[1, 1, 1, 1], given_kernel=True)
    one(1, 4, [6, 5], 4, [2, 2], "groups", group=2, strides=[2, 1])
    one(1, 4, [5, 5], 2, [2, 2], "offset_groups", offset_group=2, mask=True)
    one(1, 4, [5, 5], 6, [2, 2], "both_groups", group=2, offset_group=4, bias=True)
    one(1, 2, [7, 7], 2, [2, 3], "dilated", dilations=[2, 2], pads=[0, 1, 1, 2])
    one(1, 2, [4, 4], 2, [2, 2], "far", reach=9)
    one(2, 2, [6], 3, [3], "line", pads=[1, 1])
    one(1, 2, [3, 3, 4], 2, [2, 2, 2], "volume", bias=True)
    one(0, 2, [4, 4], 2, [2, 2], "no_batch")


if __name__ == "__main__":
    all_cases = Cases("numpy")
    grid_sample(all_cases)
    affine_grid(all_cases)
    roi_align(all_cases)
    col2im(all_cases)
    max_unpool(all_cases)
    lrn(all_cases)
    deform_conv(all_cases)
    all_cases.write(sys.argv[1])
