#!/usr/bin/env python3
"""msrun image: files against a run on the whole image, class maps, masks, resuming after kill -9, errors.

usage: image_test.py BIN_DIR HAS_CODECS   (Python's standard library only; onnxruntime, where installed, is a second reference)
"""
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import image_files as files  # noqa: E402
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase, mpi_environment  # noqa: E402

CODECS = True
ROWS, COLUMNS = 149, 83
PIXELS = files.noise(3 * ROWS * COLUMNS, 7)
EXECUTORS = {"stream": ("--executor", "stream", "--strip-rows", "8"), "tiles": ("--executor", "tiles", "--tile", "40x32")}


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


class Image(ToolCase):
    def setUp(self):
        super().setUp()
        self.model = self.converted("model", files.network())

    def converted(self, name, model):
        self.must("msconvert", self.write(name + ".onnx", model), self.path(name + ".msrt"), "--quiet")
        return self.path(name + ".msrt")

    def npy(self, name, pixels=None, rows=ROWS, columns=COLUMNS):
        onnx.write_npy(self.path(name), (3, rows, columns), pixels or PIXELS, "|u1", "B")
        return self.path(name)

    def tiff(self, name, pixels=None, **options):
        return files.write_tiff(self.path(name), 3, ROWS, COLUMNS, pixels or PIXELS, **options)

    def whole(self, values, rows=ROWS, columns=COLUMNS, output="scores"):
        """The output of a run on the whole image, of float values."""
        onnx.write_npy(self.path("whole.npy"), (1, 3, rows, columns), values)
        self.must("msrun", "run", self.model, "--accuracy", "exact", "--input", "x=" + self.path("whole.npy"), "--output-dir",
                  self.path("whole"))
        return onnx.read_npy(self.path(f"whole/{output}.npy"))[1]

    def image(self, *arguments, code=0, **options):
        done = self.run_tool("msrun", "image", *arguments, **options)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    def refuse(self, message, *arguments, code=1, out="out.npy", **options):
        done = self.image(*arguments, code=code, **options)
        self.assertIn(message, done.stderr)
        self.assertFalse(os.path.exists(self.path(out)), "a result looks complete")

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def test_npy_has_the_bits_of_the_whole(self):
        want = self.whole([float(p) for p in PIXELS])
        for name, executor in EXECUTORS.items():
            self.image(self.model, self.npy("in.npy"), self.path(name + ".npy"), *executor, "--json", self.path("r.json"))
            header, got = onnx.read_npy(self.path(name + ".npy"))
            self.assertEqual(header["shape"], (5, 150, 84))
            self.assertEqual(got, want, name)
            with open(self.path("r.json"), encoding="utf-8") as f:
                report = json.load(f)
            self.assertEqual(report["recomputed_rows"], 0)
            self.assertEqual((report["messages"], report["message_bytes"]), (0, 0))
            self.assertGreater(report["phases"][-1]["pieces"], 5)
            self.assertEqual(report["plan"]["phases"][-1]["executor"], name)
            self.assertLessEqual(report["peak_bytes"], report["plan"]["limit_bytes"])
            for key in ("seconds", "peak_rss_bytes", "pixels_per_second", "compile_seconds"):
                self.assertGreater(report[key], 0, key)

    def split(self, name, *arguments, before=(), **options):
        """A job of several ranks; returns its report."""
        source = self.path("in.npy") if os.path.exists(self.path("in.npy")) else self.npy("in.npy")
        command = [os.path.join(self.BIN, "msrun"), "image", self.model, source, self.path(name), *arguments, "--json", self.path("r.json")]
        done = subprocess.run([*before, *command], capture_output=True, text=True, timeout=120, check=False, **options)
        self.assertEqual(done.returncode, 0, (before, arguments, done.stdout, done.stderr))
        with open(self.path("r.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_ranks_have_the_bits_of_the_whole(self):
        want = self.whole([float(p) for p in PIXELS])
        executors = [("halo",), ("stream", "--strip-rows", "8"), ("tiles", "--tile", "40x32")]
        for parts in ("2x1", "1x3", "2x2"):
            for executor, *more in executors:
                report = self.split("out.npy", "--split", parts, "--executor", executor, *more, "--overwrite")
                self.assertEqual(onnx.read_npy(self.path("out.npy"))[1], want, (parts, executor))
                self.assertEqual(report["plan"]["phases"][-1]["executor"], executor)
                self.assertEqual(len(report["ranks"]), math.prod(int(n) for n in parts.split("x")))
                if executor != "halo":  # whose borders are so small here that all of them may be computed twice
                    self.assertEqual(report["messages"], 0)
        self.assertEqual(self.split("auto.npy", "--split", "2x2")["plan"]["phases"][0]["executor"], "halo")

    def test_ranks_share_the_statistics_of_the_image(self):
        """Each computes the rows of its part, in every phase."""
        self.model = self.converted("normalized", files.normalized_network())
        alone = self.split("one.npy", "--executor", "stream", "--strip-rows", "8")
        self.assertGreater(len(alone["phases"]), 2)
        rows = sum(phase["computed_rows"] for phase in alone["phases"])
        for executor in (("stream", "--strip-rows", "8"), ("tiles", "--tile", "40x32")):
            for parts in ("2x1", "3x1", "2x2"):
                report = self.split("out.npy", "--split", parts, "--executor", *executor, "--overwrite")
                self.assertEqual(self.read("out.npy"), self.read("one.npy"), (executor, parts))
                if executor[0] == "stream":
                    computed = [rank["computed_rows"] for rank in report["ranks"]]
                    self.assertLess(sum(computed), 1.4 * rows, (parts, computed, rows))

    def test_launched_ranks_have_the_bits_of_the_whole(self):
        want = self.whole([float(p) for p in PIXELS])
        engines = ["shm"] + [e for e in ("gloo",) if os.path.exists(os.path.join(self.BIN, "..", "lib", f"libmsrt_comm_{e}.so"))]
        jobs = [(os.path.join(self.BIN, "msrun"), "launch", "-n", "3", "--engine", engine, "--") for engine in engines]
        if shutil.which("mpirun") and os.path.exists(os.path.join(self.BIN, "..", "lib", "libmsrt_comm_mpi.so")):
            jobs.append(("mpirun", "--oversubscribe", "-n", "3"))
        environment = mpi_environment()
        for before in jobs:
            for executor in ("halo", "stream"):
                report = self.split("out.npy", "--executor", executor, "--strip-rows", "8", "--overwrite", before=before, env=environment)
                self.assertEqual(onnx.read_npy(self.path("out.npy"))[1], want, (before, executor))
                self.assertEqual(len(report["ranks"]), 3)

    def test_progress_is_shown_where_there_is_no_terminal(self):
        source = self.npy("tall.npy", files.noise(3 * 6000 * COLUMNS, 5), 6000)
        launch = [os.path.join(self.BIN, "msrun"), "launch", "-n", "2", "--"]
        for before, prefix in (([], ""), (launch, r"\[0\] ")):
            for more, shown in ((("--progress", "0.02"), True), (("--progress", "0"), False), (("--progress", "0.02", "--quiet"), False)):
                command = [*before, os.path.join(self.BIN, "msrun"), "image", self.model, source, self.path("out.npy"), "--overwrite", "--executor",
                           "stream", "--strip-rows", "16", *more]
                done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
                percents = [float(p) for p in re.findall(rf"^{prefix} *([\d.]+) % .* left$", done.stderr, re.MULTILINE)]
                with self.subTest(command=command):
                    self.assertEqual(len(percents) >= 2, shown, done.stderr)
                    self.assertEqual(percents, sorted(percents))
                    self.assertNotIn("[1]", done.stderr)

    def test_rows_that_two_ranks_compute_are_counted(self):
        """The borders are so small that computing them twice costs less than a message."""
        report = self.split("out.npy", "--split", "2x1")
        self.assertEqual(report["plan"]["phases"][0]["executor"], "halo")
        self.assertGreater(report["recomputed_rows"], 0)
        self.assertLess(report["recomputed_rows"], 40)
        self.assertGreater(report["peak_bytes"], 0)
        self.assertLess(report["peak_bytes"], report["plan"]["peak_bytes"], "measured, without what the process held before")

    def test_all_ranks_take_tiles_if_one_must(self):
        """Rank 0 holds the results of all: the limit lets it compute tiles, the others rows, and none its whole part."""
        rows, columns = 256, 24000
        onnx.write_npy(self.path("in.npy"), (3, rows, columns), [], "|u1", "B")
        with open(self.path("in.npy"), "ab") as f:
            f.write(random.Random(3).randbytes(3 * rows * columns))
        refused = self.image(self.model, self.path("in.npy"), self.path("x.npy"), "--executor", "stream", "--resume", "--memory", "1", code=1)
        # The results of three other ranks pass through rank 0 in bands of 8 MiB.
        rows_of_rank_0 = int(refused.stderr.split("set the limit to ")[1].split()[0]) + 3 * (8 << 20)
        launch = (os.path.join(self.BIN, "msrun"), "launch", "-n", "4", "--")
        report = self.split("split.npy", "--split", "2x2", "--memory", str(rows_of_rank_0 - (3 << 20)), before=launch)
        self.assertEqual(report["plan"]["phases"][-1]["executor"], "tiles")
        self.image(self.model, self.path("in.npy"), self.path("one.npy"))
        self.assertEqual(self.read("split.npy"), self.read("one.npy"))

    def test_each_block_is_decoded_once(self):
        if not CODECS:
            return
        rows, columns = 700, 130
        pixels = files.noise(3 * rows * columns, 4)
        png = files.write_png(self.path("in.png"), 3, rows, columns, pixels)
        tiff = files.write_tiff(self.path("in.tif"), 3, rows, columns, pixels)
        counts = {}
        for source in (png, tiff):
            for more in (("--executor", "stream"), ("--executor", "stream", "--strip-rows", "7"), ("--executor", "stream", "--bands", "3,2,1"),
                         ("--executor", "tiles", "--tile", "200x64")):
                self.image(self.model, source, self.path("out.npy"), *more, "--overwrite", "--json", self.path("r.json"))
                with open(self.path("r.json"), encoding="utf-8") as f:
                    counts.setdefault(source, []).append(json.load(f)["decoded_blocks"])
        self.assertEqual(counts[tiff], [-(-rows // 16)] * 4)
        self.assertEqual(counts[png], [counts[png][0]] * 4)
        self.image(self.model, png, self.path("want.npy"), "--strip-rows", "1000")
        self.assertEqual(self.read("out.npy"), self.read("want.npy"))

    def test_stopped_rank_ends_the_job(self):
        """Under mpirun nothing but the ranks themselves can notice it."""
        if not (shutil.which("mpirun") and os.path.exists(os.path.join(self.BIN, "..", "lib", "libmsrt_comm_mpi.so"))):
            self.skipTest("no MPI")
        environment = mpi_environment()
        source = self.npy("tall.npy", files.noise(3 * 20000 * COLUMNS, 5), 20000)
        for stopped, other in ((1, 0), (0, 1)):
            pids, out = self.path(f"pid{stopped}."), f"out{stopped}.npy"
            command = [os.path.join(self.BIN, "msrun"), "image", self.model, source, self.path(out), "--executor", "stream", "--strip-rows",
                       "1", "--sync", "0", "--timeout", "1"]
            script = f'echo $$ > {pids}$OMPI_COMM_WORLD_RANK; exec "$@"'
            job = subprocess.Popen(["mpirun", "--oversubscribe", "-n", "2", "sh", "-c", script, "sh", *command], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=environment)
            try:
                while not os.path.exists(self.path(out + ".part")):
                    self.assertIsNone(job.poll())
                    time.sleep(0.01)
                time.sleep(0.5)
                with open(pids + str(stopped), encoding="utf-8") as f:
                    os.kill(int(f.read()), signal.SIGSTOP)
                began = time.monotonic()
                errors, named = "", None
                for line in job.stderr:
                    errors += line
                    named = named or ("does not respond" in line and time.monotonic() - began)
                job.wait(60)
                ended = time.monotonic() - began
            finally:
                job.stderr.close()
                job.kill()
            self.assertNotEqual(job.returncode, 0)
            self.assertRegex(errors, rf"rank {stopped} on host .* \(process \d+\) does not respond since .*was last seen .* of group .*, rank {other} is ")
            # Within 1 s after the limit of 1 s; the job has ended 2 s after the limit.
            self.assertLess(named, 2, errors)
            self.assertLess(ended, 3, errors)
            self.assertFalse(os.path.exists(self.path(out)))

    def test_ranks_that_fail_leave_no_result(self):
        """The limit of the file's size stops rank 0, as a full disk does; the same ranks continue."""
        want = self.whole([float(p) for p in PIXELS])
        for executor in ("stream", "halo"):
            name, options = executor + ".npy", ("--executor", executor, "--split", "3x1")
            self.interrupted(name, *options)
            self.assertTrue(os.path.exists(self.path(name + ".part")))
            self.split(name, *options, "--strip-rows", "2", "--resume")
            self.assertEqual(onnx.read_npy(self.path(name))[1], want)

    def test_resumed_ranks_take_rows(self):
        """Halos would be computed again as a whole."""
        want = self.whole([float(p) for p in PIXELS])
        self.interrupted("out.npy", "--executor", "stream", "--split", "3x1")
        report = self.split("out.npy", "--split", "3x1", "--strip-rows", "2", "--resume")
        self.assertEqual(onnx.read_npy(self.path("out.npy"))[1], want)
        self.assertEqual(report["plan"]["phases"][-1]["executor"], "stream")

    def test_ranks_share_a_mask(self):
        mask = [int(r >= 60 and c < 50) for r in range(ROWS) for c in range(COLUMNS)]
        onnx.write_npy(self.path("mask.npy"), (1, ROWS, COLUMNS), mask, "|u1", "B")
        got = []
        for name, more in {"one": (), "halo": ("--split", "2x2"), "stream": ("--split", "3x1", *EXECUTORS["stream"])}.items():
            self.image(self.model, self.npy("in.npy"), self.path(name + ".npy"), "--mask", self.path("mask.npy"), *more)
            got.append(self.read(name + ".npy"))
        self.assertEqual(got[0], got[1])
        self.assertEqual(got[0], got[2])

    def test_model_of_a_fixed_size_takes_others(self):
        self.must("msconvert", "zoo:unet", self.path("unet.msrt"), "--quiet")
        onnx.write_npy(self.path("small.npy"), (4, 48, 80), files.noise(4 * 48 * 80, 3), "|u1", "B")
        for name, more in {"one": (), "two": ("--split", "2x1", "--json", self.path("r.json"))}.items():
            self.image(self.path("unet.msrt"), self.path("small.npy"), self.path(name + ".npy"), "--normalize", "scale=1/255", *more)
            self.assertEqual(onnx.read_npy(self.path(name + ".npy"))[0]["shape"], (2, 48, 80))
        self.assertEqual(self.read("one.npy"), self.read("two.npy"))
        with open(self.path("r.json"), encoding="utf-8") as f:
            report = json.load(f)
        self.assertGreater(report["messages"], 0)
        self.assertGreater(report["message_bytes"], 0)
        self.assertEqual(report["messages"], sum(r["messages"] for r in report["ranks"]))

    def test_result_agrees_with_onnxruntime(self):
        try:
            import numpy
            import onnxruntime
        except ImportError:
            print("onnxruntime is not installed: the whole run is the only reference")
            return
        self.image(self.model, self.npy("in.npy"), self.path("out.npy"), *EXECUTORS["stream"], "--normalize", "scale=1/255")
        x = numpy.array(PIXELS, numpy.float32).reshape(1, 3, ROWS, COLUMNS) * numpy.float32(1 / 255)
        want = onnxruntime.InferenceSession(self.path("model.onnx"), providers=["CPUExecutionProvider"]).run(["scores"], {"x": x})[0][0]
        got = numpy.load(self.path("out.npy"))
        self.assertLess(numpy.abs(got - want).max(), 1e-4 * numpy.abs(want).max())

    def test_tiff_is_normalized_per_band(self):
        if not CODECS:
            return
        mean, std = (100.5, 110.25, 120.0), (50.0, 51.5, 52.25)
        plane = ROWS * COLUMNS
        want = self.whole([f32(f32(p - mean[i // plane]) / std[i // plane]) for i, p in enumerate(PIXELS)])
        for name, executor in EXECUTORS.items():
            self.image(self.model, self.tiff("in.tif"), self.path(name + ".tif"), *executor, "--normalize",
                       "mean=100.5,110.25,120 std=50,51.5,52.25", "--output", "features=" + self.path(name + "_features.npy"))
            tags, pixels = files.read_tiff(self.path(name + ".tif"))[0]
            self.assertEqual(pixels, want)
            self.assertEqual((tags[257][0], tags[256][0], tags[277][0]), (150, 84, 5))
            self.assertEqual(onnx.read_npy(self.path(name + "_features.npy"))[1], onnx.read_npy(self.path("whole/features.npy"))[1])
        self.assertEqual(self.read("stream.tif"), self.read("tiles.tif"), "rows and tiles write the same file")

    def test_bands_are_selected(self):
        plane = ROWS * COLUMNS
        want = self.whole([float(p) for p in PIXELS[2 * plane:] + PIXELS[plane:2 * plane] + PIXELS[:plane]])
        self.image(self.model, self.npy("in.npy"), self.path("out.npy"), "--bands", "3,2,1")
        self.assertEqual(onnx.read_npy(self.path("out.npy"))[1], want)

    def classes(self):
        scores = self.whole([float(p) for p in PIXELS])
        plane = len(scores) // 5
        return [max(range(5), key=lambda c: (scores[c * plane + i], -c)) for i in range(plane)]

    def test_class_map_has_palette_and_overviews(self):
        want = self.classes()
        self.assertGreater(len(set(want)), 2, "one class everywhere tests nothing")
        if CODECS:
            big = self.npy("big.npy", [PIXELS[i % len(PIXELS)] for i in range(3 * 300 * 270)], 300, 270)
            self.image(self.model, big, self.path("big.tif"), "--classes")
            pages = files.read_tiff(self.path("big.tif"))
            self.assertEqual([p[0][256][0] for p in pages], [270, 135], "an overview")
            self.assertEqual(pages[0][0][262], (3,), "a palette image")
            self.assertEqual(len(pages[0][0][320]), 3 * 256)
            self.image(self.model, self.npy("in.npy"), self.path("out.tif"), "--classes", "--compress", "none")
            self.assertEqual(files.read_tiff(self.path("out.tif"))[0][1], want)
        self.image(self.model, self.npy("in.npy"), self.path("out.npy"), "--classes=16")
        header, data = onnx.read_npy(self.path("out.npy"))
        self.assertEqual(header["descr"], "<u2")
        self.assertEqual(list(struct.unpack(f"<{len(want)}H", data)), want)

    def masked(self, source, *arguments):
        """Results of both executors, the same, and how many pieces were skipped."""
        found = []
        for name, executor in EXECUTORS.items():
            out = self.path(name + ".npy")
            self.image(self.model, source, out, *executor, *arguments, "--json", self.path("r.json"), "--overwrite")
            with open(self.path("r.json"), encoding="utf-8") as f:
                report = json.load(f)
            self.assertGreater(report["phases"][-1]["skipped_pieces"], 0, name)
            found.append(self.read(name + ".npy"))
        self.assertEqual(found[0], found[1])
        return onnx.read_npy(self.path("stream.npy"))[1]

    def check_masked(self, got, want, content):
        rows, columns = 150, 84
        for i, (g, w) in enumerate(zip(got, want)):
            r, c = i % (rows * columns) // columns, i % columns
            # The centre is half a pixel above: a convolution that halves the rows is at every second row, and a resize between two.
            inside = content(min(r, ROWS - 1), min(c, COLUMNS - 1))
            self.assertTrue(g == w if inside else math.isnan(g), (r, c, g, w))

    def test_mask_skips_regions_without_content(self):
        def content(r, c):
            return (20 <= r < 40 or r >= 120) and c < 50
        mask = [int(content(r, c)) for r in range(ROWS) for c in range(COLUMNS)]
        onnx.write_npy(self.path("mask.npy"), (1, ROWS, COLUMNS), mask, "|u1", "B")
        got = self.masked(self.npy("in.npy"), "--mask", self.path("mask.npy"))
        self.check_masked(got, self.whole([float(p) for p in PIXELS]), content)

    def test_no_data_is_no_content(self):
        if not CODECS:
            return
        plane = ROWS * COLUMNS

        def content(r, c):
            return not (30 <= r < 110 and c >= 3) and any(PIXELS[b * plane + r * COLUMNS + c] != 9 for b in range(3))
        pixels = list(PIXELS)
        for i in range(plane):
            if not content(i // COLUMNS, i % COLUMNS):
                for b in range(3):
                    pixels[b * plane + i] = 9
        for r in range(30, 110):
            for c in range(3):
                for b in range(3):
                    pixels[b * plane + r * COLUMNS + c] = 9
        want = self.whole([float(p) for p in pixels])
        source = self.tiff("in.tif", pixels, no_data=9)
        self.check_masked(self.masked(source), want, lambda r, c: any(pixels[b * plane + r * COLUMNS + c] != 9 for b in range(3)))
        self.image(self.model, source, self.path("out.npy"), "--ignore-no-data")
        self.assertEqual(onnx.read_npy(self.path("out.npy"))[1], want)

    def killed_while_writing(self, command, size):
        """Runs the job until the kernel kills it, at the first write beyond `size` bytes of a file."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        process = self.run_tool("msrun", *command, "--resume", preexec_fn=limit)
        self.assertEqual(process.returncode, -signal.SIGXFSZ, process.stderr)

    def test_resume_after_kill_gives_identical_bytes(self):
        rows = 1200
        source = self.npy("tall.npy", files.noise(3 * rows * COLUMNS, 5), rows)
        kinds = [("npy", ())] + ([("tif", ("--compress", "none"))] if CODECS else [])
        r = random.Random(os.getpid())
        for kind, more in kinds:
            options = ("--strip-rows", "2", "--sync", "0", "--quiet", *more)
            self.image(self.model, source, self.path("want." + kind), *options)
            size = os.path.getsize(self.path("want." + kind))
            for attempt in range(3):
                name = f"out{attempt}." + kind
                command = ["image", self.model, source, self.path(name), *options, "--json", self.path("r.json")]
                for begin in (0, 30, 65):
                    percent = r.randint(begin, begin + 30)
                    # A .npy file has the last of five channels at its end, so a limit before that stops the first block.
                    part = 80 + percent / 5 if kind == "npy" else percent
                    self.killed_while_writing(command, int(size * part / 100))
                    self.assertFalse(os.path.exists(self.path(name)), (kind, percent))
                # How the work is cut need not be the same.
                self.image(*command[1:], "--resume", *(EXECUTORS["tiles"] if attempt % 2 else ()))
                with open(self.path("r.json"), encoding="utf-8") as f:
                    self.assertGreater(json.load(f)["resumed_rows"], 0, (kind, percent, attempt))
                self.assertEqual(self.read(name), self.read("want." + kind), (kind, attempt))
                self.assertFalse(os.path.exists(self.path(name + ".part")) or os.path.exists(self.path(name + ".journal")))

    def interrupted(self, name, *options, source=None):
        """Leaves an unfinished result. The limit of the file's size stops the job, as a full disk does."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.refuse("File too large", self.model, source or self.npy("in.npy"), self.path(name), "--strip-rows", "2", "--sync", "0", *options,
                    out=name, preexec_fn=limit, restore_signals=False)

    def test_wide_npy_in_tiles_takes_little_memory(self):
        """Rows of the whole width are not kept until they are complete."""
        rows, columns = 300, 24000
        onnx.write_npy(self.path("wide.npy"), (3, rows, columns), [], "|u1", "B")
        with open(self.path("wide.npy"), "ab") as f:
            f.write(random.Random(3).randbytes(3 * rows * columns))
        self.image(self.model, self.path("wide.npy"), self.path("one.npy"))
        tiles = ("--executor", "tiles", "--tile", "260x64", "--threads", "1")

        def peak(*arguments):
            self.image(self.model, *arguments, *tiles, "--json", self.path("r.json"))
            with open(self.path("r.json"), encoding="utf-8") as f:
                return json.load(f)["peak_rss_bytes"]
        process = peak(self.npy("in.npy"), self.path("small.npy"))
        refused = self.image(self.model, self.path("wide.npy"), self.path("x.npy"), *tiles, "--memory", "1", code=1)
        enough = int(refused.stderr.split("set the limit to ")[1].split()[0]) + (8 << 20)
        # A row of these tiles has 125 MB.
        self.assertLess(enough, 60 << 20)
        self.assertLess(peak(self.path("wide.npy"), self.path("tiles.npy"), "--memory", str(enough)), process + (30 << 20))
        self.assertEqual(self.read("tiles.npy"), self.read("one.npy"))
        self.image(self.model, self.path("wide.npy"), self.path("halo.npy"), "--split", "2x2", "--executor", "halo")
        self.assertEqual(self.read("halo.npy"), self.read("one.npy"))

    def test_georeference_follows_the_layers(self):
        if not CODECS:
            return
        scale, tie = 33550, 33922
        geo = {scale: ("d", [10.0, 10.0, 0.0]), tie: ("d", [0.0, 0.0, 0.0, 500000.0, 4600000.0, 0.0])}
        source = self.tiff("geo.tif", more=geo)
        # 149 rows become 150, of the same size; a resize between rows begins half a row above.
        self.image(self.model, source, self.path("out.tif"), "--output", "features=" + self.path("features.tif"))
        tags = files.read_tiff(self.path("out.tif"))[0][0]
        self.assertEqual(tags[scale], (10.0, 10.0, 0.0))
        self.assertEqual(tags[tie], (0, 0, 0, 499995.0, 4600005.0, 0))
        tags = files.read_tiff(self.path("features.tif"))[0][0]
        self.assertEqual(tags[scale], (20.0, 20.0, 0.0))
        self.assertEqual(tags[tie], (0, 0, 0, 499995.0, 4600005.0, 0))
        # Without pads the first pixel is the third one of the image.
        nodes = [onnx.node("Conv", ["x", "w"], ["y"], kernel_shape=[5, 5])]
        valid = onnx.model(onnx.graph(nodes, [onnx.value("x", [1, 3, "h", "w"])], [onnx.value("y", [1, 2, "a", "b"])],
                                      [files.weights("w", [2, 3, 5, 5], 1)]))
        self.image(self.converted("valid", valid), source, self.path("valid.tif"))
        tags = files.read_tiff(self.path("valid.tif"))[0][0]
        self.assertEqual((tags[257][0], tags[256][0]), (ROWS - 4, COLUMNS - 4))
        self.assertEqual(tags[scale], (10.0, 10.0, 0.0))
        self.assertEqual(tags[tie], (0, 0, 0, 500020.0, 4599980.0, 0))

    def test_no_space_left_is_an_error_and_can_be_resumed(self):
        """The same with a file system that is full."""
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = shutil.which("mount") and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", disk], check=False,
                                                           capture_output=True).returncode == 0
        if not mounted:
            self.skipTest("a file system cannot be mounted here; test_full_disk_is_an_error_and_can_be_resumed limits the file instead")
        try:
            want = self.whole([float(p) for p in PIXELS])
            for name in ["out.npy"] + (["out.tif"] if CODECS else []):
                out, options = os.path.join("disk", name), ("--strip-rows", "2", "--sync", "0", "--executor", "stream")
                self.refuse("No space left on device", self.model, self.npy("in.npy"), self.path(out), *options, out=out)
                self.assertTrue(os.path.exists(self.path(out + ".part")))
                subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
                self.image(self.model, self.path("in.npy"), self.path(out), *options, "--resume")
                got = onnx.read_npy(self.path(out))[1] if name == "out.npy" else files.read_tiff(self.path(out))[0][1]
                self.assertEqual(got, want, name)
                os.remove(self.path(out))
                subprocess.run(["mount", "-o", "remount,size=128k", disk], check=True)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_full_disk_is_an_error_and_can_be_resumed(self):
        want = self.whole([float(p) for p in PIXELS])
        self.interrupted("out.npy")
        self.assertTrue(os.path.exists(self.path("out.npy.part")))
        self.refuse("is an unfinished result", self.model, self.npy("in2.npy"), self.path("out.npy"))
        self.image(self.model, self.path("in.npy"), self.path("out.npy"), "--resume")
        self.assertEqual(onnx.read_npy(self.path("out.npy"))[1], want)

    def test_resume_needs_the_same_model_image_and_options(self):
        self.interrupted("out.npy")
        source, other = self.path("in.npy"), self.npy("other.npy", files.noise(len(PIXELS), 9))
        self.refuse("another model, image or options", self.model, other, self.path("out.npy"), "--resume")
        self.refuse("another model, image or options", self.model, source, self.path("out.npy"), "--resume", "--normalize", "scale=2")
        self.refuse("another model, image or options", self.converted("other", files.network(classes=4) + b""), source,
                    self.path("out.npy"), "--resume")
        self.image(self.model, source, self.path("out.npy"), "--resume", "--threads", "1", "--executor", "tiles")
        self.refuse_existing(source)

    def refuse_existing(self, source):
        before = self.read("out.npy")
        for more in ((), ("--resume",)):
            done = self.image(self.model, source, self.path("out.npy"), *more, code=1)
            self.assertIn("exists already and is complete", done.stderr)
        self.assertEqual(self.read("out.npy"), before)

    def test_interrupt_keeps_what_is_done(self):
        source = self.npy("tall.npy", files.noise(3 * 3000 * COLUMNS, 5), 3000)
        command = [os.path.join(self.BIN, "msrun"), "image", self.model, source, self.path("out.npy"), "--strip-rows", "1"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()  # the plan is printed before the run
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
        if process.returncode == 0:
            self.skipTest("the job was done before the interrupt")
        self.assertEqual(process.returncode, 1, error)
        self.assertIn("--resume", error)
        self.assertFalse(os.path.exists(self.path("out.npy")))
        self.image(self.model, source, self.path("out.npy"), "--resume")

    def test_errors_say_what_to_do(self):
        good, out = self.npy("in.npy"), self.path("out.npy")
        onnx.write_npy(self.path("four.npy"), (4, 9, 9), [0] * 324, "|u1", "B")
        self.refuse("has 4 channels, but input 'x' of the model takes 3", self.model, self.path("four.npy"), out)
        detector = self.converted("detector", files.network(detections=True))
        self.refuse("does not follow the rows and columns", detector, good, out, "--head", "boxes")
        self.image(detector, good, self.path("mask_of_detector.npy"))
        self.refuse("no output 'nothing'", self.model, good, out, "--head", "nothing")
        self.refuse("needs several ranks", self.model, good, out, "--executor", "halo")
        for executor in ("halo", "stream"):
            self.refuse("cannot be split into 150 x 1 parts; use at most 149 x 83", self.model, good, out, "--split", "150x1", "--executor", executor)
        self.refuse("does not follow the rows and columns", detector, good, out, "--head", "boxes", "--split", "2x2")
        self.refuse("set the memory limit of each rank to ", self.model, good, out, "--split", "2x2", "--executor", "halo", "--memory", "1MiB")
        self.refuse("ends in .tif, .tiff or .npy", self.model, good, self.path("out.jpg"), out="out.jpg")
        self.refuse("no/such", self.model, good, "/no/such/folder/out.npy")
        for expected, *arguments in [("--memory", "--memory", "much"), ("--split", "--split", "2"), ("--tile", "--tile", "0x3"),
                                     ("normalization", "--normalize", "mean=a"), ("no band", "--bands", "x"), ("--output", "--output", "f"),
                                     ("--classes", "--classes=7")]:
            self.refuse(expected, self.model, good, out, *arguments, code=2)
        self.refuse("there is no such file", self.model, self.path("none.tif"), out, code=2)
        self.refuse("there is no such file", self.path("none.msrt"), good, out, code=2)
        before = self.read("in.npy")
        self.assertIn("in.npy", self.image(self.model, good, good, "--overwrite", code=2).stderr)
        self.assertEqual(self.read("in.npy"), before)

    def test_empty_layer_is_named(self):
        def model(nodes, kernel):
            return onnx.model(onnx.graph(nodes, [onnx.value("x", [1, 3, "h", "w"])], [onnx.value("y", [1, 2, "a", "b"])],
                                         [files.weights("w", [2, 3, kernel, kernel], 1)]))
        convolution = [onnx.node("Conv", ["x", "w"], ["a"], "wide_layer", kernel_shape=[9, 9]), onnx.node("Relu", ["a"], ["y"])]
        pool = [onnx.node("Conv", ["x", "w"], ["a"], "half", kernel_shape=[3, 3], strides=[2, 2]),
                onnx.node("MaxPool", ["a"], ["b"], "deep_pool", kernel_shape=[4, 4]), onnx.node("Relu", ["b"], ["y"])]
        small = self.npy("small.npy", [1] * (3 * 8 * 20), 8, 20)
        for name, nodes, kernel, why in (("wide_layer", convolution, 9, "the kernel spans 9 elements of spatial axis 0, which has only 8"),
                                         ("deep_pool", pool, 3, "the kernel spans 4 elements of spatial axis 0, which has only 3")):
            network = self.converted(name, model(nodes, kernel))
            for split in ((), ("--split", "2x1")):
                done = self.image(network, small, self.path("out.npy"), *split, code=1)
                for said in ("8 x 20", f"'{name}'", why):
                    self.assertIn(said, done.stderr)
                self.assertFalse(os.path.exists(self.path("out.npy")), "a result looks complete")

    def test_insufficient_memory_names_the_amount(self):
        source = self.npy("in.npy")
        done = self.image(self.model, source, self.path("out.npy"), "--memory", "1MiB", code=1)
        self.assertIn("set the limit to ", done.stderr)
        enough = int(done.stderr.split("set the limit to ")[1].split()[0])
        # The process itself may be somewhat larger in the next run.
        self.image(self.model, source, self.path("out.npy"), "--memory", str(enough + (8 << 20)))

    def test_explain_draws_the_plan(self):
        for name, executor in EXECUTORS.items():
            self.image(self.model, self.npy("in.npy"), self.path("none.npy"), *executor, "--explain", self.path("plan.svg"), "--plan-only",
                       "--memory", "512MiB")
            root = xml.etree.ElementTree.parse(self.path("plan.svg")).getroot()
            text = " ".join(root.itertext())
            for expected in ("3 x 149 x 83", "512.0 MiB", *(("strips of 8 rows", "retained between strips") if name == "stream" else
                                                           ("tiles of 40 x 32", "12 tiles"))):
                self.assertIn(expected, text)
            self.assertFalse(os.path.exists(self.path("none.npy.part")))

    def test_explain_draws_the_split(self):
        self.image(self.model, self.npy("in.npy"), self.path("none.npy"), "--split", "2x2", "--explain", self.path("plan.svg"), "--plan-only")
        text = " ".join(xml.etree.ElementTree.parse(self.path("plan.svg")).getroot().itertext())
        for expected in ("4 ranks that exchange halos", "rank 3: rows [75, 150), columns [42, 84)", "messages", "MiB sent; memory"):
            self.assertIn(expected, text)


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    CODECS = sys.argv[2] != "0"
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
