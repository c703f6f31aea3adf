"""Cases of the determinant_grad family. Run from the root of the repository:
    python tests/data/generate/determinant_grad.py tests/data/ops/determinant_grad.cases
"""
import sys

import numpy as np

from cases import Cases

RNG = np.random.default_rng(20261121)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3}


def add(cases, dtype, dims, name):
    # Far from singular, but with rows in an order that needs pivots.
    x = (RNG.uniform(-1, 1, dims) + 3 * np.eye(dims[-1])[::-1]).astype(dtype)
    cases.add("Inverse", [x], [np.linalg.inv(x.astype(np.float64)).astype(dtype)], domain="msrt", name=name, rtol=RTOL[dtype],
              atol=RTOL[dtype])


if __name__ == "__main__":
    all_cases = Cases("numpy in double precision")
    for kind in (F32, F64, F16):
        add(all_cases, kind, (4, 4), kind.name)
    for shape, label in (((1, 1), "one"), ((2, 3, 5, 5), "stack"), ((7, 2, 2), "pairs"), ((0, 3, 3), "empty"), ((9, 9), "nine")):
        add(all_cases, F32, shape, label)
    all_cases.write(sys.argv[1])
