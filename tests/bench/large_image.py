#!/usr/bin/env python3
"""A 4 x N x N 8-bit BigTIFF through a segmentation network by 'msrun image': by rolling rows and by tiles, next to a 2048 x 2048 crop.

usage: large_image.py BIN_DIR [--network classes|unet] [--size 30000] [--folder DIR] [--stream-memory 1200MiB] [--tiles-memory 3500MiB]
                      [--only stream|tiles] [--keep]   (needs numpy)

The network 'classes': 7x7/2 4->64, eight 3x3 64->64 with BatchNormalization and ReLU (two with dilation 2), bilinear x 2, 1x1 to 5 classes;
'unet' is that of 'msconvert zoo:unet' (sizes are rounded down to multiples of 16). The image is made tile by tile. Prints seconds, pixels per second, peak resident memory and the SHA-256 of each result, then the ratios. Exits
with 1 and names the limits that are missed: the results of rows and tiles are the same, rolling rows compute no row twice and take at most 1.1
of the crop's time for each pixel, resident memory is at most 1.5 GiB by rows (3 GiB for 'unet') and 4 GiB by tiles. With N = 30000 each result has 18 GB and is removed before the
next run, unless --keep is given. --only leaves the other executor out.
"""
import argparse
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import onnx_file as onnx  # noqa: E402

CHANNELS, CLASSES, TILE, CROP = 4, 5, 512, 2048
MAX_RATIO = 1.1
NORMALIZE = "mean=120,110,100,130 std=60,58,55,62"


def network():
    random = np.random.default_rng(17)

    def weights(name, dims, scale):
        return onnx.tensor(name, dims, (random.standard_normal(dims) * scale).astype(np.float32).ravel().tolist())
    nodes = [onnx.node("Conv", ["image", "w0"], ["c0"], kernel_shape=[7, 7], strides=[2, 2], pads=[3, 3, 3, 3])]
    constants, last = [weights("w0", [64, CHANNELS, 7, 7], (1 / (49 * CHANNELS)) ** 0.5)], "c0"
    for layer in range(1, 9):
        dilation = 2 if layer in (4, 6) else 1
        nodes.append(onnx.node("Conv", [last, f"w{layer}"], [f"c{layer}"], kernel_shape=[3, 3], dilations=[dilation] * 2,
                               pads=[dilation] * 4))
        parameters = {"scale": 1 + random.random(64) / 4, "bias": random.random(64) / 8, "mean": random.random(64) / 8,
                      "variance": 0.8 + random.random(64) / 4}
        for name, values in parameters.items():
            constants.append(onnx.tensor(f"{name}{layer}", [64], values.astype(np.float32).tolist()))
        nodes.append(onnx.node("BatchNormalization", [f"c{layer}", *(f"{name}{layer}" for name in parameters)], [f"b{layer}"]))
        nodes.append(onnx.node("Relu", [f"b{layer}"], [f"r{layer}"]))
        constants.append(weights(f"w{layer}", [64, 64, 3, 3], (2 / (9 * 64)) ** 0.5))
        last = f"r{layer}"
    nodes.append(onnx.node("Resize", [last, "", "scales"], ["up"], mode="linear"))
    nodes.append(onnx.node("Conv", ["up", "w9"], ["classes"], kernel_shape=[1, 1]))
    constants += [onnx.tensor("scales", [4], [1.0, 1.0, 2.0, 2.0]), weights("w9", [CLASSES, 64, 1, 1], 0.125)]
    return onnx.model(onnx.graph(nodes, [onnx.value("image", [1, CHANNELS, "rows", "columns"])],
                                 [onnx.value("classes", [1, CLASSES, "rows2", "columns2"])], constants))


