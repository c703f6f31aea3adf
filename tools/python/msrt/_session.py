"""Sessions: each runs a model for one user, with its own memory and state."""
from __future__ import annotations

import ctypes
import json
import threading
from ctypes import c_size_t
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _library as c
from ._errors import InvalidArgumentError, NotFoundError
from ._runtime import Runtime
from ._tensor import Tensor
from ._types import Array, TensorSpec, new_info, spec_of
from ._values import Value, arrays_of, elements_of, list_of, output_memory, tensor_of


def _specs(handle: c.Handle, count: Callable[..., int], info: Callable[..., int], *kind: int, roles: bool = False) -> Tuple[TensorSpec, ...]:
    number = c_size_t()
    c.call(count, handle.pointer, *kind, ctypes.byref(number))
    specs = []
    for i in range(number.value):
        filled = new_info()
        c.call(info, handle.pointer, *kind, i, ctypes.byref(filled))
        specs.append(spec_of(filled)._replace(role=c.STATE_ROLES[filled.state_role] if roles else ""))
    return tuple(specs)


def index_of(specs: Tuple[TensorSpec, ...], name: str, kind: str) -> int:
    for i, spec in enumerate(specs):
        if spec.name == name:
            return i
    known = ", ".join(f"'{spec.name}'" for spec in specs) or "none"
    raise NotFoundError(f"there is no {kind} '{name}'; the model has {known}")


