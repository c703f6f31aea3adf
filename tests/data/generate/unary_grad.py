"""Cases of the unary_grad family: PyTorch's gradients in double precision. Run from the root of the repository:
    python tests/data/generate/unary_grad.py tests/data/ops/unary_grad.cases
"""
import sys

import numpy as np
import torch

from cases import Cases

RNG = np.random.default_rng(20261118)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3}


def slope(function, x, dy):
    t = torch.tensor(x.astype(np.float64), requires_grad=True)
    function(t).backward(torch.tensor(dy.astype(np.float64)))
    return t.grad.numpy()


def relu(cases, dtype, shape, name):
    x, dy = RNG.normal(size=shape).astype(dtype), RNG.normal(size=shape).astype(dtype)
    cases.add("ReluGrad", [dy, np.maximum(x, 0)], [slope(torch.relu, x, dy).astype(dtype)], domain="msrt", name=name)


def gelu(cases, dtype, shape, approximate, name, scale=1.0):
    x, dy = (scale * RNG.normal(size=shape)).astype(dtype), RNG.normal(size=shape).astype(dtype)
    form = approximate or "none"
    out = slope(lambda t: torch.nn.functional.gelu(t, approximate=form), x, dy).astype(dtype)
    cases.add("GeluGrad", [dy, x], [out], {"approximate": approximate} if approximate else {}, domain="msrt", name=name,
              rtol=RTOL[dtype], atol=RTOL[dtype])


if __name__ == "__main__":
    all_cases = Cases("PyTorch in double precision")
    for kind in (F32, F64, F16):
        relu(all_cases, kind, (3, 5, 4), kind.name)
        for form in (None, "tanh"):
            gelu(all_cases, kind, (3, 5, 4), form, f"{kind.name}_{form or 'default'}")
    for dims, label in (((), "scalar"), ((0, 3), "empty"), ((1, 1031), "long"), ((2, 3, 2, 2, 3), "rank5")):
        relu(all_cases, F32, dims, label)
        gelu(all_cases, F32, dims, None, label)
    for value in (RNG.normal(size=(3, 4)), RNG.normal(size=(2, 0)).astype(F32), np.array([True, False]), np.array(7, np.int64)):
        all_cases.add("StopGradient", [value], [value], domain="msrt", name=f"{value.dtype.name}_rank{value.ndim}")
    for form in ("none", "tanh"):
        gelu(all_cases, F32, (64,), form, f"tails_{form}", scale=6.0)
    all_cases.write(sys.argv[1])
