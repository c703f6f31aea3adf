"""msconvert and msrun, which come with the package: conversion and verification from Python, and the commands themselves."""
from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Union

import numpy as np

from . import _library as c
from ._errors import ConversionError, InvalidArgumentError, IoError, MissingFileError, VerificationError

Path = Union[str, "os.PathLike[str]"]
_WRONG_COMMAND_LINE, _DIFFERS = 2, 4


def _binary(name: str) -> str:
    path = os.path.join(c.FOLDER, "bin", name)
    if not os.path.exists(path):
        raise IoError(f"{path} is missing; install the wheel again")
    if not os.access(path, os.X_OK):  # archives that were unpacked by hand lose the permission
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def _environment() -> Dict[str, str]:
    """The environment of the tools: finds libgomp.so.1 where the system has none, and this interpreter's ONNX Runtime for verification."""
    environment = dict(os.environ)
    folders = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    environment["LD_LIBRARY_PATH"] = ":".join([*folders, c.FALLBACK])
    environment.setdefault("MSCONVERT_PYTHON", sys.executable)
    return environment


def check_exists(path: str) -> None:
    if not os.path.exists(path):
        raise MissingFileError(f"file '{path}' does not exist")


def _text(value: Any, folder: str) -> str:
    if isinstance(value, np.ndarray):
        file = os.path.join(folder, f"{len(os.listdir(folder))}.npy")
        np.save(file, value)
        return file
    return "x".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _arguments(options: Mapping[str, Any], folder: str) -> List[str]:
    """Options as msconvert takes them: verify_shape={"x": (1, 3)} is --verify-shape x=1x3, keep_unknown=True is --keep-unknown.

    Arrays become files in the folder.
    """
    arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, Mapping):
            arguments += [f"{option}={key}={_text(one, folder)}" for key, one in value.items()]
        else:
            arguments += [f"{option}={_text(one, folder)}" for one in (value if isinstance(value, (list, tuple)) else [value])]
    return arguments


def _msconvert(source: Path, arguments: List[str], options: Mapping[str, Any]) -> Dict[str, Any]:
    path = os.fspath(source)
    if not path.startswith("zoo:"):
        check_exists(path)
    with tempfile.TemporaryDirectory(prefix="msrt-") as folder:
        return _run_msconvert([path, *arguments, *_arguments(options, folder)])


def _run_msconvert(arguments: List[str]) -> Dict[str, Any]:
    done = subprocess.run([_binary("msconvert"), *arguments, "--json=-"], env=_environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    try:
        report: Dict[str, Any] = json.loads(done.stdout) or {}
    except ValueError:
        report = {}
    if done.returncode == 0:
        return report
    message = (done.stderr or done.stdout).strip() or f"msconvert ended with exit code {done.returncode}"
    if done.returncode == _WRONG_COMMAND_LINE:
        raise InvalidArgumentError(message)
    if done.returncode == _DIFFERS:
        raise VerificationError(message, report)
    raise ConversionError(message, report)


def convert(source: Path, destination: Path, **options: Any) -> Dict[str, Any]:
    """Converts an .onnx or .mindir file to a .msrt file, or back to .mindir; "zoo:resnet18" and others make a network.

    Options are those of `msconvert --help` with underscores:
        shape={"image": (1, 3, 224, 224)}, state={"h": "h_out"}, weights="int8", target="native", keep_unknown=True, plugin="lib.so",
        train=True (keeps what training needs), verify=True (compares with the ONNX Runtime of this Python) or verify="folder", tolerance=1e-4 ...
    Returns what msconvert reports (sizes of stored weights, the comparison ...). Raises ConversionError with `problems`, VerificationError
    if outputs differ, InvalidArgumentError for wrong options; then an existing destination stays as it is, except after a comparison.
    """
    return _msconvert(source, [os.fspath(destination)], options)


def check(source: Path, **options: Any) -> List[Dict[str, Any]]:
    """Lists everything that blocks the conversion of a model, each with op, reason and cure; empty: nothing does. Writes no file."""
    try:
        _msconvert(source, ["--check"], options)
    except ConversionError as error:
        if not error.problems:
            raise
        return error.problems
    return []


def verify(source: Path, against: Optional[Path] = None, **options: Any) -> Dict[str, Any]:
    """Converts a model to a temporary file and compares its outputs with those of the original.

    against: a folder with input_0.npy, output_0.npy and so on; None: the ONNX Runtime of this Python runs the original.
    Options are those of `convert`. Returns the comparison; raises VerificationError if outputs differ by more than the tolerance.
    """
    with tempfile.TemporaryDirectory(prefix="msrt-") as folder:
        report = convert(source, os.path.join(folder, "model.msrt"), verify=True if against is None else against, **options)
    found: Dict[str, Any] = report["verify"]
    return found


def _replace_process(name: str) -> NoReturn:
    path = _binary(name)
    os.execve(path, [name, *sys.argv[1:]], _environment())


def run_msconvert() -> NoReturn:
    """The command `msconvert`."""
    _replace_process("msconvert")


def run_msrun() -> NoReturn:
    """The command `msrun`."""
    _replace_process("msrun")
