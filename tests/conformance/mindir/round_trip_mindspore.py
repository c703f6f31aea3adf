"""Files that MindSpore exported, through .msrt and back to MindIR, return the same results in the real MindSpore.

    round_trip_mindspore.py BIN_DIR DATA_DIR [NAME...]

A case is a folder of DATA_DIR: model.mindir, input_N.npy, output_N.npy, and again_N.npy for what a second run of a model with state gives.
Runs again with $MSRT_MINDSPORE_PYTHON where this Python has no MindSpore; skips (77) where neither has.
"""
import pathlib
import sys
import tempfile

from export_test import find_mindspore

SMALL, NETWORK, HALF = 1e-5, 1e-4, 1e-3  # of the range of an output, as in mindir_test.cc
NETWORKS = ("encoder", "lenet", "resmini")


def arrays(folder, stem):
    import numpy as np
    found = []
    while (path := folder / f"{stem}_{len(found)}.npy").exists():
        found.append(np.load(path))
    return found


def tolerance(name, expected):
    if expected.dtype.kind != "f":
        return 0.0
    return HALF if expected.dtype == "float16" else NETWORK if name in NETWORKS else SMALL


def check(bin_dir, case, work):
    import agreement
    native, again = work / "model.msrt", work / "model.mindir"
    agreement.tool(bin_dir, "msconvert", case / "model.mindir", native, "--quiet")
    agreement.tool(bin_dir, "msconvert", native, again, "--quiet")
    model, inputs, failures = agreement.MindSporeModel(again), arrays(case, "input"), []
    for run in ("output", "again"):
        expected = arrays(case, run)
        if expected:
            failures += agreement.disagreements(run, [f"output {i}" for i in range(len(expected))], expected, model(inputs),
                                                lambda want: tolerance(case.name, want))
    return failures


def main():
    find_mindspore()
    bin_dir, wanted = sys.argv[1], sys.argv[3:]
    failed, count = [], 0
    with tempfile.TemporaryDirectory() as work:
        for case in sorted(pathlib.Path(sys.argv[2]).iterdir()):
            if wanted and case.name not in wanted:
                continue
            count += 1
            try:
                failures = check(bin_dir, case, pathlib.Path(work))
            except Exception as error:  # MindSpore raises whatever it likes
                failures = [f"{type(error).__name__}: {str(error)[:1500]}"]
            if failures:
                failed.append(case.name)
                print("FAIL " + case.name, *failures, sep="\n    ", flush=True)
    print(f"{count - len(failed)} of {count} files give the same in MindSpore" + (f"; not: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
