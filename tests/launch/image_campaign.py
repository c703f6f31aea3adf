#!/usr/bin/env python3
"""Kills and stops random ranks of `msrun image` under `msrun launch` or mpirun at random moments: the others must name the culprit in time,
no process may be left, no result may look complete, and --resume must complete it with the bits of a run that was not disturbed.

usage: image_campaign.py BIN_DIR [--kills 200] [--stops 50] [--limit 0.5] [--engine shm] [--seed 0]

N is 2, 3 or 4; the executors halo, stream and tiles take turns. A survivor must print the name of the rank within 1 s after the kill, or
within 1 s after --limit, the seconds after which a silent rank is suspected. The launcher always names it; a survivor that
had not begun its first operation may end without a message, and is counted. Stops come after the job has begun to write.

With --engine mpi, mpirun starts the ranks. The job must have ended 2 s after a kill, or 2 s after --limit for a rank that was stopped, and
a survivor must name the rank. Ranks that still start are in the hands of MPI, where they neither see a death nor name it: mpirun ends them
after 1 s, and sometimes needs 1 s more to notice. So a job that has not begun to write has 3 s, and its survivors may be silent.

Prints a line for each fault and exits with 1 if one had a problem. The suite runs a few faults.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path += [FOLDER, os.path.join(FOLDER, "..", "tools")]
import image_files as files  # noqa: E402
import onnx_file as onnx  # noqa: E402
import split_models as models  # noqa: E402
from launching import alive, wait_until  # noqa: E402
from tool_case import mpi_environment  # noqa: E402

ROWS, COLUMNS = 480, 330
EXECUTORS = {"halo": (), "stream": ("--strip-rows", "8"), "tiles": ("--tile", "32x48")}
LINES = {False: re.compile(r"^\[(\d+)\] (.*)$"), True: re.compile(r"^\[\d+,(\d+)\]<std\w+>:(.*)$")}  # of launch; of mpirun --tag-output
END_SECONDS, START_SECONDS = 2, 3  # in which mpirun ends a job, and one whose ranks start


def ranks_of(launcher, variable):
    """The processes of the ranks that this launcher has started, which know their number by a variable: {rank: process id}."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            if not entry.isdigit() or int(entry) == launcher:
                continue
            with open(f"/proc/{entry}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            if parent != launcher:
                continue
            with open(f"/proc/{entry}/cmdline", "rb") as f:
                if b"image" not in f.read().split(b"\0"):
                    continue  # not yet the program
            with open(f"/proc/{entry}/environ", "rb") as f:
                variables = dict(v.split(b"=", 1) for v in f.read().split(b"\0") if b"=" in v)
            found[int(variables[variable])] = int(entry)
        except (OSError, KeyError, ValueError, IndexError):
            continue  # the process is gone or just starting
    return found


def spread(what, seconds):
    ordered = sorted(seconds)
    return f"{what}, median {ordered[len(ordered) // 2]:.3f} s, largest {ordered[-1]:.3f} s" if ordered else ""


class Launched:
    """A job in the background, and when it printed each line."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        self.lines = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def finish(self):
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
        finally:
            self.reader.join()
            self.process.stdout.close()


class Campaign:
    def __init__(self, options):
        self.options, self.random = options, random.Random(options.seed)
        self.mpi = options.engine == "mpi"
        self.line, self.environment = LINES[self.mpi], mpi_environment()
        self.ended = {signal.SIGKILL: [], signal.SIGSTOP: []}  # seconds until the job had ended, after the limit
        self.msrun = os.path.join(os.path.abspath(options.bin), "msrun")
        self.silent = 0  # survivors that launch ended while they started
        self.delays = {signal.SIGKILL: [], signal.SIGSTOP: []}
        with open("model.onnx", "wb") as f:
            f.write(models.dilated(8))
        subprocess.run([os.path.join(os.path.dirname(self.msrun), "msconvert"), "model.onnx", "model.msrt", "--quiet"], check=True)
        onnx.write_npy("in.npy", (models.CHANNELS, ROWS, COLUMNS), files.noise(models.CHANNELS * ROWS * COLUMNS, 5), "|u1", "B")
        subprocess.run([self.msrun, "image", "model.msrt", "in.npy", "whole.npy", "--quiet"], check=True)
        with open("whole.npy", "rb") as f:
            self.whole = f.read()
        self.seconds = {}  # that a job takes, by ranks and executor

    def job(self, ranks, executor, *more, limit=None):
        timeout = ("--timeout", str(limit)) if limit else ()
        if self.mpi:
            launch, more = ["mpirun", "--oversubscribe", "--tag-output", "-n", str(ranks)], (*more, *timeout)
        else:
            launch = [self.msrun, "launch", "-n", str(ranks), "--grace", "1", *timeout]
            launch += [*(("--engine", self.options.engine) if self.options.engine else ()), "--"]
        return [*launch, self.msrun, "image", "model.msrt", "in.npy", "out.npy", "--executor", executor, *EXECUTORS[executor],
                "--threads", "1", "--sync", "0", "--quiet", *more]

    def clean(self):
        for name in os.listdir("."):
            if name.startswith("out."):
                os.remove(name)

    def duration(self, ranks, executor):
        """Of a job that nothing disturbs, whose bits are those of one process."""
        if (ranks, executor) not in self.seconds:
            self.clean()
            began = time.monotonic()
            subprocess.run(self.job(ranks, executor), check=True, env=self.environment)
            self.seconds[ranks, executor] = time.monotonic() - began
            if self.result() != self.whole:
                sys.exit(f"{ranks} ranks by {executor} have other bits than one process")
        return self.seconds[ranks, executor]

    def result(self):
        if not os.path.exists("out.npy"):
            return None
        with open("out.npy", "rb") as f:
            return f.read()

    def fault(self, number, sign, ranks, executor):
        """Returns the problems of one job, or nothing if it had ended before the fault."""
        span = self.duration(ranks, executor)
        self.clean()
        job = Launched(self.job(ranks, executor, limit=self.options.limit if sign == signal.SIGSTOP else None), self.environment)
        found = {}
        wait_until(lambda: found.update(ranks_of(job.process.pid, b"OMPI_COMM_WORLD_RANK" if self.mpi else b"MSRT_RANK")) or len(found) == ranks or job.process.poll() is not None, 10)
        if sign == signal.SIGSTOP:  # before it has joined, a silent rank cannot be told from a slow one
            wait_until(lambda: os.path.exists("out.npy.part") or job.process.poll() is not None, 10)
            span /= 2
        moment = self.random.uniform(0, 0.9 * span)
        time.sleep(moment)
        victim = self.random.randrange(ranks)
        began = time.monotonic()
        if len(found) < ranks or not alive(found[victim]) or self.result() is not None:
            job.finish()
            return None
        os.kill(found[victim], sign)
        code = job.finish()
        ended = time.monotonic()
        if self.result() == self.whole:
            return None  # the fault came when the result was complete
        check = self.problems_under_mpirun if self.mpi else self.problems_of
        problems = check(job, code, sign, ranks, victim, found, began)
        problems += self.problems_of_end(job, code, sign, found, began, ended)
        if self.result() is not None:
            problems.append("a result looks complete")
        parts = os.path.exists("out.npy.part")
        resumed = subprocess.run(self.job(ranks, executor, "--resume"), capture_output=True, text=True, timeout=120, check=False,
                                 env=self.environment)
        if resumed.returncode != 0:
            problems.append(f"--resume failed: {resumed.stdout}{resumed.stderr}")
        elif self.result() != self.whole:
            problems.append("--resume completed it with other bits")
        said = "; ".join(problems) if problems else f"{'resumed' if parts else 'begun again'} with identical bits"
        print(f"{'killed' if sign == signal.SIGKILL else 'stopped'} {number}: rank {victim} of {ranks} by {executor} after {moment:.2f} s; the job "
              f"ended after {ended - began:.2f} s: {said}", flush=True)
        return problems

    def problems_of(self, job, code, sign, ranks, victim, found, began):
        problems, limit = [], self.limit(sign)
        how = "does not respond" if sign == signal.SIGSTOP else "(was killed by signal 9|lost its connection|has ended without closing)"
        # Host and process are known when the rank has joined. The engine shm names a peer without its host.
        culprit = re.compile(rf"rank {victim} (on host '[^']*' )?(\(process {found[victim]}\) )?{how}")
        launcher = next((line for _, line in job.lines if line.startswith("msrun launch: ") and culprit.search(line)), "")
        if not launcher:
            problems.append(f"the launcher did not name it:\n{job.text()}\n")
        for rank in range(ranks):
            when = [t for t, line in job.lines if (m := self.line.match(line)) and int(m[1]) == rank and culprit.search(m[2])]
            if rank == victim:
                continue
            if not when and re.search(rf"rank {rank} is (not there yet|before its first operation)", launcher):
                self.silent += 1
                continue
            if not when:
                problems.append(f"rank {rank} did not name it:\n{job.text()}\n")
                continue
            self.delays[sign].append(when[0] - began - limit)
            if when[0] - began > limit + 1:
                problems.append(f"rank {rank} named it only after {when[0] - began:.2f} s:\n{job.text()}\n")
        return problems

    def problems_under_mpirun(self, job, _code, sign, ranks, victim, found, began):
        # The first survivor that has seen it tells the others, and mpirun may end those before they print. mpirun passes lines on late.
        culprit = re.compile(rf"rank {victim} (on host '[^']*' )?\(process {found[victim]}\) (does not respond|has ended)")
        when = [t for t, line in job.lines if (m := self.line.match(line)) and int(m[1]) != victim and culprit.search(m[2])]
        if not when and sign == signal.SIGKILL and not os.path.exists("out.npy.part"):
            self.silent += ranks - 1
            return []
        if not when:
            return [f"none of {ranks - 1} survivors named it:\n{job.text()}\n"]
        self.delays[sign].append(when[0] - began - self.limit(sign))
        return []

    def problems_of_end(self, job, code, sign, found, began, ended):
        problems = []
        if code in (0, None):
            problems.append("the job hangs" if code is None else "the job claims success")
        self.ended[sign].append(ended - began - self.limit(sign))
        seconds = END_SECONDS if os.path.exists("out.npy.part") else START_SECONDS
        if self.mpi and ended - began > self.limit(sign) + seconds:
            problems.append(f"the job ended only after {ended - began:.2f} s:\n{job.text()}\n")
        if not wait_until(lambda: not any(alive(pid) for pid in found.values()), 0 if self.mpi else 1):
            problems.append("processes are left")
        return problems

    def limit(self, sign):
        """The seconds in which nobody can know of the fault."""
        return self.options.limit if sign == signal.SIGSTOP else 0

    def run(self, sign, count):
        bad = done = 0
        for attempt in range(10 * count):
            if done == count:
                break
            problems = self.fault(done, sign, self.random.choice((2, 3, 4)), list(EXECUTORS)[attempt % len(EXECUTORS)])
            done += problems is not None
            bad += bool(problems)
        print(f"{signal.Signals(sign).name}{' (seconds after the limit)' if sign == signal.SIGSTOP else ''}: {done} faults, {bad} bad"
              f"{spread('; survivors named the rank', self.delays[sign])}{spread('; jobs had ended', self.ended[sign])}; "
              f"{self.silent} survivors were ended silently in their start", flush=True)
        self.silent = 0
        return bad + (done < count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--engine", help="shm, gloo or mpi; without it, launch chooses")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            campaign = Campaign(options)
            bad = campaign.run(signal.SIGKILL, options.kills) + campaign.run(signal.SIGSTOP, options.stops)
        finally:
            os.chdir("/")
    return 1 if bad else 0


sys.exit(main())
