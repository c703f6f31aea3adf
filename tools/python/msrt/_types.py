"""Element types, and the types of inputs and outputs."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._errors import UnsupportedError

Array = npt.NDArray[Any]
Dim = Union[int, str, None]

# By the numbers of the C library, with the name of the NumPy type or, in brackets, of that of ml_dtypes.
_ROWS = (
    (1, "f64", "float64"), (2, "f32", "float32"), (3, "f16", "float16"), (4, "bf16", "[bfloat16]"),
    (5, "i8", "int8"), (6, "i16", "int16"), (7, "i32", "int32"), (8, "i64", "int64"),
    (9, "u8", "uint8"), (10, "u16", "uint16"), (11, "u32", "uint32"), (12, "u64", "uint64"), (13, "bool", "bool"),
    (14, "i4", "[int4]"), (15, "u4", "[uint4]"),
    (16, "f8e4m3fn", "[float8_e4m3fn]"), (17, "f8e4m3fnuz", "[float8_e4m3fnuz]"),
    (18, "f8e5m2", "[float8_e5m2]"), (19, "f8e5m2fnuz", "[float8_e5m2fnuz]"), (20, "f4e2m1", "[float4_e2m1fn]"),
)
NAMES: Dict[int, str] = {number: name for number, name, _ in _ROWS}
NUMBERS: Dict[str, int] = {name: number for number, name, _ in _ROWS}
_NUMPY_NAMES: Dict[str, str] = {name: numpy_name.strip("[]") for _, name, numpy_name in _ROWS}
_NUMPY: Dict[str, np.dtype[Any]] = {name: np.dtype(numpy_name) for _, name, numpy_name in _ROWS if numpy_name[0] != "["}
# Two elements share a byte, the first in the low half.
PACKED = ("i4", "u4", "f4e2m1")
# NumPy types of 4-bit integers, and of bf16 without ml_dtypes; they have all values of the type.
_WIDER: Dict[str, np.dtype[Any]] = {"i4": np.dtype(np.int8), "u4": np.dtype(np.uint8), "bf16": np.dtype(np.float32)}


@functools.lru_cache(maxsize=None)
def _ml_dtype(name: str) -> Optional[np.dtype[Any]]:
    try:
        import ml_dtypes
    except ImportError:
        return None
    found = getattr(ml_dtypes, _NUMPY_NAMES[name], None)
    return None if found is None else np.dtype(found)


def bits_dtype(name: str) -> np.dtype[Any]:
    """The dtype for the bytes of a tensor: its own, or unsigned integers for types that NumPy lacks."""
    return _NUMPY.get(name, np.dtype(np.uint16 if name == "bf16" else np.uint8))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of arrays of an element type."""
    if name in _NUMPY:
        return _NUMPY[name]
    found = _WIDER[name] if name in ("i4", "u4") else _ml_dtype(name) or _WIDER.get(name)
    if found is None:
        raise UnsupportedError(f"NumPy has no type for {name}; install ml_dtypes")
    return found


def name_of(dtype: np.dtype[Any]) -> Optional[str]:
    """The element type that matches the dtype; None: msrt has no such type."""
    for name, numpy_name in _NUMPY_NAMES.items():
        if dtype.name == numpy_name:
            return name
    return None


def from_bits(name: str, bits: Array, dims: Tuple[int, ...]) -> Array:
    """The values of a tensor from its bytes (as bits_dtype has them): a view where NumPy or ml_dtypes has the type, else a copy."""
    if name in PACKED:
        nibbles = np.stack([bits & 15, bits >> 4], axis=-1).reshape(-1)[:math.prod(dims)].reshape(dims)
        if name == "i4":
            return (nibbles ^ 8).astype(np.int8) - np.int8(8)
        return nibbles.view(numpy_dtype(name))
    if name in _NUMPY:
        return bits.reshape(dims)
    found = numpy_dtype(name)
    if found == np.float32:
        return (bits.astype(np.uint32) << 16).view(np.float32).reshape(dims)
    return bits.reshape(dims).view(found)


def to_bits(name: str, values: Array) -> Array:
    """The reverse of from_bits: contiguous, in the machine's byte order; `values` itself if it already is."""
    if name in _NUMPY and values.flags.carray and values.dtype.isnative:  # the usual case, in less time than np.require takes
        return values
    if name in PACKED:
        flat = np.ascontiguousarray(values).reshape(-1)
        nibbles = (flat if name == "f4e2m1" else flat.astype(np.int8)).view(np.uint8) & 15
        nibbles = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8))
        return (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8)
    if name == "bf16" and values.dtype == np.float32:
        return _round_to_bf16(values)
    plain = np.require(values, values.dtype.newbyteorder("="), ["C", "A"])
    return plain if name in _NUMPY else plain.view(bits_dtype(name))


def _round_to_bf16(values: Array) -> Array:
    """Rounds to nearest, ties to even; a NaN stays a NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


class TensorSpec(NamedTuple):
    """Name and type of an input, an output or a state."""

    name: str
    #: "f32", "i64", "bool" and so on.
    dtype: str
    #: A number, the name of an open dim (equal names mean equal sizes), or None for an open dim without a name. None: the rank is open.
    dims: Optional[Tuple[Dim, ...]]
    #: 0: a tensor; 1: a list of such tensors (an optional is a list of at most one); 2: a list of lists, and so on.
    list_depth: int
    #: Of a state: "cache", "parameter", "optimizer" or "statistic"; otherwise empty.
    role: str = ""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of arrays for it."""
        return numpy_dtype(self.dtype)

    def __str__(self) -> str:
        dims = "[...]" if self.dims is None else "[" + ", ".join("?" if d is None else str(d) for d in self.dims) + "]"
        kind = self.dtype + dims
        for _ in range(self.list_depth):
            kind = f"list({kind})"
        return f"{self.name}: {kind}"


def new_info() -> c.TensorInfo:
    return c.TensorInfo(struct_size=ctypes.sizeof(c.TensorInfo))


def spec_of(info: c.TensorInfo) -> TensorSpec:
    dims: Optional[Tuple[Dim, ...]] = None
    if info.rank >= 0:
        known = [(info.dims[i], info.symbols[i]) for i in range(info.rank)]
        dims = tuple(size if size != c.UNKNOWN_DIM else symbol and symbol.decode() for size, symbol in known)
    return TensorSpec((info.name or b"").decode(), NAMES[info.dtype], dims, info.list_depth)
