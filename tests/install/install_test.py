#!/usr/bin/env python3
"""The installed tree, moved after its installation, as a user meets it: its files, its tools, and the README's program built with
CMake and pkg-config, shared and static. The archive holds the same tree.

usage: install_test.py BUILD WORK CMAKE CC [C_FLAGS]    BUILD is a finished build of msrt; everything is written below WORK
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

from installing import HERE, SOURCE, empty_folder, files_below, needed_libraries, readme_program, run, runpath

sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import image_files  # noqa: E402
from onnx_file import read_npy, write_npy  # noqa: E402

BUILD = WORK = CMAKE = CC = None
C_FLAGS = []


def cache_entry(name):
    with open(os.path.join(BUILD, "CMakeCache.txt")) as cache:
        match = re.search(rf"^{name}:\w+=(.*)$", cache.read(), re.M)
    return match and match.group(1)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        empty_folder(WORK)
        first, cls.tree = os.path.join(WORK, "first"), os.path.join(WORK, "moved", "tree")
        run(CMAKE, "--install", BUILD, "--prefix", first)
        os.makedirs(os.path.dirname(cls.tree))
        os.rename(first, cls.tree)
        cls.files = files_below(cls.tree)
        cls.version = cache_entry("CMAKE_PROJECT_VERSION")
        cls.has_onednn = "libdnnl.so.3" in needed_libraries(os.path.join(BUILD, "bin", "msrun"))
        cls.has_images = os.path.exists(os.path.join(BUILD, "lib", "libmsrt_images.so"))
        cls.program = readme_program(os.path.join(WORK, "readme.c"))
        cls.model = os.path.join(WORK, "lenet.msrt")
        run(cls.path("bin", "msconvert"), "zoo:lenet", cls.model)

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.tree, *parts)

    def expected_scores(self):
        """Returns the results of the moved msrun's reference delegate for the README's input."""
        write_npy(os.path.join(WORK, "ramp.npy"), [1, 1, 28, 28], [i % 28 / 28 for i in range(28 * 28)])
        run(self.path("bin", "msrun"), "run", self.model, "--input", f"image={WORK}/ramp.npy", "--output-dir", WORK, "--delegate", "reference")
        outputs = [name for name in os.listdir(WORK) if name.endswith(".npy") and name != "ramp.npy"]
        self.assertEqual(len(outputs), 1, outputs)
        return read_npy(os.path.join(WORK, outputs[0]))

    def check_program(self, program, is_static):
        needed = needed_libraries(program)
        self.assertEqual("libmsrt.so.0" in needed, not is_static, needed)
        for name, file in needed.items():
            self.assertIsNotNone(file, f"{name} of {program} is not found")
            if name.startswith(("libmsrt", "libdnnl")):
                self.assertEqual(os.path.dirname(file), os.path.realpath(self.path("lib")))
        printed = run(program, self.model)
        scores = [float(value) for value in re.findall(r"^\d: (.*)$", printed, re.M)]
        self.assertEqual(len(scores), 10, printed)
        for score, expected in zip(scores, self.expected_scores()[1]):
            self.assertAlmostEqual(score, expected, delta=1e-3)
        self.assertGreater(len(set(scores)), 3, printed)

    def test_tree_is_complete(self):
        expected = {"bin/msrun", "bin/msconvert", "include/msrt.h", "include/msrt_device.h", "include/msrt_plugin.h", "include/msrt_train.h",
                    "lib/libmsrt.a", "lib/libmsrt.so", "lib/libmsrt.so.0", f"lib/libmsrt.so.{self.version}",
                    "lib/pkgconfig/msrt.pc", "lib/pkgconfig/msrt-static.pc", "share/doc/msrt/LICENSE"}
        if self.has_onednn:
            expected |= {"lib/libdnnl.so.3", "share/doc/msrt/oneDNN/LICENSE", "share/doc/msrt/oneDNN/THIRD-PARTY-PROGRAMS"}
        if self.has_images:
            expected.add("lib/libmsrt_images.so")
        # Engines of optional libraries: installed if they were built.
        for module in ("libmsrt_comm_gloo.so", "libmsrt_comm_mpi.so"):
            if os.path.exists(os.path.join(BUILD, "lib", module)):
                expected.add(f"lib/{module}")
        rest = [name for name in self.files if not name.startswith(("lib/cmake/msrt/", "share/doc/msrt/third-party/"))]
        self.assertEqual(sorted(rest), sorted(expected))

    def test_no_file_names_the_build(self):
        if cache_entry("CMAKE_BUILD_TYPE") != "Release":
            self.skipTest("debug information names source files")
        for name, data in self.files.items():
            for folder in (SOURCE, BUILD, WORK):
                self.assertNotIn(os.fsencode(folder), os.fsencode(data), f"{name} names {folder}")

    def test_libraries_are_found_relative_to_the_file(self):
        self.assertEqual(runpath(self.path("lib", "libmsrt.so")), "$ORIGIN")
        for tool in ("msrun", "msconvert"):
            self.assertEqual(runpath(self.path("bin", tool)), "$ORIGIN/../lib")

    def test_tools_need_only_the_tree_and_the_system(self):
        for file in (self.path("bin", "msrun"), self.path("bin", "msconvert"), self.path("lib", "libmsrt.so")):
            needed = needed_libraries(file)
            self.assertEqual("libdnnl.so.3" in needed, self.has_onednn)
            for name, found in needed.items():
                self.assertIsNotNone(found, f"{name} of {file} is not found")
                if name == "libdnnl.so.3":
                    self.assertEqual(found, os.path.realpath(self.path("lib", name)))
            self.assertFalse([name for name in needed if name.startswith(("libprotobuf", "libflatbuffers", "libxxhash", "libfmt"))], file)

    def test_only_the_image_module_needs_image_libraries(self):
        image_libraries = ("libtiff", "libpng", "libjpeg")
        for file in (self.path("bin", "msrun"), self.path("bin", "msconvert"), self.path("lib", "libmsrt.so")):
            self.assertFalse([name for name in needed_libraries(file) if name.startswith(image_libraries)], file)
        if self.has_images:
            needed = needed_libraries(self.path("lib", "libmsrt_images.so"))
            self.assertTrue([name for name in needed if name.startswith(image_libraries)])
            self.assertFalse([name for name, found in needed.items() if found is None])
            self.assertIsNone(runpath(self.path("lib", "libmsrt_images.so")))

    def test_moved_tree_runs_models_on_images(self):
        folder = empty_folder(os.path.join(WORK, "image"))
        with open(os.path.join(folder, "model.onnx"), "wb") as file:
            file.write(image_files.network())
        model, out = os.path.join(folder, "model.msrt"), os.path.join(folder, "out.npy")
        convert = [self.path("bin", "msconvert"), os.path.join(folder, "model.onnx"), model]
        if "this build reads no ONNX" in subprocess.run(convert, capture_output=True, text=True).stderr:
            return  # a build without protobuf
        source = os.path.join(folder, "in.npy")
        write_npy(source, (3, 20, 30), image_files.noise(1800, 1), "|u1", "B")
        if self.has_images:
            source = image_files.write_tiff(os.path.join(folder, "in.tif"), 3, 20, 30, image_files.noise(1800, 1))
        run(self.path("bin", "msrun"), "image", model, source, out)
        self.assertEqual(read_npy(out)[0]["shape"], (5, 20, 30))

    def test_readme_program_builds_with_cmake(self):
        folder = os.path.join(WORK, "cmake")
        run(CMAKE, "-S", os.path.join(HERE, "user"), "-B", folder, "-G", cache_entry("CMAKE_GENERATOR"), f"-DCMAKE_PREFIX_PATH={self.tree}",
            f"-DPROGRAM={self.program}", f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_C_FLAGS={' '.join(C_FLAGS)}")
        run(CMAKE, "--build", folder)
        self.check_program(os.path.join(folder, "readme_shared"), is_static=False)
        self.check_program(os.path.join(folder, "readme_static"), is_static=True)

    def pkg_config(self, *arguments):
        return run("pkg-config", *arguments, environment={"PKG_CONFIG_PATH": self.path("lib", "pkgconfig")}).split()

    def compile(self, name, flags):
        out = os.path.join(WORK, name)
        run(CC, *C_FLAGS, self.program, "-o", out, *flags, f"-Wl,-rpath,{self.path('lib')}")
        return out

    @unittest.skipUnless(shutil.which("pkg-config"), "there is no pkg-config")
    def test_readme_program_builds_with_pkg_config(self):
        self.assertEqual(self.pkg_config("--modversion", "msrt"), [self.version])
        self.check_program(self.compile("pc_shared", self.pkg_config("--cflags", "--libs", "msrt")), is_static=False)
        self.check_program(self.compile("pc_static", self.pkg_config("--cflags", "--libs", "msrt-static")), is_static=True)

    @unittest.skipUnless(shutil.which("pkg-config"), "there is no pkg-config")
    def test_static_flag_of_pkg_config_lists_the_libraries_of_the_archive(self):
        flags = self.pkg_config("--cflags", "--libs", "--static", "msrt")
        self.check_program(self.compile("pc_both", flags), is_static=False)
        flags[flags.index("-lmsrt")] = "-l:libmsrt.a"
        self.check_program(self.compile("pc_archive", flags), is_static=True)

    def test_archive_is_the_same_tree(self):
        run(os.path.join(os.path.dirname(CMAKE), "cpack"), "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", os.path.join(WORK, "archive"))
        name = f"msrt-{self.version}-linux-{os.uname().machine}"
        with tarfile.open(os.path.join(WORK, "archive", name + ".tar.gz")) as archive:
            archive.extractall(os.path.join(WORK, "unpacked"))
        self.assertEqual(os.listdir(os.path.join(WORK, "unpacked")), [name])
        unpacked = files_below(os.path.join(WORK, "unpacked", name))
        self.assertEqual(sorted(unpacked), sorted(self.files))
        self.assertFalse([file for file in unpacked if unpacked[file] != self.files[file]], "these files differ")
        needed = needed_libraries(os.path.join(WORK, "unpacked", name, "bin", "msrun"))
        self.assertEqual([os.path.dirname(needed[library]) for library in needed if library == "libdnnl.so.3"],
                         [os.path.realpath(os.path.join(WORK, "unpacked", name, "lib"))] if self.has_onednn else [])


if __name__ == "__main__":
    BUILD, WORK, CMAKE, CC = sys.argv[1:5]
    C_FLAGS = sys.argv[5:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
