"""Cases of the ops that normalisations and attention expand to. Run from the root of the repository:
    python tests/data/generate/moments.py tests/data/ops/moments.cases
"""
import sys

import numpy as np

from cases import BF16, Cases, Dtype, NAMES

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}


def tolerance(dtype):
    return {"rtol": RTOL[dtype], "atol": RTOL[dtype]}


def moments(cases):
    rng = np.random.default_rng(31)

    def one(x, axes, dtype=None, name=""):
        to = dtype or F32
        wide, over = x.astype(F64), tuple(axes)
        attrs = {"axes": list(axes)} | ({} if dtype is None else {"dtype": Dtype(NAMES[dtype.name])})
        out = [wide.mean(over, keepdims=True).astype(to), wide.var(over, keepdims=True).astype(to)]
        cases.add("Moments", [x], out, attrs, domain="msrt", name=name, **tolerance(to))

    for dtype in (F32, F64, F16, BF16):
        one(rng.normal(2, 3, size=(2, 3, 5, 4)).astype(dtype), (2, 3), name=f"of_{dtype.name}")
        one(rng.normal(2, 3, size=(3, 7)).astype(F32), (1,), dtype, name=f"to_{dtype.name}")
    one(rng.normal(size=(4, 6, 5)).astype(F32), (0, 2), F64, name="outer_and_inner")
    one(rng.normal(size=(4, 6, 5)).astype(F32), (-1, -3), F64, name="negative_axes")
    one(rng.normal(size=(3, 4, 2, 3)).astype(F32), (0, 1, 2, 3), F64, name="all_axes")
    one(rng.normal(1e4, 1, size=(2, 40)).astype(F32), (1,), F64, name="far_from_zero")
    one(np.full((3, 8), 7, F32), (1,), name="constant")
    one(rng.normal(size=(5,)).astype(F32), (0,), F64, name="one_axis")


def normalize(cases):
    rng = np.random.default_rng(32)

    def one(x, mean, variance, scale=None, bias=None, epsilon=None, name=""):
        e = 1e-5 if epsilon is None else epsilon
        y = (x.astype(F64) - mean.astype(F64)) / np.sqrt(variance.astype(F64) + e)
        y = y * (1 if scale is None else scale.astype(F64)) + (0 if bias is None else bias.astype(F64))
        inputs = [x, mean, variance] + ([scale, bias] if bias is not None else [scale] if scale is not None else [])
        cases.add("Normalize", inputs, [y.astype(x.dtype)], {} if epsilon is None else {"epsilon": epsilon}, domain="msrt", name=name,
                  **tolerance(x.dtype))

    for dtype in (F32, F64, F16, BF16):
        one(rng.normal(size=(2, 3, 5)).astype(dtype), rng.normal(size=(2, 3, 1)), rng.uniform(1, 2, size=(2, 3, 1)),
            rng.normal(size=(3, 1)).astype(dtype), rng.normal(size=(3, 1)).astype(dtype), name=dtype.name)
    one(rng.normal(size=(4, 6)).astype(F32), rng.normal(size=(4, 1)).astype(F32), rng.uniform(1, 2, size=(4, 1)).astype(F32),
        name="without_parameters")
    one(rng.normal(size=(4, 6)).astype(F32), rng.normal(size=(1,)).astype(F32), np.zeros((1,), F32),
        bias=rng.normal(size=(6,)).astype(F32), epsilon=0.25, name="bias_only")
    one(rng.normal(size=(4, 6)).astype(F32), np.array(1.5, F32), np.array(2.0, F32), rng.normal(size=(6,)).astype(F32), name="scalars")
    one(np.zeros((0, 6), F32), np.array(1.5, F32), np.array(2.0, F32), name="empty")


def channel_sums(cases):
    rng = np.random.default_rng(34)

    def one(x, gradient=False, name=""):
        wide, over = x.astype(F64), (0, *range(2, x.ndim))
        inputs, factor, center = [x], wide, 0
        if gradient:
            grad, mean = rng.normal(size=x.shape).astype(x.dtype), rng.normal(size=x.shape[1:2]).astype(F32)
            inputs, factor = [x, grad, mean], grad.astype(F64)
            center = mean.astype(F64).reshape([-1] + [1] * (x.ndim - 2))
        sums = np.stack([factor.sum(over), (factor * (wide - center)).sum(over)])
        cases.add("ChannelSums", inputs, [sums], {}, domain="msrt", name=name, rtol=1e-12, atol=1e-12)

    for dtype in (F32, F64, F16):
        one(rng.normal(size=(3, 5, 4, 2)).astype(dtype), name=dtype.name)
        one(rng.normal(size=(3, 5, 4, 2)).astype(dtype), True, name=f"gradient_{dtype.name}")
    one(rng.normal(100, 1, size=(4, 3, 17)).astype(F32), name="far_from_zero")
    one(rng.normal(size=(6, 7)).astype(F32), True, name="no_space")
    one(rng.normal(size=(2, 20, 9, 7)).astype(F32), True, name="odd_plane")
    one(np.zeros((0, 4, 3, 3), F32), name="no_samples")
    one(np.zeros((0, 4, 3), F32), True, name="gradient_of_no_samples")


