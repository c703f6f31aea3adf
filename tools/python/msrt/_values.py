"""Values of inputs and outputs: conversion between Python objects and the library's tensors and lists."""
from __future__ import annotations

import ctypes
from ctypes import c_size_t
from typing import Any, Dict, List, Tuple, Union

import numpy as np

from . import _library as c
from ._errors import InvalidArgumentError
from ._tensor import Tensor, import_dlpack, wrap
from ._types import PACKED, Array, TensorSpec, name_of, to_bits

# A tensor or, for lists, a list of such values.
Value = Union[Tensor, List[Any]]
_FOUR_BITS: Dict[str, Tuple[int, int]] = {"i4": (-8, 7), "u4": (0, 15)}


def _from_plain(value: Any, spec: TensorSpec, kind: str) -> Array:
    """An array from a number or nested lists, which have no element type."""
    wanted = spec.numpy_dtype
    try:
        array = np.asarray(value, dtype=wanted)
        exact = wanted.kind not in "iub" or np.array_equal(array, np.asarray(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{kind} '{spec.name}' takes {spec.dtype}; {type(value).__name__} cannot be converted: {error}") from error
    if not exact:
        raise InvalidArgumentError(f"{kind} '{spec.name}' takes {spec.dtype}, which cannot hold all of the given numbers")
    return array


def _check_dtype(array: Array, spec: TensorSpec, kind: str) -> None:
    given, wanted = array.dtype, spec.numpy_dtype
    if spec.dtype in _FOUR_BITS and given == wanted:
        low, high = _FOUR_BITS[spec.dtype]
        if array.size and (array.min() < low or array.max() > high):
            raise InvalidArgumentError(f"{kind} '{spec.name}' takes {spec.dtype}, numbers from {low} to {high}; the array has others")
    elif given != wanted and given.newbyteorder("=") != wanted and name_of(given) != spec.dtype and not (spec.dtype == "bf16" and given == np.float32):
        raise InvalidArgumentError(
            f"{kind} '{spec.name}' takes {spec.dtype}, but the array is {given}; cast it with .astype('{wanted.name}')")


def tensor_of(runtime: c.Handle, spec: TensorSpec, value: Any, kind: str) -> Tuple[c.Handle, Any]:
    """A tensor for an input, over the value's own memory where its type and layout allow.

    Returns it with the object whose memory it uses, which the caller keeps alive as long as the library uses the tensor. `kind` is for
    messages: "input", "state".
    """
    if isinstance(value, Tensor):
        return value._handle, None
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    elif hasattr(value, "__dlpack__"):
        return import_dlpack(runtime, value, f"{kind} '{spec.name}'"), None
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        array = _from_plain(value, spec, kind)
    _check_dtype(array, spec, kind)
    bits = to_bits(spec.dtype, array)
    return wrap(runtime, spec.dtype, bits, array.shape), bits


def list_of(runtime: c.Handle, spec: TensorSpec, value: Any, depth: int, kind: str) -> c.Handle:
    """A list for an input, with a copy of the data. For ONNX optionals, None is an empty list and a single tensor a list of one."""
    if value is None:
        value = []
    elif depth == 1 and not isinstance(value, (list, tuple)):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(f"{kind} '{spec.name}' takes a list of lists, but a {type(value).__name__} was given")
    made = c.Handle("list", c.library.msrt_list_create, runtime.pointer)
    for i, element in enumerate(value):
        if depth > 1:
            inner = list_of(runtime, spec, element, depth - 1, f"element {i} of {kind}")
            c.call(c.library.msrt_list_append_list, made.pointer, inner.pointer)
        else:
            tensor, _used = tensor_of(runtime, spec, element, f"element {i} of {kind}")
            c.call(c.library.msrt_list_append, made.pointer, tensor.pointer)
    return made


def elements_of(handle: c.Handle, depth: int) -> List[Any]:
    """The elements of a list that a run returned. They share the memory of the list and cannot be written to."""
    length = c_size_t()
    c.call(c.library.msrt_list_length, handle.pointer, ctypes.byref(length))
    if depth > 1:
        inner = [c.Handle("list", c.library.msrt_list_element_list, handle.pointer, i) for i in range(length.value)]
        return [elements_of(element, depth - 1) for element in inner]
    return [Tensor(c.Handle("tensor", c.library.msrt_list_element, handle.pointer, i), writable=False) for i in range(length.value)]


def arrays_of(value: Any) -> Any:
    """Tensors as arrays, also in lists; everything else as it is."""
    if isinstance(value, Tensor):
        return value.numpy()
    return [arrays_of(element) for element in value] if isinstance(value, list) else value


def output_memory(runtime: c.Handle, spec: TensorSpec, value: Any) -> c.Handle:
    """A tensor over the caller's memory, for a result; nothing is copied or converted. The caller keeps the memory alive."""
    what = f"out '{spec.name}'"
    if spec.list_depth:
        raise InvalidArgumentError(f"{what}: the output is a list, which has no memory that could be given; leave it out")
    if isinstance(value, Tensor):
        if not value._writable:
            raise InvalidArgumentError(f"{what} is read-only; give a tensor that can be written to")
        return value._handle
    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__dlpack__"):
            raise InvalidArgumentError(f"{what} is a {type(value).__name__}; give an array or a tensor with __dlpack__")
        return import_dlpack(runtime, value, what, may_copy=False)
    if name_of(value.dtype) != spec.dtype or spec.dtype in PACKED:
        raise InvalidArgumentError(f"{what} is {value.dtype}, but the output is {spec.dtype}; " + (
            "leave it out" if spec.numpy_dtype == value.dtype else f"give an array of {spec.numpy_dtype}"))
    flags = value.flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable and value.dtype.isnative):
        raise InvalidArgumentError(
            f"{what} must be contiguous, aligned, writable and in the machine's byte order; make it with numpy.empty")
    return wrap(runtime, spec.dtype, to_bits(spec.dtype, value), value.shape)
