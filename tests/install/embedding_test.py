#!/usr/bin/env python3
"""A project that adds msrt as a subdirectory keeps its own settings: configured with msrt and looked at, without building msrt.

usage: embedding_test.py WORK CMAKE CC CXX GENERATOR    everything is written below WORK
"""
import json
import os
import re
import sys
import unittest

from installing import HERE, SOURCE, empty_folder, files_below, readme_program, run

WORK = CMAKE = CC = CXX = GENERATOR = None

# Results of finding packages and of enabling C++, which every project in a build shares; all else in the cache must be named MSRT_*.
SHARED_CACHE = re.compile(r"(CMAKE_|_|OpenMP_|OPENMP_|FIND_PACKAGE_|Threads_|Flatbuffers_DIR$|embedding_|msrt_|MSRT_|PROGRAM$|GNU)")


def configure(name, *options):
    build = os.path.join(WORK, name)
    run(CMAKE, "-S", os.path.join(HERE, "embedding"), "-B", build, "-G", GENERATOR, f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}",
        f"-DMSRT_FOLDER={SOURCE}", f"-DPROGRAM={WORK}/readme.c", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)
    return build


class Embedding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        empty_folder(WORK)
        readme_program(os.path.join(WORK, "readme.c"))
        cls.build = configure("build", "-DMSRT_UNITY=OFF")  # so that every file has a command of its own
        with open(os.path.join(cls.build, "compile_commands.json")) as file:
            commands = json.load(file)
        cls.own = [command for command in commands if os.path.basename(command["file"]) == "readme.c"]
        cls.of_msrt = {os.path.relpath(command["file"], SOURCE): command["command"] for command in commands if command not in cls.own}
        with open(os.path.join(cls.build, "CMakeCache.txt")) as file:
            cls.cache = dict(re.findall(r"^([^#/\n][^:\n]*):\w+=(.*)$", file.read(), re.M))

    def test_only_the_tests_of_the_project_are_registered(self):
        listed = re.findall(r"Test +#\d+: (\S+)", run(os.path.join(os.path.dirname(CMAKE), "ctest"), "-N", "--test-dir", self.build))
        self.assertEqual(listed, ["own_test"])

    def test_only_the_library_is_built(self):
        self.assertGreater(len(self.of_msrt), 100)
        self.assertFalse([file for file in self.of_msrt if "_test.c" in file or file.startswith(("tests", "tools"))])

    def test_batches_hold_the_same_files(self):
        build = configure("batches")
        with open(os.path.join(build, "compile_commands.json")) as file:
            compiled = [command["file"] for command in json.load(file)]
        files = []
        for path in compiled:
            if path.startswith(build) and re.search(r"_\d+\.cc$", path):
                with open(path) as batch:
                    files += re.findall(r'#include "(.*)"', batch.read())
            elif os.path.basename(path) != "readme.c":
                files.append(os.path.relpath(path, SOURCE))
        self.assertLess(len(compiled), len(self.of_msrt))
        self.assertEqual(sorted(set(files)), sorted(self.of_msrt))

    def test_msrt_follows_the_choices_of_the_project(self):
        for file, command in self.of_msrt.items():
            self.assertNotIn("-Werror", command, file)
            self.assertNotIn("ccache", command, file)
            self.assertNotRegex(command, r" -O[123s]", f"{file}: the project chose no build type")

    def test_project_inherits_no_flags(self):
        self.assertEqual(len(self.own), 2)
        for command in self.own:
            flags = [flag for flag in command["command"].split() if flag.startswith("-")]
            self.assertEqual(flags, [f"-I{SOURCE}/core/abi", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o", "-c"])

    def test_cache_has_only_entries_of_msrt(self):
        self.assertEqual(self.cache.get("CMAKE_BUILD_TYPE", ""), "")
        self.assertFalse([name for name in self.cache if not SHARED_CACHE.match(name)])

    def test_headers_are_the_public_ones(self):
        self.assertEqual(sorted(os.listdir(os.path.join(SOURCE, "core", "abi"))), ["msrt.h", "msrt_device.h", "msrt_plugin.h", "msrt_train.h"])
        for command in self.own:
            run("sh", "-c", command["command"], cwd=command["directory"])

    def test_only_the_project_is_installed(self):
        run(CMAKE, "--install", self.build, "--prefix", os.path.join(WORK, "prefix"))
        self.assertEqual(list(files_below(os.path.join(WORK, "prefix"))), ["share/own.c"])

    def test_project_may_enable_more_parts(self):
        build = configure("more", "-DMSRT_UNITY=OFF", "-DMSRT_WERROR=ON", "-DMSRT_INSTALL=ON", "-DMSRT_TOOLS=ON", "-DCMAKE_BUILD_TYPE=Release")
        with open(os.path.join(build, "compile_commands.json")) as file:
            commands = {os.path.relpath(command["file"], SOURCE): command["command"] for command in json.load(file)}
        self.assertIn("-Werror", commands["core/api/version.cc"])
        self.assertIn("-O3", commands["core/api/version.cc"])
        self.assertIn("tools/msrun/main.cc", commands)
        with open(os.path.join(build, "msrt", "cmake_install.cmake")) as file:
            self.assertIn("libmsrt.a", file.read())

    def test_onednn_may_stay_outside(self):
        if not any(file.startswith("delegates/onednn") for file in self.of_msrt):
            self.skipTest("this build has no oneDNN")
        for bundle, flag in (("ON", "-l:libdnnl.so.3 "), ("OFF", "-ldnnl ")):
            build = os.path.join(configure("bundle_" + bundle, "-DMSRT_INSTALL=ON", f"-DMSRT_BUNDLE_ONEDNN={bundle}"), "msrt")
            with open(os.path.join(build, "package", "msrt.pc")) as file:
                self.assertIn(flag, file.read())
            with open(os.path.join(build, "cmake_install.cmake")) as file:
                self.assertEqual("libdnnl" in file.read(), bundle == "ON")


if __name__ == "__main__":
    WORK, CMAKE, CC, CXX, GENERATOR = sys.argv[1:6]
    unittest.main(argv=sys.argv[:1], verbosity=2)