def attention_part(cases):
    rng = np.random.default_rng(33)

    def one(q, k, v, mask=None, causal=0, scale=None, softcap=None, heads=None, name=""):
        wide = [t.astype(F64) for t in (q, k, v)]
        if heads:
            wide = [t.reshape(t.shape[0], t.shape[1], h, -1).transpose(0, 2, 1, 3) for t, h in zip(wide, (heads[0], heads[1], heads[1]))]
        a, b, c = wide
        group = a.shape[1] // b.shape[1]
        b, c = np.repeat(b, group, 1), np.repeat(c, group, 1)
        s = a @ b.transpose(0, 1, 3, 2) * (1 / np.sqrt(a.shape[3]) if scale is None else scale)
        if softcap:
            s = softcap * np.tanh(s / softcap)
        if mask is not None:
            s = s + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(F64))
        if causal:
            s = np.where(np.arange(s.shape[3])[None, :] <= np.arange(s.shape[2])[:, None], s, -np.inf)
        top = s.max(3, keepdims=True)
        hidden = np.isneginf(top)
        p = np.exp(s - np.where(hidden, 0, top))
        total = p.sum(3, keepdims=True)
        y = np.where(hidden, 0, p / np.where(hidden, 1, total)) @ c
        with np.errstate(divide="ignore"):
            weights = np.where(hidden, -np.inf, np.where(hidden, 0, top) + np.log(total))[..., 0]
        if heads:
            y = y.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[1], -1)
        attrs = {n: x for n, x in (("is_causal", causal or None), ("scale", scale), ("softcap", softcap)) if x is not None}
        if heads:
            attrs |= {"q_num_heads": heads[0], "kv_num_heads": heads[1]}
        cases.add("AttentionPart", [q, k, v] + ([] if mask is None else [mask]),
                  [y.astype(q.dtype), weights.astype(F64 if q.dtype == F64 else F32)], attrs, domain="msrt", name=name, **tolerance(q.dtype))

    def qkv(batch, heads, kv_heads, rows, keys, width, value_width, dtype=F32):
        return (rng.normal(size=(batch, heads, rows, width)).astype(dtype), rng.normal(size=(batch, kv_heads, keys, width)).astype(dtype),
                rng.normal(size=(batch, kv_heads, keys, value_width)).astype(dtype))

    for dtype in (F32, F64, F16, BF16):
        one(*qkv(2, 2, 2, 3, 7, 4, 5, dtype), name=dtype.name)
    one(*qkv(1, 4, 2, 5, 9, 8, 8), name="grouped")
    one(*qkv(1, 2, 2, 6, 6, 4, 4), causal=1, name="causal")
    one(*qkv(2, 2, 1, 4, 11, 4, 4), causal=1, softcap=2.0, scale=0.7, name="causal_capped")
    one(*qkv(2, 2, 2, 3, 8, 4, 4), mask=rng.uniform(size=(3, 8)) > 0.4, name="mask")
    one(*qkv(2, 2, 2, 3, 8, 4, 4), mask=rng.normal(size=(2, 1, 3, 8)).astype(F32), name="float_mask")
    hidden = rng.uniform(size=(3, 8)) > 0.4
    hidden[1] = False
    one(*qkv(1, 2, 2, 3, 8, 4, 4), mask=hidden, name="hidden_row")
    q, k, v = (rng.normal(size=s).astype(F32) for s in ((2, 3, 8), (2, 6, 4), (2, 6, 6)))
    one(q, k, v, heads=(2, 1), name="packed_grouped")
    q, k, v = (rng.normal(size=s).astype(F32) for s in ((2, 5, 8), (2, 5, 8), (2, 5, 12)))
    one(q, k, v, heads=(2, 2), causal=1, name="packed_causal")


if __name__ == "__main__":
    all_cases = Cases("NumPy in double precision")
    moments(all_cases)
    normalize(all_cases)
    attention_part(all_cases)
    channel_sums(all_cases)
    all_cases.write(sys.argv[1])
