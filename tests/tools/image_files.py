"""Images and models for tests of 'msrun image', written and read byte by byte: Python's standard library only."""
import math
import random
import struct
import zlib

import onnx_file as onnx

TYPES = {1: "B", 2: "s", 3: "H", 4: "I", 5: "II", 12: "d", 16: "Q"}


def write_tiff(path, channels, rows, columns, pixels, no_data=None, rows_per_strip=16, more=None):
    """8-bit, interleaved, in strips. `pixels` are channels x rows x columns, `more` further tags."""
    plane = rows * columns
    strips = []
    for first in range(0, rows, rows_per_strip):
        last = min(first + rows_per_strip, rows)
        strips.append(bytes(pixels[c * plane + i] for i in range(first * columns, last * columns) for c in range(channels)))
    tags = {256: ("I", [columns]), 257: ("I", [rows]), 258: ("H", [8] * channels), 259: ("H", [1]), 262: ("H", [1]),
            277: ("H", [channels]), 278: ("I", [rows_per_strip]), 279: ("I", [len(s) for s in strips]), 284: ("H", [1])}
    if channels > 1:
        tags[338] = ("H", [0] * (channels - 1))
    tags.update(more or {})
    if no_data is not None:
        tags[42113] = ("s", str(no_data).encode() + b"\0")
    offset, offsets = 8, []
    for s in strips:
        offsets.append(offset)
        offset += len(s)
    tags[273] = ("I", offsets)
    extra, entries = b"", b""
    at = offset + 2 + 12 * len(tags) + 4
    for tag in sorted(tags):
        code, values = tags[tag]
        data = values if code == "s" else struct.pack(f"<{len(values)}{code}", *values)
        kind = {"s": 2, "H": 3, "I": 4, "d": 12}[code]
        if len(data) <= 4:
            field = data.ljust(4, b"\0")
        else:
            field = struct.pack("<I", at + len(extra))
            extra += data
        entries += struct.pack("<HHI", tag, kind, len(values)) + field
    with open(path, "wb") as f:
        f.write(struct.pack("<2sHI", b"II", 42, offset) + b"".join(strips) + struct.pack("<H", len(tags)) + entries + b"\0\0\0\0" + extra)
    return path


