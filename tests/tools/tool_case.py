"""A test that runs the project's tools in its own folder. `BIN` is the folder of the tools; the script that runs the tests sets it."""
import os
import subprocess
import tempfile
import unittest


def mpi_environment():
    """For mpirun as root. OpenMPI's libraries leak, which the address sanitizer would report as ours."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


class ToolCase(unittest.TestCase):
    BIN = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def run_tool(self, tool, *arguments, **options):
        return subprocess.run([os.path.join(self.BIN, tool), *arguments], capture_output=True, text=True, timeout=600, **options)

    def must(self, tool, *arguments):
        done = self.run_tool(tool, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout
