"""Losses and their gradients in double precision, by PyTorch. Run from the root of the repository:
    python tests/data/generate/losses.py tests/data/losses/losses.cases

A case has the prediction, the target and what else the loss takes (weights of classes, or the lengths of CTC); outputs are the loss and
the gradient of its sum with respect to the prediction.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F

from cases import Cases

RNG = np.random.default_rng(20261123)
REDUCTIONS = ("mean", "sum", "none")


def add(cases, kind, name, function, prediction, target, others=(), attrs=None, correction=None):
    p = torch.tensor(prediction, requires_grad=True)
    rest = [torch.tensor(target), *[torch.tensor(o) for o in others]]
    loss = function(p, *rest)
    loss.sum().backward()
    gradient = p.grad.numpy() - (0 if correction is None else correction)
    check_by_differences(lambda x: function(torch.tensor(x), *rest).sum().item(), prediction, gradient)
    cases.add(kind, [prediction, target, *others], [loss.detach().numpy(), gradient], attrs or {}, name=name, rtol=1e-12, atol=1e-13)


def check_by_differences(function, prediction, gradient):
    """A few elements of the gradient, so that an oracle with its own idea of a gradient is noticed."""
    for index in np.random.default_rng(1).integers(0, prediction.size, 5):
        step = np.zeros(prediction.size)
        step[index] = 1e-6
        step = step.reshape(prediction.shape)
        difference = (function(prediction + step) - function(prediction - step)) / 2e-6
        assert abs(difference - gradient.reshape(-1)[index]) < 1e-6 * max(1, abs(difference)), (difference, gradient.reshape(-1)[index])


def cross_entropy(cases):
    for how in REDUCTIONS:
        for smoothing in (0.0, 0.1):
            for ignore in (None, 1):
                for weighted in (False, True):
                    for dims in ((6, 4), (2, 5, 3, 2)):
                        labels = RNG.integers(0, dims[1], (dims[0],) + dims[2:])
                        weights = [RNG.uniform(0.5, 2, dims[1])] if weighted else []

                        def loss(p, t, w=None):
                            return F.cross_entropy(p, t, weight=w, reduction=how, label_smoothing=smoothing,
                                                   ignore_index=-100 if ignore is None else ignore)
                        attrs = {"reduction": how, "label_smoothing": smoothing} | ({} if ignore is None else {"ignore_index": ignore})
                        name = f"{how}_smoothing{int(smoothing * 10)}_{'ignored' if ignore else 'all'}_"
                        name += f"{'weighted' if weighted else 'plain'}_rank{len(dims)}"
                        add(cases, "CrossEntropy", name, loss, RNG.normal(size=dims), labels, weights, attrs)
            dense = RNG.dirichlet(np.ones(4), 6)
            add(cases, "CrossEntropy", f"{how}_dense_smoothing{int(smoothing * 10)}",
                lambda p, t, w: F.cross_entropy(p, t, weight=w, reduction=how, label_smoothing=smoothing), RNG.normal(size=(6, 4)), dense,
                [RNG.uniform(0.5, 2, 4)], {"reduction": how, "label_smoothing": smoothing})


def elements(cases):
    for how in REDUCTIONS:
        def one(kind, function, prediction, target, **attrs):
            add(cases, kind, f"{how}_rank{prediction.ndim}", function, prediction, target, attrs={"reduction": how} | attrs)
        for dims in ((7,), (3, 4, 2)):
            p, t = 2 * RNG.normal(size=dims), RNG.normal(size=dims)
            one("MeanSquares", lambda a, b: F.mse_loss(a, b, reduction=how), p, t)
            one("MeanAbsolute", lambda a, b: F.l1_loss(a, b, reduction=how), p, t)
            one("Huber", lambda a, b: F.huber_loss(a, b, reduction=how, delta=1.5), p, t, delta=1.5)
            probability = RNG.uniform(0.02, 0.98, dims)
            soft = RNG.uniform(0, 1, dims)
            one("BinaryCrossEntropy", lambda a, b: F.binary_cross_entropy(a, b, reduction=how), probability, soft)
            one("BinaryCrossEntropyWithLogits", lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction=how), 20 * p, soft)
        target = RNG.dirichlet(np.ones(5), 4)
        target[0] = [0, 1, 0, 0, 0]
        one("KullbackLeibler", lambda a, b: F.kl_div(a, b, reduction="batchmean" if how == "mean" else how),
            np.log(RNG.dirichlet(np.ones(5), 4)), target)

        def dice(a, b):
            axes = tuple(range(2, a.ndim))
            over = (lambda v: v.sum(dim=axes)) if axes else (lambda v: v)
            losses = 1 - (2 * over(a * b) + 1) / (over(a) + over(b) + 1)
            return losses if how == "none" else getattr(losses, how)()
        for dims in ((3, 4), (2, 3, 4, 5)):
            one("Dice", dice, RNG.uniform(0, 1, dims), RNG.integers(0, 2, dims).astype(np.float64))


def ctc(cases):
    for how in REDUCTIONS:
        for blank in (0, 2):
            steps, batch, classes, length = 9, 3, 5, 3
            labels = RNG.choice([c for c in range(classes) if c != blank], (batch, length))
            labels[0] = labels[0][0]  # repeated labels need a blank between them
            prediction, input_lengths, lengths = np.log(RNG.dirichlet(np.ones(classes), (steps, batch))), np.array([9, 7, 6]), np.array([3, 2, 1])
            # PyTorch's gradient is that of logits before a log-softmax: it has the probabilities in addition.
            factor = 1 / (batch * lengths) if how == "mean" else np.ones(batch)
            inside = np.arange(steps)[:, None, None] < input_lengths[None, :, None]
            add(cases, "Ctc", f"{how}_blank{blank}",
                lambda p, t, i, n: F.ctc_loss(p, t, i, n, blank=blank, reduction=how),
                prediction, labels, [input_lengths, lengths], {"reduction": how, "blank": blank},
                np.exp(prediction) * inside * factor[None, :, None])


if __name__ == "__main__":
    all_cases = Cases("PyTorch in double precision")
    cross_entropy(all_cases)
    elements(all_cases)
    ctc(all_cases)
    all_cases.write(sys.argv[1])
