"""Cases of RotaryEmbedding. Run from the root of the repository:
    python tests/data/generate/rotary.py tests/data/ops/rotary.cases
"""
import sys

import numpy as np

from cases import BF16, Cases

RNG = np.random.default_rng(20240917)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}


def turned(x, angles_cos, angles_sin, pairs, interleaved):
    """Each pair as a complex number times cos + i sin; x is [batch, heads, sequence, head]."""
    part = x[..., :2 * pairs]
    a, b = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :pairs], part[..., pairs:])
    z = (a + 1j * b) * (angles_cos + 1j * angles_sin)[:, None]
    out = x.copy()
    if interleaved:
        out[..., 0:2 * pairs:2], out[..., 1:2 * pairs:2] = z.real, z.imag
    else:
        out[..., :pairs], out[..., pairs:2 * pairs] = z.real, z.imag
    return out


def rotary(cases):
    def one(batch, heads, sequence, head, name, rotary_dim=0, interleaved=0, ids=True, flat=False, dtype=F32, index=np.int64, wide=False):
        pairs = (rotary_dim or head) // 2
        width = head // 2 if wide else pairs
        x = RNG.normal(size=(batch, heads, sequence, head)).astype(dtype)
        angles = RNG.uniform(-3, 3, (50, width) if ids else (batch, sequence, width))
        cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
        positions = RNG.integers(0, 50, (batch, sequence)).astype(index) if ids else None
        c, s = (cos[positions], sin[positions]) if ids else (cos, sin)
        c, s = c[..., :pairs], s[..., :pairs]
        expected = turned(x.astype(F64), c.astype(F64), s.astype(F64), pairs, interleaved)
        attrs = {k: v for k, v in (("rotary_embedding_dim", rotary_dim), ("interleaved", interleaved)) if v}
        if flat:
            merge = lambda t: np.swapaxes(t, 1, 2).reshape(batch, sequence, heads * head)
            x, expected = merge(x), merge(expected)
            attrs["num_heads"] = heads
        cases.add("RotaryEmbedding", [x, cos, sin] + ([positions] if ids else []), [expected.astype(dtype)], attrs, name=name,
                  rtol=RTOL[dtype], atol=RTOL[dtype], oracle="products of complex numbers in numpy, double precision")

    for dtype in (F32, F64, F16, BF16):
        one(2, 3, 4, 8, dtype.name, dtype=dtype)
    for interleaved in (0, 1):
        for ids in (False, True):
            for flat in (False, True):
                label = f"{'interleaved' if interleaved else 'halves'}_{'ids' if ids else 'caches'}_{'flat' if flat else 'heads'}"
                one(2, 3, 4, 8, label, interleaved=interleaved, ids=ids, flat=flat)
                one(2, 2, 3, 10, f"part_{label}", rotary_dim=6, interleaved=interleaved, ids=ids, flat=flat)
    for ids in (False, True):
        one(2, 2, 3, 9, f"part_of_wide_cache_{'ids' if ids else 'caches'}", rotary_dim=6, ids=ids, wide=True)
        one(2, 2, 3, 8, f"part_of_wide_cache_interleaved_{'ids' if ids else 'caches'}", rotary_dim=4, ids=ids, interleaved=1, wide=True)
    one(1, 1, 1, 2, "smallest")
    one(2, 3, 4, 8, "int32_positions", index=np.int32)
    one(2, 3, 0, 8, "no_tokens")


if __name__ == "__main__":
    all_cases = Cases("numpy")
    rotary(all_cases)
    all_cases.write(sys.argv[1])
