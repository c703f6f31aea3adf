"""Cases of the softmax_grad family: PyTorch's gradients in double precision. Run from the root of the repository:
    python tests/data/generate/softmax_grad.py tests/data/ops/softmax_grad.cases
"""
import sys

import numpy as np
import torch

from cases import Cases

RNG = np.random.default_rng(20261119)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
# The output that the op reads has the precision of its type.
RTOL = {F32: 1e-6, F64: 1e-13, F16: 4e-3}


def add(cases, op, dtype, shape, axis=None, name="", scale=1.0):
    dy = RNG.normal(size=shape).astype(dtype)
    function = torch.softmax if op == "SoftmaxGrad" else torch.log_softmax
    x = torch.tensor(scale * RNG.normal(size=shape), requires_grad=True)
    y = function(x, dim=-1 if axis is None else axis)
    y.backward(torch.tensor(dy.astype(np.float64)))
    cases.add(op, [dy, y.detach().numpy().astype(dtype)], [x.grad.numpy().astype(dtype)], {} if axis is None else {"axis": axis},
              domain="msrt", name=name, rtol=RTOL[dtype], atol=RTOL[dtype])


if __name__ == "__main__":
    all_cases = Cases("PyTorch in double precision")
    for name in ("SoftmaxGrad", "LogSoftmaxGrad"):
        for kind in (F32, F64, F16):
            add(all_cases, name, kind, (3, 5, 4), name=kind.name)
        for position in (0, 1, 2, -2):
            add(all_cases, name, F32, (2, 7, 5), position, name=f"axis{position}".replace("-", "_minus"))
        add(all_cases, name, F32, (2, 3, 2, 5), 1, name="rank4", scale=5.0)
        add(all_cases, name, F32, (9,), 0, name="vector")
        add(all_cases, name, F32, (3, 1), name="one_class")
        add(all_cases, name, F32, (0, 4), name="empty")
        add(all_cases, name, F32, (2, 301), name="long")
    all_cases.write(sys.argv[1])
