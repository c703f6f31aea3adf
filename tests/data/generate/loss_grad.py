"""Cases of the loss_grad family: PyTorch's gradients in double precision. Run from the root of the repository:
    python tests/data/generate/loss_grad.py tests/data/ops/loss_grad.cases
"""
import sys

import numpy as np
import torch

from cases import Cases

RNG = np.random.default_rng(20261122)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3}


def add(cases, dtype, dims, reduction=None, weighted=False, ignore=None, index=np.int64, scale=1.0, name=""):
    x = (scale * RNG.normal(size=dims)).astype(dtype)
    samples = (dims[0],) + dims[2:]
    labels = RNG.integers(0, dims[1], samples).astype(index)
    if ignore is not None:
        labels.reshape(-1)[::3] = ignore
    weights = RNG.uniform(0.5, 2, dims[1]).astype(dtype) if weighted else None
    how = reduction or "mean"
    dloss = RNG.normal(size=samples if how == "none" else ()).astype(dtype)
    t = torch.tensor(x.astype(np.float64), requires_grad=True)
    w = torch.tensor(weights.astype(np.float64)) if weighted else None
    loss = torch.nn.functional.cross_entropy(t, torch.tensor(labels.astype(np.int64)), weight=w, reduction=how,
                                             ignore_index=-100 if ignore is None else ignore)
    loss.backward(torch.tensor(dloss.astype(np.float64)))
    attrs = ({"reduction": reduction} if reduction else {}) | ({} if ignore is None else {"ignore_index": ignore})
    cases.add("SoftmaxCrossEntropyGrad", [dloss, x, labels] + ([weights] if weighted else []), [t.grad.numpy().astype(dtype)], attrs,
              domain="msrt", name=name, rtol=RTOL[dtype], atol=RTOL[dtype])


if __name__ == "__main__":
    all_cases = Cases("PyTorch in double precision")
    for kind in (F32, F64, F16):
        add(all_cases, kind, (4, 5), name=kind.name)
    for form in ("mean", "sum", "none"):
        add(all_cases, F32, (6, 5), form, name=form)
        add(all_cases, F32, (6, 5), form, weighted=True, name=f"{form}_weighted")
        add(all_cases, F32, (6, 5), form, ignore=-1, name=f"{form}_ignored")
        add(all_cases, F32, (3, 4, 2, 3), form, weighted=True, ignore=2, name=f"{form}_images")
    add(all_cases, F32, (5, 3), index=np.int32, name="int32_labels")
    add(all_cases, F32, (3, 101), scale=30.0, name="large_scores")
    add(all_cases, F32, (200, 10), "sum", name="many_samples")
    all_cases.write(sys.argv[1])
