"""Models: loaded, checked, placed and compiled once; run by any number of sessions."""
from __future__ import annotations

import ctypes
import json
import os
import tempfile
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _library as c
from ._errors import InvalidArgumentError
from ._runtime import Runtime, shared_runtime
from ._session import Session
from ._tools import check_exists, convert
from ._types import TensorSpec

Path = Union[str, "os.PathLike[str]"]
Names = Union[str, Sequence[str]]
_CONVERTED = (".onnx", ".mindir")


class Model:
    """A model that is ready to run. Made by `msrt.load`. Immutable: any number of threads may use it at once."""

    def __init__(self, runtime: Runtime, handle: c.Handle) -> None:
        self._runtime = runtime
        self._handle = handle
        first = self.session()
        self._specs = (first.inputs, first.outputs, first.states)
        self._idle: List[Session] = [first]

    def session(self, function: Optional[str] = None, *, profile: bool = False, memory_cap_bytes: int = 0,
                share_state: Optional[Session] = None) -> Session:
        """A new session, with its own memory and state.

        function: the entry to run, for models that have several; None: the first.
        profile: measure each step of every run, for `Session.profile`.
        memory_cap_bytes: maximum of arena, scratch, outputs and state together; 0: no cap.
        share_state: a session of this model whose parameters, optimizer state and statistics the new one shares without a copy; caches are
            its own. Runs that may write shared state exclude the runs of all sessions that share it.
        """
        config = c.SessionConfig(struct_size=ctypes.sizeof(c.SessionConfig), profile=int(profile), memory_cap_bytes=memory_cap_bytes,
                                 share_state=None if share_state is None else share_state._handle.pointer)
        name = None if function is None else c.encode(function, "function")
        return Session(self._runtime, c.Handle("session", c.library.msrt_session_create, self._handle.pointer, name, ctypes.byref(config)))

    @property
    def runtime(self) -> Runtime:
        """The runtime that runs it."""
        return self._runtime

    @property
    def inputs(self) -> Tuple[TensorSpec, ...]:
        """The inputs of the model, in order."""
        return self._specs[0]

    @property
    def outputs(self) -> Tuple[TensorSpec, ...]:
        """The outputs of the model, in order."""
        return self._specs[1]

    @property
    def states(self) -> Tuple[TensorSpec, ...]:
        """The tensors that a session keeps from run to run."""
        return self._specs[2]

    @property
    def info(self) -> Dict[str, Any]:
        """Name, producer, entries, states, metadata, ops, bytes of weights, passes and load times."""
        info: Dict[str, Any] = json.loads(c.text_of(c.library.msrt_model_info_json, self._handle.pointer))
        return info

    def run(self, inputs: Mapping[str, Any], *, out: Optional[Mapping[str, Any]] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Runs the model on a session that is free, or a new one, so that any number of threads may call it. See `Session.run`."""
        with _BorrowedSession(self) as session:
            return session.run(inputs, out=out, timeout=timeout)

    def run_tensors(self, inputs: Mapping[str, Any], *, out: Optional[Mapping[str, Any]] = None,
                    timeout: Optional[float] = None) -> Dict[str, Any]:
        """The same with outputs as `Tensor` objects, for example for `torch.from_dlpack`."""
        with _BorrowedSession(self) as session:
            return session.run_tensors(inputs, out=out, timeout=timeout)

    def __call__(self, *values: Any, **named: Any) -> Dict[str, Any]:
        """Runs the model with inputs in the order of `inputs`, or by name."""
        with _BorrowedSession(self) as session:
            return session(*values, **named)

    @overload
    def explain(self, format: Literal["text", "svg"] = "text") -> str: ...

    @overload
    def explain(self, format: Literal["json"]) -> Dict[str, Any]: ...

    def explain(self, format: Literal["text", "json", "svg"] = "text") -> Union[str, Dict[str, Any]]:
        """The placement report: the delegate of each node, its cost, and the reasons against the others, as text, SVG or data."""
        kinds = {"text": c.REPORT_PLAN_TEXT, "json": c.REPORT_PLAN, "svg": c.REPORT_PLAN_SVG}
        if format not in kinds:
            raise InvalidArgumentError(f"format is {format!r}, must be 'text', 'json' or 'svg'")
        report = self.session()._report(kinds[format])
        return json.loads(report) if format == "json" else report

    def __repr__(self) -> str:
        return f"<msrt.Model {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"


class _BorrowedSession:
    """An idle session of the model, borrowed for one run."""

    def __init__(self, model: Model) -> None:
        if model.states:
            names = ", ".join(f"'{spec.name}'" for spec in model.states)
            raise InvalidArgumentError(f"the model keeps state ({names}) from run to run; run it with session = model.session()")
        self._model = model

    def __enter__(self) -> Session:
        try:
            self._session = self._model._idle.pop()
        except IndexError:
            self._session = self._model.session()
        return self._session

    def __exit__(self, *_error: Any) -> None:
        self._model._idle.append(self._session)


def load(source: Union[Path, bytes, bytearray, memoryview], *, threads: Optional[int] = None, delegate: Optional[Names] = None,
         accuracy: Literal["default", "exact", "fast"] = "default", shapes: Optional[Mapping[str, Sequence[int]]] = None,
         pins: Optional[Names] = None, strict: bool = False, disabled_passes: Optional[Names] = None, costs: Optional[Path] = None,
         copy_file: bool = False, binding_cache_bytes: int = 0, runtime: Optional[Runtime] = None) -> Model:
    """Loads a model.

    source: a .msrt file, which is mapped; the bytes of one; or an .onnx or .mindir file, which is converted first (see `msrt.convert`).
    threads: the model gets its own runtime with this many threads. None: it shares one, with a thread for each core, with all other
        models loaded this way; their runs take turns.
    delegate: names of the delegates to allow, for example "onednn" or ["onednn", "reference"]; None: all.
    accuracy: "exact" gives each node one arithmetic by a fixed rule: bits do not depend on how the work is split, on costs or threads; "fast" also products in bf16, which bf16
        models have by default: errors of about 1e-2 of a result's range.
    shapes: expected dims of inputs that the model leaves open, by input name: algorithms are chosen for these. Others work too.
    pins: where nodes must or must not run: "node:layer1.*=reference", "op:Conv!=onednn".
    strict: a delegate that fails is an error; otherwise another delegate does its work.
    disabled_passes: names of passes to leave out, or "all".
    costs: a file of measured costs (`msrun calibrate`).
    copy_file: read the file instead of mapping it, for files that may be truncated meanwhile.
    binding_cache_bytes: cache for input shapes seen before; 0: 64 MiB.
    runtime: a runtime to share, instead of `threads`.
    """
    if runtime is not None and threads is not None:
        raise InvalidArgumentError("threads and runtime are both given; the runtime has its threads already: leave threads out")
    if accuracy not in c.ACCURACIES:
        raise InvalidArgumentError(f"accuracy is {accuracy!r}, must be 'default', 'exact' or 'fast'")
    used = runtime or (shared_runtime() if threads is None else Runtime(threads))
    config = c.ModelConfig(
        struct_size=ctypes.sizeof(c.ModelConfig), copy_file=int(copy_file), accuracy=c.ACCURACIES.index(accuracy), strict=int(strict),
        delegates=_joined(delegate, "delegate"), disabled_passes=_joined(disabled_passes, "disabled_passes"), pins=_joined(pins, "pins"),
        binding_cache_bytes=binding_cache_bytes, costs_file=None if costs is None else c.encode(os.fspath(costs), "costs"))
    named = (c.NamedDims * len(shapes or {}))()
    for entry, (name, dims) in zip(named, (shapes or {}).items()):
        entry.name, entry.rank, entry.dims = c.encode(name, "shapes"), len(dims), c.dims_of(dims)
    config.typical, config.typical_count = named, len(named)
    return Model(used, _load(used.handle, source, config))


def _joined(names: Optional[Names], argument: str) -> Optional[bytes]:
    if names is None:
        return None
    return c.encode(names if isinstance(names, str) else ",".join(names), argument)


def _load(runtime: c.Handle, source: Union[Path, bytes, bytearray, memoryview], config: c.ModelConfig) -> c.Handle:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        no_owner = c.FreeFn()  # the library copies the bytes
        return c.Handle("model", c.library.msrt_model_load_memory, runtime.pointer, data, len(data), no_owner, None, ctypes.byref(config))
    path = os.fspath(source)
    check_exists(path)
    if not path.lower().endswith(_CONVERTED):
        return c.Handle("model", c.library.msrt_model_load_file, runtime.pointer, c.encode(path, "source"), ctypes.byref(config))
    with tempfile.TemporaryDirectory(prefix="msrt-") as folder:  # the file stays mapped when its name is gone
        converted = os.path.join(folder, "model.msrt")
        convert(path, converted)
        return c.Handle("model", c.library.msrt_model_load_file, runtime.pointer, c.encode(converted, "source"), ctypes.byref(config))
