"""Nodes of ONNX Runtime's domain com.microsoft, for the rules of tools/msconvert/onnx/lift_contrib*.cc. Oracle: ONNX Runtime; NumPy for the
few that it has no CPU kernel of.
    python3 tests/data/generate/contrib.py tests/data/onnx/contrib"""
import math
import sys

import numpy as np
import torch

from onnx_cases import OnnxCases

random = np.random.default_rng(37)
cases = OnnxCases(sys.argv[1])
F32, U8, I8, I32 = np.float32, np.uint8, np.int8, np.int32


def add(name, op, inputs, attrs=None, **rest):
    cases.add(name, op, 17, inputs, attrs, domain="com.microsoft", **rest)


def floats(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(F32)


def codes(shape, t):
    info = np.iinfo(t)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(t)


def scalar(v, t=F32):
    return np.array(v, t)


# ---- activations ----
x, bias = floats(2, 3, 8), floats(8)
add("gelu", "Gelu", [x])
add("bias_gelu", "BiasGelu", [x, bias])
add("fast_gelu", "FastGelu", [x])
add("fast_gelu_bias", "FastGelu", [x, bias])
add("quick_gelu", "QuickGelu", [x])
add("quick_gelu_alpha", "QuickGelu", [x], {"alpha": 0.8})
add("bias_add", "BiasAdd", [x, bias, x[:, ::-1].copy()], expected=[x + bias + x[:, ::-1]])
left, right = np.split((x + bias).astype("f8"), 2, -1)
erf = np.vectorize(math.erf)
add("bias_split_gelu", "BiasSplitGelu", [x, bias], expected=[(left * right * 0.5 * (1 + erf(right / math.sqrt(2)))).astype(F32)])

# ---- products ----
a, b = floats(2, 3, 4), floats(2, 4, 5)
add("fused_matmul", "FusedMatMul", [a, b], {"alpha": 0.3})
add("fused_matmul_transposed", "FusedMatMul", [a.swapaxes(1, 2).copy(), b.swapaxes(1, 2).copy()], {"transA": 1, "transB": 1, "alpha": 2.0})
add("fused_matmul_batch_a", "FusedMatMul", [floats(3, 2, 2, 4), floats(2, 2, 4, 5)], {"transBatchA": 1})
add("fused_matmul_batch_both", "FusedMatMul", [floats(3, 2, 2, 4), floats(4, 2, 2, 5)], {"transBatchA": 1, "transBatchB": 1})
add("fused_matmul_batch_transposed", "FusedMatMul", [floats(4, 2, 3), floats(5, 2, 4)],
    {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1})
for activation, more in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2})):
    add(f"fused_gemm_{activation.lower()}", "FusedGemm", [floats(3, 4), floats(4, 5), floats(5)],
        {"activation": activation, **more, "alpha": 0.7, "beta": 0.4})
image, kernel = floats(1, 3, 6, 5), floats(4, 3, 3, 3)
for activation, parameters in (("Relu", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", []),
                               ("Sigmoid", [])):
    more = {"activation_params": parameters} if parameters else {}
    add(f"fused_conv_{activation.lower()}", "FusedConv", [image, kernel, floats(4)], {"activation": activation, "pads": [1, 1, 1, 1], **more})
add("fused_conv_sum", "FusedConv", [image, kernel, floats(4), floats(1, 4, 4, 3)], {"activation": "Relu"})
add("fused_conv_sum_without_bias", "FusedConv", [image, kernel, None, floats(1, 4, 4, 3)], {"activation": "Relu"})
y = torch.nn.functional.conv2d(torch.tensor(image.astype("f8")), torch.tensor(kernel.astype("f8")), torch.tensor(bias[:4].astype("f8")),
                               stride=(2, 1), padding=1).numpy()
add("nhwc_conv", "NhwcConv", [image.transpose(0, 2, 3, 1).copy(), kernel, bias[:4]], {"pads": [1, 1, 1, 1], "strides": [2, 1]},
    expected=[y.transpose(0, 2, 3, 1).astype(F32)])

# ---- normalisations ----
skip, gamma, beta = floats(2, 3, 8), floats(8), floats(8)
add("skip_layer_norm", "SkipLayerNormalization", [x, skip, gamma, beta])
add("skip_layer_norm_sum", "SkipLayerNormalization", [x, skip, gamma, beta, bias], {"epsilon": 1e-3}, outputs=["o0", "", "", "o3"])
add("skip_layer_norm_broadcast", "SkipLayerNormalization", [x, skip[:1], gamma])
add("skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, skip, gamma])
add("skip_rms_norm_sum", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], {"epsilon": 1e-3}, outputs=["o0", "", "", "o3"])
for domain in ("", "com.microsoft"):
    expected = x / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + 1e-3) * gamma
    cases.add(f"rms_norm_{'ms' if domain else 'onnx'}", "SimplifiedLayerNormalization", 17, [x, gamma], {"axis": -1, "epsilon": 1e-3},
              domain=domain, expected=[expected.astype(F32)])
