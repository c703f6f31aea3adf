"""Large models by hand: ONNX to MindIR, run by the real MindSpore, compared with msrun.

    PYTHON_WITH_MINDSPORE tests/bench/mindir_models.py build/release/bin model.onnx... [--shape NAME=1x3x224x224] [--fill NAME=NUMBER] [--round-trip]
"""
import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "conformance" / "mindir"))
import agreement  # noqa: E402
import numpy as np  # noqa: E402

TOLERANCE = 1e-4  # of the range of an output


def compare(bin_dir, model, shapes, fill, folder, round_trip):
    options = [text for shape in shapes for text in ("--shape", shape)]
    native, mindir = folder / "model.msrt", folder / "model.mindir"
    agreement.tool(bin_dir, "msconvert", model, native, "--quiet", *options)
    begin = time.time()
    agreement.tool(bin_dir, "msconvert", model, mindir, "--quiet", *options)
    seconds = time.time() - begin
    inputs = agreement.random_inputs(agreement.describe(bin_dir, native))
    for name, number in (f.split("=") for f in fill):
        inputs[name] = np.full_like(inputs[name], float(number))
    ours = agreement.run_msrun(bin_dir, native, inputs, folder)
    begin = time.time()
    theirs = agreement.MindSporeModel(mindir)(inputs.values())
    differences = [agreement.difference(a, b) for a, b in zip(ours, theirs)]
    fits = len(ours) == len(theirs) and all(d is not None and d <= TOLERANCE for d in differences)
    told = " ".join("other type" if d is None else f"{d:.1e}" for d in differences)
    print(f"{'ok  ' if fits else 'FAIL'} {pathlib.Path(model).name}: differences {told}; export {seconds:.1f} s, MindSpore {time.time() - begin:.1f} s",
          flush=True)
    if round_trip:
        plain, back = folder / "plain.msrt", folder / "back.msrt"
        agreement.tool(bin_dir, "msconvert", model, plain, "--quiet", "--optimize", "none", *options)
        agreement.tool(bin_dir, "msconvert", mindir, back, "--quiet")
        again = agreement.run_msrun(bin_dir, back, dict(zip([v["name"] for v in agreement.describe(bin_dir, back)["inputs"]],
                                                            inputs.values())), folder)
        print("     round trip:", " ".join("other type" if d is None else f"{d:.1e}" for d in map(agreement.difference, ours, again)))
    return fits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--fill", action="append", default=[], help="NAME=NUMBER: an input that is this number everywhere")
    parser.add_argument("--round-trip", action="store_true")
    a = parser.parse_args()
    failed = 0
    for model in a.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                failed += not compare(a.bin_dir, model, a.shape, a.fill, pathlib.Path(folder), a.round_trip)
            except RuntimeError as error:
                failed += 1
                print(f"FAIL {model}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
