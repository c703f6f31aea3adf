#!/usr/bin/env python3
"""Ranks that live but do nothing, or are stopped, while the others wait for them: the others name them in time.

usage: hang_test.py BIN_DIR IDLE_PLUGIN   (Python's standard library only)

The idle plugin hangs on a rank when it is asked what it can run; that is outside of any operation between ranks.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path += [FOLDER, os.path.join(FOLDER, "..", "tools")]
import launching  # noqa: E402
import onnx_file as onnx  # noqa: E402
from launching import Running, alive, tool, wait_until  # noqa: E402
from tool_case import ToolCase, mpi_environment  # noqa: E402

PLUGIN = None
LIMIT = 2.0  # seconds, longer than anything that a rank does here at once; a failure must be named 1 s later


def mpirun_missing():
    return not (shutil.which("mpirun") and os.path.exists(os.path.join(launching.BIN, "..", "lib", "libmsrt_comm_mpi.so")))


class Watched:
    """A job in the background: when it printed each line, and the processes of its ranks."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=mpi_environment())
        self.lines = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    def text(self):
        return "".join(line for _, line in self.lines)

    def first(self, pattern):
        """When the first line with the pattern came, or None."""
        return next((when for when, line in list(self.lines) if re.search(pattern, line)), None)

    def finish(self):
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            self.reader.join()
            self.process.stdout.close()


class HangTest(ToolCase):
    def launchers(self):
        yield [tool("msrun"), "launch", "-n", "2", "--grace", "1", "--"]
        if not mpirun_missing():
            yield ["mpirun", "--oversubscribe", "-n", "2"]

    def train(self, *more):
        folder = self.path("data")
        if not os.path.exists(folder):
            os.makedirs(folder)
            rng = random.Random(1)
            onnx.write_npy(os.path.join(folder, "images.npy"), (64, 8, 8), [rng.randrange(256) for _ in range(64 * 64)], "|u1", "B")
            onnx.write_npy(os.path.join(folder, "labels.npy"), (64,), [i % 4 for i in range(64)], "<i8", "q")
        output = self.path(f"run{len(os.listdir(self.folder.name))}")
        return [tool("msrun"), "train", "--model", "zoo:lenet", "--data", folder, "--size", "28", "--batch", "16", "--threads", "1", "--output",
                output, *more]

    def image(self, *more):
        self.must("msconvert", "zoo:unet", self.path("unet.msrt"), "--quiet")
        onnx.write_npy(self.path("in.npy"), (4, 32, 32), [0] * (4 * 32 * 32), "|u1", "B")
        return [tool("msrun"), "image", self.path("unet.msrt"), self.path("in.npy"), self.path("out.npy"), "--overwrite", *more]

    def named(self, job, began, pattern):
        """Both the job and its error end in time."""
        code = job.finish()
        self.assertNotEqual(code, 0)
        named = job.first(pattern)
        self.assertIsNotNone(named, job.text())
        self.assertIsNotNone(began, job.text())
        self.assertLess(named - began, LIMIT + 1, job.text())

    def test_program_whose_rank_hangs(self):
        for engine in ["shm"] + ["gloo"] * os.path.exists(os.path.join(launching.BIN, "../lib/libmsrt_comm_gloo.so")):
            with self.subTest(engine):
                job = Running("-n", "3", "--grace", "1", "--engine", engine, "--stall-timeout", str(LIMIT), "--", tool("rank_program"), "hang", "1")
                pids = job.pids(3)
                self.assertNotEqual(job.finish(), 0)
                hung = next(int(text.split()[1]) / 1000 for rank, text in job.lines if rank == 1 and text.startswith("calls "))
                for rank in (0, 2):
                    when, message = job.aborts().get(rank, (0, job.errors))
                    self.assertRegex(message, r"waited 2000 ms for .*rank 1", rank)
                    self.assertLess(when - hung, LIMIT + 1, message)
                self.assertFalse(any(map(alive, pids.values())))

    def test_training_whose_rank_hangs(self):
        for launcher in self.launchers():
            for rank in (0, 1):
                with self.subTest(launcher=launcher[0], rank=rank):
                    job = Watched([*launcher, *self.train("--plugin", f"{PLUGIN}:hang={rank}", "--stall-timeout", str(LIMIT))])
                    job.process.wait(60)
                    self.named(job, job.first(f"rank {rank} hangs"), rf"rank {rank} on host '.*' \(process \d+\) is stuck")

    def test_image_whose_rank_hangs(self):
        for launcher in self.launchers():
            with self.subTest(launcher=launcher[0]):
                job = Watched([*launcher, *self.image("--plugin", f"{PLUGIN}:hang=1", "--stall-timeout", str(LIMIT))])
                job.process.wait(60)
                self.named(job, job.first("rank 1 hangs"), r"rank 1 on host '.*' \(process \d+\) is stuck")

    def test_limit_of_launch_is_that_of_its_ranks(self):
        launch = [tool("msrun"), "launch", "-n", "2", "--grace", "1", "--stall-timeout", str(LIMIT), "--"]
        job = Watched([*launch, *self.train("--plugin", f"{PLUGIN}:hang=1")])
        job.process.wait(60)
        self.named(job, job.first("rank 1 hangs"), r"rank 1 on host '.*' \(process \d+\) is stuck")

    @unittest.skipIf(shutil.which("mpirun") is None, "no mpirun")
    def test_training_whose_rank_is_stopped_under_mpirun(self):
        """Nothing but the ranks themselves can notice it."""
        if mpirun_missing():
            self.skipTest("no MPI")
        for stopped in (0, 1):
            with self.subTest(stopped=stopped):
                pids = self.path(f"pid{stopped}.")
                script = f'echo $$ > {pids}$OMPI_COMM_WORLD_RANK; exec "$@"'
                command = self.train("--epochs", "100000", "--timeout", str(LIMIT), "--progress", "0.1")
                job = Watched(["mpirun", "--oversubscribe", "-n", "2", "sh", "-c", script, "sh", *command])
                self.assertTrue(wait_until(lambda j=job: j.first(r"epoch \d+/100000  step"), 60), job.text())
                with open(pids + str(stopped), encoding="utf-8") as f:
                    os.kill(int(f.read()), signal.SIGSTOP)
                began = time.monotonic()
                job.process.wait(60)
                ended = time.monotonic() - began
                self.named(job, began, rf"rank {stopped} on host '.*' \(process \d+\) does not respond since .*was last seen .* of group 'world'")
                self.assertLess(ended, LIMIT + 2, job.text())


if __name__ == "__main__":
    launching.BIN, PLUGIN = (os.path.abspath(path) for path in sys.argv[1:3])
    ToolCase.BIN = launching.BIN
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
