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


def convert(bin_dir, name, content, folder, *options, shapes=()):
    import agreement
    source, native, mindir = (folder / f"{name}{kind}" for kind in (".onnx", ".msrt", ".mindir"))
    source.write_bytes(content)
    fixed = [word for key, dims in dict(shapes).items() for word in ("--shape", f"{key}={dims}")]
    agreement.tool(bin_dir, "msconvert", source, native, "--quiet", *fixed)
    if fixed:  # the .msrt file declares the shapes
        agreement.tool(bin_dir, "msconvert", native, mindir, "--quiet")
        return native, mindir, agreement.describe(bin_dir, native)
    agreement.tool(bin_dir, "msconvert", source, mindir, "--quiet", *options)
    return native, mindir, agreement.describe(bin_dir, native)


def compare(run, names, expected, got):
    import agreement
    return agreement.disagreements(f"run {run}", names, expected, got, lambda _: TOLERANCE)


def check(bin_dir, name, content, runs, shapes, folder):
    import agreement
    native, mindir, info = convert(bin_dir, name, content, folder, shapes=shapes)
    failures = []
    for r, inputs in enumerate([x.numpy() for x in run] for run in runs):
        named = dict(zip([v["name"] for v in info["inputs"]], inputs))
        # MindSpore compiles a loaded graph for the shapes of its first call only.
        got = agreement.MindSporeModel(mindir)(inputs)
        failures += compare(r, [v["name"] for v in info["outputs"]], agreement.run_msrun(bin_dir, native, named, folder), got)
    return failures


def check_state(bin_dir, name, content, runs, kept, folder):
    """Compares a model with state, run after run, with a model whose state is passed from run to run."""
    import agreement
    import numpy as np
    native, mindir, info = convert(bin_dir, name, content, folder, "--state", "=".join(kept))
    theirs, inputs = agreement.MindSporeModel(mindir), {v["name"]: np.zeros(v["dims"], np.float32) for v in info["inputs"]}
    names, failures = [v["name"] for v in info["outputs"]], []
    for r, given in enumerate([x.numpy() for x in run] for run in runs):
        inputs.update(zip([n for n in inputs if n != kept[0]], given))
        outputs = dict(zip(names, agreement.run_msrun(bin_dir, native, inputs, folder)))
        inputs[kept[0]] = outputs.pop(kept[1])
        failures += compare(r, list(outputs), list(outputs.values()), theirs(given))
    return failures


# Whole numbers for the modules of mindir_flow_modules.
FLOWS = {"choices": [(0, 7), (2, 7)], "factorial": [(6,), (1,)], "closure": [(3, 4)], "state_in_loop": [(4,), (0,)],
         "counting": [(2, 9), (9, 2)]}


def check_flow(bin_dir, name, runs, folder):
    import agreement
    import numpy as np
    if not (folder / "counting.msrt").exists():
        agreement.tool(bin_dir, "mindir_flow_modules", folder)
    native, mindir = folder / f"{name}.msrt", folder / f"{name}.mindir"
    agreement.tool(bin_dir, "msconvert", native, mindir, "--quiet", "--optimize", "none")
    info, failures = agreement.describe(bin_dir, native), []
    for r, numbers in enumerate(runs):
        inputs = {v["name"]: np.array(n, np.int64) for v, n in zip(info["inputs"], numbers)}
        expected = agreement.run_msrun(bin_dir, native, inputs, folder)
        failures += compare(r, [v["name"] for v in info["outputs"]], expected, agreement.MindSporeModel(mindir)(inputs.values()))
    return failures


def main():
    find_mindspore()
    import models
    bin_dir, wanted = sys.argv[1], sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        checks = [(case[0], lambda case=case: check(bin_dir, *case, folder)) for case in models.cases()]
        checks += [(case[0], lambda case=case: check_state(bin_dir, *case, folder)) for case in models.stateful_cases()]
        checks += [(name, lambda name=name: check_flow(bin_dir, name, FLOWS[name], folder)) for name in FLOWS]
        for name, run in checks:
            if wanted and name not in wanted:
                continue
            try:
                failures = run()
            except Exception as error:  # MindSpore raises whatever it likes
                failures = [f"{type(error).__name__}: {str(error)[:1500]}"]
            failed += bool(failures)
            print(("FAIL " if failures else "ok   ") + name, *failures, sep="\n    " if failures else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
