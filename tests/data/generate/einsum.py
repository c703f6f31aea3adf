"""Cases of Einsum and Det. Run from the root of the repository:
    python tests/data/generate/einsum.py tests/data/ops/einsum.cases
"""
import sys

import numpy as np
import torch

from cases import BF16, Cases

RNG = np.random.default_rng(20240914)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = [F32, F64, F16, BF16]
INTS = [np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)]
RTOL = {F32: 1e-6, F64: 1e-13, F16: 1e-3, BF16: 1e-2}


def random(dtype, shape):
    if dtype in FLOATS:
        return RNG.normal(size=shape).astype(dtype)
    return RNG.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)


def einsum(cases):
    def one(equation, *shapes, dtype=F32, name, torch_oracle=False):
        inputs = [random(dtype, s) for s in shapes]
        if dtype in FLOATS:
            wide = [x.astype(F64) for x in inputs]
            if torch_oracle:
                out = torch.einsum(equation, *[torch.from_numpy(x) for x in wide]).numpy()
            else:
                out = np.einsum(equation, *wide)
            most = float(np.abs(out).max()) if out.size else 0.0
            tolerance = {"rtol": RTOL[dtype], "atol": RTOL[dtype] * most}
        else:
            out, tolerance = np.einsum(equation, *inputs, dtype=dtype, casting="unsafe"), {}
        cases.add("Einsum", inputs, [np.asarray(out).astype(dtype)], {"equation": equation}, name=name,
                  oracle="PyTorch in double precision" if torch_oracle else "numpy.einsum", **tolerance)

    for dtype in FLOATS + INTS:
        one("ij,jk->ik", (3, 4), (4, 5), dtype=dtype, name=f"matmul_{dtype.name}")
    one("ij->ji", (3, 4), name="transpose")
    one("ij->i", (3, 4), name="sum_rows")
    one("ij->", (3, 4), name="sum_all")
    one("ii->i", (4, 4), name="diagonal")
    one("ii", (4, 4), name="trace_implicit")
    one("ii->", (4, 4), name="trace")
    one("iji->j", (3, 2, 3), name="repeated_around")
    one("i,i", (5,), (5,), name="inner_implicit")
    one("i,j->ij", (5,), (3,), name="outer")
    one("ij,jk", (3, 4), (4, 5), name="matmul_implicit")
    one("ba,ca", (3, 4), (5, 4), name="implicit_sorts_letters")
    one("bA,cA->bc", (3, 4), (5, 4), name="capitals_are_others")
    one("aB,Bc", (3, 4), (4, 2), name="capitals_first_when_implicit")
    one("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5), name="attention_scores")
    one("b h q k, b h k d -> b q h d", (2, 3, 4, 6), (2, 3, 6, 5), name="spaces")
    one("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5), name="ellipsis")
    one("...ij,...jk", (2, 3, 4), (2, 4, 5), name="ellipsis_implicit")
    one("...ij,jk->...ik", (2, 3, 3, 4), (4, 5), name="ellipsis_on_one_side")
    one("...ij,...jk->...ik", (2, 1, 3, 4), (1, 6, 4, 5), name="ellipsis_broadcasts")
    one("...ij,...jk->...ik", (6, 3, 4), (2, 6, 4, 5), name="ellipses_of_two_ranks")
    one("...ii->...i", (2, 3, 3), name="batch_diagonal")
    one("i...->...", (3, 2, 4), name="ellipsis_behind")
    one("i...->i...", (3,), name="empty_ellipsis")
    one("...i->i", (2, 3, 4), name="ellipsis_summed", torch_oracle=True)
    one("ij,jk->ik", (3, 1), (4, 5), name="one_goes_with_any", torch_oracle=True)
    one("ab,bc,cd->ad", (2, 3), (3, 4), (4, 2), name="three_operands")
    one("ab,ab,ab,ab->b", (3, 4), (3, 4), (3, 4), (3, 4), name="four_operands")
    one(",i->i", (), (4,), name="scalar_operand")
    one("->", (), name="scalar")
    one("abcde->edcba", (2, 3, 1, 2, 3), name="rank5")
    one("ij,jk->ik", (0, 4), (4, 5), name="empty_output")
    one("ij,jk->ik", (3, 0), (0, 5), name="empty_sum")


def det(cases):
    def one(shape, dtype=F32, name="", x=None):
        x = random(dtype, shape) if x is None else x
        out = np.linalg.det(x.astype(F64))
        rtol = RTOL[dtype]
        cases.add("Det", [x], [np.asarray(out).astype(dtype)], name=name, rtol=10 * rtol if dtype == F64 else rtol, atol=rtol,
                  oracle="numpy.linalg.det in double precision")

    for dtype in FLOATS:
        one((3, 3, 3), dtype, name=dtype.name)
    for n in (1, 2, 4, 7):
        one((n, n), name=f"{n}x{n}")
    one((2, 3, 4, 5, 5), name="rank5")
    one((2, 2), name="singular", x=np.array([[1, 2], [2, 4]], F32))
    one((3, 3), name="zero_on_the_diagonal", x=np.array([[0, 2, 1], [3, 0, 1], [1, 1, 0]], F32))
    one((2, 0, 0), name="empty_matrices")
    one((0, 3, 3), name="no_matrices")


if __name__ == "__main__":
    all_cases = Cases("numpy")
    einsum(all_cases)
    det(all_cases)
    all_cases.write(sys.argv[1])
