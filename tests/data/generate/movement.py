"""Cases of ops/movement.cc and ops/pad.cc: Transpose, Concat, Split, Slice, Tile, Pad, ReverseSequence."""
import sys

import ml_dtypes
import numpy as np

from cases import BF16, Cases

rng = np.random.default_rng(21)
c = Cases("NumPy")
F8 = np.dtype(ml_dtypes.float8_e5m2)
TYPES = [np.float64, np.float32, np.float16, BF16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
         np.bool_, F8]
LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def data(shape, dtype=np.float32):
    return (rng.integers(0, 2, shape) if dtype == np.bool_ else rng.integers(0, 100, shape)).astype(dtype)


def i64(*values):
    return np.array(values, np.int64)


def name_of(dtype):
    return np.dtype(dtype).name


def label(*parts):
    return "_".join(str(p) for p in parts).replace("-", "m").replace(", ", "_").strip("[]()").translate(str.maketrans("", "", "[]() ,"))


# ---- Transpose
for dtype in TYPES:
    x = data((3, 4, 5), dtype)
    c.add("Transpose", [x], [x.transpose(2, 0, 1)], {"perm": [2, 0, 1]}, name=name_of(dtype))
for shape, perm in [((), None), ((7,), None), ((4, 6), None), ((2, 3, 4, 5), None), ((2, 3, 4, 5), (0, 2, 3, 1)), ((2, 3, 4, 5),
                    (0, 3, 1, 2)),
                    ((2, 3, 2, 3, 2), (4, 0, 3, 1, 2)), ((0, 3, 4), (1, 2, 0)), ((3, 4), (0, 1)), ((2, 1, 2, 3, 1, 2, 2, 1),
                    (7, 6, 5, 4, 3, 2, 1, 0))]:
    x = data(shape)
    c.add("Transpose", [x], [x.transpose(perm)], {} if perm is None else {"perm": list(perm)}, name=label(shape, "to", perm))

# ---- Concat
for dtype in TYPES:
    a, b = data((2, 3), dtype), data((2, 2), dtype)
    c.add("Concat", [a, b], [np.concatenate([a, b], 1)], {"axis": 1}, name=name_of(dtype))
for shapes, axis in [([(5,), (3,), (1,)], 0), ([(2, 3, 4), (2, 1, 4), (2, 6, 4)], 1), ([(2, 3, 4), (2, 3, 2)], -1), ([(2, 3)], 0),
                     ([(0, 3), (2, 3), (0, 3), (4, 3)], 0),
                     ([(2, 0), (2, 0)], 1), ([(0, 2), (0, 3)], 1), ([(1, 2, 3, 2, 2), (3, 2, 3, 2, 2)], -5), ([(3, 2)] * 9, 0)]:
    xs = [data(s) for s in shapes]
    c.add("Concat", xs, [np.concatenate(xs, axis)], {"axis": axis}, name=label(len(c.cases), "axis", axis))

# ---- Split: sizes as attribute, as input, and equal parts
for dtype in TYPES:
    x = data((6, 2), dtype)
    c.add("Split", [x], np.split(x, 3), {"num_outputs": 3}, name=name_of(dtype))
for shape, axis, sizes in [((7,), 0, [2, 5]), ((3, 8), 1, [1, 4, 3]), ((3, 8), -1, [8]), ((2, 5, 3), 1, [0, 5, 0]),
                           ((2, 3, 4, 5), -2, [3, 1]),
                           ((0, 4), 1, [2, 2]), ((0, 4), 0, [0, 0]), ((2, 2, 2, 6, 2), 3, [1, 2, 3])]:
    x = data(shape)
    ys = np.split(x, np.cumsum(sizes)[:-1], axis)
    c.add("Split", [x], ys, {"axis": axis, "split": sizes}, name=label(shape, axis, sizes))
    c.add("Split", [x, i64(*sizes)], ys, {"axis": axis}, name=label(shape, axis, sizes, "input"), constants=[1])
