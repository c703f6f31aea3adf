"""Tensors: typed memory that the library and NumPy or other frameworks share without copies."""
from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p
from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import _library as c
from ._errors import InvalidArgumentError, UnsupportedError
from ._runtime import shared_runtime
from ._types import NAMES, NUMBERS, Array, bits_dtype, from_bits, name_of, new_info, to_bits

_CPU = 1

# ---- memory of Python objects that tensors of the library use ----

_in_use: Dict[int, Any] = {}


def _release(key: Any, _data: Any, _held: Dict[int, Any] = _in_use) -> None:
    # Any thread may call this: ctypes takes the GIL first.
    _held.pop(key, None)


_RELEASE = c.FreeFn(_release)
_NOT_RELEASED = c.FreeFn()


def wrap(runtime: c.Handle, name: str, bits: Array, dims: Tuple[int, ...]) -> c.Handle:
    """A tensor over the memory of an array, which the caller keeps alive as long as the library uses the tensor."""
    return c.Handle("tensor", c.library.msrt_tensor_wrap, runtime.pointer, NUMBERS[name], len(dims), c.dims_of(dims), bits.ctypes.data,
                    bits.nbytes, _NOT_RELEASED, None)


def wrap_owned(runtime: c.Handle, name: str, bits: Array, dims: Tuple[int, ...], owner: Any = None) -> c.Handle:
    """The same, but keeps array and owner alive as long as the library uses the tensor."""
    held = (bits, owner)
    key = id(held)
    _in_use[key] = held
    try:
        return c.Handle("tensor", c.library.msrt_tensor_wrap, runtime.pointer, NUMBERS[name], len(dims), c.dims_of(dims),
                        bits.ctypes.data, bits.nbytes, _RELEASE, key)
    except BaseException:
        _in_use.pop(key, None)
        raise


# ---- DLPack 0.8 ----


