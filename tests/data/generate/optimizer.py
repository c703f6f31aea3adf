"""Cases of the optimizers. Run from the root of the repository:
    python tests/data/generate/optimizer.py tests/data/ops/optimizer.cases
"""
import sys

import numpy as np
import torch

from cases import BF16, Cases

RNG = np.random.default_rng(20240916)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}
DOMAIN = "ai.onnx.preview.training"


def adagrad(r, t, x, g, h, norm_coefficient=0.0, decay_factor=0.0, epsilon=1e-6):
    g = norm_coefficient * x + g
    h = h + g * g
    return x - r / (1 + t * decay_factor) * g / (np.sqrt(h) + epsilon), h


def adam(r, t, x, g, v, h, norm_coefficient=0.0, norm_coefficient_post=0.0, alpha=0.9, beta=0.999, epsilon=1e-6):
    g = norm_coefficient * x + g
    v = alpha * v + (1 - alpha) * g
    h = beta * h + (1 - beta) * g * g
    rate = r * np.sqrt(1 - beta**t) / (1 - alpha**t) if t > 0 else r
    return (1 - norm_coefficient_post) * (x - rate * v / (np.sqrt(h) + epsilon)), v, h


def momentum(r, t, x, g, v, norm_coefficient, alpha, beta, mode):
    g = norm_coefficient * x + g
    v = alpha * v + (beta if t > 0 else 1.0) * g
    return x - r * (g + alpha * v if mode == "nesterov" else v), v


METHODS = {"Adagrad": (adagrad, 3), "Adam": (adam, 4), "Momentum": (momentum, 3)}


def one(cases, op, shapes, name, dtype=F32, r=0.1, t=3, **attrs):
    method, lists = METHODS[op]
    tensors = [[RNG.normal(size=s).astype(dtype) for s in shapes] for _ in range(lists)]
    tensors[-1] = [np.abs(v) for v in tensors[-1]] if op != "Momentum" else tensors[-1]
    rate = np.array(r, dtype if dtype in (F32, F64) else F32)
    results = [method(float(rate), t, *[tensors[k][i].astype(F64) for k in range(lists)], **attrs) for i in range(len(shapes))]
    outputs = [results[i][k].astype(dtype) for k in range(lists - 1) for i in range(len(shapes))]
    cases.add(op, [rate, np.array(t, np.int64)] + sum(tensors, []), outputs, attrs, name=name, domain=DOMAIN, rtol=RTOL[dtype],
              atol=RTOL[dtype])


def against_torch(cases):
    """The same step made by torch.optim, where its definition is the same."""
    x, g = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))

    def step(make):
        parameter = torch.nn.Parameter(torch.from_numpy(x.copy()))
        parameter.grad = torch.from_numpy(g.copy())
        make([parameter]).step()
        return parameter.detach().numpy()

    zero = np.zeros_like(x)
    expected = step(lambda p: torch.optim.Adagrad(p, lr=0.1, eps=1e-6))
    cases.add("Adagrad", [np.array(0.1), np.array(0), x, g, zero], [expected, g * g], {"epsilon": 1e-6}, name="torch", domain=DOMAIN,
              rtol=1e-12, atol=1e-12, oracle="torch.optim")
    expected = step(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))
    cases.add("Momentum", [np.array(0.1), np.array(0), x, g, zero], [expected, g],
              {"norm_coefficient": 0.0, "alpha": 0.9, "beta": 1.0, "mode": "standard"}, name="torch", domain=DOMAIN, rtol=1e-12, atol=1e-12,
              oracle="torch.optim")
    expected = step(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))
    cases.add("Momentum", [np.array(0.1), np.array(0), x, g, zero], [expected, g],
              {"norm_coefficient": 0.0, "alpha": 0.9, "beta": 1.0, "mode": "nesterov"}, name="torch_nesterov", domain=DOMAIN, rtol=1e-12,
              atol=1e-12, oracle="torch.optim")
    # torch adds epsilon after the correction of the squares, so it must vanish for the two to agree.
    expected = step(lambda p: torch.optim.Adam(p, lr=0.1, eps=0.0))
    cases.add("Adam", [np.array(0.1), np.array(1), x, g, zero, zero], [expected, 0.1 * g, 0.001 * g * g], {"epsilon": 0.0}, name="torch",
              domain=DOMAIN, rtol=1e-9, atol=1e-12, oracle="torch.optim")


if __name__ == "__main__":
    all_cases = Cases("the formulas of ONNX in numpy, double precision")
    plain = {"norm_coefficient": 0.0, "alpha": 0.9, "beta": 0.7, "mode": "standard"}
    for op_name, extra in (("Adagrad", {}), ("Adam", {}), ("Momentum", plain)):
        for kind in (F32, F64, F16, BF16):
            one(all_cases, op_name, [(3, 4)], kind.name, kind, **extra)
        one(all_cases, op_name, [(3, 4), (5,), (2, 1, 3)], "several", **extra)
        one(all_cases, op_name, [()], "scalar", **extra)
        one(all_cases, op_name, [(0, 3)], "empty", **extra)
        one(all_cases, op_name, [(700,)], "longer_than_a_block", **extra)
        one(all_cases, op_name, [(3, 4)], "first_update", t=0, **extra)
    one(all_cases, "Adagrad", [(3, 4)], "all_attributes", norm_coefficient=0.01, decay_factor=0.1, epsilon=1e-3)
    one(all_cases, "Adam", [(3, 4)], "all_attributes", norm_coefficient=0.01, norm_coefficient_post=0.02, alpha=0.95, beta=0.9, epsilon=1e-3)
    one(all_cases, "Momentum", [(3, 4)], "all_attributes", norm_coefficient=0.01, alpha=0.95, beta=0.1, mode="standard")
    one(all_cases, "Momentum", [(3, 4)], "nesterov", norm_coefficient=0.01, alpha=0.95, beta=0.3, mode="nesterov")
    against_torch(all_cases)
    all_cases.write(sys.argv[1])
