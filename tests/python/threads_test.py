"""Threads: runs overlap because they release the GIL; cancellation, deadlines, one thread at a time for a session, forks."""
import os
import subprocess
import sys
import threading
import time

import msrt
import numpy as np
from models import ModelCase, affine, counting_loop

FOREVER = np.int64(2**62)
X = np.ones((1, 3), np.float32)


class LongRun:
    """A run in another thread that only cancellation ends."""

    def __init__(self, session):
        self.session, self.error = session, None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        deadline = time.monotonic() + 60
        while not session._busy.locked() and time.monotonic() < deadline:
            time.sleep(0.001)

    def _run(self):
        try:
            self.session(FOREVER)
        except msrt.Error as error:
            self.error = error

    def processor_ticks(self):
        """Processor time of its thread so far, in hundredths of a second."""
        with open(f"/proc/self/task/{self.thread.native_id}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))

    def stop(self):
        while self.thread.is_alive():
            self.session.cancel()
            self.thread.join(0.01)
        return self.error


class Threads(ModelCase):
    def setUp(self):
        super().setUp()
        self.endless = self.load(counting_loop(), threads=1)
        self.short_path = self.converted(affine())

    def test_a_run_ends_while_another_goes_on(self):
        short = msrt.load(self.short_path, threads=1).session()
        run = LongRun(self.endless.session())
        for _ in range(20):
            np.testing.assert_array_equal(short(X)["y"], [[3, 3, 3]])
        self.assertTrue(run.thread.is_alive())
        self.assertIsInstance(run.stop(), msrt.CancelledError)

    def test_two_long_runs_make_progress_together(self):
        runs = [LongRun(self.endless.session()), LongRun(self.load(counting_loop(), threads=1).session())]
        begin = [run.processor_ticks() for run in runs]
        deadline = time.monotonic() + 60
        while any(run.processor_ticks() - b < 5 for run, b in zip(runs, begin)):  # 50 ms each, and neither has ended
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        for run in runs:
            self.assertIsInstance(run.stop(), msrt.CancelledError)

    def test_one_model_runs_in_many_threads(self):
        model, failures = msrt.load(self.short_path), []

        def work(i):
            for _ in range(50):
                if not np.array_equal(model(np.full((i + 1, 3), i, np.float32))["y"], np.full((i + 1, 3), 2 * i + 1)):
                    failures.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertLessEqual(len(model._idle), 8)

    def test_a_session_refuses_a_second_thread(self):
        session = self.endless.session()
        run = LongRun(session)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, r"in use in another thread; .*model.session\(\)"):
            session(FOREVER)
        self.assertIsInstance(run.stop(), msrt.CancelledError)
        self.assertEqual(session(3)["end"], 3)

    def test_a_timeout_ends_the_run(self):
        session = self.endless.session()
        begin = time.monotonic()
        with self.assertRaises(msrt.DeadlineExceededError) as caught:
            session.run({"count": FOREVER}, timeout=0.05)
        self.assertGreaterEqual(time.monotonic() - begin, 0.05)
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertEqual(session.run({"count": 3}, timeout=1e9)["end"], 3)

    def test_cancelling_without_a_run_does_nothing(self):
        session = self.endless.session()
        session.cancel()
        self.assertEqual(session(4)["end"], 4)

    def test_a_limit_of_calls_ends_the_run(self):
        with self.assertRaises(msrt.LimitExceededError):
            self.endless.session().run({"count": 1000}, max_calls=10)

    def test_forked_process_gets_an_error_and_can_load_again(self):
        model = msrt.load(self.short_path)
        model(X)
        child = os.fork()
        if child == 0:
            try:
                try:
                    model(X)
                    result = 1
                except msrt.InvalidArgumentError as error:
                    result = 0 if "load the model in the child" in str(error) else 2
                if result == 0 and not np.array_equal(msrt.load(self.short_path)(X)["y"], [[3, 3, 3]]):
                    result = 3
            except BaseException:
                result = 4
            os._exit(result)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_process_can_exit_with_live_objects(self):
        program = ("import sys, threading, numpy, msrt\n"
                   "model = msrt.load(sys.argv[1]); session = model.session()\n"
                   "x = numpy.ones((2, 3), numpy.float32)\n"
                   "y = session(x); t = msrt.from_dlpack(x); c = t.__dlpack__(); o = session.run_tensors({'x': x})\n"
                   "worker = threading.Thread(target=lambda: [model(x) for _ in range(50)], daemon=True); worker.start()\n"
                   "print(y['y'].sum())\n")
        done = subprocess.run([sys.executable, "-c", program, self.short_path], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(msrt.__file__))})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "18.0\n", ""))
