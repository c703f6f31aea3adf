"""Cases of the random ops. Run from the root of the repository:
    python tests/data/generate/randomness.py tests/data/ops/random.cases

Bits are those of numpy's Philox, which is an implementation of its own: element i is drawn with counter (i, step, stream, 0) and the
seed as the key; a derived step with counter (0, step, stream, 1).
"""
import sys

import numpy as np

from cases import BF16, Cases, Dtype, NAMES

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}


def block(counter, key):
    """One draw of four words. numpy counts up before it draws, so its counter stands one behind."""
    before = (sum(word << (64 * w) for w, word in enumerate(counter)) - 1) % 2**256
    words = np.array([before >> (64 * w) & (2**64 - 1) for w in range(4)], np.uint64)
    return np.random.Philox(key=np.array(key, np.uint64), counter=words).random_raw(4)


def bits(seed, count, step=0, stream=0):
    """count x 4 words. Without a seed the key is (0, 1)."""
    key = (0, 1) if seed is None else (int(np.float64(seed).view(np.uint64)), 0)
    return np.array([block((i, step % 2**64, stream, 0), key) for i in range(count)], np.uint64).reshape(count, 4)


def uniform(seed, count, step=0, stream=0):
    return (bits(seed, count, step, stream)[:, 0] >> np.uint64(11)).astype(F64) * 2.0**-53


def normal(seed, count, step=0, stream=0):
    u = (bits(seed, count, step, stream) >> np.uint64(11)).astype(F64) * 2.0**-53
    return np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])


def tolerance(dtype):
    return {"rtol": RTOL[dtype], "atol": RTOL[dtype]}


def typed(dtype):
    return {"dtype": Dtype(NAMES[dtype.name])}


def shaped(cases):
    def one(shape, seed=7.0, dtype=None, mean=None, scale=None, low=None, high=None, name=""):
        count, to = int(np.prod(shape)), dtype or F32
        attrs = {"shape": list(shape), "seed": seed} | ({} if dtype is None else typed(dtype))
        expected = (mean or 0.0) + (1.0 if scale is None else scale) * normal(seed, count)
        given = {n: v for n, v in (("mean", mean), ("scale", scale)) if v is not None}
        cases.add("RandomNormal", [], [expected.reshape(shape).astype(to)], attrs | given, name=name, **tolerance(to))
        a, b = 0.0 if low is None else low, 1.0 if high is None else high
        given = {n: v for n, v in (("low", low), ("high", high)) if v is not None}
        expected = a + (b - a) * uniform(seed, count)
        cases.add("RandomUniform", [], [expected.reshape(shape).astype(to)], attrs | given, name=name, **tolerance(to))

    for dtype in (F32, F64, F16, BF16):
        one((3, 5), dtype=dtype, name=dtype.name)
    one((4, 6), 0.0, name="seed_zero")
    one((4, 6), -1.5, mean=3.0, scale=0.25, low=-2.0, high=5.0, name="moved")
    one((2, 3, 2, 2, 3), 11.0, name="rank5")
    one((), 5.0, name="scalar")
    one((0, 3), 5.0, name="empty")
    one((700,), 13.0, name="longer_than_a_block")


def like(cases):
    def one(x, seed=3.0, dtype=None, name=""):
        attrs = {"seed": seed} | ({} if dtype is None else typed(dtype))
        to = dtype or x.dtype
        cases.add("RandomNormalLike", [x], [normal(seed, x.size).reshape(x.shape).astype(to)], attrs, name=name, **tolerance(to))
        cases.add("RandomUniformLike", [x], [uniform(seed, x.size).reshape(x.shape).astype(to)], attrs, name=name, **tolerance(to))

    for dtype in (F32, F64, F16, BF16):
        one(np.ones((4, 3), dtype), name=dtype.name)
    one(np.zeros((2, 5), np.int64), dtype=F32, name="of_integers")
    one(np.zeros((2, 5), bool), dtype=F16, name="of_truth_values")
    one(np.zeros((0, 5), F32), name="empty")


