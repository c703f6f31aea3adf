#!/usr/bin/env python3
"""Tests of msrun launch across hosts: network namespaces joined by a good, a slow, a lossy and a cut link.

usage: hosts_test.py BIN_DIR [unittest options]
"""
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launching  # noqa: E402
from launching import Running, alive, tool  # noqa: E402
from namespaces import TwoHosts, ip, namespaces_permitted  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))


class HostsTest(unittest.TestCase):
    """The job runs on two hosts, with two ranks each."""

    def setUp(self):
        self.hosts = TwoHosts()
        self.addCleanup(self.hosts.close)
        self.here, self.there, self.wire = self.hosts.here, self.hosts.there, self.hosts.wire
        self.connect = self.hosts.connect

    def connect_badly(self, delay_ms, loss):
        """A cable that delays all frames and loses some."""
        ip("-n", self.here, "link", "add", "eth0", "type", "veth", "peer", "name", "left", "netns", self.wire)
        ip("-n", self.there, "link", "add", "eth0", "type", "veth", "peer", "name", "right", "netns", self.wire)
        for name in ("left", "right"):
            ip("-n", self.wire, "link", "set", name, "up")
        self.hosts.give_addresses()
        wire = subprocess.Popen(["ip", "netns", "exec", self.wire, sys.executable, os.path.join(FOLDER, "wire.py"), "left", "right",
                                 str(delay_ms), str(loss), "1"], stdout=subprocess.PIPE)
        self.addCleanup(wire.stdout.close)
        self.addCleanup(wire.wait)
        self.addCleanup(wire.kill)
        self.assertEqual(wire.stdout.readline(), b"ready\n")

    def launch(self, *command, timeout=10, engine=""):
        return Running("--timeout", str(timeout), "--engine", engine, "--", *command, command=self.hosts.launch(tool("msrun"), 2, 2))

    def works(self, steps):
        began = time.monotonic()
        job = self.launch(tool("rank_program"), "steps", str(steps))
        job.pids(4)
        self.assertEqual(job.finish(), 0, job.errors)
        return time.monotonic() - began

    def test_ranks_on_two_hosts(self):
        self.connect()
        self.works(20)
        job = self.launch(tool("rank_program"), "work")
        pids = job.pids(4)
        time.sleep(0.2)
        began = time.time()
        os.kill(pids[3], 9)
        self.assertEqual(job.finish(), 137, job.errors)
        for rank in (0, 1, 2):
            when, message = job.aborts()[rank]
            self.assertTrue(launching.names_culprit(message, 3, pids[3], "(was killed by signal 9|ended with code 137)"), message)
            self.assertIn(f"rank 3 on host '{self.there}'", message)
            self.assertLess(when - began, 1)

    def require_gloo(self):
        if not os.path.exists(os.path.join(launching.BIN, "../lib/libmsrt_comm_gloo.so")):
            self.skipTest("this build has no engine gloo")

    def limit_rate(self, rate):
        """In both directions."""
        for name in (self.here, self.there):
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "4kb", "latency", "400ms"],
                           check=True)

    def test_gloo_across_hosts(self):
        self.require_gloo()
        self.connect()
        job = self.launch(tool("rank_program"), "reduce", "50", engine="gloo")
        self.assertEqual(job.finish(), 0, job.errors)
        job = self.launch(tool("rank_program"), "reduce", engine="gloo")
        pids = job.pids(4)
        began = time.time()
        os.kill(pids[2], 9)
        self.assertEqual(job.finish(), 137, job.errors)
        for rank in (0, 1, 3):
            when, message = job.aborts()[rank]
            self.assertTrue(launching.names_culprit(message, 2, pids[2], "(was killed by signal 9|ended with code 137)"), message)
            self.assertLess(when - began, 1)

    def test_slow_link(self):
        self.connect()
        self.limit_rate("256kbit")
        self.works(10)

    def test_gloo_over_slow_link(self):
        """Each rank sends its 4 KiB to both ranks of the other host: at least 10 * 16 KiB at 125 kB/s."""
        self.require_gloo()
        self.connect()
        self.limit_rate("1mbit")
        job = self.launch(tool("rank_program"), "reduce", "10", engine="gloo")
        job.pids(4)
        began = time.monotonic()
        self.assertEqual(job.finish(), 0, job.errors)
        self.assertGreater(time.monotonic() - began, 0.7)

    def test_delay_and_loss(self):
        """20 ms in each direction, and one frame of 20 is lost: slow, but no rank is suspected."""
        self.connect_badly(20, 0.05)
        self.assertGreater(self.works(5), 5 * 0.08)

    def test_lost_host(self):
        """The ranks here name one of those that are gone; those there say that the launcher is gone."""
        self.lose_host("work")

    def test_lost_host_of_gloo(self):
        self.require_gloo()
        self.lose_host("reduce", "gloo")

    def lose_host(self, program, engine=""):
        self.connect()
        limit = 1.0
        job = self.launch(tool("rank_program"), program, timeout=limit, engine=engine)
        pids = job.pids(4)
        time.sleep(0.2)
        began = time.time()
        ip("-n", self.here, "link", "set", "eth0", "down")
        self.assertNotEqual(job.finish(), 0)
        aborts = job.aborts()
        for rank in (0, 1):
            when, message = aborts[rank]
            self.assertRegex(message, rf"(^|: )rank [23] on host '{self.there}' \(process \d+\) does not respond since .*, last seen (in|after) AllReduce")
            self.assertLess(when - began, limit + 1)
        for rank in (2, 3):
            when, message = aborts[rank]
            self.assertRegex(message, r"(^|: )the launcher at 10.77.0.1:\d+ does not respond since .*; this rank is (in|after) AllReduce #\d+ of group")
            self.assertLess(when - began, limit + 1)
        self.assertFalse([pid for pid in pids.values() if alive(pid)])

    def test_host_without_a_route(self):
        """Nothing connects the hosts: the ranks there cannot join, and the error names the address."""
        ip("-n", self.here, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.wire)
        ip("-n", self.here, "addr", "add", "10.77.0.1/24", "dev", "eth0")
        ip("-n", self.here, "link", "set", "eth0", "up")
        job = self.launch(tool("rank_program"), "join")
        self.assertEqual(job.finish(), 3, job.errors)
        self.assertTrue(re.search(r"job server at 10.77.0.1:\d+.*unreachable", job.errors), job.errors)


if __name__ == "__main__":
    launching.BIN = sys.argv[1]
    reason = namespaces_permitted()
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
