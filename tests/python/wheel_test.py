"""The wheel: it has correct metadata, needs no file of its build, and equal inputs make equal bytes."""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import image_files
import msrt
import numpy as np
from models import ModelCase, affine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHEEL, BUILD = None, None  # set by python_test.py
PACKAGE = os.path.dirname(msrt.__file__)
# Every Linux system of the wheel's tag has these; libgomp.so.1 has a fallback.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1",
                    "libgomp.so.1", "ld-linux-x86-64.so.2"}


# The image module is loaded when an image is opened, and reports what is missing.
IMAGE_LIBRARIES = re.compile(r"lib(tiff|png16|jpeg)\.so\.\d+")
# So are the communication engines, when several ranks ask for them.
ENGINE_LIBRARIES = re.compile(r"lib(mpi|gloo)\.so(\.\d+)*")


def run_python(program, *arguments, **environment):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE), **environment})


class Wheel(ModelCase):
    def test_record_has_every_file(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            names = wheel.namelist()
            info = next(name.split("/")[0] for name in names if name.endswith(".dist-info/RECORD"))
            lines = [line.rsplit(",", 2) for line in wheel.read(f"{info}/RECORD").decode().splitlines()]
            self.assertEqual(sorted(names), sorted(line[0] for line in lines))
            for name, digest, size in lines:
                if name != f"{info}/RECORD":
                    data = wheel.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), (f"sha256={expected}", len(data)), name)
            tag = re.search(r"^Tag: (.*)$", wheel.read(f"{info}/WHEEL").decode(), re.M).group(1)
            self.assertEqual(os.path.basename(WHEEL), f"msrt-{msrt.version()}-{tag}.whl")
            self.assertTrue(tag.startswith("py3-none-manylinux_"))
            self.assertIn(f"Version: {msrt.version()}\n", wheel.read(f"{info}/METADATA").decode())
            self.assertIn("msrt/py.typed", names)
            self.assertIn(f"{info}/licenses/LICENSE", names)

    def test_bytes_are_reproducible(self):
        builder = os.path.join(ROOT, "tools", "python", "build_wheel")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, builder, "--build-dir", BUILD, "--output", folder], check=True, capture_output=True)
            with open(os.path.join(folder, os.path.basename(WHEEL)), "rb") as again, open(WHEEL, "rb") as first:
                self.assertEqual(hashlib.sha256(again.read()).hexdigest(), hashlib.sha256(first.read()).hexdigest())

    def test_no_library_of_the_build_is_loaded(self):
        program = ("import sys, numpy, msrt\n"
                   "msrt.load(sys.argv[1])(numpy.ones((2, 3), numpy.float32))\n"
                   "print(msrt.__file__); print(open('/proc/self/maps').read())\n")
        done = run_python(program, self.converted(affine()))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(os.path.join(PACKAGE, "lib", "libmsrt.so"), done.stdout)
        for path in re.findall(r"\s(/\S+\.so\S*)$", done.stdout, re.M):
            inside = path.startswith(PACKAGE)
            self.assertTrue(inside or not path.startswith((ROOT + os.sep, BUILD + os.sep)), path)

    def test_binaries_need_only_system_libraries_and_each_other(self):
        names = [os.path.join(folder, name) for folder in ("lib", "bin") for name in os.listdir(os.path.join(PACKAGE, folder))]
        files = [os.path.join(PACKAGE, name) for name in names if os.path.isfile(os.path.join(PACKAGE, name))]
        ours = {os.path.basename(name) for name in files}
        for file in files:
            dynamic = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
            if os.path.basename(file) == "libmsrt_images.so":
                needed = {name for name in needed if not IMAGE_LIBRARIES.fullmatch(name)}
            if os.path.basename(file).startswith("libmsrt_comm_"):
                needed = {name for name in needed if not ENGINE_LIBRARIES.fullmatch(name)}
            self.assertLessEqual(needed, SYSTEM_LIBRARIES | ours, file)
            for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
                self.assertTrue(all(part.startswith("$ORIGIN") for part in path.split(":")), f"{file}: {path}")

    def engines(self):
        return [name for name in ("gloo", "mpi") if os.path.exists(os.path.join(BUILD, "lib", f"libmsrt_comm_{name}.so"))]

    def ranks(self, engine, msrun, out):
        """Runs an image job of two ranks."""
        if not os.path.exists(self.path("unet.msrt")):
            msrt.convert(self.write("unet.onnx", image_files.network()), self.path("unet.msrt"))
        np.save(self.path("image.npy"), np.random.default_rng(1).integers(0, 256, (3, 24, 20), np.uint8))
        command = [msrun, "image", self.path("unet.msrt"), self.path("image.npy"), self.path(out), "--quiet"]
        before = ["mpirun", "--oversubscribe", "-n", "2"] if engine == "mpi" else [msrun, "launch", "-n", "2", "--engine", engine, "--"]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        return subprocess.run([*before, *command], capture_output=True, text=True, timeout=120, env=environment)

    def test_ranks_find_the_engines_of_the_package(self):
        for engine in self.engines():
            if engine == "mpi" and shutil.which("mpirun") is None:
                continue
            done = self.ranks(engine, os.path.join(PACKAGE, "bin", "msrun"), engine + ".npy")
            self.assertEqual(done.returncode, 0, (engine, done.stderr))
            self.assertTrue(os.path.exists(self.path(engine + ".npy")), engine)

    def test_missing_library_of_an_engine_is_named(self):
        if "gloo" not in self.engines():
            self.skipTest("a build without Gloo")
        shutil.copytree(os.path.join(PACKAGE, "lib"), self.path("lib"))
        shutil.copytree(os.path.join(PACKAGE, "bin"), self.path("bin"))
        with open(self.path("lib/libmsrt_comm_gloo.so"), "rb") as file:
            module = file.read()
        library = re.search(rb"\0(libgloo\.so[.\d]*)\0", module)
        if library is None:
            self.skipTest("Gloo is linked statically")
        missing = library[1].replace(b"gloo", b"none")
        with open(self.path("lib/libmsrt_comm_gloo.so"), "wb") as file:
            file.write(module.replace(library[1] + b"\0", missing + b"\0"))
        done = self.ranks("gloo", self.path("bin/msrun"), "none.npy")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, rf"engine gloo: .*cannot be loaded \({re.escape(missing.decode())}.*; install the library that is missing")

    def test_openmp_comes_from_the_package_where_the_system_has_none(self):
        fallback = os.path.join(PACKAGE, "lib", "fallback", "libgomp.so.1")
        if not os.path.exists(fallback):
            self.skipTest("a build without OpenMP")
        program = ("import ctypes, sys, numpy\n"
                   "load = ctypes.CDLL\n"
                   "def without_system(name, *rest, **named):\n"
                   "    if name == 'libgomp.so.1': raise OSError('as if it were not there')\n"
                   "    return load(name, *rest, **named)\n"
                   "ctypes.CDLL = without_system\n"
                   "import msrt\n"
                   "print(msrt.load(sys.argv[1], threads=2)(numpy.ones((1, 3), numpy.float32))['y'].sum())\n"
                   "print(*sorted({line.split()[-1] for line in open('/proc/self/maps') if 'libgomp' in line}))\n")
        done = run_python(program, self.converted(affine()))
        self.assertEqual((done.returncode, done.stdout), (0, f"9.0\n{fallback}\n"), done.stderr)

    def test_types_are_complete(self):
        done = run_python("import mypy")
        if done.returncode != 0:
            self.skipTest("mypy is not installed")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", os.path.join(ROOT, "tools", "python", "msrt")],
                              capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_examples_of_the_readme_run(self):
        with open(os.path.join(ROOT, "tools", "python", "README.md"), encoding="utf-8") as readme:
            program = "\n".join(re.findall(r"^```python\n(.*?)^```$", readme.read(), re.M | re.S))
        # The files and the array that the examples take for granted.
        shape = (3, 24, 20)
        pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
        msrt.convert(self.write("unet.onnx", image_files.network()), self.path("unet.msrt"))
        if os.path.exists(os.path.join(PACKAGE, "lib", "libmsrt_images.so")):
            image_files.write_tiff(self.path("scene.tif"), *shape, pixels.ravel().tolist())
        else:  # a build without libtiff
            np.save(self.path("scene.npy"), pixels)
            program = program.replace(".tif", ".npy")
        program = f"import numpy\narray = numpy.zeros({shape}, numpy.float32)\n" + program
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(np.size(done.stdout))


if __name__ == "__main__":
    unittest.main()