def bernoulli(cases):
    rng = np.random.default_rng(5)

    def one(p, seed=21.0, dtype=None, name=""):
        attrs = {"seed": seed} | ({} if dtype is None else typed(dtype))
        drawn = uniform(seed, p.size).reshape(p.shape) < p.astype(F64)
        cases.add("Bernoulli", [p], [drawn.astype(dtype or p.dtype)], attrs, name=name)

    for dtype in (F32, F64, F16, BF16):
        one(rng.uniform(size=(5, 4)).astype(dtype), name=dtype.name)
    for dtype in (np.dtype(bool), np.dtype(np.int32), np.dtype(np.uint8), F64):
        one(rng.uniform(size=(5, 4)).astype(F32), dtype=dtype, name=f"to_{dtype.name}")
    one(np.array([0, 1, 0, 1, 1, 0], F32), name="certain")
    one(np.zeros((0,), F32), name="empty")


def multinomial(cases):
    rng = np.random.default_rng(6)

    def one(logits, samples=None, seed=2.0, dtype=None, name=""):
        count = 1 if samples is None else samples
        u = uniform(seed, logits.shape[0] * count).reshape(logits.shape[0], count)
        p = np.exp(logits.astype(F64) - logits.astype(F64).max(1, keepdims=True)) if logits.size else np.zeros(logits.shape)
        running = np.cumsum(p, 1)
        chosen = np.array([[np.searchsorted(running[r], u[r, s] * running[r, -1], side="right") for s in range(count)]
                           for r in range(logits.shape[0])]).reshape(logits.shape[0], count)
        attrs = {"seed": seed} | ({} if samples is None else {"sample_size": samples}) | ({} if dtype is None else typed(dtype))
        cases.add("Multinomial", [logits], [chosen.astype(dtype or np.int32)], attrs, name=name)

    for dtype in (F32, F64, F16, BF16):
        one(rng.normal(size=(3, 5)).astype(dtype), 8, name=dtype.name)
    one(rng.normal(size=(4, 5)).astype(F32), name="one_sample")
    one(rng.normal(size=(4, 5)).astype(F32) * 300, 6, dtype=np.dtype(np.int64), name="far_apart_int64")
    one(np.array([[0, -np.inf, 1, -np.inf]], F32), 20, name="impossible_classes")
    one(rng.normal(size=(2, 1)).astype(F32), 3, name="one_class")
    one(rng.normal(size=(3, 4)).astype(F32), 0, name="no_samples")
    one(np.zeros((0, 4), F32), 3, name="no_rows")


# The seed, the step and the stream of a draw: numbers of all sizes, and each of them left out.
DRAWS = {"plain": (None, None, None), "seed": (4.0, None, None), "step": (None, 1, None), "stream": (None, None, 1),
         "all": (-2.25, 123456789012, 77), "largest": (4.0, 2**63 - 1, 2**63 - 1), "negative_step": (4.0, -3, 5)}


def draw_attrs(seed, stream):
    return {n: v for n, v in (("seed", seed), ("stream", stream)) if v is not None}


def steps(step):
    return [] if step is None else [np.array(step, np.int64)]


def draws(cases):
    rng = np.random.default_rng(8)
    for name, (seed, step, stream) in DRAWS.items():
        drawn, attrs = (seed, 12, step or 0, stream or 0), draw_attrs(seed, stream)
        x = rng.uniform(size=(3, 4)).astype(F32)
        shaped = attrs | {"shape": [3, 4]}
        cases.add("RandomNormal", steps(step), [normal(*drawn).reshape(3, 4).astype(F32)], shaped, name=f"draw_{name}", **tolerance(F32))
        cases.add("RandomUniform", steps(step), [uniform(*drawn).reshape(3, 4).astype(F32)], shaped, name=f"draw_{name}", **tolerance(F32))
        cases.add("RandomNormalLike", [x] + steps(step), [normal(*drawn).reshape(3, 4).astype(F32)], attrs, name=f"draw_{name}", **tolerance(F32))
        cases.add("RandomUniformLike", [x] + steps(step), [uniform(*drawn).reshape(3, 4).astype(F32)], attrs, name=f"draw_{name}", **tolerance(F32))
        cases.add("Bernoulli", [x] + steps(step), [(uniform(*drawn).reshape(3, 4) < x).astype(F32)], attrs, name=f"draw_{name}")


