"""Cases of ops/shape.cc and ops/generate.cc: views, Expand, Shape, Size, ConstantOfShape, Range, EyeLike, Trilu."""
import sys

import ml_dtypes
import numpy as np

from cases import BF16, Cases, Dtype

rng = np.random.default_rng(20)
c = Cases("NumPy")
F8 = np.dtype(ml_dtypes.float8_e4m3fn)
TYPES = [np.float64, np.float32, np.float16, BF16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
         np.bool_, F8]


def data(shape, dtype=np.float32):
    return (rng.integers(0, 2, shape) if dtype == np.bool_ else rng.integers(0, 100, shape)).astype(dtype)


def i64(*values):
    return np.array(values, np.int64)


def name_of(dtype):
    return np.dtype(dtype).name


# ---- Reshape: shape as attribute and as input, -1, 0, allowzero, groups that cut and groups that do not
for dtype in TYPES:
    x = data((4, 6), dtype)
    c.add("Reshape", [x], [x.reshape(3, 8)], {"shape": [3, 8]}, name=name_of(dtype))
for name, shape, attr in [
    ("same", (3, 5, 7), (3, 5, 7)), ("infer", (3, 4, 5), (-1, 5)), ("copy", (3, 4, 5), (0, 20)), ("copy_infer", (3, 4, 5, 2), (0, -1, 2)),
    ("merge", (2, 3, 4, 5), (6, 20)), ("split", (6, 20), (2, 3, 4, 5)), ("regroup", (2, 3, 4, 5), (6, 2, 2, 5)), ("prime", (7, 4), (4, 7)),
    ("common_factor", (12, 10), (8, 15)), ("flat", (2, 9, 4), (-1,)), ("heads", (2, 5, 12), (2, 5, 3, 4)), ("ones", (1, 6, 1, 4),
    (6, 1, 2, 2, 1)),
    ("to_scalar", (1, 1), ()), ("from_scalar", (), (1, 1, 1)), ("rank8", (2, 3, 4, 2, 2), (2, 3, 2, 2, 1, 2, 2, 1)),
    ("nhwc", (2, 6, 4, 3), (2, 24, 3)),
    ("groups", (2, 12, 5, 4), (2, 3, 4, 5, 4)),
]:
    x = data(shape)
    numpy_shape = tuple(shape[i] if d == 0 else d for i, d in enumerate(attr))
    c.add("Reshape", [x], [x.reshape(numpy_shape)], {"shape": list(attr)}, name=name)
    c.add("Reshape", [x, i64(*attr)], [x.reshape(numpy_shape)], name=f"{name}_input", constants=[1])
x = data((0, 3, 4))
c.add("Reshape", [x], [x.reshape(0, 12)], {"shape": [0, -1]}, name="empty_copy")
c.add("Reshape", [x], [x.reshape(0, 3, 4)], {"shape": [-1, 3, 4]}, name="empty_infer")
c.add("Reshape", [x], [x.reshape(7, 0)], {"shape": [7, 0], "allowzero": 1}, name="empty_allowzero")
x = data((4, 6))
c.add("Reshape", [x, i64(2, 12)], [x.reshape(2, 12)], name="dynamic")
c.add("Reshape", [x, np.array([2, -1], np.int32)], [x.reshape(2, 12)], name="dynamic_i32")

# ---- Squeeze, Unsqueeze, Flatten
for dtype in [np.float32, BF16, np.bool_, np.int64, F8]:
    x = data((1, 3, 1, 5), dtype)
    c.add("Squeeze", [x], [x.reshape(3, 5)], name=f"all_{name_of(dtype)}")
    y = data((3, 5), dtype)
    c.add("Unsqueeze", [y], [y.reshape(1, 3, 5)], {"axes": [0]}, name=name_of(dtype))
    c.add("Flatten", [x], [x.reshape(1, 15)], name=name_of(dtype))
for name, shape, axes in [("first", (1, 3, 1, 5), [0]), ("negative", (1, 3, 1, 5), [-2]), ("both", (1, 3, 1, 5), [2, 0]),
                          ("none", (2, 3), []),
                          ("to_scalar", (1, 1), [0, 1]), ("rank5", (1, 2, 1, 3, 1), [0, -1]), ("empty", (0, 1, 3), [1])]:
    x = data(shape)
    c.add("Squeeze", [x], [np.squeeze(x, tuple(axes))], {"axes": axes}, name=name)
    c.add("Squeeze", [x, i64(*axes)], [np.squeeze(x, tuple(axes))], name=f"{name}_input", constants=[1])
