"""Cases of the reduce_grad family. Run from the root of the repository:
    python tests/data/generate/reduce_grad.py tests/data/ops/reduce_grad.cases
"""
import sys

import numpy as np

from cases import Cases

RNG = np.random.default_rng(20261120)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3}


def sum_to(x, shape):
    wide = x.astype(np.float64)
    extra = wide.ndim - len(shape)
    wide = wide.sum(axis=tuple(range(extra)))
    axes = tuple(d for d, extent in enumerate(shape) if extent == 1 and wide.shape[d] != 1)
    return wide.sum(axis=axes, keepdims=True).astype(x.dtype)


def add(cases, dtype, dims, shape, form, name):
    x = RNG.normal(size=dims).astype(dtype)
    inputs = [x] if form == "attribute" else [x, np.array(shape, np.int64)]
    cases.add("SumTo", inputs, [sum_to(x, shape)], {"shape": shape} if form == "attribute" else {}, domain="msrt", name=name,
              constants=(1,) if form == "constant" else (), rtol=RTOL[dtype], atol=RTOL[dtype])


if __name__ == "__main__":
    all_cases = Cases("numpy in double precision")
    for kind in (F32, F64, F16):
        add(all_cases, kind, (3, 5, 4), [1, 4], "attribute", kind.name)
    for form in ("attribute", "constant", "dynamic"):
        add(all_cases, F32, (2, 3, 4, 5), [3, 1, 5], form, f"leading_and_middle_{form}")
        add(all_cases, F32, (2, 3, 4), [2, 3, 4], form, f"nothing_to_sum_{form}")
    add(all_cases, F32, (3, 4), [1], "constant", "to_one")
    add(all_cases, F32, (3, 4), [1, 1], "dynamic", "to_one_of_rank2")
    add(all_cases, F32, (2, 7, 1, 3), [7, 1, 1], "attribute", "dim_of_one_stays")
    add(all_cases, F32, (0, 3), [3], "constant", "of_nothing")
    add(all_cases, F32, (0, 3), [0, 1], "constant", "to_nothing")
    add(all_cases, F32, (2, 3, 2, 2, 3), [3, 1, 2, 1], "attribute", "rank5")
    add(all_cases, F32, (1, 1500), [1, 1], "attribute", "long")
    all_cases.write(sys.argv[1])
