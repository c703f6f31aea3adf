"""Cases of the optimizers of domain msrt. Run from the root of the repository:
    python tests/data/generate/training_optimizer.py tests/data/ops/training_optimizer.cases
"""
import sys

import numpy as np
import torch

from cases import BF16, Cases

RNG = np.random.default_rng(20261118)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 2e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}
TORCH = "torch.optim after some steps in double"


def adam_like(t, p, g, m, v, beta1=0.9, beta2=0.999, epsilon=1e-6):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return m / (1 - beta1**(t + 1)) / (np.sqrt(v / (1 - beta2**(t + 1))) + epsilon), m, v


def lamb(r, t, decay, adapted, p, g, m, v, **attrs):
    u, m, v = adam_like(t, p, g, m, v, **attrs)
    u = u + decay * p
    norms = np.linalg.norm(p), np.linalg.norm(u)
    trust = norms[0] / norms[1] if adapted and norms[0] > 0 and norms[1] > 0 else 1.0
    return p - r * trust * u, m, v


def lars(r, t, decay, adapted, p, g, b, momentum=0.0, trust=0.001, epsilon=1e-8):
    norms = np.linalg.norm(p), np.linalg.norm(g)
    ratio = trust * norms[0] / (norms[1] + decay * norms[0] + epsilon) if adapted and norms[0] > 0 and norms[1] > 0 else 1.0
    b = momentum * b + ratio * (g + decay * p)
    return p - r * b, b


# op -> (class of torch.optim, names of its state in the order of the lists)
TORCH_METHODS = {"Sgd": (torch.optim.SGD, []), "Momentum": (torch.optim.SGD, ["momentum_buffer"]),
                 "RmsProp": (torch.optim.RMSprop, ["square_avg", "grad_avg", "momentum_buffer"]),
                 "Adagrad": (torch.optim.Adagrad, ["sum"]), "Adam": (torch.optim.Adam, ["exp_avg", "exp_avg_sq"]),
                 "AdamW": (torch.optim.AdamW, ["exp_avg", "exp_avg_sq"])}
OURS = {"Lamb": (lamb, 2), "Lars": (lars, 1)}
# attribute -> argument of torch.optim
ARGUMENTS = {"epsilon": "eps", "rate_decay": "lr_decay"}


def arrays(parameter):
    return parameter.detach().numpy().copy()


def steps_of_torch(op, shapes, updates, rate, decays, factors, kind, attrs):
    """Parameters and state before and after update number `updates`, and the gradients, by torch.optim in double. Numbers are
    rounded to the type of the case before the last update."""
    make, names = TORCH_METHODS[op]
    arguments = {ARGUMENTS.get(k, k): (bool(v) if k in ("nesterov", "centered") else v) for k, v in attrs.items()
                 if k not in ("beta1", "beta2", "clip")}
    if op in ("Adam", "AdamW"):
        arguments["betas"] = (attrs.get("beta1", 0.9), attrs.get("beta2", 0.999))
        arguments.setdefault("eps", 1e-8)
    parameters = [torch.nn.Parameter(torch.from_numpy(RNG.normal(size=s))) for s in shapes]
    groups = [{"params": [p], "lr": rate * f, "weight_decay": d} for p, d, f in zip(parameters, decays, factors)]
    optimizer = make(groups, lr=rate, **arguments)

    def state(name):
        return [arrays(optimizer.state[p][name]) if optimizer.state[p].get(name) is not None else np.zeros(s)
                for p, s in zip(parameters, shapes)]

    def rounded(tensor):
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(np.asarray(tensor.numpy().astype(kind).astype(F64))))

    names = [n for n in names if n not in ("grad_avg", "momentum_buffer") or op != "RmsProp"
             or (n == "grad_avg" and attrs.get("centered")) or (n == "momentum_buffer" and attrs.get("momentum"))]
    for _ in range(updates):
        for p in parameters:
            p.grad = torch.from_numpy(RNG.normal(size=tuple(p.shape)))
        optimizer.step()
    for p in parameters:
        rounded(p.data)
        for name in names:
            if optimizer.state[p].get(name) is not None:
                rounded(optimizer.state[p][name])
        p.grad = torch.from_numpy(np.asarray(RNG.normal(size=tuple(p.shape)).astype(kind).astype(F64)))
    gradients = [p.grad.numpy().copy() for p in parameters]
    before = [[arrays(p) for p in parameters]] + [state(n) for n in names]
    # What the op does to gradients before anything else.
    clip = attrs.get("clip", 0)
    for p in parameters:
        p.grad *= FACTOR
        if clip:
            p.grad.clamp_(-clip, clip)
    optimizer.step()
    return before, gradients, [[arrays(p) for p in parameters]] + [state(n) for n in names]