x = data((2, 3))
c.add("Squeeze", [x], [x], name="nothing_to_squeeze")
x = data((1, 4, 3))
c.add("Squeeze", [x, i64(0)], [x[0]], name="dynamic")
for name, shape, axes in [("last", (3, 4), [-1]), ("several", (3, 4), [0, 2, 4]), ("unordered", (3, 4), [3, 0]), ("scalar", (), [0, 1]),
                          ("rank8", (2, 3, 2, 3, 2), [0, 3, -1]), ("empty", (0, 4), [1]), ("none", (3, 4), [])]:
    x = data(shape)
    y = np.expand_dims(x, tuple(axes))
    c.add("Unsqueeze", [x], [y], {"axes": axes}, name=name)
    c.add("Unsqueeze", [x, i64(*axes)], [y], name=f"{name}_input", constants=[1])
x = data((4, 3))
c.add("Unsqueeze", [x, i64(1)], [x[:, None]], name="dynamic")
for shape, axis in [((2, 3, 4), 0), ((2, 3, 4), 1), ((2, 3, 4), 2), ((2, 3, 4), 3), ((2, 3, 4), -1), ((2, 3, 4), -3), ((5,), 1),
                    ((5,), 0), ((), 0),
                    ((0, 3, 4), 1), ((2, 0, 4), 2), ((1, 6, 1, 5), 2), ((3, 2, 2, 3, 2), 3)]:
    x = data(shape)
    rows = int(np.prod(shape[:axis if axis >= 0 else axis + len(shape)]))
    columns = int(np.prod(shape[axis if axis >= 0 else axis + len(shape):]))
    label = f"{len(shape)}d_axis{axis}_{len(c.cases)}".replace("-", "m")
    c.add("Flatten", [x], [x.reshape(rows, columns)], {"axis": axis}, name=label)

# ---- Shape, Size
for shape in [(), (3,), (2, 3, 4), (0, 5), (2, 1, 3, 1, 2)]:
    x = data(shape)
    c.add("Shape", [x], [i64(*shape)], name=f"rank{len(shape)}")
    c.add("Size", [x], [np.array(x.size, np.int64)], name=f"rank{len(shape)}")
x = data((2, 3, 4, 5), np.bool_)
for start, end in [(1, 3), (-2, 4), (0, -1), (3, 1), (-100, 100), (2, None), (100, None)]:
    attrs = {"start": start} | ({} if end is None else {"end": end})
    c.add("Shape", [x], [i64(*x.shape[start:end])], attrs, name=f"from{start}_to{end}".replace("-", "m"))
c.add("Size", [x], [np.array(x.size, np.int64)], name="bool")
c.add("Size", [data((3, 2), F8)], [np.array(6, np.int64)], name="f8")

# ---- Expand
for dtype in TYPES:
    x = data((3, 1), dtype)
    c.add("Expand", [x], [np.broadcast_to(x, (2, 3, 4))], {"shape": [2, 3, 4]}, name=name_of(dtype))
for name, shape, attr in [("both_ways", (3, 1, 5), (1, 4, 1)), ("scalar", (), (2, 3)), ("same", (2, 3), (2, 3)),
                          ("lower_rank", (2, 3, 4), (1, 4)),
                          ("to_empty", (1, 3), (0, 3)), ("from_empty", (0, 3), (2, 1, 3)), ("rank5", (2, 1, 3, 1, 2), (2, 2, 3, 3, 2)),
                          ("no_dims", (2, 2), ())]:
    x = data(shape)
    y = np.broadcast_to(x, np.broadcast_shapes(shape, attr))
    c.add("Expand", [x], [y], {"shape": list(attr)}, name=name)
    c.add("Expand", [x, i64(*attr)], [y], name=f"{name}_input", constants=[1])
x = data((3, 1))
c.add("Expand", [x, i64(3, 4)], [np.broadcast_to(x, (3, 4))], name="dynamic")

# ---- ConstantOfShape
for dtype in TYPES:
    value = np.array([1], np.bool_) if dtype == np.bool_ else np.array([7], dtype)
    c.add("ConstantOfShape", [], [np.full((3, 4), value[0], dtype)], {"shape": [3, 4], "value": value}, name=name_of(dtype))