def write_image(path, size):
    """A BigTIFF with interleaved tiles: waves and noise that depend on the place only, so that a crop has the same pixels."""
    across = -(-size // TILE)
    tiles, tile_bytes, first = across * across, TILE * TILE * CHANNELS, 16
    with open(path, "wb") as f:
        f.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, first + tiles * tile_bytes))
        for t in range(tiles):
            rows = (t // across * TILE + np.arange(TILE, dtype=np.int64))[:, None, None]
            columns = (t % across * TILE + np.arange(TILE, dtype=np.int64))[None, :, None]
            channels = np.arange(CHANNELS, dtype=np.int64)[None, None, :]
            noise = (rows * 7919 + columns * 104729 + channels * 1299709) * 2654435761 >> 13 & 63
            wave = np.sin(rows / 97.0 + channels) * np.cos(columns / 61.0 - channels) * 90 + 96
            f.write((wave + noise).astype(np.uint8).tobytes())
        tags = [(256, 4, [size]), (257, 4, [size]), (258, 3, [8] * CHANNELS), (259, 3, [1]), (262, 3, [1]), (277, 3, [CHANNELS]),
                (284, 3, [1]), (322, 4, [TILE]), (323, 4, [TILE]), (324, 16, [first + t * tile_bytes for t in range(tiles)]),
                (325, 16, [tile_bytes] * tiles), (338, 3, [0] * (CHANNELS - 1))]
        entries, extra, after = b"", b"", f.tell() + 8 + 20 * len(tags) + 8
        for tag, kind, values in tags:
            data = struct.pack(f"<{len(values)}{ {3: 'H', 4: 'I', 16: 'Q'}[kind]}", *values)
            if len(data) > 8:
                data, extra = struct.pack("<Q", after + len(extra)), extra + data
            entries += struct.pack("<HHQ", tag, kind, len(values)) + data.ljust(8, b"\0")
        f.write(struct.pack("<Q", len(tags)) + entries + struct.pack("<Q", 0) + extra)


def checksum(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 24):
            digest.update(block)
    return digest.hexdigest()


def run(arguments, folder, name, image, executor, memory):
    """Runs one job in its own process; returns its report with peak resident memory and checksum."""
    out, report = os.path.join(folder, name + ".npy"), os.path.join(folder, name + ".json")
    command = [os.path.join(arguments.bin, "msrun"), "image", os.path.join(folder, "model.msrt"), image, out, "--executor", executor,
               "--memory", memory, "--normalize", NORMALIZE, "--json", report, "--overwrite"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"large_image: {' '.join(command)} failed")
    with open(report, encoding="utf-8") as f:
        found = json.load(f)
    found["rss"], found["sha256"] = usage.ru_maxrss * 1024, checksum(out)
    if not arguments.keep:
        os.remove(out)
    pixels = found["image"]["rows"] * found["image"]["columns"]
    found["ns_per_pixel"] = found["seconds"] / pixels * 1e9
    phase = found["phases"][-1]
    print(f"{name:8} {executor:6} {phase['rows']} x {phase['columns'] or found['image']['columns']}: {found['seconds']:.1f} s, "
          f"{found['ns_per_pixel']:.1f} ns/pixel, peak resident {found['rss'] / 2**30:.2f} GiB (limit {memory}), "
          f"recomputed rows {found['recomputed_rows']}, sha256 {found['sha256'][:16]}", flush=True)
    return found


def missed_limits(arguments, base, runs, same):
    missed = [] if same else ["rows and tiles have the same result"]
    gibibytes = {"stream": 3 if arguments.network == "unet" else 1.5, "tiles": 4}
    for executor, found in runs.items():
        if found["rss"] > gibibytes[executor] * 2**30:
            missed.append(f"{executor}: resident {found['rss'] / 2**30:.2f} GiB, at most {gibibytes[executor]} GiB")
    if "stream" in runs:
        if runs["stream"]["recomputed_rows"] != 0:
            missed.append(f"stream: {runs['stream']['recomputed_rows']} rows computed twice")
        ratio = runs["stream"]["ns_per_pixel"] / base["ns_per_pixel"]
        if arguments.size > CROP and ratio > MAX_RATIO:
            missed.append(f"stream: {ratio:.3f} of the crop's time for each pixel, at most {MAX_RATIO}")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--network", choices=("classes", "unet"), default="classes")
    parser.add_argument("--size", type=int, default=30000)
    parser.add_argument("--only", choices=("stream", "tiles"))
    parser.add_argument("--folder", help="for the image and the results; without it, a temporary one")
    parser.add_argument("--stream-memory", default="1200MiB")
    parser.add_argument("--tiles-memory", default="3500MiB")
    parser.add_argument("--keep", action="store_true", help="keep the results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="msrt-image-") as temporary:
        folder = arguments.folder or temporary
        os.makedirs(folder, exist_ok=True)
        model, convert = os.path.join(folder, "model.msrt"), os.path.join(arguments.bin, "msconvert")
        source = "zoo:unet"
        if arguments.network == "unet":
            arguments.size -= arguments.size % 16
        else:
            source = os.path.join(folder, "model.onnx")
            with open(source, "wb") as f:
                f.write(network())
        subprocess.run([convert, source, model, "--quiet"], check=True)
        crop, large = os.path.join(folder, "crop.tif"), os.path.join(folder, f"image{arguments.size}.tif")
        write_image(crop, min(CROP, arguments.size))
        if not os.path.exists(large):
            write_image(large, arguments.size)
        base = run(arguments, folder, "crop", crop, "stream", arguments.stream_memory)
        memory = {"stream": arguments.stream_memory, "tiles": arguments.tiles_memory}
        runs = {e: run(arguments, folder, e, large, e, memory[e]) for e in memory if arguments.only in (None, e)}
        ratios = ", ".join(f"{e} {r['ns_per_pixel'] / base['ns_per_pixel']:.3f}" for e, r in runs.items())
        same = len({r["sha256"] for r in runs.values()}) == 1
        compared = f"results of rows and tiles are {'identical' if same else 'DIFFERENT'}; " if len(runs) == 2 else ""
        print(f"{compared}time per pixel against the crop: {ratios}")
        missed = missed_limits(arguments, base, runs, same)
        for limit in missed:
            print("limit missed:", limit)
        sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
