"""Op by op, by hand: the cases of tests/data/ops as MindIR files, run by the real MindSpore, against the cases' own oracles.

    PYTHON_WITH_MINDSPORE tests/bench/mindir_ops.py build/release/bin [--ops Conv,MaxPool] [--most 6] [--types f32,i64,bool]

Prints what differs, what MindSpore raises, and a count for each op.
"""
import argparse
import collections
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "conformance" / "mindir"))
import agreement  # noqa: E402
import numpy as np  # noqa: E402

DATA = pathlib.Path(__file__).parents[1] / "data" / "ops"


def read_cases(path):
    data = path.read_bytes()
    assert data[:8] == b"MSRTCASE", path
    length = struct.unpack("<Q", data[8:16])[0]
    start = -(-(16 + length) // 64) * 64
    for case in json.loads(data[16:16 + length])["cases"]:
        def tensor(j):
            if j is None or j["dtype"] not in agreement.DTYPES:
                return None
            dtype = np.dtype(agreement.DTYPES[j["dtype"]])
            count = int(np.prod(j["dims"], dtype=np.int64))
            return np.frombuffer(data, dtype, count, start + j["offset"]).reshape(j["dims"])
        yield case, [tensor(i) for i in case["inputs"] if i is not None and not i["constant"]], [tensor(o) for o in case["outputs"] if o]


def agrees(case, expected, got):
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    for i, (e, g) in enumerate(zip(expected, got)):
        if e.shape != g.shape or e.dtype != g.dtype:
            return f"output {i} is {g.dtype}{list(g.shape)} instead of {e.dtype}{list(e.shape)}"
        # MindSpore computes in the element type, our oracles in double.
        rtol = max(case["rtol"], {"float32": 2e-5, "float16": 4e-3}.get(e.dtype.name, 0))
        atol = max(case["atol"], 2e-6 if e.dtype.kind == "f" else 0)
        if not np.allclose(g.astype(np.float64), e.astype(np.float64), rtol, atol, equal_nan=True):
            worst = np.nanmax(np.abs(np.nan_to_num(g.astype(np.float64)) - np.nan_to_num(e.astype(np.float64))))
            return f"output {i} differs by up to {worst:.3g}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("--ops", default="")
    parser.add_argument("--most", type=int, default=6, help="cases of an op")
    parser.add_argument("--types", default="f32,i64,i32,bool", help="of the first input")
    a = parser.parse_args()
    wanted, types = set(filter(None, a.ops.split(","))), a.types.split(",")
    count = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        listed = subprocess.run([os.path.join(a.bin_dir, "mindir_case_export"), folder], capture_output=True, text=True, check=True).stdout
        refused = dict(line.split("\t", 1) for line in listed.splitlines() if "\t" in line)
        for path in sorted(DATA.glob("*.cases")):
            for case, inputs, expected in read_cases(path):
                op, name = case["op"], case["name"]
                if (wanted and op not in wanted) or not case["inputs"] or case["inputs"][0]["dtype"] not in types:
                    continue
                if name in refused:
                    count[op]["refused"] += 1
                    if wanted:
                        print(f"refused {name}: {refused[name]}", flush=True)
                    continue
                empty = any(t is not None and t.size == 0 for t in inputs + expected)  # MindSpore is for tensors with elements
                if any(t is None for t in inputs + expected) or empty or sum(count[op].values()) - count[op]["refused"] >= a.most:
                    continue
                try:
                    wrong = agrees(case, expected, agreement.MindSporeModel(os.path.join(folder, name + ".mindir"))(inputs))
                except Exception as error:  # MindSpore raises whatever it likes
                    wrong = "raised " + " ".join(str(error).split())[:160]
                count[op]["wrong" if wrong else "ok"] += 1
                if wrong:
                    print(f"{name}: {wrong}", flush=True)
    for op, counted in sorted(count.items()):
        print(f"{op:28} {counted['ok']:4} ok {counted['wrong']:4} wrong {counted['refused']:4} refused")
    return 1 if any(c["wrong"] for c in count.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