c.add("ConstantOfShape", [], [np.zeros((2, 5, 3), np.float32)], {"shape": [2, 5, 3]}, name="default")
c.add("ConstantOfShape", [], [np.zeros((), np.float32)], {"shape": np.zeros(0, np.int64).tolist()}, name="scalar")
c.add("ConstantOfShape", [], [np.zeros((0, 4), np.float32)], {"shape": [0, 4]}, name="empty")
c.add("ConstantOfShape", [i64(2, 3)], [np.full((2, 3), -1, np.int64)], {"value": i64(-1)}, name="input", constants=[0])
c.add("ConstantOfShape", [i64(2, 3)], [np.full((2, 3), -1, np.int64)], {"value": np.array(-1, np.int64)}, name="dynamic")

# ---- Range: values are start + i * delta, rounded once
for dtype in [np.float64, np.float32, np.float16, BF16, np.int16, np.int32, np.int64]:
    for label, start, limit, delta in [("up", 2, 40, 3), ("down", 10, -9, -2), ("none", 5, 5, 1), ("wrong_way", 5, 1, 1), ("one", 0, 1, 9)]:
        y = np.arange(start, limit, delta).astype(dtype)
        c.add("Range", [np.array(v, dtype) for v in (start, limit, delta)], [y], name=f"{name_of(dtype)}_{label}")
for dtype in [np.float64, np.float32]:
    start, limit, delta = (np.array(v, dtype) for v in (-0.3, 4.2, 0.1))
    count = int(np.ceil((float(limit) - float(start)) / float(delta)))
    y = (float(start) + np.arange(count) * float(delta)).astype(dtype)
    c.add("Range", [start, limit, delta], [y], name=f"{name_of(dtype)}_fraction", constants=[0, 1, 2])
low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
y = np.array([low + i * (2**62) for i in range(4)], np.int64)
c.add("Range", [np.array(low), np.array(high), np.array(2**62)], [y], name="extremes")
c.add("Range", [np.array([1]), np.array([4]), np.array([1])], [i64(1, 2, 3)], name="rank1_scalars")

# ---- EyeLike, Trilu
for dtype in TYPES[:-1]:
    c.add("EyeLike", [data((3, 5), dtype)], [np.eye(3, 5, dtype=np.float32).astype(dtype)], name=name_of(dtype))
for shape, k in [((4, 4), 1), ((4, 6), -2), ((6, 4), 3), ((4, 4), 99), ((4, 4), -99), ((0, 3), 0), ((9, 11), -4), ((5, 5), high),
                 ((5, 5), low)]:
    c.add("EyeLike", [data(shape)], [np.eye(*shape, int(np.clip(k, -100, 100)), dtype=np.int32)], {"k": k, "dtype": Dtype("i32")},
          name=f"{shape[0]}x{shape[1]}_k{k}".replace("-", "m"))
for dtype in TYPES:
    x = data((4, 6), dtype)
    kept = np.triu(np.ones((4, 6), bool))
    c.add("Trilu", [x], [np.where(kept, x, np.zeros((), dtype)).astype(dtype)], name=name_of(dtype))
for shape, k, upper in [((5, 5), 1, 1), ((5, 5), -1, 1), ((5, 5), 1, 0), ((5, 5), -2, 0), ((2, 3, 4, 6), 0, 0), ((2, 6, 4), 2, 1),
                        ((3, 4), 99, 1),
                        ((3, 4), -99, 1), ((3, 4), 99, 0), ((3, 4), -99, 0), ((0, 4), 0, 1), ((2, 3, 0), 0, 0), ((4, 4), high, 1),
                        ((4, 4), low, 1),
                        ((4, 4), high, 0), ((4, 4), low, 0)]:
    x = data(shape)
    y = (np.triu if upper else np.tril)(x, int(np.clip(k, -100, 100)))
    label = f"{'x'.join(map(str, shape))}_k{k}_{'upper' if upper else 'lower'}".replace("-", "m")
    c.add("Trilu", [x], [y], {"k": k, "upper": upper}, name=label)
    c.add("Trilu", [x, np.array(k, np.int64)], [y], {"upper": upper}, name=f"{label}_input")

c.write(sys.argv[1])
