"""Helpers of the installation tests: run commands in a clean user environment, and extract the README's program."""
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

# No path of this machine's user helps a program or a compiler to find msrt.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("LD_", "PKG_CONFIG", "CMAKE_", "MSRT_", "DNNL", "ONEDNN")) and name not in ("CPATH", "LIBRARY_PATH")}


def run(*command, environment=None, cwd=None):
    """Returns what the command printed; fails with all of it if the command does."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd,
                          env={**ENVIRONMENT, **(environment or {})})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(str(part) for part in command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def empty_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def readme_program(path):
    """Writes the README's first C program, so that what the README shows is what is compiled."""
    with open(os.path.join(SOURCE, "README.md")) as readme:
        program = re.search(r"^```c\n(.*?)^```$", readme.read(), re.M | re.S).group(1)
    with open(path, "w") as out:
        out.write(program)
    return path


def files_below(folder):
    """Path of each file and link, relative to the folder: its bytes, or where the link points."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in files + [d for d in folders if os.path.islink(os.path.join(where, d))]:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = os.readlink(path) if os.path.islink(path) else file.read()
    return found


def needed_libraries(program):
    """{name: file, or None where it is not found} of what the loader would load, per ldd."""
    found = {}
    for line in run("ldd", program).splitlines():
        match = re.match(r"\s*(\S+) => (.*?)( \(0x.*)?$", line)
        if match:
            found[match.group(1)] = None if match.group(2) == "not found" else os.path.realpath(match.group(2))
    return found


def runpath(file):
    match = re.search(r"\(RUNPATH\).*\[(.*)\]", run("readelf", "-d", file))
    return match and match.group(1)