ids, segments = random.integers(0, 10, (2, 5)).astype(I32), random.integers(0, 2, (2, 5)).astype(I32)
tables = [floats(10, 8), floats(7, 8), floats(2, 8)]
mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], I32)
add("embed_layer_norm", "EmbedLayerNormalization", [ids, segments, *tables, gamma, beta, mask], outputs=2)
add("embed_layer_norm_plain", "EmbedLayerNormalization", [ids, None, *tables[:2], None, gamma, beta], {"epsilon": 1e-4}, outputs=2)
add("embed_layer_norm_positions", "EmbedLayerNormalization",
    [ids, segments, *tables, gamma, beta, None, random.integers(0, 7, (2, 5)).astype(I32)], outputs=["o0", "o1", "o2"])

# ---- attention ----
B, S, H, W = 2, 4, 2, 4  # batch, rows, heads, width
D = H * W
hidden, weights, projection_bias = floats(B, S, 6), floats(6, 3 * D), floats(3 * D)
past = floats(2, B, H, 3, W)
key_mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], I32)
for label, inputs, attrs, outputs in (
        ("plain", [hidden, weights, projection_bias], {}, 1),
        ("scaled", [hidden, weights, projection_bias], {"scale": 0.7}, 1),
        ("causal", [hidden, weights, projection_bias], {"unidirectional": 1}, 1),
        ("mask", [hidden, weights, projection_bias, key_mask], {}, 1),
        ("mask_filter", [hidden, weights, projection_bias, key_mask], {"mask_filter_value": -2.0}, 1),
        ("lengths", [hidden, weights, projection_bias, np.array([3, 2], I32)], {}, 1),
        ("mask_3d", [hidden, weights, projection_bias, random.integers(0, 2, (B, S, S)).astype(I32)], {}, 1),
        ("mask_causal", [hidden, weights, projection_bias, key_mask], {"unidirectional": 1}, 1),
        ("bias", [hidden, weights, projection_bias, None, None, floats(B, H, S, S)], {}, 1),
        ("mask_bias", [hidden, weights, projection_bias, key_mask, None, floats(1, H, S, S)], {}, 1),
        ("past", [hidden, weights, projection_bias, None, past], {}, 2),
        ("past_causal_mask", [hidden, weights, projection_bias, random.integers(0, 2, (B, S + 3)).astype(I32), past], {"unidirectional": 1}, 2),
        ("values_of_other_size", [hidden, floats(6, 2 * D + 6), floats(2 * D + 6)], {"qkv_hidden_sizes": [D, D, 6]}, 1)):
    add(f"attention_{label}", "Attention", inputs, {"num_heads": H, **attrs}, outputs=outputs)

q, k, v = floats(B, S, D), floats(B, 6, D), floats(B, 6, D)
cache = [floats(B, H, 3, W), floats(B, H, 3, W)]
wide_mask = random.integers(0, 2, (B, 6)).astype(I32)
wide_mask[:, 0] = 1
for label, inputs, attrs, outputs in (
        ("plain", [q, k, v], {}, 1),
        ("bias", [q, k, v, floats(3 * D)], {"scale": 0.9}, 1),
        ("mask", [q, k, v, None, wide_mask], {}, 1),
        ("mask_filter", [q, k, v, None, wide_mask], {"mask_filter_value": -3.0}, 1),
        ("lengths", [q, k, v, None, np.array([5, 2], I32)], {}, 1),
        ("score_bias", [q, k, v, None, wide_mask, floats(1, H, S, 6)], {}, 1),
        ("causal", [q, k[:, :S].copy(), v[:, :S].copy()], {"unidirectional": 1}, 1),
        ("past", [q, k[:, :S].copy(), v[:, :S].copy(), floats(3 * D), None, None, *cache], {}, 3),
        ("past_causal", [q, k[:, :S].copy(), v[:, :S].copy(), None, None, None, *cache], {"unidirectional": 1}, 3),
        ("heads_apart", [q, floats(B, H, 5, W), floats(B, H, 5, W)], {}, 1),
        ("values_of_other_size", [q, k, floats(B, 6, 6)], {}, 1)):
    add(f"multi_head_{label}", "MultiHeadAttention", inputs, {"num_heads": H, **attrs}, outputs=outputs)



