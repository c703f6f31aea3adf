"""Cases of Attention and msrt.FusedAttention. The oracle is the op's formula in NumPy, double precision, written from the operator's documentation. Where
onnx and ONNX Runtime are installed, every float32 and float64 case is also compared with onnx's reference evaluator and, where it
has the kernel, with ONNX Runtime; disagreement stops the generator."""
import sys

import numpy as np

from cases import BF16, Cases, Dtype

try:
    import onnx
    import onnx.reference
    import onnxruntime
except ImportError:
    onnx = None

TOLERANCE = {"float64": (1e-11, 1e-12), "float32": (1e-6, 1e-6), "float16": (1e-3, 1e-5), "bfloat16": (1e-2, 1e-5)}
FLOATS = [np.float64, np.float32, np.float16, BF16]

random = np.random.default_rng(14)
cases = Cases("NumPy double")
compared = {"onnx": 0, "onnxruntime": 0}


def normal(shape, dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def unpack(x, heads):
    """[batch, rows, heads * width] to [batch, heads, rows, width]."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def formula(q, k, v, mask=None, past_key=None, past_value=None, q_num_heads=None, kv_num_heads=None, is_causal=0, scale=None,
            softcap=0.0, qk_matmul_output_mode=0, softmax_precision=None, fused=False):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    packed = q.ndim == 3
    if packed:
        q, k, v = unpack(q, q_num_heads), unpack(k, kv_num_heads), unpack(v, kv_num_heads)
    past = 0
    if past_key is not None:
        past = past_key.shape[2]
        k = np.concatenate([past_key.astype(np.float64), k], axis=2)
        v = np.concatenate([past_value.astype(np.float64), v], axis=2)
    shared = q.shape[1] // k.shape[1] if k.shape[1] else 1
    keys, values = np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)
    if scale is None:
        scale = 1 / np.sqrt(q.shape[3]) if q.shape[3] else 1.0
    raw = scale * np.einsum("bhid,bhjd->bhij", q, keys)
    capped = softcap * np.tanh(raw / softcap) if softcap > 0 else raw
    bias = np.zeros(raw.shape)
    if mask is not None:
        bias = bias + (np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask.astype(np.float64))
    if is_causal:
        i, j = np.ogrid[: raw.shape[2], : raw.shape[3]]
        bias = np.where(j <= i + past, bias, -np.inf)
    biased = capped + bias
    with np.errstate(invalid="ignore"):
        top = biased.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(biased - np.where(np.isneginf(top), 0, top))
        weights = weights / np.where(np.isneginf(top), 1, weights.sum(axis=-1, keepdims=True))
    if fused and raw.shape[3]:
        weights = np.where(np.isneginf(top), np.nan, weights)
    y = np.einsum("bhij,bhjd->bhid", weights, values)
    if packed:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)
    return y, k, v, [raw, capped, biased, weights][qk_matmul_output_mode]


def as_onnx_model(inputs, outputs, attrs):
    to_onnx = {"f64": 11, "f32": 1, "f16": 10, "bf16": 16}
    attrs = {k: to_onnx[v] if isinstance(v, Dtype) else v for k, v in attrs.items()}
    names = ["" if x is None else f"i{i}" for i, x in enumerate(inputs)]
    node = onnx.helper.make_node("Attention", names, [f"o{i}" for i in range(len(outputs))], **attrs)
    typed = onnx.helper.make_tensor_value_info
    kind = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        [node], "g", [typed(n, kind(x.dtype), x.shape) for n, x in zip(names, inputs) if n],
        [typed(f"o{i}", kind(y.dtype), y.shape) for i, y in enumerate(outputs)])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=10)


def compare(name, inputs, outputs, attrs):
    if inputs[0].dtype not in (np.float32, np.float64):
        return
    feed = {f"i{i}": x for i, x in enumerate(inputs) if x is not None}
    model = as_onnx_model(inputs, outputs, attrs)
    # The evaluator overwrites the product with the capped one, so it cannot show mode 0 of a capped score.
    shown = len(outputs) if not (attrs.get("softcap") and attrs.get("qk_matmul_output_mode", 0) == 0) else 3
    got = {"onnx": onnx.reference.ReferenceEvaluator(model).run(None, feed)}
    try:
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 4
        got["onnxruntime"] = onnxruntime.InferenceSession(model.SerializeToString(), quiet).run(None, feed)
    except Exception as refusal:  # pylint: disable=broad-except
        print(f"{name}: not compared with ONNX Runtime: {str(refusal).splitlines()[0][:150]}")
    for who, results in got.items():
        compared[who] += 1
        for i, (g, y) in enumerate(zip(results[:shown], outputs[:shown])):
            if who == "onnxruntime" and i == 3 and np.isneginf(y).any():  # it masks with the lowest finite number
                g, y = np.where(np.isneginf(y), 0, g), np.where(np.isneginf(y), 0, y)
            np.testing.assert_allclose(g, y, rtol=1e-4, atol=2e-5, err_msg=f"{name} output {i} of {who}")


def add(name, q, k, v, mask=None, past=None, outputs=1, check=True, fused=False, **attrs):
    inputs = [q, k, v, mask] + list(past or (None, None))
    while inputs[-1] is None:
        inputs.pop()
    dtypes = [q.dtype, k.dtype, v.dtype, q.dtype]
    results = [y.astype(t) for y, t in zip(formula(q, k, v, mask, *(past or (None, None)), fused=fused, **attrs), dtypes)][:outputs]
    if check and not fused and onnx is not None:
        compare(name, inputs, results, attrs)
    rtol, atol = TOLERANCE[q.dtype.name]
    op = {"domain": "msrt"} if fused else {}
    cases.add("FusedAttention" if fused else "Attention", inputs, results, attrs, name=name, rtol=rtol, atol=atol, **op)


def heads(batch, query_heads, key_heads, rows, key_rows, width, value_width=None, dtype=np.float32):
    return (normal((batch, query_heads, rows, width), dtype), normal((batch, key_heads, key_rows, width), dtype),
            normal((batch, key_heads, key_rows, value_width or width), dtype))


def packed(batch, query_heads, key_heads, rows, key_rows, width, value_width=None, dtype=np.float32):
    tensors = heads(batch, query_heads, key_heads, rows, key_rows, width, value_width, dtype)
    return [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1) for x in tensors]


def cache(batch, key_heads, rows, width, value_width=None, dtype=np.float32):
    return normal((batch, key_heads, rows, width), dtype), normal((batch, key_heads, rows, value_width or width), dtype)


for t in FLOATS:
    label = np.dtype(t).name
    add(label, *heads(2, 3, 3, 4, 5, 6, dtype=t))
    add(f"{label}_packed", *packed(2, 3, 3, 4, 5, 4, dtype=t), q_num_heads=3, kv_num_heads=3)
    add(f"{label}_causal_cache", *heads(1, 2, 2, 3, 3, 4, dtype=t), past=cache(1, 2, 2, 4, dtype=t), outputs=3, is_causal=1)
    add(f"{label}_float_mask", *heads(1, 2, 2, 4, 5, 4, dtype=t), mask=normal((4, 5), t))

add("cross", *heads(2, 2, 2, 3, 7, 5))
add("value_width", *heads(2, 2, 2, 3, 4, 5, 8))
add("scale", *heads(1, 2, 2, 4, 4, 4), scale=0.75)
add("scale_zero", *heads(1, 2, 2, 4, 4, 4), scale=0.0)
add("softcap", *heads(1, 2, 2, 4, 4, 4), softcap=0.5)
add("causal", *heads(2, 2, 2, 6, 6, 4), is_causal=1)
add("causal_more_keys", *heads(1, 2, 2, 4, 7, 4), is_causal=1)
add("causal_fewer_keys", *heads(1, 2, 2, 7, 4, 4), is_causal=1)
add("causal_packed", *packed(2, 2, 2, 5, 5, 3), is_causal=1, q_num_heads=2, kv_num_heads=2)
add("causal_cache_rows", *heads(1, 2, 2, 4, 4, 4), past=cache(1, 2, 3, 4), is_causal=1)
add("gqa", *heads(2, 6, 2, 3, 4, 5))
add("gqa_packed", *packed(2, 6, 2, 3, 4, 5, 3), q_num_heads=6, kv_num_heads=2)
add("gqa_packed_cache", *packed(1, 4, 2, 3, 2, 4), past=cache(1, 2, 3, 4), q_num_heads=4, kv_num_heads=2, is_causal=1, outputs=4)
add("mqa", *heads(2, 4, 1, 3, 4, 5), is_causal=1)
add("heads_named_for_rank4", *heads(1, 4, 2, 3, 4, 5), q_num_heads=4, kv_num_heads=2)
add("softmax_precision", *heads(1, 2, 2, 3, 4, 4), softmax_precision=Dtype("f64"))
add("softmax_precision_f16", *heads(1, 2, 2, 3, 4, 4, dtype=np.float16), softmax_precision=Dtype("f32"))
q, k, _ = heads(1, 2, 2, 3, 4, 4)
past_values = normal((1, 2, 2, 3), np.float64)
add("value_type", q, k, normal((1, 2, 4, 3), np.float64), past=(normal((1, 2, 2, 4)), past_values), outputs=3, check=False)

MASKS = {"2d": (4, 5), "row": (5,), "batch": (2, 1, 4, 5), "heads": (3, 4, 5), "full": (2, 3, 4, 5), "column": (2, 3, 4, 1), "scalar": ()}
for label, shape in MASKS.items():
    # The evaluator pads a mask of one key where the documentation says that it broadcasts.
    add(f"bool_mask_{label}", *heads(2, 3, 3, 4, 5, 4), mask=np.asarray(random.random(shape) < 0.7),
        check=label not in ("column", "scalar"))
add("float_mask_full", *heads(2, 2, 2, 3, 4, 4), mask=normal((2, 2, 3, 4)))
add("float_mask_packed", *packed(2, 2, 2, 3, 4, 4), mask=normal((2, 1, 3, 4)), q_num_heads=2, kv_num_heads=2)
add("float_mask_causal_gqa", *heads(2, 4, 2, 4, 4, 4), mask=normal((1, 4, 4, 4)), is_causal=1, softcap=2.0)
add("bool_mask_cache", *heads(1, 2, 2, 3, 2, 4), mask=random.random((3, 5)) < 0.8, past=cache(1, 2, 3, 4), outputs=3)
blocked = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
add("fully_masked_row", *heads(1, 2, 2, 3, 3, 4), mask=blocked)
add("fully_masked_row_causal", *heads(1, 2, 2, 3, 3, 4), mask=~np.eye(3, dtype=bool), is_causal=1)

for mode in range(4):
    add(f"stage{mode}", *heads(1, 2, 2, 3, 4, 4), mask=random.random((3, 4)) < 0.6, softcap=1.5, outputs=4, qk_matmul_output_mode=mode)
    add(f"stage{mode}_causal_cache", *packed(2, 4, 2, 3, 3, 2), past=cache(2, 2, 2, 2), q_num_heads=4, kv_num_heads=2, is_causal=1,
        outputs=4, qk_matmul_output_mode=mode)
add("stage3_fully_masked", *heads(1, 1, 1, 3, 3, 4), mask=blocked, outputs=4, qk_matmul_output_mode=3)
add("present_without_past", *packed(2, 2, 1, 3, 4, 3), q_num_heads=2, kv_num_heads=1, outputs=3)

add("one_key", *heads(1, 2, 2, 3, 1, 4))
add("one_query_decode", *heads(2, 4, 2, 1, 1, 4), past=cache(2, 2, 6, 4), is_causal=1, outputs=3)
add("longer", *heads(1, 2, 1, 33, 65, 8), is_causal=1)


def fused(name, *tensors, **given):
    add(f"fused_{name}", *tensors, fused=True, **given)


fused("plain", *heads(2, 3, 3, 4, 5, 6))
fused("fully_masked_row", *heads(1, 2, 2, 3, 3, 4), mask=blocked)
fused("float_mask", *heads(1, 2, 2, 3, 3, 4), mask=np.where(blocked, 0.5, -np.inf).astype(np.float32))
fused("causal_packed", *packed(2, 4, 2, 3, 3, 4), mask=~np.eye(3, dtype=bool), is_causal=1, q_num_heads=4, kv_num_heads=2)


def empty(name, q, k, v, outputs=1, **attrs):
    add(name, *(normal(shape) for shape in (q, k, v)), outputs=outputs, check=False, **attrs)


empty("empty_batch", (0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 4), 4)
empty("empty_queries", (1, 2, 0, 4), (1, 2, 5, 4), (1, 2, 5, 4), 4)
empty("empty_keys", (1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4), 4)
empty("empty_width", (1, 2, 3, 0), (1, 2, 4, 0), (1, 2, 4, 3), 4)
empty("empty_value_width", (1, 2, 3, 4), (1, 2, 4, 4), (1, 2, 4, 0), 4, qk_matmul_output_mode=3)
empty("empty_heads", (1, 0, 3, 4), (1, 0, 4, 4), (1, 0, 4, 4), 4)
empty("empty_past", (1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), 3, past=(normal((1, 2, 0, 4)), normal((1, 2, 0, 4))), is_causal=1)

print("compared with", compared)
cases.write(sys.argv[1])