class _DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("rank", c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("dims", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DlManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _DlTensor), ("context", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


_python = ctypes.pythonapi
_python.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_SetName.restype = ctypes.c_int
# The destructor of a capsule gets an object that must not be referenced any more, so it stays an address.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
_UNUSED, _USED = b"dltensor", b"used_dltensor"  # names that the capsule keeps pointers to


def _delete_unused(capsule: Any) -> None:
    if _is_valid(capsule, _UNUSED):
        managed = _get_pointer(capsule, _UNUSED)
        ctypes.cast(managed, ctypes.POINTER(_DlManagedTensor)).contents.deleter(managed)


_DELETE_UNUSED = ctypes.PYFUNCTYPE(None, c_void_p)(_delete_unused)


def _is_strided(dl: _DlTensor) -> bool:
    """Whether the elements are not contiguous in row-major order."""
    step = 1
    for i in reversed(range(dl.rank)):
        if dl.dims[i] != 1 and dl.strides and dl.strides[i] != step:
            return True
        step *= dl.dims[i]
    return False


def _contiguous_copy(dl: _DlTensor, name: str) -> Array:
    class Strided:
        __array_interface__ = {
            "version": 3, "typestr": bits_dtype(name).str, "data": (dl.data + dl.byte_offset, True),
            "shape": tuple(dl.dims[i] for i in range(dl.rank)),
            "strides": tuple(dl.strides[i] * (dl.bits // 8) for i in range(dl.rank)),
        }

    return np.array(Strided(), order="C", copy=True)


_DL_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "bool"}


def import_dlpack(runtime: c.Handle, value: Any, what: str, may_copy: bool = True) -> c.Handle:
    """A tensor over the memory of another framework's tensor; a copy, or an error, if that is not contiguous."""
    device = value.__dlpack_device__()
    if int(device[0]) != _CPU:
        raise UnsupportedError(f"{what} is on a device of DLPack type {int(device[0])}; copy it to the CPU first")
    capsule = value.__dlpack__()
    managed = _python.PyCapsule_GetPointer(capsule, _UNUSED)
    dl = ctypes.cast(managed, ctypes.POINTER(_DlManagedTensor)).contents.tensor
    name = "bool" if dl.code == 6 else f"{_DL_CODES.get(dl.code, '?')}{dl.bits}"
    if name in NUMBERS and _is_strided(dl):
        if not may_copy:
            raise InvalidArgumentError(f"{what} is not contiguous; pass a contiguous, row-major tensor")
        bits = _contiguous_copy(dl, name)
        return wrap_owned(runtime, name, bits, bits.shape)
    tensor = c.Handle("tensor", c.library.msrt_tensor_from_dlpack, runtime.pointer, managed)
    _python.PyCapsule_SetName(capsule, _USED)
    return tensor


class Tensor:
    """A tensor of the library.

    `numpy.asarray(tensor)`, `torch.from_dlpack(tensor)` and every other consumer of DLPack see the same memory, which stays alive as long
    as one of them does. Make one from an array or another framework's tensor with `msrt.from_dlpack`.
    """

    def __init__(self, handle: c.Handle, writable: bool = True) -> None:
        self._handle = handle
        self._writable = writable
        info = new_info()
        c.call(c.library.msrt_tensor_get_info, handle.pointer, ctypes.byref(info))
        data = c_void_p()
        c.call(c.library.msrt_tensor_data, handle.pointer, ctypes.byref(data))
        self._dtype = NAMES[info.dtype]
        self._dims = tuple(info.dims[:info.rank])
        self._bytes = int(info.bytes)
        self._address = data.value or 0

    @property
    def dtype(self) -> str:
        """The element type: "f32", "bf16", "i64" and so on."""
        return self._dtype

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._dims

    @property
    def nbytes(self) -> int:
        return self._bytes

    def numpy(self) -> Array:
        """The tensor as an array: a view, except for 4-bit types (values of one byte each) and for bf16 without ml_dtypes (float32)."""
        return from_bits(self._dtype, np.asarray(_Bits(self)), self._dims)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None) -> Any:
        if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != (_CPU, 0):
            raise BufferError(f"an msrt tensor is on the CPU, device (1, 0); {tuple(dl_device)} was asked for")
        handle = self._handle
        if copy or not self._writable:  # a consumer may write: DLPack 0.8 has no read-only flag
            handle = wrap_owned(shared_runtime().handle, self._dtype, np.array(_Bits(self), copy=True), self._dims)
        managed = c_void_p()
        c.call(c.library.msrt_tensor_to_dlpack, handle.pointer, ctypes.byref(managed))
        return _python.PyCapsule_New(managed, _UNUSED, ctypes.cast(_DELETE_UNUSED, c_void_p))

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (_CPU, 0)

    def __repr__(self) -> str:
        return f"msrt.Tensor({self._dtype}{list(self._dims)})"


class _Bits:
    """The bytes of a tensor for NumPy; an array made from this object keeps the tensor alive."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        dtype = bits_dtype(tensor.dtype)
        self.__array_interface__ = {
            "version": 3, "typestr": dtype.str, "data": (tensor._address, not tensor._writable),
            "shape": (tensor.nbytes // dtype.itemsize,),
        }


def from_dlpack(value: Any) -> Tensor:
    """A tensor over the memory of an array or of another framework's CPU tensor, without a copy if it is contiguous.

    Takes everything with `__dlpack__` (PyTorch, JAX, CuPy on the host ...) and NumPy arrays, read-only ones included.
    """
    runtime = shared_runtime().handle
    if isinstance(value, np.ndarray):
        name = name_of(value.dtype)
        if name is None:
            raise UnsupportedError(f"an array of {value.dtype} has no element type of msrt; cast it, for example to numpy.float32")
        return Tensor(wrap_owned(runtime, name, to_bits(name, value), value.shape, value), writable=value.flags.writeable)
    if hasattr(value, "__dlpack__"):
        return Tensor(import_dlpack(runtime, value, "the tensor"))
    raise InvalidArgumentError(f"{type(value).__name__} is neither an array nor has __dlpack__; convert it with numpy.asarray")