FACTOR = 1.0


def one(cases, op, shapes, name, kind=F32, updates=3, rate=0.1, decays=None, factors=None, factor=None, skip=None, adapted=None, **attrs):
    global FACTOR
    FACTOR = 1.0 if factor is None else factor
    rate = float(np.asarray(rate, kind if kind in (F32, F64) else F32))
    each = lambda values, usual: [usual] * len(shapes) if not values else values * len(shapes) if len(values) == 1 else values
    if op in TORCH_METHODS:
        before, gradients, after = steps_of_torch(op, shapes, updates, rate, each(decays, 0.0), each(factors, 1.0), kind, attrs)
        oracle = TORCH
    else:
        method, lists = OURS[op]
        normal = lambda s: np.asarray(RNG.normal(size=s).astype(kind).astype(F64))
        before = [[normal(s) for s in shapes] for _ in range(lists + 1)]
        if op == "Lamb":
            before[2] = [np.abs(v) for v in before[2]]
        gradients = [normal(s) for s in shapes]
        used = {k: v for k, v in attrs.items() if k != "clip"}
        results = [method(rate * f, updates, d, a, before[0][i], gradients[i] * FACTOR, *[b[i] for b in before[1:]], **used)
                   for i, (d, f, a) in enumerate(zip(each(decays, 0.0), each(factors, 1.0), each(adapted, 1)))]
        after = [[r[k] for r in results] for k in range(lists + 1)]
        oracle = "the formulas of the papers in numpy, double precision"
    if skip:
        after = before
    if decays:
        attrs["weight_decay"] = [float(d) for d in decays]
    if factors:
        attrs["rate_factor"] = [float(f) for f in factors]
    if adapted:
        attrs["adapted"] = [int(a) for a in adapted]
    typed = lambda lists: [np.asarray(a, kind) for tensors in lists for a in tensors]
    inputs = [np.array(rate, kind if kind in (F32, F64) else F32), np.array(updates, np.int64),
              None if factor is None else np.array(factor, F64), None if skip is None else np.array(skip)]
    # Other families have ops of the same names.
    cases.add(op, inputs + typed([before[0], gradients] + before[1:]), typed(after), attrs, name=f"training_{name}", domain="msrt",
              rtol=RTOL[kind], atol=RTOL[kind], oracle=oracle)


def norm_and_average(cases):
    for kind in (F32, F64, F16, BF16):
        tensors = [RNG.normal(size=s).astype(kind) for s in ((3, 4), (5,), (2, 1, 3))]
        expected = np.sqrt(sum((t.astype(F64)**2).sum() for t in tensors))
        cases.add("GlobalNorm", tensors, [np.array(expected)], name=kind.name, domain="msrt", rtol=1e-12 if kind != F32 else 1e-7)
        averages = [RNG.normal(size=t.shape).astype(kind) for t in tensors]
        after = [(0.9 * a.astype(F64) + 0.1 * t.astype(F64)).astype(kind) for a, t in zip(averages, tensors)]
        cases.add("MovingAverage", [None] + averages + tensors, after, {"decay": 0.9}, name=kind.name, domain="msrt", rtol=RTOL[kind],
                  atol=RTOL[kind])
    cases.add("GlobalNorm", [np.array([3, np.inf], F32), np.ones(2, F32)], [np.array(np.inf)], name="infinite", domain="msrt")
    cases.add("GlobalNorm", [np.array([3, np.nan], F32)], [np.array(np.nan)], name="nan", domain="msrt")
    large = RNG.normal(size=(40000,)).astype(F32)
    cases.add("GlobalNorm", [large, np.zeros((0, 3), F32)], [np.array(np.linalg.norm(large.astype(F64)))], name="long", domain="msrt",
              rtol=1e-7)
    a, t = RNG.normal(size=(5,)).astype(F32), RNG.normal(size=(5,)).astype(F32)
    cases.add("MovingAverage", [np.array(True), a, t], [a], {"decay": 0.9}, name="skip", domain="msrt")