def write_png(path, channels, rows, columns, pixels):
    """8-bit, of 1 or 3 channels x rows x columns."""
    plane = rows * columns
    lines = b"".join(b"\0" + bytes(pixels[c * plane + i] for i in range(r * columns, (r + 1) * columns) for c in range(channels))
                     for r in range(rows))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    header = struct.pack(">IIBBBBB", columns, rows, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    return path


def read_tiff(path):
    """The directories of a TIFF or BigTIFF with uncompressed tiles: [(tags, pixels of channels x rows x columns)]."""
    with open(path, "rb") as f:
        data = f.read()
    big = data[2] == 43
    offset = struct.unpack_from("<Q" if big else "<I", data, 8 if big else 4)[0]
    pages = []
    while offset:
        count = struct.unpack_from("<Q" if big else "<H", data, offset)[0]
        entry, size, inline = (offset + 8, 20, 8) if big else (offset + 2, 12, 4)
        tags = {}
        for _ in range(count):
            tag, kind, number = struct.unpack_from("<HHQ" if big else "<HHI", data, entry)
            code = TYPES[kind]
            form = f"<{number}s" if code == "s" else f"<{number * len(code)}{code[0]}"
            where = entry + size - inline
            if struct.calcsize(form) > inline:
                where = struct.unpack_from("<Q" if big else "<I", data, where)[0]
            tags[tag] = struct.unpack_from(form, data, where)
            entry += size
        offset = struct.unpack_from("<Q" if big else "<I", data, entry)[0]
        pages.append((tags, tiles(data, tags) if tags[259] == (1,) else None))
    return pages


def tiles(data, tags):
    columns, rows, channels = tags[256][0], tags[257][0], tags.get(277, (1,))[0]
    wide, high = tags[322][0], tags[323][0]
    code = {(8, 1): "B", (16, 1): "H", (32, 3): "f"}[tags[258][0], tags.get(339, (1,))[0]]
    pixels = [0] * (channels * rows * columns)
    across = -(-columns // wide)
    for t, start in enumerate(tags[324]):
        values = struct.unpack_from(f"<{wide * high * channels}{code}", data, start)
        top, left = t // across * high, t % across * wide
        for r in range(min(high, rows - top)):
            for x in range(min(wide, columns - left)):
                for c in range(channels):
                    pixels[(c * rows + top + r) * columns + left + x] = values[(r * wide + x) * channels + c]
    return pixels


def noise(count, seed):
    return list(random.Random(seed).randbytes(count))


def weights(name, dims, seed):
    count = math.prod(dims)
    r = random.Random(seed)
    return onnx.tensor(name, dims, [r.uniform(-1, 1) / math.sqrt(count / dims[0]) for _ in range(count)])


def normalized_network():
    """Two convolutions, each followed by an instance norm, whose statistics are those of the whole image."""
    nodes = [onnx.node("Conv", ["x", "w0"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             onnx.node("InstanceNormalization", ["a", "scale", "bias"], ["b"]), onnx.node("Relu", ["b"], ["c"]),
             onnx.node("Conv", ["c", "w1"], ["d"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             onnx.node("InstanceNormalization", ["d", "scale", "bias"], ["scores"])]
    constants = [weights("w0", [4, 3, 3, 3], 1), weights("w1", [4, 4, 3, 3], 2), onnx.tensor("scale", [4], [1.0, 2.0, 0.5, 1.5]),
                 onnx.tensor("bias", [4], [0.0, 1.0, -1.0, 0.5])]
    return onnx.model(onnx.graph(nodes, [onnx.value("x", [1, 3, "h", "w"])], [onnx.value("scores", [1, 4, "h", "w"])], constants))


def network(channels=3, classes=5, detections=False):
    """A down-sampling convolution, two dilated ones with a skip, bilinear x 2, classes. Outputs: scores, features."""
    nodes = [onnx.node("Conv", ["x", "w0"], ["a"], kernel_shape=[5, 5], strides=[2, 2], pads=[2, 2, 2, 2]), onnx.node("Relu", ["a"], ["b"]),
             onnx.node("Conv", ["b", "w1"], ["c"], kernel_shape=[3, 3], dilations=[2, 2], pads=[2, 2, 2, 2]),
             onnx.node("Relu", ["c"], ["d"]), onnx.node("Conv", ["d", "w2"], ["e"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             onnx.node("Add", ["e", "b"], ["features"]),
             onnx.node("Resize", ["features", "", "scales"], ["f"], mode="linear"),
             onnx.node("Conv", ["f", "w3"], ["scores"], kernel_shape=[1, 1])]
    outputs = [onnx.value("scores", [1, classes, "h2", "w2"]), onnx.value("features", [1, 8, "h1", "w1"])]
    constants = [weights("w0", [8, channels, 5, 5], 1), weights("w1", [8, 8, 3, 3], 2), weights("w2", [8, 8, 3, 3], 3),
                 weights("w3", [classes, 8, 1, 1], 4), onnx.tensor("scales", [4], [1.0, 1.0, 2.0, 2.0])]
    if detections:
        nodes += [onnx.node("Reshape", ["scores", "shape"], ["flat"]), onnx.node("Transpose", ["flat"], ["boxes"], perm=[0, 2, 1])]
        constants.append(onnx.tensor("shape", [3], [1, classes, -1], onnx.INT64))
        outputs.append(onnx.value("boxes", [1, "n", classes]))
    return onnx.model(onnx.graph(nodes, [onnx.value("x", [1, channels, "h", "w"])], outputs, constants))
