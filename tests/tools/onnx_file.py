"""Small ONNX models and .npy files written byte by byte, so that tests need nothing but Python itself."""
import ast
import struct

FLOAT, UINT8, INT8, INT64, STRING, BOOL, UINT4, INT4, FLOAT4 = 1, 2, 3, 7, 8, 9, 21, 22, 23


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """One field of a protobuf message: a number, or text, bytes or another message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(number, values):
    return b"".join(field(number, v) for v in values)


def tensor(name, dims, values, kind=FLOAT):
    code = {FLOAT: "f", INT8: "b", INT64: "q", BOOL: "?"}[kind]
    return fields(1, dims) + field(2, kind) + field(8, name) + field(9, struct.pack(f"<{len(values)}{code}", *values))


def tensor_type(dims, kind):
    if dims is None:
        return field(1, field(1, kind))
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, field(1, kind) + field(2, shape))


def value(name, dims, kind=FLOAT):
    """A dim is a number or a name; dims None: not even the rank is known."""
    return field(1, name) + field(2, tensor_type(dims, kind))


def list_value(name, dims, kind=FLOAT):
    """A sequence of such tensors."""
    return field(1, name) + field(2, field(4, field(1, tensor_type(dims, kind))))


def optional_value(name, dims, kind=FLOAT):
    """Such a tensor, or nothing."""
    return field(1, name) + field(2, field(9, field(1, tensor_type(dims, kind))))


def attribute(name, given):
    """A number, a text, bytes (a graph), or a list of integers."""
    if isinstance(given, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", given) + field(20, 1)
    if isinstance(given, list):
        return field(1, name) + fields(8, given) + field(20, 7)
    number, kind = {int: (3, 2), str: (4, 3), bytes: (6, 5)}[type(given)]
    return field(1, name) + field(number, given) + field(20, kind)


def node(op, inputs, outputs, name="", domain="", **attributes):
    return (fields(1, inputs) + fields(2, outputs) + field(3, name) + field(4, op)
            + fields(5, [attribute(*a) for a in attributes.items()]) + field(7, domain))


def graph(nodes, inputs, outputs, weights=(), known=()):
    return (fields(1, nodes) + field(2, "g") + fields(5, weights) + fields(11, inputs) + fields(12, outputs) + fields(13, known))


def model(main, opset=17, domains=()):
    imports = [("", opset)] + [(d, 1) for d in domains]
    return field(1, 8) + field(7, main) + fields(8, [field(1, d) + field(2, v) for d, v in imports])


def read_npy(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:6] == b"\x93NUMPY", path
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    count = 1
    for d in header["shape"]:
        count *= d
    assert (10 + length) % 64 == 0
    return header, list(struct.unpack(f"<{count}f", data[10 + length:])) if header["descr"] == "<f4" else data[10 + length:]


def write_npy(path, shape, values, descr="<f4", code="f"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values))
