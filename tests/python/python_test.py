#!/usr/bin/env python3
"""Builds the wheel of a build tree, installs it into an empty folder and runs the tests of the package against that.

usage: python_test.py BUILD_DIR [unittest arguments]     (needs numpy and pip)
"""
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODULES = ["convert_test", "header_test", "image_test", "memory_test", "run_test", "threads_test", "torch_test", "train_test", "wheel_test"]


def install(build):
    """Returns the wheel and the folder that it is installed into, which holds nothing else."""
    output = os.path.join(build, "python")
    shutil.rmtree(output, ignore_errors=True)
    builder = os.path.join(ROOT, "tools", "python", "build_wheel")
    subprocess.run([sys.executable, builder, "--build-dir", build, "--output", output], check=True)
    wheel, site = glob.glob(os.path.join(output, "*.whl"))[0], os.path.join(output, "installed")
    quiet = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", site, wheel], check=True, env=quiet)
    return wheel, site


def main():
    missing = [name for name in ("numpy", "pip") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"python_test: {sys.executable} has no {' and no '.join(missing)}; run tools/setup, then configure the build again")
    build = os.path.abspath(sys.argv.pop(1))
    wheel, site = install(build)
    sys.path.insert(0, site)
    sys.path.append(os.path.join(ROOT, "tests", "tools"))
    sys.dont_write_bytecode = True
    import msrt
    assert os.path.dirname(os.path.dirname(msrt.__file__)) == site, msrt.__file__
    import wheel_test
    wheel_test.WHEEL, wheel_test.BUILD = wheel, build
    unittest.main(module=None, argv=[sys.argv[0], *(sys.argv[1:] or MODULES)])


main()