class Session:
    """Runs a model, one request at a time, and keeps its state from run to run. Made by `Model.session`.

    Sessions of one model share its weights and compiled kernels. A session belongs to one thread at a time: a second thread gets an
    error, except for `cancel`. Give each thread its own session; the GIL is released while they run.
    """

    def __init__(self, runtime: Runtime, handle: c.Handle) -> None:
        self._runtime = runtime
        self._handle = handle
        self._busy = threading.Lock()
        io = (c.library.msrt_session_io_count, c.library.msrt_session_io_info)
        self._inputs = _specs(handle, *io, c.INPUT)
        self._outputs = _specs(handle, *io, c.OUTPUT)
        self._states = _specs(handle, c.library.msrt_session_state_count, c.library.msrt_session_state_info, roles=True)

    @property
    def inputs(self) -> Tuple[TensorSpec, ...]:
        """The inputs of the model, in order."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[TensorSpec, ...]:
        """The outputs of the model, in order."""
        return self._outputs

    @property
    def states(self) -> Tuple[TensorSpec, ...]:
        """The tensors that the session keeps from run to run."""
        return self._states

    # ---- runs ----

    def run(self, inputs: Mapping[str, Any], *, out: Optional[Mapping[str, Any]] = None, timeout: Optional[float] = None,
            max_depth: int = 0, max_calls: int = 0) -> Dict[str, Any]:
        """Runs the model and returns its outputs by name, as NumPy arrays (lists of arrays where an output is a list).

        inputs: a value for each input: a NumPy array, any CPU tensor with `__dlpack__` (PyTorch ...), a `Tensor`, numbers, or for list
            inputs a list of those (None or a single tensor for an optional). Contiguous arrays are read in place; others are copied.
            They must not change during the run.
        out: memory for some outputs, which results are written to in place: contiguous arrays or tensors of the output's type and dims.
        timeout: seconds after which the run ends with DeadlineExceededError.
        max_depth, max_calls: limits for graphs that call graphs: recursion depth, and number of calls and iterations; 0: the defaults.

        The arrays are views of memory that nothing else uses: later runs do not change them, and they outlive session and model. After an
        error caches and statistics are as before the run. Parameters and optimizer state are updated in place: if the error says that they
        may be a mixture, set or reset them before the next run.
        """
        given = out or {}
        results = self._run(inputs, given, timeout, max_depth, max_calls)
        return {name: value if name in given else arrays_of(value) for name, value in results.items()}

    def run_tensors(self, inputs: Mapping[str, Any], *, out: Optional[Mapping[str, Any]] = None, timeout: Optional[float] = None,
                    max_depth: int = 0, max_calls: int = 0) -> Dict[str, Any]:
        """The same with outputs as `Tensor` objects, for example for `torch.from_dlpack`."""
        return self._run(inputs, out or {}, timeout, max_depth, max_calls)

    def _run(self, inputs: Mapping[str, Any], out: Mapping[str, Any], timeout: Optional[float], max_depth: int,
             max_calls: int) -> Dict[str, Any]:
        """Outputs by name: those of `out` as they were given, the others as tensors, in lists where an output is a list."""
        config = c.RunConfig(struct_size=ctypes.sizeof(c.RunConfig), timeout_us=_microseconds(timeout), max_depth=max_depth,
                             max_calls=max_calls)
        if not self._busy.acquire(blocking=False):
            raise InvalidArgumentError("the session is in use in another thread; make one for each thread with model.session()")
        bound: List[Tuple[int, int]] = []
        used: List[Any] = []
        try:
            self._bind_inputs(inputs, bound, used)
            self._bind_outputs(out, bound)
            c.call(c.library.msrt_session_run, self._handle.pointer, ctypes.byref(config))
            return {spec.name: out[spec.name] if spec.name in out else self._take(i, spec) for i, spec in enumerate(self._outputs)}
        finally:
            for kind, index in bound:  # the session must not use the caller's memory any longer
                self._unbind(kind, index)
            self._busy.release()

    def __call__(self, *values: Any, **named: Any) -> Dict[str, Any]:
        """Runs the model with inputs in the order of `inputs`, or by name."""
        return self.run(self._by_name(values, named))

    def _by_name(self, values: Tuple[Any, ...], named: Dict[str, Any]) -> Dict[str, Any]:
        """The arguments of a call as inputs by name."""
        if len(values) > len(self._inputs):
            raise InvalidArgumentError(f"the model has {len(self._inputs)} inputs, but {len(values)} values were given")
        inputs = {spec.name: value for spec, value in zip(self._inputs, values)}
        twice = [name for name in named if name in inputs]
        if twice:
            raise InvalidArgumentError(f"input '{twice[0]}' is given by position and by name; leave one out")
        return {**inputs, **named}

    def cancel(self) -> None:
        """Stops the run in progress, which raises CancelledError in its thread; does nothing without one. May be called from any thread."""
        c.call(c.library.msrt_session_cancel, self._handle.pointer)

    def _check_names(self, inputs: Mapping[str, Any]) -> None:
        for name in inputs:
            index_of(self._inputs, name, "input")
        missing = [str(spec) for spec in self._inputs if spec.name not in inputs]
        if missing:
            raise InvalidArgumentError(f"inputs are missing: {'; '.join(missing)}")

    def _bind_inputs(self, inputs: Mapping[str, Any], bound: List[Tuple[int, int]], used: List[Any]) -> None:
        self._check_names(inputs)
        for i, spec in enumerate(self._inputs):
            bound.append((c.INPUT, i))  # before the bind, so that an interrupt between the two leaves nothing bound
            if spec.list_depth:
                handle = list_of(self._runtime.handle, spec, inputs[spec.name], spec.list_depth, "input")
                c.call(c.library.msrt_session_bind_list, self._handle.pointer, i, handle.pointer)
            else:
                handle, memory = tensor_of(self._runtime.handle, spec, inputs[spec.name], "input")
                used.append(memory)
                c.call(c.library.msrt_session_bind, self._handle.pointer, c.INPUT, i, handle.pointer)

    def _bind_outputs(self, out: Mapping[str, Any], bound: List[Tuple[int, int]]) -> None:
        for name, value in out.items():
            index = index_of(self._outputs, name, "output")
            tensor = output_memory(self._runtime.handle, self._outputs[index], value)
            bound.append((c.OUTPUT, index))
            c.call(c.library.msrt_session_bind, self._handle.pointer, c.OUTPUT, index, tensor.pointer)

    def _unbind(self, kind: int, index: int) -> None:
        if kind == c.INPUT and self._inputs[index].list_depth:
            c.call(c.library.msrt_session_bind_list, self._handle.pointer, index, None)
        else:
            c.call(c.library.msrt_session_bind, self._handle.pointer, kind, index, None)

    def _take(self, index: int, spec: TensorSpec) -> Value:
        if spec.list_depth:
            return elements_of(c.Handle("list", c.library.msrt_session_output_list, self._handle.pointer, index), spec.list_depth)
        return Tensor(c.Handle("tensor", c.library.msrt_session_take_output, self._handle.pointer, index))

    # ---- state ----

    def get_state(self, name: str) -> Array:
        """Returns a copy of the current value."""
        index = index_of(self._states, name, "state")
        return Tensor(c.Handle("tensor", c.library.msrt_session_state_read, self._handle.pointer, index)).numpy()

    def set_state(self, name: str, value: Any) -> None:
        """Sets the state to a copy of the value."""
        index = index_of(self._states, name, "state")
        tensor, _used = tensor_of(self._runtime.handle, self._states[index], value, "state")
        c.call(c.library.msrt_session_state_write, self._handle.pointer, index, tensor.pointer)

    def reset_state(self, name: Optional[str] = None) -> None:
        """Restores the initial value of one state, or of all states without a name."""
        indices = range(len(self._states)) if name is None else [index_of(self._states, name, "state")]
        for index in indices:
            c.call(c.library.msrt_session_state_reset, self._handle.pointer, index)

    def copy_state(self, source: "Session") -> None:
        """Copies all state of another session of the same model, for example of a clone that was made as a snapshot."""
        c.call(c.library.msrt_session_state_copy, self._handle.pointer, source._handle.pointer)

    def clone(self) -> "Session":
        """Returns a session of the same model with its own memory and a copy of the state."""
        return Session(self._runtime, c.Handle("session", c.library.msrt_session_clone, self._handle.pointer))

    # ---- reports ----

    def _report(self, kind: int) -> str:
        """A report of the C library by its number."""
        return c.text_of(c.library.msrt_session_report, self._handle.pointer, kind)

    def profile(self) -> Dict[str, Any]:
        """The time of each step of the last run: {"steps": [{"node", "op", "delegate", "us", ...}], "total_us"}.

        Needs `model.session(profile=True)`.
        """
        report: Dict[str, Any] = json.loads(self._report(c.REPORT_PROFILE))
        return report

    def memory(self) -> Dict[str, Any]:
        """Bytes of arena, scratch, outputs and state, and what sessions of the model share."""
        report: Dict[str, Any] = json.loads(self._report(c.REPORT_MEMORY))
        return report

    def trim(self) -> None:
        """Frees arena and scratch memory until the next run."""
        c.call(c.library.msrt_session_trim, self._handle.pointer)


def _microseconds(timeout: Optional[float]) -> int:
    if timeout is None:
        return 0
    if not timeout > 0:
        raise InvalidArgumentError(f"timeout is {timeout}, must be more than 0 seconds; None means no timeout")
    return min(max(1, round(timeout * 1e6)), 2**62) if timeout < 1e12 else 2**62
