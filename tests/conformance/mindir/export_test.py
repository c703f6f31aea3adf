"""Models that msconvert writes as MindIR compute in the real MindSpore what msrun computes.

    export_test.py BIN_DIR [NAME...]

Runs again with $MSRT_MINDSPORE_PYTHON where this Python has no MindSpore; skips (77) where neither has.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
TOLERANCE = 1e-5  # of the range of an output


def find_mindspore():
    if importlib.util.find_spec("mindspore") is not None:
        return
    other = os.environ.get("MSRT_MINDSPORE_PYTHON", "")
    if not other or other == sys.executable:
        print("skipped: MindSpore is not installed; name a Python that has it in MSRT_MINDSPORE_PYTHON")
        sys.exit(SKIPPED)
    sys.exit(subprocess.run([other, *sys.argv]).returncode)


def check(bin_dir, name, content, runs, folder):
    import agreement
    source, native, mindir = (folder / f"{name}{kind}" for kind in (".onnx", ".msrt", ".mindir"))
    source.write_bytes(content)
    agreement.tool(bin_dir, "msconvert", source, native, "--quiet")
    agreement.tool(bin_dir, "msconvert", source, mindir, "--quiet")
    info = agreement.describe(bin_dir, native)
    failures = []
    for r, inputs in enumerate(runs):
        named = dict(zip([v["name"] for v in info["inputs"]], inputs))
        # MindSpore compiles a loaded graph for the shapes of its first call and keeps to them.
        expected, got = agreement.run_msrun(bin_dir, native, named, folder), agreement.MindSporeModel(mindir)(inputs)
        if len(expected) != len(got):
            failures.append(f"run {r}: {len(got)} outputs instead of {len(expected)}")
            continue
        for output, a, b in zip(info["outputs"], expected, got):
            d = agreement.difference(a, b)
            if d is None:
                failures.append(f"run {r}, {output['name']}: {b.dtype}{b.shape} instead of {a.dtype}{a.shape}")
            elif d > TOLERANCE:
                failures.append(f"run {r}, {output['name']}: differs by {d:.1e} of its range")
    return failures


def main():
    find_mindspore()
    import models
    bin_dir, wanted = sys.argv[1], sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, content, runs in models.cases():
            if wanted and name not in wanted:
                continue
            try:
                failures = check(bin_dir, name, content, runs, pathlib.Path(folder))
            except Exception as error:  # MindSpore raises whatever it likes
                failures = [f"{type(error).__name__}: {str(error)[:1500]}"]
            failed += bool(failures)
            print(("FAIL " if failures else "ok   ") + name, *failures, sep="\n    " if failures else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
