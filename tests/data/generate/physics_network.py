"""A small physics-informed network in PyTorch, in double: the residual of the Korteweg-de Vries equation
u_t + 6 u u_x + u_xxx at some points, the mean of its squares, and the gradients of that with respect to the weights.
Run from the root of the repository:
    python tests/data/generate/physics_network.py tests/data/autodiff/physics_network.txt
Each line of the file: a name, the number of dims, the dims, the numbers.
"""
import sys

import torch

HIDDEN, POINTS = 6, 5


def activation(z):
    return z / (1 + z * z)


def derivative(u, x):
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def main(path):
    torch.manual_seed(20240917)
    draw = lambda *dims: torch.randn(*dims, dtype=torch.float64)
    given = {"t": draw(POINTS, 1), "x": draw(POINTS, 1), "wt": draw(1, HIDDEN), "wx": draw(1, HIDDEN), "b1": draw(HIDDEN),
             "w2": draw(HIDDEN, HIDDEN) / HIDDEN**0.5, "b2": draw(HIDDEN), "w3": draw(HIDDEN, 1)}
    for value in given.values():
        value.requires_grad_(True)
    t, x, wt, wx, b1, w2, b2, w3 = given.values()
    u = activation(activation(t @ wt + x @ wx + b1) @ w2 + b2) @ w3
    u_x = derivative(u, x)
    u_xx = derivative(u_x, x)
    u_xxx = derivative(u_xx, x)
    residual = derivative(u, t) + 6 * u * u_x + u_xxx
    loss = (residual * residual).sum() / POINTS
    names = ["wt", "wx", "b1", "w2", "b2", "w3"]
    gradients = torch.autograd.grad(loss, [given[name] for name in names])
    made = {"u": u, "u_x": u_x, "u_xx": u_xx, "u_xxx": u_xxx, "residual": residual, "loss": loss}
    made.update({f"grad_{name}": gradient for name, gradient in zip(names, gradients)})
    with open(path, "w", encoding="ascii") as file:
        for name, value in {**given, **made}.items():
            numbers = " ".join(repr(number) for number in value.detach().reshape(-1).tolist())
            dims = " ".join(str(d) for d in (value.dim(), *value.shape))
            file.write(f"{name} {dims} {numbers}\n")


if __name__ == "__main__":
    main(sys.argv[1])
