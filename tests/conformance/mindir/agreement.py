"""Runs a model with msrun and with the real MindSpore, and compares. Needs the Python that has MindSpore."""
import json
import os
import pathlib
import re
import subprocess

os.environ.setdefault("GLOG_v", "3")  # MindSpore warns about missing devices

import numpy as np  # noqa: E402

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
          "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool"}


def tool(bin_dir, name, *arguments):
    done = subprocess.run([str(pathlib.Path(bin_dir) / name), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name} {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def describe(bin_dir, model):
    return json.loads(tool(bin_dir, "msrun", "info", model, "--json", "-"))


def random_inputs(info, seed=0, open_dim=2):
    """Numbers of the declared types; integers are small, so that they can be indices."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for value in info["inputs"]:
        dims = [d if isinstance(d, int) and d >= 0 else open_dim for d in value["dims"]]
        dtype = np.dtype(DTYPES[value["type"]])
        if dtype.kind == "f":
            made = rng.standard_normal(dims)
        elif dtype.kind == "b":
            made = rng.random(dims) > 0.5
        else:
            made = rng.integers(0, 2, dims)
        inputs[value["name"]] = np.asarray(made, dtype)
    return inputs


def run_msrun(bin_dir, model, inputs, folder, *options):
    folder = pathlib.Path(folder)
    arguments = []
    for i, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"in_{i}.npy", value)
        arguments += ["--input", f"{name}={folder / f'in_{i}.npy'}"]
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    tool(bin_dir, "msrun", "run", model, *arguments, "--output-dir", out, *options)
    names = [value["name"] for value in describe(bin_dir, model)["outputs"]]
    return [np.load(out / (re.sub(r"[^A-Za-z0-9_.-]", "_", name) + ".npy")) for name in names]


class MindSporeModel:
    def __init__(self, path):
        import mindspore
        mindspore.set_context(mode=mindspore.GRAPH_MODE)
        self._tensor = mindspore.Tensor
        self._cell = mindspore.nn.GraphCell(mindspore.load(str(path)))

    def __call__(self, inputs):
        given = self._cell(*[self._tensor(np.array(x, order="C")) for x in inputs])
        given = given if isinstance(given, (tuple, list)) else (given,)
        return [x.asnumpy() for x in given]


def difference(ours, theirs):
    """The largest difference, relative to the range of the reference; None: type or shape differ."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return None
    if ours.size == 0 or np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
        return 0.0
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(a)
    return float(np.max(np.abs(a - b)[finite]) / max(np.max(np.abs(a[finite])), 1e-30))


def disagreements(run, names, expected, got, tolerance):
    """The problems with the outputs of a run, a line each. `tolerance` is a fraction of the range of an expected array."""
    if len(expected) != len(got):
        return [f"{run}: {len(got)} outputs instead of {len(expected)}"]
    found = []
    for name, want, have in zip(names, expected, got):
        d = difference(want, have)
        if d is None:
            found.append(f"{run}, {name}: {have.dtype}{have.shape} instead of {want.dtype}{want.shape}")
        elif d > tolerance(want):
            found.append(f"{run}, {name}: differs by {d:.1e} of its range")
    return found