def dropout(cases):
    rng = np.random.default_rng(9)

    def one(x, ratio=None, training=1, seed=None, step=None, stream=None, mask=True, name=""):
        p = 0.5 if ratio is None else ratio
        keep = uniform(seed, x.size, step or 0, stream or 0).reshape(x.shape) >= p if training else np.ones(x.shape, bool)
        scale = (1 / (1 - p) if p < 1 else 0.0) if training else 1.0
        out = np.where(keep, x.astype(F64) * scale, 0.0).astype(x.dtype)
        attrs = draw_attrs(seed, stream) | ({} if ratio is None else {"ratio": ratio}) | ({"training": 1} if training else {})
        cases.add("Dropout", [x] + steps(step), [out, keep] if mask else [out], attrs, name=name, **tolerance(x.dtype))

    for dtype in (F32, F64, F16, BF16):
        one(rng.normal(size=(4, 5)).astype(dtype), 0.25, seed=3.0, name=dtype.name)
    for name, (seed, step, stream) in DRAWS.items():
        one(rng.normal(size=(3, 4)).astype(F32), None, seed=seed, step=step, stream=stream, name=f"draw_{name}")
    one(rng.normal(size=(700,)).astype(F32), 0.1, step=5, mask=False, name="longer_than_a_block")
    one(rng.normal(size=(2, 3, 2, 2)).astype(F32), 0.0, name="none_dropped")
    one(rng.normal(size=(6, 2)).astype(F32), 1.0, name="all_dropped")
    one(rng.normal(size=(6, 2)).astype(F32), 0.5, training=0, step=4, name="inference")
    one(rng.normal(size=(6, 2)).astype(F32), 0.5, training=0, mask=False, name="inference_without_mask")
    one(np.zeros((0, 3), F32), 0.5, name="empty")
    one(np.array(2.0, F32), 0.5, step=1, name="scalar")


def positions(cases):
    """A tensor that is a part of a larger one, by an input."""
    rng = np.random.default_rng(10)
    for name, begin, shape, whole, step in (("first_dim", (3, 0), (2, 4), (8, 4), 2), ("middle_dim", (0, 2, 0), (2, 3, 2), (2, 7, 2), None),
                                            ("all_dims", (1, 2), (3, 2), (4, 6), 5), ("nothing", (0, 0), (0, 3), (0, 3), 1)):
        count = int(np.prod(whole))
        part = tuple(slice(b, b + n) for b, n in zip(begin, shape))
        x = rng.uniform(size=shape).astype(F32)
        u, z = (f(4.0, count, step or 0).reshape(whole)[part] for f in (uniform, normal))
        inputs = [x, np.array(step, np.int64) if step is not None else None, np.array([begin, whole], np.int64)]
        name = f"position_{name}"
        cases.add("Dropout", inputs, [np.where(u >= 0.25, x / F64.type(0.75), 0).astype(F32), u >= 0.25],
                  {"seed": 4.0, "ratio": 0.25, "training": 1}, name=name, **tolerance(F32))
        cases.add("RandomNormalLike", inputs, [z.astype(F32)], {"seed": 4.0}, name=name, **tolerance(F32))
        cases.add("RandomUniformLike", inputs, [u.astype(F32)], {"seed": 4.0}, name=name, **tolerance(F32))
        cases.add("Bernoulli", inputs, [(u < x).astype(F32)], {"seed": 4.0}, name=name)
    u = uniform(2.0, 6 * 3).reshape(6, 3)[2:4]
    running = np.cumsum(np.ones((2, 5)), 1)
    chosen = np.array([[np.searchsorted(r, v * r[-1], side="right") for v in row] for r, row in zip(running, u)])
    cases.add("Multinomial", [np.zeros((2, 5), F32), None, np.array([[2, 0], [6, 3]], np.int64)], [chosen.astype(np.int32)],
              {"seed": 2.0, "sample_size": 3}, name="position")


def derived(cases):
    for step, stream in ((0, 0), (0, 1), (1, 0), (2**63 - 1, 2**63 - 1), (-1, 3)):
        out = block((0, step % 2**64, stream, 1), (0, 1))[0] >> np.uint64(2)
        cases.add("DeriveStep", [np.array(step, np.int64)], [np.array(int(out), np.int64)], {"stream": stream}, domain="msrt",
                  name=f"step_{step % 2**64}_stream_{stream}")


if __name__ == "__main__":
    all_cases = Cases("numpy's Philox")
    shaped(all_cases)
    like(all_cases)
    bernoulli(all_cases)
    multinomial(all_cases)
    draws(all_cases)
    dropout(all_cases)
    positions(all_cases)
    derived(all_cases)
    all_cases.write(sys.argv[1])
