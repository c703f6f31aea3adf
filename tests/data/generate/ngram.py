"""Cases of ops/ngram.cc. Oracle: a search for every n-gram of the pool in Python; where the weights' order cannot matter, ONNX Runtime must
agree. (It takes weights in the order of the outputs, the specification in that of the pool.)"""
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from cases import Cases

random = np.random.default_rng(41)
cases = Cases("search in Python, checked with ONNX Runtime")
onnxruntime.set_default_logger_severity(4)


def count(row, gram, skips):
    found = 0
    for step in range(1, (min(skips, len(row)) if len(gram) > 1 else 0) + 2):
        for start in range(len(row) - step * (len(gram) - 1)):
            found += all(row[start + i * step] == g for i, g in enumerate(gram))
    return found


def runtime(x, attrs):
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attrs)
    info = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    graph = helper.make_graph([node], "g", [info], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def add(name, x, levels, shortest, longest, skips, mode="TF", indexes=None, weights=None, check=True):
    """levels: for each length the list of n-grams."""
    pool = [v for level in levels for gram in level for v in gram]
    begins = np.cumsum([0] + [len(level) * (n + 1) for n, level in enumerate(levels)])[:-1]
    grams = [gram for level in levels for gram in level]
    indexes = list(range(len(grams))) if indexes is None else indexes
    rows = x if x.ndim == 2 else x[None]
    y = np.zeros((len(rows), max(indexes) + 1))
    for r, row in enumerate(rows):
        for i, gram in enumerate(grams):
            if not shortest <= len(gram) <= longest:
                continue
            n = count(row, gram, skips)
            n = min(n, 1) if mode == "IDF" else n
            y[r, indexes[i]] += n * (weights[i] if weights is not None and mode != "TF" else 1)
    y = (y if x.ndim == 2 else y[0]).astype(np.float32)
    attrs = {"max_gram_length": longest, "max_skip_count": skips, "min_gram_length": shortest, "mode": mode,
             "ngram_counts": [int(b) for b in begins], "ngram_indexes": indexes, "pool_int64s": [int(p) for p in pool]}
    if weights is not None:
        attrs["weights"] = [float(np.float32(w)) for w in weights]
    if check:
        np.testing.assert_allclose(runtime(x, attrs), y, rtol=1e-6, err_msg=name)
    cases.add("TfIdfVectorizer", [x], [y], attrs, name=name, rtol=1e-6)


LEVELS = [[[2], [3], [5], [4]], [[5, 6], [7, 8], [6, 7]], [[2, 3, 5], [1, 1, 3]]]
single = np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8, 2, 3, 5])
batch = random.integers(1, 9, (4, 23))
for x, label in ((single, "row"), (batch, "batch")):
    for t in (np.int32, np.int64):
        for shortest, longest in ((1, 1), (1, 2), (2, 2), (1, 3), (3, 3)):
            for skips in (0, 1, 5):
                if t == np.int64 or skips == 1:
                    add(f"{label}_{np.dtype(t).name}_{shortest}_{longest}_{skips}", x.astype(t), LEVELS, shortest, longest, skips)
weights = random.uniform(0.1, 3, 9)
for mode in ("TF", "IDF", "TFIDF"):
    add(f"weights_{mode}", batch, LEVELS, 1, 3, 2, mode, weights=weights)
    add(f"no_weights_{mode}", batch, LEVELS, 1, 3, 2, mode)
    order = [8, 3, 1, 0, 2, 7, 4, 6, 5]
    add(f"permuted_{mode}", batch, LEVELS, 1, 2, 1, mode, indexes=order)
    add(f"permuted_weights_{mode}", batch, LEVELS, 1, 2, 1, mode, indexes=order, weights=weights, check=False)
add("gaps", single, LEVELS, 1, 3, 0, indexes=[0, 2, 4, 6, 8, 10, 12, 14, 16])
add("empty_level", single, [[], [[5, 6], [7, 8]]], 2, 2, 1)
add("long_skip", single, LEVELS, 2, 3, 9223372036854775807, check=False)
add("short_row", np.array([7]), LEVELS, 2, 3, 2)
add("empty_row", np.zeros(0, np.int64), LEVELS, 1, 3, 2, check=False)
add("no_rows", np.zeros((0, 5), np.int64), LEVELS, 1, 3, 2, check=False)
add("negative", np.array([[-1, -2, -1], [0, -1, -2]]), [[[-1]], [[-1, -2]]], 1, 2, 0)

cases.write(sys.argv[1])
