"""Runs jobs under msrun launch and reads the reports of their ranks. Shared by the tests of this folder."""
import os
import re
import signal
import subprocess
import threading
import time

BIN = None
LINE = re.compile(r"^\[(\d+)\] (.*)$")


def tool(name):
    return os.path.join(BIN, name)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds):
    """Returns whether the condition became true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Running:
    """A job in the background. `lines` has (rank, text) of standard output, `errors` the whole standard error."""

    def __init__(self, *arguments, command=None, env=None, **options):
        command = command or [tool("msrun"), "launch"]
        self.process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **(env or {})), **options)
        self.lines, self.errors, self.changed = [], "", threading.Condition()
        self.threads = [threading.Thread(target=self._read_lines), threading.Thread(target=self._read_errors)]
        for thread in self.threads:
            thread.start()

    def _read_lines(self):
        for line in self.process.stdout:
            match = LINE.match(line.rstrip("\n"))
            with self.changed:
                self.lines.append((int(match[1]), match[2]) if match else (None, line.rstrip("\n")))
                self.changed.notify_all()

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def pids(self, ranks, seconds=30):
        """Waits until all ranks have joined; returns their process ids, by rank."""
        def found():
            return {rank: int(text[4:]) for rank, text in self.lines if text.startswith("pid ")}
        with self.changed:
            if not self.changed.wait_for(lambda: len(found()) == ranks, seconds):
                self.process.kill()
                raise AssertionError(f"only {found()} of {ranks} ranks have joined\n{self.errors}")
            return found()

    def finish(self, seconds=30):
        """Waits for the end; returns the exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def aborts(self):
        """The abort that each rank reported: {rank: (seconds since the epoch, message)}."""
        found = {}
        for rank, text in self.lines:
            if text.startswith("abort "):
                _, when, message = text.split(" ", 2)
                found[rank] = (int(when) / 1000, message)
        return found


def names_culprit(message, rank, pid, said):
    """Whether a message names the rank, how it failed, and operation, sequence number and group: its own, or, if it died before it
    reported its first operation, those of another rank."""
    operation = r"AllReduce #\d+ of group 'world'"
    return re.search(rf"(^|: )rank {rank} on host '.*' \(process {pid}\) {said}.*, last seen ((in|after) {operation}"
                    rf"|before its first operation\..* rank \d+ is (in|after) {operation})", message) is not None


def hurt_one(number_of_ranks, signal_number, rng, limit=None, program=("work",), engine=None):
    """Starts a job, sends a signal to a random rank at a random moment; returns (victim, seconds until each survivor knew, problems)."""
    arguments = ["-n", str(number_of_ranks)] + (["--timeout", str(limit)] if limit else []) + (["--engine", engine] if engine else [])
    job = Running(*arguments, "--grace", "1", "--", tool("rank_program"), *program)
    pids = job.pids(number_of_ranks)
    time.sleep(rng.uniform(0, 0.25))
    victim = rng.randrange(number_of_ranks)
    began = time.time()
    os.kill(pids[victim], signal_number)
    code = job.finish()
    problems, delays = [], []
    aborts = job.aborts()
    said = "does not respond" if signal_number == signal.SIGSTOP else "was killed by signal 9"
    for rank in range(number_of_ranks):
        if rank == victim:
            continue
        if rank not in aborts:
            problems.append(f"rank {rank} reported nothing\n{job.errors}")
            continue
        when, message = aborts[rank]
        delays.append(when - began - (limit or 0))
        if not names_culprit(message, victim, pids[victim], said):
            problems.append(f"rank {rank} was told: {message}")
    if delays and max(delays) > 1:
        problems.append(f"a survivor knew only after {max(delays):.3f} s")
    # A stopped process continues when the launcher ends it: by its own code or by SIGTERM.
    if code not in ((3, 143) if signal_number == signal.SIGSTOP else (137,)):
        problems.append(f"exit code {code}\n{job.errors}")
    if any(alive(pid) for pid in pids.values()):
        problems.append("processes are left")
    return victim, delays, problems


def diverge(number_of_ranks, size, engine=None):
    """Rank 1 calls another collective than the rest (`size` 0) or another size; returns (seconds until each rank knew, problems). With an
    engine, the ranks really communicate, and call another collective."""
    program = ["reduce_other"] if engine else ["diverge", str(size)]
    job = Running("-n", str(number_of_ranks), "--engine", engine or "none", "--", tool("rank_program"), *program)
    pids = job.pids(number_of_ranks)
    code = job.finish()
    problems, delays = [], []
    call = f"AllReduce #4 of group 'world' with {size} bytes" if size else "Broadcast #4 of group 'world' with 4096 bytes"
    expected = f"rank 1 on host '.*' \\(process {pids[1]}\\) calls {call} while rank \\d+ calls AllReduce #4 of group 'world' with 4096 bytes"
    called = [int(text.split()[1]) / 1000 for _, text in job.lines if text.startswith("calls ")]
    aborts = job.aborts()
    for rank in range(number_of_ranks):
        when, message = aborts.get(rank, (0, "nothing"))
        delays.append(when - max(called))
        if not re.search(expected, message):
            problems.append(f"rank {rank} was told: {message}\n{job.errors}")
    if max(delays) > 1:
        problems.append(f"a rank knew only after {max(delays):.3f} s")
    if code != 3:
        problems.append(f"exit code {code}\n{job.errors}")
    return delays, problems


def kill_under_mpirun(number_of_ranks, rng):
    """Kills a random rank of a job under mpirun at a random moment; returns (seconds until the job ended, problems)."""
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job = subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(number_of_ranks), tool("mpi_ranks"), "work"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, env=dict(os.environ, **variables))
    pids = [int(job.stdout.readline().split()[1]) for _ in range(number_of_ranks)]
    time.sleep(rng.uniform(0, 0.25))
    os.kill(rng.choice(pids), signal.SIGKILL)
    began = time.monotonic()
    try:
        errors = job.communicate(timeout=30)[1]
    except subprocess.TimeoutExpired:
        job.kill()
        return [], ["the job hangs"]
    took = time.monotonic() - began
    problems = [f"the job ended after {took:.3f} s"] if took > 2 else []
    if job.returncode == 0:
        problems.append(f"the job succeeded\n{errors}")
    if any(alive(pid) for pid in pids):
        problems.append("processes are left")
    return [took], problems
