#!/usr/bin/env python3
"""Tests of msrun launch and of ranks that are started by hand, on one host.

usage: launch_test.py BIN_DIR START_SECONDS [unittest options]    START_SECONDS: the most that the start of 8 ranks may take
"""
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launching  # noqa: E402
from launching import Running, alive, tool, wait_until  # noqa: E402

START_SECONDS = 0.5
ENGINES = ["shm"]
# Reaches another "host" on this one: a shell that does not inherit the rank's variables from launch.
RSH = "env HOST_OF_TEST={host} sh -c"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class HandStarted:
    """Ranks with variables set by hand, in the order of `order`."""

    def __init__(self, size, mode, order=None, tokens=None, **variables):
        self.ranks = {}
        port = free_port()
        for rank in order or range(size):
            env = {"MSRT_RANK": rank, "MSRT_SIZE": size, "MSRT_STORE": f"127.0.0.1:{port}", "MSRT_TOKEN": (tokens or {}).get(rank, "5a" * 16)}
            env.update(variables)
            self.ranks[rank] = Running(mode, command=[tool("rank_program")], env={k: str(v) for k, v in env.items()})

    def await_joined(self):
        for rank in self.ranks.values():
            if not wait_until(lambda r=rank: any(text.startswith("pid ") for _, text in r.lines), 30):
                raise AssertionError(rank.errors)

    def abort_of(self, rank):
        """(seconds since the epoch, message)"""
        texts = [text for _, text in self.ranks[rank].lines if text.startswith("abort ")]
        if not texts:
            return 0, f"nothing\n{self.ranks[rank].errors}"
        _, when, message = texts[0].split(" ", 2)
        return int(when) / 1000, message


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def launch(self, *arguments, **options):
        job = Running(*arguments, **options)
        return job.finish(), job

    def hosts(self, text):
        path = os.path.join(self.folder.name, "hosts")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_ranks_work_together_and_end(self):
        code, job = self.launch("-n", "4", "--", tool("rank_program"), "steps", "5")
        self.assertEqual((code, job.errors), (0, ""))
        self.assertEqual(sorted(rank for rank, text in job.lines if text.startswith("pid ")), [0, 1, 2, 3])

    def test_lines_are_labelled_and_never_mixed(self):
        script = 'for i in $(seq 100); do printf "$MSRT_RANK a$i "; printf "b$i\\n"; done; printf "end $MSRT_RANK of $MSRT_SIZE"'
        code, job = self.launch("-n", "4", "--", "sh", "-c", script)
        self.assertEqual(code, 0)
        for rank in range(4):
            mine = [text for label, text in job.lines if label == rank]
            self.assertEqual(mine, [f"{rank} a{i} b{i}" for i in range(1, 101)] + [f"end {rank} of 4"])
        self.assertEqual(len(job.lines), 404)

    def test_failures_are_handled_while_nobody_reads_the_output(self):
        """As in `msrun launch ... | less`: rank 0 writes without end, rank 1 fails."""
        path = os.path.join(self.folder.name, "pid")
        script = f'if [ $MSRT_RANK = 0 ]; then echo $$ > {path}.new; mv {path}.new {path}; exec yes; fi; sleep 0.3; exit 7'
        job = subprocess.Popen([tool("msrun"), "launch", "-n", "2", "--", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(wait_until(lambda: os.path.exists(path), 10))
        with open(path) as f:
            pid = int(f.read())
        self.assertTrue(wait_until(lambda: not alive(pid), 5))
        out, errors = job.communicate(timeout=10)
        self.assertEqual(job.returncode, 7)
        self.assertEqual(out.count(b"[0] y\n"), len(out.splitlines()))
        self.assertIn(b"rank 1 ended with code 7", errors)

    def test_signal_ends_launch_while_nobody_reads_the_output(self):
        job = subprocess.Popen([tool("msrun"), "launch", "-n", "1", "--", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(wait_until(lambda: b"y" in os.read(job.stdout.fileno(), 16), 10))
        job.terminate()
        # A signal that comes before the rank has ended ends the rank at once; one after it ends the wait for the reader.
        deadline = time.monotonic() + 10
        while job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.3)
            job.terminate()
        self.assertEqual(job.poll(), 143)
        job.stdout.close()
        job.stderr.close()

    def test_standard_error_is_labelled_too(self):
        _, job = self.launch("-n", "2", "--", "sh", "-c", "echo oops >&2")
        self.assertEqual(sorted(job.errors.splitlines()), ["[0] oops", "[1] oops"])

    def test_killed_rank_is_named_by_all(self):
        self.assertEqual(launching.hurt_one(4, signal.SIGKILL, random.Random(1))[2], [])

    def test_stopped_rank_is_named_by_all_after_the_limit(self):
        self.assertEqual(launching.hurt_one(3, signal.SIGSTOP, random.Random(2), 0.5)[2], [])

    def test_other_collective_is_named_by_all(self):
        self.assertEqual(launching.diverge(3, 0)[1], [])

    def test_other_size_is_named_by_all(self):
        self.assertEqual(launching.diverge(4, 8192)[1], [])

    def test_faults_of_ranks_that_communicate(self):
        """The errors of operations name the culprit, whatever the engine noticed first."""
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.assertEqual(launching.hurt_one(4, signal.SIGKILL, random.Random(3), None, ("reduce",), engine)[2], [])
                self.assertEqual(launching.hurt_one(3, signal.SIGSTOP, random.Random(4), 0.5, ("reduce",), engine)[2], [])
                self.assertEqual(launching.diverge(3, 0, engine)[1], [])

    def test_code_and_message_of_the_first_failed_rank(self):
        code, job = self.launch("-n", "3", "--", tool("rank_program"), "code", "1")
        self.assertEqual(code, 7)
        self.assertRegex(job.errors, r"msrun launch: rank 1 on host '.*' \(process \d+\) ended with code 7, last seen (in|after) AllReduce #\d+")
        self.assertIn("the last messages of rank 1:\n  the disk is full\n", job.errors)

    def test_error_that_a_rank_reports(self):
        code, job = self.launch("-n", "3", "--", tool("rank_program"), "fail", "2")
        self.assertEqual(code, 3)
        for rank in range(3):
            self.assertRegex(job.aborts()[rank][1], r"^rank 2 on host '.*' \(process \d+\) failed: file 'x' cannot be read")

    def test_rank_that_leaves_early(self):
        code, job = self.launch("-n", "3", "--", tool("rank_program"), "leave", "1")
        self.assertEqual(code, 1)
        self.assertRegex(job.aborts()[0][1], r"^rank 1 on host '.*' \(process \d+\) has left the job, while rank \d calls AllReduce")

    def test_rank_that_never_joins(self):
        code, job = self.launch("-n", "3", "--", tool("rank_program"), "crash_early", "0")
        self.assertEqual(code, 5)
        self.assertIn("rank 0 ended with code 5", job.errors)

    def test_ranks_that_ignore_sigterm_are_killed(self):
        script = 'trap "" TERM; if [ $MSRT_RANK = 1 ]; then exit 9; fi; echo $$; while :; do sleep 0.05; done'
        began = time.monotonic()
        code, job = self.launch("-n", "2", "--grace", "0.2", "--", "sh", "-c", script)
        self.assertEqual(code, 9)
        self.assertLess(time.monotonic() - began, 10)
        self.assertFalse(alive(int(job.lines[0][1])))

    def test_no_rank_outlives_launch(self):
        job = Running("-n", "3", "--", tool("rank_program"), "work")
        pids = job.pids(3)
        job.process.kill()
        self.assertTrue(wait_until(lambda: not any(map(alive, pids.values())), 2))
        job.finish()

    def test_remote_rank_does_not_outlive_launch(self):
        hosts = self.hosts("other slots=2\n")
        job = Running("--hosts", hosts, "--rsh", RSH, "--address", "127.0.0.1", "--", "sh", "-c", 'echo "pid $$"; exec sleep 100')
        pids = job.pids(2)
        job.process.kill()
        ended = wait_until(lambda: not any(map(alive, pids.values())), 30)
        left = {pid: open(f"/proc/{pid}/status").read() for pid in pids.values() if alive(pid)}
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        job.finish()
        self.assertTrue(ended, left)

    def test_signal_ends_the_job(self):
        job = Running("-n", "2", "--", tool("rank_program"), "sleep")
        pids = job.pids(2)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.finish(), 143)
        self.assertFalse(any(map(alive, pids.values())))

    def test_ranks_on_hosts(self):
        hosts = self.hosts("# two hosts\nlocalhost\nother slots=3   # a comment\n")
        script = 'echo "$MSRT_RANK $MSRT_SIZE $MSRT_HOST $MSRT_LOCAL_RANK $MSRT_LOCAL_SIZE ${HOST_OF_TEST-here}"'
        code, job = self.launch("--hosts", hosts, "--rsh", RSH, "--address", "127.0.0.1", "--", "sh", "-c", script)
        self.assertEqual((code, job.errors), (0, ""))
        self.assertEqual(sorted(text for _, text in job.lines),
                         ["0 4 localhost 0 1 here", "1 4 other 0 3 other", "2 4 other 1 3 other", "3 4 other 2 3 other"])
        code, job = self.launch("--hosts", hosts, "-n", "2", "--rsh", RSH, "--address", "127.0.0.1", "--", tool("rank_program"), "steps", "5")
        self.assertEqual((code, job.errors), (0, ""))

    def test_verbs_mean_this_program(self):
        for verb in ("bench", "run", "calibrate", "image", "train", "info"):
            with self.subTest(verb):
                code, job = self.launch("-n", "2", verb, "--help")
                self.assertEqual(code, 0, job.errors)
                self.assertIn(verb, "".join(text for rank, text in job.lines if rank == 1))
        code, job = self.launch("-n", "2", "image", "no.msrt", "in.npy", "out.npy")
        self.assertEqual(code, 2)
        self.assertIn("[0] msrun: model 'no.msrt': there is no such file", job.errors)

    def test_remote_command_that_fails_is_shown(self):
        code, job = self.launch("--hosts", self.hosts("other"), "--rsh", "sh -c 'echo unreachable>&2;exit' {host}", "--address", "127.0.0.1", "--", "x")
        self.assertNotEqual(code, 0)
        self.assertIn("rank 0 ", job.errors)

    def test_token_is_in_no_command_line(self):
        script = 'echo "token $MSRT_TOKEN"; ps -ef; sleep 0.1'
        _, job = self.launch("--hosts", self.hosts("other"), "--rsh", RSH, "--address", "127.0.0.1", "--", "sh", "-c", script)
        token = next(text[6:] for _, text in job.lines if text.startswith("token "))
        self.assertEqual(len(token), 32)
        self.assertEqual([text for _, text in job.lines if token in text], ["token " + token])

    def test_bad_arguments(self):
        with socket.socket() as used:
            used.bind(("127.0.0.1", 0))
            used.listen()
            port = used.getsockname()[1]
            two = self.hosts("localhost slots=2\n")
            rows = [
                (["-n", "0", "--", "true"], 2, "-n 0: the number of ranks is 1 to 65536"),
                (["-n", "65537", "--", "true"], 2, "-n 65537: the number of ranks"),
                (["-n", "x", "--", "true"], 2, "-n"),
                (["--", "true"], 2, "how many ranks? msrun launch -n 4"),
                (["-n", "2"], 2, "which command? msrun launch -n 4 -- COMMAND"),
                (["-n", "2", "--frobnicate", "--", "true"], 2, "--frobnicate"),
                (["--hosts", "missing.txt", "--", "true"], 2, "--hosts 'missing.txt' cannot be read"),
                (["--hosts", two, "-n", "3", "--", "true"], 2, "the hosts have 2 slots, -n 3 needs more; raise slots=N"),
                (["-n", "1", "--timeout", "0", "--", "true"], 2, "--timeout 0: must be 0.3 to 86400 s"),
                (["-n", "1", "--stall-timeout", "0.01", "--", "true"], 2, "--stall-timeout 0.01: must be 0.05 to 604800 s"),
                (["-n", "1", "--address", "127.0.0.1:x", "--", "true"], 2, "--address: address '127.0.0.1:x': must be HOST:PORT"),
                (["-n", "1", "--address", f"127.0.0.1:{port}", "--", "true"], 1, "Address already in use; choose another port"),
                (["-n", "1", "--address", "192.0.2.1", "--", "true"], 1, "use an address of this host"),
                (["-n", "1", "--address", "no-such-host.invalid", "--", "true"], 1, "host 'no-such-host.invalid'"),
                (["-n", "1", "--", "no_such_program"], 127, "cannot run 'no_such_program': No such file"),
            ]
            for arguments, expected, text in rows:
                with self.subTest(arguments=arguments):
                    code, job = self.launch(*arguments)
                    self.assertEqual(code, expected, job.errors)
                    self.assertIn(text, job.errors)

    def test_bad_hosts_files(self):
        rows = [("", "is empty"), ("# nothing\n", "names no host"), ("a slots=0\n", "line 1: 'slots=0': must be slots=N"),
                ("a\na\n", "line 2: host 'a' is named twice"), ("-oProxyCommand=x\n", "line 1: '-oProxyCommand=x' is no name of a host"),
                ("a 2\n", "line 1: '2': must be slots=N"), ("a slots=1 b\n", "line 1: 'b' is too much"),
                ("no-such-host.invalid\n", "host 'no-such-host.invalid'")]
        for text, expected in rows:
            with self.subTest(hosts=text):
                code, job = self.launch("--hosts", self.hosts(text), "--", "true")
                self.assertEqual(code, 2, job.errors)
                self.assertIn(expected, job.errors)

    def test_help_documents_the_variables(self):
        text = subprocess.run([tool("msrun"), "launch", "--help"], capture_output=True, text=True, check=True).stdout
        for word in ("MSRT_RANK", "MSRT_SIZE", "MSRT_STORE", "MSRT_TOKEN", "MSRT_TIMEOUT", "MSRT_STALL_TIMEOUT", "--stall-timeout", "--rsh", "--hosts", "--address", "--timeout"):
            self.assertIn(word, text)

    def test_start_time(self):
        """8 ranks join, and make a communicator of each engine, five times; the best counts, because other processes may disturb."""
        ways = {"join": ("join", ())} | {engine: ("reduce", ("--engine", engine)) for engine in ENGINES}
        for name, (program, options) in ways.items():
            times = []
            for _ in range(5):
                began = time.monotonic()
                job = Running("-n", "8", *options, "--", tool("rank_program"), program, "1")
                job.pids(8)  # which a rank prints when it has its communicator
                ready = time.monotonic() - began
                self.assertEqual(job.finish(), 0, job.errors)
                times.append((ready, time.monotonic() - began))
            ready, ended = min(times)
            print(f"start of 8 ranks ({name}): all ready after {ready:.3f} s, launch ended after {ended:.3f} s", file=sys.stderr)
            self.assertLess(ready, START_SECONDS, (name, times))


class HandStartedTest(unittest.TestCase):
    def test_ranks_find_each_other(self):
        job = HandStarted(3, "join", order=(2, 0, 1))
        for rank in job.ranks.values():
            self.assertEqual(rank.finish(), 0, rank.errors)

    def test_killed_rank_is_named_by_all(self):
        job = HandStarted(3, "work")
        job.await_joined()
        time.sleep(0.2)
        victim = job.ranks[2].process
        began = time.time()
        victim.kill()
        for rank in (0, 1):
            self.assertEqual(job.ranks[rank].finish(), 3, job.ranks[rank].errors)
            when, message = job.abort_of(rank)
            self.assertRegex(message, rf"^rank 2 on host '.*' \(process {victim.pid}\) lost its connection.*last seen (in|after) AllReduce #\d+ of")
            self.assertLess(when - began, 1)
        job.ranks[2].finish()

    def test_rank_0_is_named_if_it_is_killed(self):
        job = HandStarted(3, "work")
        job.await_joined()
        time.sleep(0.2)
        began = time.time()
        job.ranks[0].process.kill()
        for rank in (1, 2):
            self.assertEqual(job.ranks[rank].finish(), 3, job.ranks[rank].errors)
            when, message = job.abort_of(rank)
            self.assertRegex(message, r"^rank 0 at 127.0.0.1:\d+ has ended or cannot be reached: .*; this rank is (in|after) AllReduce #\d+ of group")
            self.assertLess(when - began, 1)
        job.ranks[0].finish()

    def test_rank_0_is_named_if_it_is_stopped(self):
        job = HandStarted(2, "work", MSRT_TIMEOUT=1)
        job.await_joined()
        time.sleep(0.2)
        began = time.time()
        job.ranks[0].process.send_signal(signal.SIGSTOP)
        self.assertEqual(job.ranks[1].finish(), 3, job.ranks[1].errors)
        when, message = job.abort_of(1)
        self.assertRegex(message, r"^rank 0 at 127.0.0.1:\d+ does not respond since .*; this rank is (in|after) AllReduce #\d+ of group 'world'")
        self.assertLess(when - began, 2)
        job.ranks[0].process.kill()
        job.ranks[0].finish()

    def test_wrong_token_is_refused(self):
        """As a rank of an earlier job would be, if a new one listens at the same address."""
        job = HandStarted(2, "join", tokens={1: "5b" * 16})
        self.assertEqual(job.ranks[1].finish(), 3)
        self.assertIn("the token is not the one of this job; start all ranks with the same MSRT_TOKEN", job.ranks[1].errors)
        job.ranks[0].process.kill()
        job.ranks[0].finish()


if __name__ == "__main__":
    launching.BIN, START_SECONDS = sys.argv[1], float(sys.argv[2])
    if os.path.exists(os.path.join(launching.BIN, "../lib/libmsrt_comm_gloo.so")):
        ENGINES.append("gloo")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
