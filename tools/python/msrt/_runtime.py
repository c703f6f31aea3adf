"""Runtimes: threads, delegates and plugins that models share."""
from __future__ import annotations

import ctypes
import json
import logging
import os
from typing import Any, Dict, Optional, Tuple, Union

from . import _library as c

_logger = logging.getLogger("msrt")
_LEVELS = {c.LOG_ERROR: logging.ERROR, c.LOG_WARNING: logging.WARNING, c.LOG_INFO: logging.INFO, c.LOG_DEBUG: logging.DEBUG}


def _log(_user: Any, level: int, line: bytes) -> None:
    _logger.log(_LEVELS.get(level, logging.DEBUG), "%s", line.decode("utf-8", "replace"))


_LOG = c.LogFn(_log)


class Runtime:
    """Threads and delegates for any number of models.

    threads: how many threads the runs of its models may use together; 0: one for each core. Runs of several sessions take turns on them.
    wake_threads_seconds: a run stays on the calling thread if more threads would save less than this; 0: the default; negative: never.

    Messages of the library go to the logger "msrt" of Python's `logging`. The log level is read when the runtime is made.
    """

    def __init__(self, threads: int = 0, wake_threads_seconds: float = 0.0) -> None:
        level = max((ours for ours, theirs in _LEVELS.items() if _logger.isEnabledFor(theirs)), default=c.LOG_ERROR)
        config = c.RuntimeConfig(struct_size=ctypes.sizeof(c.RuntimeConfig), threads=threads, log_level=level, log=_LOG,
                                 wake_threads_seconds=wake_threads_seconds)
        self.handle = c.Handle("runtime", c.library.msrt_runtime_create, ctypes.byref(config))

    @property
    def info(self) -> Dict[str, Any]:
        """Version, threads, machine, delegates, passes, ops and kernels."""
        info: Dict[str, Any] = json.loads(c.text_of(c.library.msrt_runtime_info_json, self.handle.pointer))
        return info

    def calibrate(self) -> None:
        """Measures this machine in about 50 ms; models that are loaded from now on are placed by the result."""
        c.call(c.library.msrt_runtime_calibrate, self.handle.pointer)

    def load_plugin(self, path: Union[str, "os.PathLike[str]"], options: Optional[str] = None) -> None:
        """Loads a shared library with delegates, kernels, ops or passes."""
        c.call(c.library.msrt_runtime_load_plugin, self.handle.pointer, c.encode(os.fspath(path), "path"),
               None if options is None else c.encode(options, "options"))


_shared: Optional[Tuple[int, Runtime]] = None


def shared_runtime() -> Runtime:
    """The runtime of models that are loaded without `threads` or `runtime`: one thread for each core."""
    global _shared
    if _shared is None or _shared[0] != c.generation:  # a child process makes its own
        _shared = (c.generation, Runtime())
    return _shared[1]