def attend(queries, keys, values):
    """[batch, rows, heads, width] each, in double."""
    queries, keys, values = (t.astype("f8").swapaxes(1, 2) for t in (queries, keys, values))
    scores = np.exp(queries @ keys.swapaxes(2, 3) / math.sqrt(W))
    result = scores / scores.sum(-1, keepdims=True) @ values
    return result.swapaxes(1, 2).reshape(B, -1, D).astype(F32)


packed, packed_keys = floats(B, S, H, 3, W), floats(B, 5, H, 2, W)
add("multi_head_packed", "MultiHeadAttention", [packed], {"num_heads": H}, expected=[attend(*(packed[:, :, :, i] for i in range(3)))])
add("multi_head_packed_keys", "MultiHeadAttention", [q, packed_keys], {"num_heads": H},
    expected=[attend(q.reshape(B, S, H, W), packed_keys[:, :, :, 0], packed_keys[:, :, :, 1])])


def angles(width):
    turns = np.outer(np.arange(12), 10000.0 ** (-np.arange(width // 2) / (width // 2)))
    return np.cos(turns).astype(F32), np.sin(turns).astype(F32)


cos, sin = angles(W)
positions = random.integers(0, 12, (B, S))
add("rotary", "RotaryEmbedding", [q, positions, cos, sin])
add("rotary_interleaved", "RotaryEmbedding", [q, positions, cos, sin], {"interleaved": 1})
add("rotary_from", "RotaryEmbedding", [q, np.array([3]), cos, sin])
add("rotary_heads_apart", "RotaryEmbedding", [floats(B, H, S, W), positions, cos, sin])
add("rotary_heads_apart_from", "RotaryEmbedding", [floats(B, H, S, W), np.array([2]), cos, sin])
add("rotary_part", "RotaryEmbedding", [floats(B, S, H * 8), positions, cos, sin], {"num_heads": H, "rotary_embedding_dim": W})

N, W = 4, 16  # query heads for H heads of keys


def group(name, batch, rows, past_rows, attrs=None, *, room=0, lengths=None, packed=False, rotary=False, bias=False, outputs=3):
    """lengths: of each sequence with its new rows; room: rows of the cache beyond the past."""
    queries, keys, values = floats(batch, rows, N * W), floats(batch, rows, H * W), floats(batch, rows, H * W)
    total = past_rows + rows if lengths is None else max(lengths)
    last = np.array([total - 1] * batch if lengths is None else [n - 1 for n in lengths], I32)
    qkv = [np.concatenate([queries, keys, values], 2), None, None] if packed else [queries, keys, values]
    caches = [floats(batch, H, past_rows + room, W) if past_rows + room else None for _ in range(2)]
    for cache in caches if lengths is not None else []:
        for sequence, length in enumerate(lengths):
            cache[sequence, :, length - rows:] = 0  # rows that nobody wrote yet, which ONNX Runtime clears
    tables = angles(W) if rotary else [None, None]
    more = [None, floats(1, N, rows, total)] if bias else []
    inputs = [*qkv, *caches, last, np.array(total, I32), *tables, *more]
    while inputs[-1] is None:
        inputs.pop()
    add(f"group_query_{name}", "GroupQueryAttention", inputs,
        {"num_heads": N, "kv_num_heads": H, **({"do_rotary": 1} if rotary else {}), **(attrs or {})}, outputs=outputs)


group("prompt", 2, 5, 0)
group("prompt_packed", 1, 5, 0, packed=True)
group("prompt_rotary", 2, 5, 0, rotary=True)
group("prompt_interleaved", 2, 4, 0, {"rotary_interleaved": 1}, rotary=True)
group("prompt_window", 1, 7, 0, {"local_window_size": 2})
group("prompt_softcap", 1, 5, 0, {"softcap": 1.5, "scale": 0.8})
group("prompt_bias", 1, 5, 0, bias=True)
group("step", 1, 1, 4)
group("step_rotary", 2, 1, 4, rotary=True)
group("step_packed_rotary", 1, 1, 6, packed=True, rotary=True)
group("step_window", 1, 1, 6, {"local_window_size": 3})
group("step_lengths", 2, 1, 4, lengths=[5, 3], rotary=True)
group("step_room", 1, 1, 4, room=3, rotary=True, lengths=[5])
group("rows_after_past", 1, 3, 4, rotary=True)

# ---- quantised ----
data, scale, zero = codes((1, 2, 4, 5), U8), scalar(0.05), scalar(120, U8)
add("quantize", "QuantizeLinear", [floats(3, 4), scale, scalar(1000, np.uint16)])
add("dequantize", "DequantizeLinear", [random.integers(0, 9999, (3, 4)).astype(np.uint16), scale, scalar(1000, np.uint16)])
other, out = [codes((4, 5), U8), scalar(0.03), scalar(99, U8)], [scalar(0.11), scalar(101, U8)]
for op in ("Add", "Mul"):
    add(f"qlinear_{op.lower()}", f"QLinear{op}", [data, scale, zero, *other, *out])
signed, none = codes((2, 4, 5), I8), scalar(0, I8)
add("qlinear_add_signed", "QLinearAdd", [signed, scale, none, signed[0], scale, none, scalar(0.1), none])
near = [scalar(0.004), scalar(3, U8)]
add("qlinear_sigmoid", "QLinearSigmoid", [data, scale, zero, *near], constants=[1, 2, 3, 4])
add("qlinear_leaky_relu", "QLinearLeakyRelu", [data, scale, zero, *out], {"alpha": 0.2}, constants=[1, 2, 3, 4])
add("qlinear_average_pool", "QLinearAveragePool", [data, scale, zero, scalar(0.117), out[1]],
    {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [1, 2], "count_include_pad": 1})
add("qlinear_global_average_pool", "QLinearGlobalAveragePool", [data, scale, zero, *out])
add("qlinear_concat", "QLinearConcat", [*out, data, scale, zero, data[:, :1], *other[1:]], {"axis": 1})
for opset, axis in ((13, 1), (13, -1), (12, -1)):
    add(f"qlinear_softmax_{opset}_{'last' if axis < 0 else 'inner'}", "QLinearSoftmax", [data, scale, zero, scalar(1 / 256), scalar(0, U8)],
        {"opset": opset, "axis": axis}, constants=[1, 2, 3, 4])
# Weights of 7 bits: with more, ONNX Runtime's sums saturate on processors without instructions for bytes.
rows, columns = codes((3, 6), U8), codes((6, 5), I8) // 2
per_column = [floats(5, low=0.01, high=0.05), codes((5,), I8) // 4]
a_q = [rows, scalar(0.02), scalar(100, U8)]
c = random.integers(-2000, 2000, 5).astype(I32)
add("qgemm", "QGemm", [*a_q, columns, scalar(0.03), none, c, scalar(0.2), scalar(110, U8)])
add("qgemm_columns", "QGemm", [*a_q, columns, per_column[0], np.zeros(5, I8), c, scalar(0.2), scalar(110, U8)])
add("qgemm_real", "QGemm", [*a_q, columns, scalar(0.03), none, c], {"alpha": 0.5})
add("qgemm_transposed", "QGemm", [np.ascontiguousarray(rows.T), *a_q[1:], np.ascontiguousarray(columns.T), scalar(0.03), none],
    {"transA": 1, "transB": 1})
add("matmul_integer_to_float", "MatMulIntegerToFloat", [rows, columns, scalar(0.02), scalar(0.03), scalar(100, U8), scalar(4, I8), floats(5)])
add("matmul_integer_to_float_columns", "MatMulIntegerToFloat", [rows, columns, scalar(0.02), per_column[0], scalar(90, U8), per_column[1]])
add("dynamic_quantize_matmul", "DynamicQuantizeMatMul", [floats(2, 3, 6), columns, scalar(0.03), none, floats(5)])
add("dynamic_quantize_matmul_columns", "DynamicQuantizeMatMul", [floats(3, 6), columns, per_column[0], per_column[1]])
qkv = codes((6, 3 * D), I8) // 2
add("qattention", "QAttention", [codes((B, S, 6), U8), qkv, floats(3 * D), scalar(0.02), scalar(0.01), key_mask, scalar(120, U8), scalar(2, I8)],
    {"num_heads": H})
add("qattention_past", "QAttention",
    [codes((B, S, 6), U8), qkv, floats(3 * D), scalar(0.02), floats(3 * D, low=0.005, high=0.02), None, scalar(120, U8), np.zeros(3 * D, I8), past],
    {"num_heads": H, "unidirectional": 1}, outputs=2)
for bits, depth, block, zeros, with_bias in ((4, 32, 16, False, False), (4, 48, 16, True, True), (4, 40, 16, True, False), (8, 32, 16, True, False),
                                             (8, 40, 32, False, True)):
    n, blocks = 5, -(-depth // block)
    zero_points = [codes((n, -(-blocks * bits // 8)), U8)] if zeros else [None]
    inputs = [floats(2, 3, depth), codes((n, blocks, block * bits // 8), U8), floats(n, blocks, low=0.01, high=0.1), *zero_points]
    if with_bias:
        inputs += [None, floats(n)]
    while inputs[-1] is None:
        inputs.pop()
    add(f"matmul_{bits}_bits_{depth}_{block}{'_zeros' if zeros else ''}", "MatMulNBits", inputs,
        {"K": depth, "N": n, "bits": bits, "block_size": block}, constants=[1, 2, 3] if zeros else [1, 2])

cases.report()
