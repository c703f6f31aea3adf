#!/usr/bin/env python3
"""Five networks on images of odd sizes, but for a U-Net whose sides must be multiples of 16: every executor, engine and number of ranks has the bits of one run on the whole image.

usage: split_networks.py BIN_DIR [--networks unet,unet_odd,resnet50,superres,dilated] [--scale N] [--small] [--without-ort]

The networks are those of tests/tools/split_models.py, with random weights. Jobs: one process; ranks that are threads; `msrun launch` with
shared memory, with Gloo, and with Gloo across two network namespaces; mpirun; ranks on emulated accelerators, each with a device of its own.
2, 3 and 4 ranks, in rows and in a grid; executors halo, stream and tiles. The whole runs by `msrun run --accuracy exact`; ONNX Runtime
must agree within 1e-4 of the result's range. Where it is not installed the script ends at once, unless --without-ort leaves that comparison
out. --scale N makes the images N times as large. --small is the version of the
suite: narrow networks and a few jobs of each kind. Prints one line for each job and exits with 1 if a result differs or a job fails; what
cannot run here is listed as left out.
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(FOLDER, "..", "tools"), os.path.join(FOLDER, "..", "launch")]
import image_files as files  # noqa: E402
import namespaces  # noqa: E402
import onnx_file as onnx  # noqa: E402
import split_models as models  # noqa: E402
from tool_case import mpi_environment  # noqa: E402

EXECUTORS = {"halo": (), "stream": ("--strip-rows", "8"), "tiles": ("--tile", "40x32")}
TOLERANCE = 1e-4
# Claims of a device that is so fast that everything is placed on it.
DEVICE = "speed=1e6,launch_us=0,copy_us=0,copy_gbs=1e4"


class Job:
    """A way to start ranks: `before` is the command before msrun, `ranks` None if it is one process without --split."""

    def __init__(self, name, ranks=None, split=None, before=(), executors=tuple(EXECUTORS), device=False):
        self.name, self.ranks, self.split, self.before, self.executors, self.device = name, ranks, split, before, executors, device


class Campaign:
    def __init__(self, options):
        self.bin, self.options, self.bad, self.left_out, self.hosts = os.path.abspath(options.bin), options, 0, [], None
        self.device = os.path.join(self.bin, "..", "lib", "msrt_accelerator.so")

    def tool(self, name):
        return os.path.join(self.bin, name)

    def engines(self):
        """Engine: the command that starts N ranks."""
        launch = [self.tool("msrun"), "launch"]
        found = {"launch, shm": lambda n: [*launch, "-n", str(n), "--engine", "shm", "--"]}
        modules = {e: os.path.exists(os.path.join(self.bin, "..", "lib", f"libmsrt_comm_{e}.so")) for e in ("gloo", "mpi")}
        if modules["gloo"]:
            found["launch, gloo"] = lambda n: [*launch, "-n", str(n), "--engine", "gloo", "--"]
            why = namespaces.namespaces_permitted()
            if not why:
                self.hosts = namespaces.TwoHosts()
                self.hosts.connect()
                found["two hosts, gloo"] = lambda n: [*self.hosts.launch(self.tool("msrun"), n - n // 2, n // 2), "--engine", "gloo", "--"]
            else:
                self.left_out.append(f"two hosts: {why}")
        else:
            self.left_out.append("gloo: this build has no such engine")
        if modules["mpi"] and shutil.which("mpirun"):
            found["mpirun"] = lambda n: ["mpirun", "--oversubscribe", "-n", str(n)]
        else:
            self.left_out.append("mpirun: it is not installed, or this build has no such engine")
        return found

    def jobs(self):
        engines = self.engines()
        device = os.path.exists(self.device)
        if not device:
            self.left_out.append("devices: this build has no emulated accelerator")
        if self.options.small:
            jobs = [Job("one process", executors=("stream", "tiles")), Job("threads", 3, "3x1", executors=("halo",))]
            few = {"launch, shm": (4, "2x2", "halo"), "launch, gloo": (3, "1x3", "halo"), "two hosts, gloo": (2, "2x1", "halo"),
                   "mpirun": (3, "3x1", "stream")}
            jobs += [Job(name, few[name][0], few[name][1], start(few[name][0]), few[name][2:]) for name, start in engines.items()]
            return jobs + [Job("two devices", 2, "2x1", engines["launch, shm"](2), device=True)] * device
        jobs = [Job("one process", executors=("stream", "tiles"))]
        for ranks, splits in ((2, ("2x1", "1x2")), (3, ("3x1",)), (4, ("4x1", "2x2"))):
            for split in splits:
                jobs += [Job("threads", ranks, split)] + [Job(name, ranks, split, start(ranks)) for name, start in engines.items()]
        if device:
            jobs += [Job("one device", executors=("stream", "tiles"), device=True)]
            jobs += [Job("two devices", 2, split, engines["launch, shm"](2), device=True) for split in ("2x1", "1x2")]
        return jobs

    def run(self, command):
        began = time.monotonic()
        environment = mpi_environment() if command[0] == "mpirun" else None
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False, env=environment)
        return done, time.monotonic() - began

    def must(self, *command):
        done, _ = self.run([self.tool(command[0]), *command[1:]])
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")

    def whole(self, *more):
        """The bytes of the result of a run on the whole image."""
        self.must("msrun", "run", "model.msrt", "--accuracy", "exact", "--input", "x=whole.npy", "--output-dir", "whole", *more)
        return pixels("whole/y.npy")

    def network(self, name, jobs):
        make, width, (rows, columns) = models.NETWORKS[name]
        width, rows, columns = (8 if self.options.small else width), rows * self.options.scale, columns * self.options.scale
        with open("model.onnx", "wb") as f:
            f.write(make(width))
        self.must("msconvert", "model.onnx", "model.msrt", "--quiet")
        noise = files.noise(models.CHANNELS * rows * columns, 7)
        onnx.write_npy("in.npy", (models.CHANNELS, rows, columns), noise, "|u1", "B")
        # 1/256 is exact, so that the whole run has the same input.
        onnx.write_npy("whole.npy", (1, models.CHANNELS, rows, columns), [p / 256 for p in noise])
        want = {False: self.whole()}
        if any(job.device for job in jobs):  # which computes as the reference delegate does
            want[True] = self.whole("--delegate", "reference")
        print(f"{name}, width {width}, image {rows} x {columns}", flush=True)
        self.compare_with_onnxruntime(name, want)
        for job in jobs:
            for executor in job.executors:
                self.one(name, job, executor, want[job.device])

    def one(self, name, job, executor, want):
        command = [*job.before, self.tool("msrun"), "image", "model.msrt", "in.npy", "out.npy", "--normalize", "scale=0.00390625", "--overwrite",
                   "--executor", executor, *EXECUTORS[executor], "--json", "report.json"]
        if job.split:
            command += ["--split", job.split]
        if job.device:
            command += ["--delegate", "accelerator", "--plugin", f"{self.device}:{DEVICE}"]
        for file in ("out.npy", "report.json"):
            if os.path.exists(file):
                os.remove(file)
        done, seconds = self.run(command)
        problem = ""
        if done.returncode != 0:
            problem = f"exit code {done.returncode}\n{' '.join(command)}\n{done.stdout}{done.stderr}"
        elif pixels("out.npy") != want:
            problem = "the bits differ"
        else:
            with open("report.json", encoding="utf-8") as f:
                report = json.load(f)
            if report["plan"]["phases"][-1]["executor"] != executor:
                problem = f"it ran by {report['plan']['phases'][-1]['executor']}"
            elif job.ranks and len(report["ranks"]) != job.ranks:
                problem = f"it ran on {len(report['ranks'])} ranks"
        self.bad += bool(problem)
        print(f"  {job.name:16} {job.split or '':4} {executor:7} {seconds:6.1f} s  {problem or 'identical'}", flush=True)

    def compare_with_onnxruntime(self, name, want):
        if self.options.without_ort:
            return
        import numpy
        import onnxruntime
        session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
        expected = session.run(["y"], {"x": numpy.load("whole.npy")})[0]
        for device, data in want.items():
            error = abs(numpy.frombuffer(data, numpy.float32).reshape(expected.shape) - expected).max() / numpy.ptp(expected)
            self.bad += not error <= TOLERANCE
            print(f"  ONNX Runtime{', arithmetic of devices' if device else ''}: largest error {error:.1e} of the range"
                  f"{'' if error <= TOLERANCE else f', more than {TOLERANCE}'}", flush=True)


def onnxruntime_installed():
    return all(importlib.util.find_spec(name) is not None for name in ("numpy", "onnxruntime"))


def pixels(path):
    """The data of a .npy file, without its header."""
    with open(path, "rb") as f:
        data = f.read()
    return data[10 + int.from_bytes(data[8:10], "little"):]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--networks", default=",".join(models.NETWORKS))
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--without-ort", action="store_true", help="nothing is compared with ONNX Runtime")
    campaign = Campaign(parser.parse_args())
    if campaign.options.without_ort:
        campaign.left_out.append("ONNX Runtime: --without-ort")
    elif not onnxruntime_installed():
        sys.exit("onnxruntime or numpy is not installed for this Python, so no result could be compared with ONNX Runtime; use a Python that "
                 "has both, or --without-ort")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            jobs = campaign.jobs()
            for name in campaign.options.networks.split(","):
                campaign.network(name, jobs)
        finally:
            os.chdir("/")
            if campaign.hosts:
                campaign.hosts.close()
    for reason in campaign.left_out:
        print("left out:", reason)
    print(f"{campaign.bad} problems")
    return 1 if campaign.bad else 0


sys.exit(main())