for extent, parts in [(7, 3), (8, 4), (4, 3), (5, 1), (0, 2), (9, 2)]:
    x = data((3, extent))
    part = -(-extent // parts)
    c.add("Split", [x], [x[:, i * part:(i + 1) * part] for i in range(parts)],
          {"axis": 1, "num_outputs": parts}, name=label("parts", extent, parts))
x = data((4, 3))
c.add("Split", [x, i64(1, 3)], [x[:1], x[1:]], name="dynamic")
x = data((40,))
c.add("Split", [x], np.split(x, 40), {"num_outputs": 40}, name="many")

# ---- Slice: the clamping of ONNX, negative steps, all forms
for dtype in TYPES:
    x = data((5, 6), dtype)
    c.add("Slice", [x], [x[1:4, ::2]], {"starts": [1, 0], "ends": [4, HIGH], "steps": [1, 2]}, name=name_of(dtype))
for shape, starts, ends, axes, steps, picked in [
    ((10,), [2], [7], None, None, np.s_[2:7]), ((10,), [-3], [HIGH], None, None, np.s_[-3:]), ((10,), [0], [-2], None, None, np.s_[:-2]),
    ((10,), [9], [LOW], [0], [-1], np.s_[::-1]), ((10,), [HIGH], [LOW], [0], [-3], np.s_[::-3]),
    ((10,), [7], [1], [-1], [-2], np.s_[7:1:-2]),
    ((10,), [100], [200], None, None, np.s_[100:200]), ((10,), [-100], [100], None, None, np.s_[-100:100]),
    ((10,), [5], [2], None, None, np.s_[5:2]),
    ((10,), [1], [9], [0], [HIGH], np.s_[1:9:100]), ((10,), [8], [0], [0], [LOW], np.s_[8:0:-100]),
    ((10,), [0], [HIGH], [0], [4], np.s_[::4]),
    ((4, 6, 5), [1, 0], [3, 4], [2, 0], None, np.s_[0:4, :, 1:3]), ((4, 6, 5), [5, 1], [0, 5], [1, -1], [-2, 3], np.s_[:, 5:0:-2, 1:5:3]),
    ((4, 6, 5), [0, 0, 0], [4, 6, 5], [0, 1, 2], [1, 1, 1], np.s_[:]), ((0, 4), [0, 1], [5, 3], None, None, np.s_[0:5, 1:3]),
    ((0, 4), [-1], [LOW], [0], [-1], np.s_[::-1]), ((3, 4), [2], [2], [1], None, np.s_[:, 2:2]),
    ((2, 3, 2, 4, 3), [1, -1], [4, LOW], [3, 4], [2, -2],
                                                                                           np.s_[..., 1:4:2, ::-2]),
]:
    x = data(shape)
    attrs = {"starts": starts, "ends": ends} | ({} if axes is None else {"axes": axes}) | ({} if steps is None else {"steps": steps})
    lists = [i64(*starts), i64(*ends), None if axes is None else i64(*axes), None if steps is None else i64(*steps)]
    n = len(c.cases)
    c.add("Slice", [x], [x[picked]], attrs, name=label(n, "attrs"))
    c.add("Slice", [x] + lists, [x[picked]], name=label(n, "inputs"), constants=[1, 2, 3, 4])
# ONNX clamps the start of a backward slice to the first element, where Python would take nothing.
x = data((5,))
c.add("Slice", [x], [x[:1]],
      {"starts": [-10], "ends": [-20], "axes": [0], "steps": [-1]}, name="backward_clamped", oracle="ONNX's text, ONNX Runtime")
x = data((5, 4))
c.add("Slice", [x, i64(1), i64(3)], [x[1:3]], name="dynamic")
c.add("Slice", [x, np.array([1], np.int32), np.array([3], np.int32), np.array([1], np.int32)], [x[:, 1:3]], name="dynamic_i32",
      constants=[3])
x = data(())
c.add("Slice", [x], [x], {"starts": [], "ends": []}, name="scalar")

# ---- Tile
for dtype in TYPES:
    x = data((2, 3), dtype)
    c.add("Tile", [x], [np.tile(x, (2, 3))], {"repeats": [2, 3]}, name=name_of(dtype))
for shape, repeats in [((), []), ((5,), [3]), ((5,), [1]), ((5,), [0]), ((2, 3, 4), [1, 2, 1]), ((2, 3, 4), [2, 1, 3]), ((0, 3), [4, 2]),
                       ((1, 4), [6, 1]),
                       ((2, 1, 3, 2, 2), [1, 3, 1, 2, 2]), ((1,), [50])]:
    x = data(shape)
    c.add("Tile", [x], [np.tile(x, repeats)], {"repeats": repeats}, name=label(shape, "times", repeats))
    c.add("Tile", [x, i64(*repeats)], [np.tile(x, repeats)], name=label(shape, "times", repeats, "input"), constants=[1])
x = data((3,))
c.add("Tile", [x, i64(2)], [np.tile(x, 2)], name="dynamic")


# ---- Pad: negative pads crop first, then NumPy pads what is left
def pad(x, pads, mode, value=0):
    rank = x.ndim
    crop = tuple(slice(max(-pads[i], 0), x.shape[i] - max(-pads[rank + i], 0)) for i in range(rank))
    widths = [(max(pads[i], 0), max(pads[rank + i], 0)) for i in range(rank)]
    options = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x[crop], widths, mode, **options) if rank else x


