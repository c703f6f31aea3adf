"""Writes op cases: inputs, attributes and the outputs that an independent oracle (NumPy in double precision, ONNX Runtime,
PyTorch) computed. tests/conformance reads them; nothing at build or test time needs Python or the oracle.

File: "MSRTCASE", u64 length of the JSON, the JSON, zeros to a multiple of 64, then the data; every tensor starts at a multiple of
64 from the start of the data. All numbers are little-endian.
"""
import json
import struct

import numpy as np

try:
    import ml_dtypes
    BF16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    BF16 = None

NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
         "int4": "i4", "uint4": "u4", "float4_e2m1fn": "f4e2m1", "float8_e4m3fn": "f8e4m3fn", "float8_e4m3fnuz": "f8e4m3fnuz",
         "float8_e5m2": "f8e5m2", "float8_e5m2fnuz": "f8e5m2fnuz"}


def packed(array):
    """The bytes of an array as the runtime stores it: two elements of 4 bits share a byte, the first in the low half."""
    if array.dtype.name not in ("int4", "uint4", "float4_e2m1fn"):
        return np.ascontiguousarray(array).tobytes()
    codes = np.append(array.reshape(-1).view(np.uint8) & 15, np.zeros(array.size % 2, np.uint8))
    return (codes[0::2] | codes[1::2] << 4).tobytes()


class Dtype(str):
    """An attribute that names an element type, such as the `to` of Cast."""


class Cases:
    """One family's file. `oracle` says where the expected outputs come from; it is shown when a case fails."""

    def __init__(self, oracle):
        self.oracle, self.cases, self.blob, self.names = oracle, [], bytearray(), set()

    def tensor(self, array, constant=False):
        array = np.asarray(array)
        self.blob += bytes(-len(self.blob) % 64)
        offset = len(self.blob)
        self.blob += packed(array)
        return {"dtype": NAMES[array.dtype.name], "dims": list(array.shape), "offset": offset, "constant": constant}

    def attr(self, value):
        if isinstance(value, Dtype):
            return {"kind": "type", "value": str(value)}
        if isinstance(value, np.ndarray):
            return {"kind": "tensor", "value": self.tensor(value)}
        if isinstance(value, (bool, int, np.integer)):
            return {"kind": "int", "value": int(value)}
        if isinstance(value, (float, np.floating)):
            return {"kind": "float", "value": float(value)}
        if isinstance(value, str):
            return {"kind": "string", "value": value}
        values = list(value)
        if any(isinstance(v, str) for v in values):
            return {"kind": "strings", "value": values}
        if any(isinstance(v, (float, np.floating)) for v in values):
            return {"kind": "floats", "value": [float(v) for v in values]}
        return {"kind": "ints", "value": [int(v) for v in values]}

    def add(self, op, inputs, outputs, attrs=None, *, domain="", name="", rtol=0.0, atol=0.0, constants=(), oracle=None):
        """inputs and outputs: arrays, or None where an optional one is left out. constants: indices of inputs whose values are
        part of the graph. A result passes when |got - expected| <= atol + rtol * |expected| for every element; 0 and 0 mean the
        same bits (any NaN equals any NaN)."""
        base = f"{op}_{name or len(self.cases)}"
        assert base not in self.names, base
        self.names.add(base)
        self.cases.append({
            "name": base, "domain": domain, "op": op, "rtol": rtol, "atol": atol, "oracle": oracle or self.oracle,
            "attrs": {k: self.attr(v) for k, v in (attrs or {}).items()},
            "inputs": [None if a is None else self.tensor(a, i in constants) for i, a in enumerate(inputs)],
            "outputs": [None if a is None else self.tensor(a) for a in outputs],
        })

    def write(self, path):
        text = json.dumps({"cases": self.cases}, separators=(",", ":")).encode()
        head = b"MSRTCASE" + struct.pack("<Q", len(text)) + text
        head += bytes(-len(head) % 64)
        with open(path, "wb") as f:
            f.write(head + self.blob)
        print(f"{path}: {len(self.cases)} cases, {len(head) + len(self.blob)} bytes")