if __name__ == "__main__":
    all_cases = Cases("numpy, double precision")
    several = [(3, 4), (5,), (2, 1, 3)]
    for op_name, extra in (("Sgd", {}), ("Momentum", {"momentum": 0.9}), ("RmsProp", {}), ("Adagrad", {}), ("Adam", {}), ("AdamW", {}),
                           ("Lamb", {}), ("Lars", {"momentum": 0.9})):
        for dtype in (F32, F64, F16, BF16):
            one(all_cases, op_name, [(3, 4)], dtype.name, dtype, **extra)
        one(all_cases, op_name, several, "several", **extra)
        one(all_cases, op_name, several, "groups", F64, decays=[0.1, 0.0, 0.02], factors=[1.0, 0.5, 0.0], **extra)
        one(all_cases, op_name, several, "groups_f32", decays=[0.1, 0.0, 0.02], factors=[1.0, 0.5, 2.0], **extra)
        one(all_cases, op_name, [()], "scalar", **extra)
        one(all_cases, op_name, [(0, 3)], "empty", **extra)
        one(all_cases, op_name, [(1700,)], "longer_than_a_block", **extra)
        one(all_cases, op_name, several, "first_update", updates=0, decays=[0.01], **extra)
        one(all_cases, op_name, several, "factor", factor=0.25, **extra)
        one(all_cases, op_name, several, "not_skipped", skip=False, **extra)
        one(all_cases, op_name, several, "skipped", skip=True, **extra)
    for op_name, extra in (("Sgd", {}), ("Momentum", {"momentum": 0.9}), ("AdamW", {})):
        one(all_cases, op_name, several, "clip", factor=2.0, clip=0.5, **extra)
    one(all_cases, "Momentum", several, "nesterov", momentum=0.8, nesterov=1, decays=[0.01])
    one(all_cases, "Momentum", several, "dampening", F64, momentum=0.8, dampening=0.3)
    one(all_cases, "Momentum", several, "dampening_first", F64, updates=0, momentum=0.8, dampening=0.3)
    one(all_cases, "RmsProp", several, "centered", F64, alpha=0.9, epsilon=1e-3, centered=1)
    one(all_cases, "RmsProp", several, "momentum", F64, alpha=0.9, momentum=0.7)
    one(all_cases, "RmsProp", several, "centered_momentum", alpha=0.9, momentum=0.7, centered=1, epsilon=1e-3)
    one(all_cases, "Adagrad", several, "rate_decay", F64, rate_decay=0.1, epsilon=1e-3)
    one(all_cases, "Adam", several, "all_attributes", F64, beta1=0.8, beta2=0.95, epsilon=1e-3, decays=[0.1])
    one(all_cases, "AdamW", several, "all_attributes", F64, beta1=0.8, beta2=0.95, epsilon=1e-3, decays=[0.1])
    one(all_cases, "Lamb", several, "adapted", F64, adapted=[1, 0, 1], decays=[0.1], beta1=0.8)
    one(all_cases, "Lars", several, "adapted", F64, adapted=[1, 0, 1], decays=[0.1], momentum=0.8, trust=0.02)
    norm_and_average(all_cases)
    all_cases.write(sys.argv[1])
