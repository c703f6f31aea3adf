#!/usr/bin/env python3
"""The archive as a user gets it, with nothing left of the tree that it was built in. Run by hand: it builds msrt (minutes).

  tests/install/archive_check.py WORK [--embed]

Clones the committed tree into WORK, builds the target `package` there, deletes the clone, unpacks the archive elsewhere, builds a C program
against it (CMake and pkg-config, shared and static), converts torchvision's ResNet-18 with the archive's msconvert and compares the
programs' output with ONNX Runtime's. --embed also builds and runs a project that adds the clone as a subdirectory, before it is deleted.
Python needs numpy, onnxruntime, torch and torchvision.
"""
import argparse
import glob
import os
import re
import shutil
import sys
import time

import numpy
import onnxruntime
import torch
import torchvision

from installing import HERE, SOURCE, empty_folder, needed_libraries, readme_program, run

TOLERANCE = 1e-4  # of the output's range, as msconvert --verify has it


def say(text):
    print(text, flush=True)


def clone(work):
    folder = os.path.join(work, "clone")
    run("git", "clone", "--quiet", SOURCE, folder)
    fetched = os.path.join(SOURCE, "build", "deps")
    if os.path.isdir(fetched):
        shutil.copytree(fetched, os.path.join(folder, "build", "deps"), symlinks=True)
    else:
        run(os.path.join(folder, "tools", "setup"))
    return folder


def build_archive(folder):
    """The archive's path."""
    begin = time.monotonic()
    run("cmake", "--preset", "release", "-DMSRT_TESTS=OFF", cwd=folder)
    run("cmake", "--build", "--preset", "release", "--target", "package", cwd=folder)
    archive, = glob.glob(os.path.join(folder, "build", "release", "msrt-*.tar.gz"))
    say(f"{os.path.basename(archive)}: {os.path.getsize(archive) / 1e6:.1f} MB, built in {time.monotonic() - begin:.0f} s")
    return archive


def embedded_programs(work, folder):
    """A project that has the clone as a subdirectory, built: its programs. The project chooses the compiler launcher and -Werror, with
    which it finds most objects of the archive's build in the compiler's cache."""
    begin = time.monotonic()
    build = os.path.join(folder, "build", "embedding")
    cache = {"CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1", "CCACHE_IGNOREOPTIONS": "-fmacro-prefix-map=*"}
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "-S", os.path.join(HERE, "embedding"), "-B", build, "-G", "Ninja", f"-DMSRT_FOLDER={folder}", "-DCMAKE_BUILD_TYPE=Release",
        "-DMSRT_WERROR=ON", f"-DPROGRAM={readme_program(os.path.join(work, 'readme.c'))}", *launcher)
    run("cmake", "--build", build, environment=cache)
    say(f"project with msrt as a subdirectory: built in {time.monotonic() - begin:.0f} s")
    return [os.path.join(build, "app_shared"), os.path.join(build, "app_static")]


def build_programs(work, tree):
    """{way of linking: program}"""
    source = os.path.join(HERE, "run_floats.c")
    build = os.path.join(work, "user")
    run("cmake", "-S", os.path.join(HERE, "user"), "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={tree}", f"-DPROGRAM={source}")
    run("cmake", "--build", build)
    programs = {"find_package, shared": os.path.join(build, "readme_shared"), "find_package, static": os.path.join(build, "readme_static")}
    for package in ("msrt", "msrt-static"):
        flags = run("pkg-config", "--cflags", "--libs", package, environment={"PKG_CONFIG_PATH": os.path.join(tree, "lib", "pkgconfig")})
        programs[f"pkg-config {package}"] = os.path.join(work, package)
        run("cc", source, "-o", programs[f"pkg-config {package}"], *flags.split(), f"-Wl,-rpath,{tree}/lib")
    return programs


def export_resnet18(path):
    torch.manual_seed(1)
    network = torchvision.models.resnet18(weights=None).eval()
    torch.onnx.export(network, (torch.zeros(1, 3, 224, 224),), path, external_data=False, verbose=False)


def compare(name, actual, expected):
    error = numpy.abs(actual - expected).max() / (expected.max() - expected.min())
    say(f"{name:24} largest difference from ONNX Runtime {error:.1e} of the range")
    return error < TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--embed", action="store_true")
    arguments = parser.parse_args()
    work = empty_folder(os.path.abspath(arguments.work))
    folder = clone(work)
    archive = shutil.move(build_archive(folder), work)
    if arguments.embed:
        lenet = os.path.join(work, "lenet.msrt")
        run(os.path.join(folder, "build", "release", "bin", "msconvert"), "zoo:lenet", lenet)
        shared, static = (run(program, lenet) for program in embedded_programs(work, folder))
        if shared != static:
            sys.exit(f"the embedded libraries differ:\n{shared}\n{static}")
        say("embedded, shared and static: the same scores")
    shutil.rmtree(folder)
    say("the clone is deleted")

    shutil.unpack_archive(archive, os.path.join(work, "unpacked"))
    tree, = glob.glob(os.path.join(work, "unpacked", "*"))
    onnx, model = os.path.join(work, "resnet18.onnx"), os.path.join(work, "resnet18.msrt")
    export_resnet18(onnx)
    run(os.path.join(tree, "bin", "msconvert"), onnx, model)
    image = numpy.random.default_rng(1).standard_normal((1, 3, 224, 224), dtype=numpy.float32)
    image.tofile(os.path.join(work, "image.bin"))
    peer = onnxruntime.InferenceSession(onnx)
    expected, = peer.run(None, {peer.get_inputs()[0].name: image})
    good = True
    for name, program in build_programs(work, tree).items():
        outside = [file for library, file in needed_libraries(program).items() if "dnnl" in library and not file.startswith(tree)]
        run(program, model, os.path.join(work, "image.bin"), os.path.join(work, "scores.bin"), *image.shape)
        good &= compare(name, numpy.fromfile(os.path.join(work, "scores.bin"), numpy.float32), expected.ravel()) and not outside
    bench = run(os.path.join(tree, "bin", "msrun"), model, "--seconds", "2")
    say("msrun of the archive: " + re.search(r"^.*latency.*$", bench, re.M).group().strip())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
