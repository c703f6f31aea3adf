#!/usr/bin/env python3
"""Converts ONNX models with all passes, and with each left out in turn, and compares the outputs with ONNX Runtime.

usage: passes_agree.py MODEL.onnx... [--bin build/release/bin] [--dynamic] [--seconds 0]
needs: pip install numpy onnx onnxruntime

A difference is the largest one as a part of the range of that output; 1e-4 is the limit, and more makes the exit code 1. --dynamic opens the
batch of every input, and height and width of images, and runs at twice the batch and another size; where the model does not allow that,
because nodes have sizes written into them, the batch stays. With --seconds each converted model is also timed, alone, by msrun.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

LIMIT = 1e-4


def open_dims(model, batch):
    """The model with symbolic height and width for images, and a symbolic batch if asked."""
    del model.graph.value_info[:]
    fixed = {i.name for i in model.graph.initializer}
    for value in list(model.graph.input) + list(model.graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.name in fixed or not dims:
            continue
        if batch:
            dims[0].dim_param = "batch"
        if value in list(model.graph.output):
            for i in range(1, len(dims)):
                dims[i].Clear()
        elif len(dims) == 4:
            dims[2].dim_param, dims[3].dim_param = "height", "width"
    return model


def feeds(model, shapes_of, batch, space):
    import numpy as np
    rng, fixed, out = np.random.default_rng(0), {i.name for i in model.graph.initializer}, {}
    for value in model.graph.input:
        if value.name in fixed:
            continue
        shape = list(shapes_of[value.name])
        if batch and shape:
            shape[0] *= 2
        if space and len(shape) == 4:
            shape[2:] = [d + 32 for d in shape[2:]]
        if value.type.tensor_type.elem_type == 1:
            out[value.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            out[value.name] = np.ones(shape, np.int64) if "mask" in value.name else rng.integers(0, 1000, shape)
    return out


def run_msrt(a, folder, model, inputs, outputs, disabled):
    """(outputs, nodes, median ms), or a message."""
    import numpy as np
    file, results = f"{folder}/model.msrt", f"{folder}/out"
    flags = [f for name in disabled for f in ("--disable", name)]
    done = subprocess.run([f"{a.bin}/msconvert", model, file, *flags], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    nodes = int(re.findall(r"(\d+) nodes, [\d.]+ MB", done.stdout)[-1])
    given = []
    for name, data in inputs.items():
        path = f"{folder}/{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.npy"
        np.save(path, data)
        given += ["--input", f"{name}={path}"]
    done = subprocess.run([f"{a.bin}/msrun", "run", file, *flags, "--output-dir", results, *given], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    milliseconds = 0
    if a.seconds:
        report = f"{folder}/report.json"
        subprocess.run([f"{a.bin}/msrun", file, *flags, "--seconds", str(a.seconds), "--json", report, *given], check=True, stdout=subprocess.DEVNULL)
        with open(report) as f:
            milliseconds = json.load(f)["latency_ms"]["min"]
    return [np.load(f"{results}/{re.sub(r'[^A-Za-z0-9_.-]', '_', n)}.npy") for n in outputs], nodes, milliseconds


def check(a, path, batch, space):
    """Whether all agree; None if ONNX Runtime does not run the model in this form."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    dynamic = batch or space
    opened = " ".join(name for name, given in (("batch", batch), ("image", space)) if given)
    model = onnx.load(path)
    shapes = {v.name: [d.dim_value or 1 for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        file = path
        if dynamic:
            file = f"{folder}/open.onnx"
            onnx.save(open_dims(model, batch), file)
        inputs, outputs = feeds(model, shapes, batch, space), [o.name for o in model.graph.output]
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            want = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, inputs)
        except Exception as e:  # noqa: BLE001: whatever ONNX Runtime refuses is nothing to compare with
            print(f"{os.path.basename(path):20} open {opened}: ONNX Runtime does not run it ({str(e).splitlines()[0][:80]})")
            return None
        for disabled in [[], *([name] for name in a.passes), ["all"]]:
            got = run_msrt(a, folder, file, inputs, outputs, disabled if disabled != ["all"] else a.passes)
            label = f"{os.path.basename(path):20} {opened:12}{'without ' + disabled[0] if disabled else 'all passes':32}"
            if isinstance(got, str):
                print(label, "FAILED:", got)
                fine = False
                continue
            tensors, nodes, milliseconds = got
            worst = max(float(np.abs(g - w).max() / max(w.max() - w.min(), 1e-30)) for g, w in zip(tensors, want))
            agrees = worst <= LIMIT and all(g.shape == w.shape for g, w in zip(tensors, want))
            fine = fine and agrees
            print(label, f"{nodes:5} nodes  {worst:.1e}", f" {milliseconds:8.2f} ms" if a.seconds else "", "" if agrees else " TOO FAR")
    return fine


def pass_names(binary):
    """The names of all passes: msrun lists them in the error for an unknown one."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/lenet.msrt"
        subprocess.run([f"{binary}/msconvert", "zoo:lenet", file, "--quiet"], check=True)
        told = subprocess.run([f"{binary}/msrun", "run", file, "--disable", "?"], capture_output=True, text=True).stderr
    return re.search(r"the passes are ([a-z_, ]+)", told).group(1).strip().split(", ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(__file__), "../../build/release/bin"))
    parser.add_argument("--dynamic", action="store_true", help="also with open dims")
    parser.add_argument("--seconds", type=float, default=0, help="time each converted model so long")
    a = parser.parse_args()
    try:
        import numpy, onnx, onnxruntime  # noqa: F401, E401
    except ImportError as e:
        sys.exit(f"{e}: pip install numpy onnx onnxruntime")
    a.passes = pass_names(a.bin)
    fine = True
    for path in a.models:
        fine &= check(a, path, False, False) is not False
        if a.dynamic:
            opened = check(a, path, True, True)
            fine &= (check(a, path, False, True) if opened is None else opened) is not False
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