for dtype in TYPES:
    x = data((3, 4), dtype)
    y = np.zeros((6, 6), dtype)
    y[1:4, 2:6] = x
    c.add("Pad", [x], [y], {"pads": [1, 2, 2, 0]}, name=name_of(dtype))
    value = np.array(1, dtype)
    y = np.full((6, 6), value, dtype)
    y[1:4, 2:6] = x
    c.add("Pad", [x, None, value], [y], {"pads": [1, 2, 2, 0]}, name=f"{name_of(dtype)}_value_input")
    if dtype != F8:
        c.add("Pad", [x], [y], {"pads": [1, 2, 2, 0], "value": 1.0}, name=f"{name_of(dtype)}_value")
for mode in ["constant", "reflect", "edge", "wrap"]:
    value = -2.5 if mode == "constant" else 0.0
    for shape, pads in [((7,), [3, 2]), ((7,), [0, 0]), ((4,), [9, 11]), ((2,), [5, 3]), ((1,), [3, 2]), ((6,), [-2, 3]),
                        ((6,), [4, -3]), ((6,), [-1, -2]),
                        ((6,), [-6, 0]) if mode == "constant" else ((6,), [-5, 2]), ((3, 5), [0, 2, 1, 0]), ((2, 5, 4), [0, 2, 1, 0, 3, 3]),
                        ((5, 4), [-1, 3, 7, -2]), ((2, 3, 5, 6), [0, 0, 2, 3, 0, 0, 1, 2]),
                        ((1, 2, 3, 2, 3), [1, 0, 2, 1, 0, 0, 1, 0, 0, 2]), ((), []),
                        ((0, 3), [0, 1, 0, 2]), ((13,), [12, 12]), ((9, 5), [-3, 0, 3, 0])]:
        x = data(shape)
        c.add("Pad", [x], [pad(x, pads, mode, value)],
              {"mode": mode, "pads": pads} | ({"value": value} if value else {}), name=label(mode, shape, pads))
    x = data((3, 4, 5))
    y = pad(x, [0, 1, 2, 0, 3, 4], mode)
    c.add("Pad", [x], [y], {"mode": mode, "pads": [2, 1, 4, 3], "axes": [-1, 1]}, name=f"{mode}_axes")
    c.add("Pad", [x, i64(2, 1, 4, 3), None, i64(2, -2)], [y], {"mode": mode}, name=f"{mode}_axes_input", constants=[1, 3])
    c.add("Pad", [x, i64(0, 1, 2, 0, 3, 4)], [y], {"mode": mode}, name=f"{mode}_dynamic")
x = data((3, 0))
c.add("Pad", [x], [np.full((3, 4), 7, np.float32)], {"pads": [0, 3, 0, 1], "value": 7.0}, name="constant_around_nothing")
x = data((3,))
c.add("Pad", [x], [np.full((3,), 1, np.float32)], {"pads": [-5, 5], "value": 1.0}, name="constant_all_cropped")
x = data((2, 2), np.int8)
c.add("Pad", [x], [np.pad(x, 1, constant_values=127)], {"pads": [1, 1, 1, 1], "value": 1e9}, name="value_clamps")
x = data((2, 2), np.float32)
c.add("Pad", [x], [np.pad(x, 1, constant_values=-np.inf)], {"pads": [1, 1, 1, 1], "value": -3.5e38}, name="value_overflows")


# ---- ReverseSequence
def reverse(x, lengths, batch_axis):
    y = x.copy()
    for b, n in enumerate(lengths):
        if batch_axis == 0:
            y[b, :n] = x[b, :n][::-1]
        else:
            y[:n, b] = x[:n, b][::-1]
    return y


for dtype in TYPES:
    x = data((4, 3), dtype)
    c.add("ReverseSequence", [x, i64(4, 2, 1)], [reverse(x, [4, 2, 1], 1)], name=name_of(dtype))
for shape, batch_axis, lengths in [((3, 6), 0, [6, 3, 0]), ((5, 2, 3), 1, [5, 4]), ((2, 5, 3, 2), 0, [1, 4]), ((0, 3), 1, [0, 0, 0]),
                                   ((0, 3), 0, []),
                                   ((4, 2, 0), 1, [4, 1])]:
    x = data(shape)
    for dtype in [np.int64, np.int32]:
        c.add("ReverseSequence", [x, np.array(lengths, dtype)], [reverse(x, lengths, batch_axis)],
              {"batch_axis": batch_axis, "time_axis": 1 - batch_axis},
              name=label(shape, batch_axis, name_of(dtype)))

c.write(sys.argv[1])
