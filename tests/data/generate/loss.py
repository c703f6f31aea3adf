"""Cases of the losses over classes. Run from the root of the repository:
    python tests/data/generate/loss.py tests/data/ops/loss.cases
"""
import sys

import numpy as np
import torch

from cases import BF16, Cases

RNG = np.random.default_rng(20240912)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3, BF16: 1e-2}


def expected(op, scores, target, weight, reduction, ignore):
    """PyTorch in double; it knows ignore_index outside the classes too."""
    scores = torch.from_numpy(scores.astype(F64))
    weight = None if weight is None else torch.from_numpy(weight.astype(F64))
    log_prob = torch.nn.functional.log_softmax(scores, 1) if op == "SoftmaxCrossEntropyLoss" else scores
    loss = torch.nn.functional.nll_loss(log_prob, torch.from_numpy(target.astype(np.int64)), weight, reduction=reduction,
                                        ignore_index=-1000 if ignore is None else ignore)
    return loss.numpy(), log_prob.numpy()


def one(cases, op, shape, name, dtype=F32, reduction=None, weighted=False, ignore=None, index=np.int64, outputs=1):
    scores = (RNG.normal(size=shape) * 2).astype(dtype)
    samples = (shape[0],) + tuple(shape[2:])
    target = RNG.integers(0, shape[1], samples).astype(index) if shape[1] else np.zeros(samples, index)
    if ignore is not None:
        target[RNG.uniform(size=samples) < 0.3] = ignore
    weight = RNG.uniform(0.1, 2, shape[1]).astype(dtype) if weighted else None
    loss, log_prob = expected(op, scores, target, weight, reduction or "mean", ignore)
    attrs = {n: v for n, v in (("reduction", reduction), ("ignore_index", ignore)) if v is not None}
    results = [loss.astype(dtype), log_prob.astype(dtype)]
    cases.add(op, [scores, target] + ([weight] if weighted else []), results[:outputs], attrs, name=name, rtol=RTOL[dtype], atol=RTOL[dtype])


def both(cases, op):
    for dtype in (F32, F64, F16, BF16):
        one(cases, op, (4, 5, 3), dtype.name, dtype, "none", weighted=True)
        one(cases, op, (4, 5, 3), f"mean_{dtype.name}", dtype, weighted=True, ignore=2)
    for reduction in ("none", "sum", "mean"):
        for weighted in (False, True):
            for ignore in (None, -1, 2, 17):
                label = f"{reduction}{'_weights' if weighted else ''}{'' if ignore is None else f'_ignore{ignore}'.replace('-', 'minus')}"
                one(cases, op, (3, 5, 2, 4), label, reduction=reduction, weighted=weighted, ignore=ignore)
    one(cases, op, (6, 3), "matrix")
    one(cases, op, (6, 3), "matrix_none_int32", reduction="none", index=np.int32, ignore=-1)
    one(cases, op, (2, 3, 2, 1, 2, 2), "rank6", reduction="none", weighted=True)
    one(cases, op, (3, 1, 4), "one_class", reduction="sum")
    one(cases, op, (0, 3, 2), "no_samples_none", reduction="none")
    one(cases, op, (0, 3, 2), "no_samples_sum", reduction="sum")
    one(cases, op, (0, 3, 2), "no_samples_mean", reduction="mean")


if __name__ == "__main__":
    all_cases = Cases("PyTorch in double precision")
    both(all_cases, "NegativeLogLikelihoodLoss")
    both(all_cases, "SoftmaxCrossEntropyLoss")
    for reduction in ("none", "sum", "mean"):
        one(all_cases, "SoftmaxCrossEntropyLoss", (3, 4, 5), f"log_prob_{reduction}", reduction=reduction, weighted=True, outputs=2)
    one(all_cases, "SoftmaxCrossEntropyLoss", (3, 40, 2), "log_prob_f16", F16, "none", outputs=2, ignore=-1)
    all_cases.write(sys.argv[1])
