"""Cases of ops/tree_ensemble.cc. Oracle: a walk in Python, in double; ONNX Runtime, which computes in single precision, must agree where it
knows the form, and the onnx package's reference where there are sets, in which ONNX Runtime does not find every member (nor does
the reference if 0 is one)."""
import sys

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cases import Cases

random = np.random.default_rng(43)
cases = Cases("walk in Python, checked with ONNX Runtime")
onnxruntime.set_default_logger_severity(4)

COMPARE = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]
MEMBER = 6


class Forest:
    """Random trees; a leaf is a list of (target, weight)."""

    def __init__(self, trees, depth, features, targets, modes, per_leaf=1, dtype=np.float32):
        self.dtype, self.targets, self.features = dtype, targets, features
        self.nodes, self.leaves, self.roots, self.modes, self.per_leaf = [], [], [], modes, per_leaf
        for _ in range(trees):
            self.roots.append(self.grow(depth))

    def grow(self, depth):
        at = len(self.nodes)
        mode = int(random.choice(self.modes))
        split = self.dtype(random.integers(-3, 4) if mode >= 4 else random.uniform(-2, 2))
        members = [self.dtype(v) for v in random.choice([-3, -2, -1, 1, 2, 3], 3, replace=False)] if mode == MEMBER else None
        node = dict(feature=int(random.integers(self.features)), mode=mode, split=split, members=members, missing=int(random.integers(2)))
        self.nodes.append(node)
        for side in ("yes", "no"):
            if depth > 1 and random.random() < 0.8:
                node[side] = (self.grow(depth - 1), 0)
            else:
                chosen = random.choice(self.targets, min(self.per_leaf, self.targets), replace=False)
                self.leaves.append([(int(t), self.dtype(random.uniform(-5, 5))) for t in chosen])
                node[side] = (len(self.leaves) - 1, 1)
        return at

    def leaf(self, root, row):
        at = root
        while True:
            node = self.nodes[at]
            x = row[node["feature"]]
            if np.isnan(x) and node["missing"]:
                yes = True
            elif node["mode"] == MEMBER:
                yes = x in node["members"]
            else:
                yes = COMPARE[node["mode"]](x, node["split"])
            at, is_leaf = node["yes" if yes else "no"]
            if is_leaf:
                return self.leaves[at]

    def evaluate(self, x, aggregate):
        y = np.zeros((len(x), self.targets))
        for r, row in enumerate(x):
            hits = [(t, float(w)) for root in self.roots for t, w in self.leaf(root, row)]
            for t in range(self.targets):
                own = [w for target, w in hits if target == t]
                y[r, t] = [sum(own) / len(self.roots), sum(own), min(own, default=0), max(own, default=0)][aggregate]
        return y

    def attrs(self, aggregate):
        flat = [entry for leaf in self.leaves for entry in leaf]
        members = [v for n in self.nodes if n["members"] is not None for v in n["members"] + [self.dtype(np.nan)]]
        out = dict(aggregate_function=aggregate, n_targets=self.targets, tree_roots=self.roots,
                   nodes_featureids=[n["feature"] for n in self.nodes], nodes_splits=np.array([n["split"] for n in self.nodes], self.dtype),
                   nodes_modes=np.array([n["mode"] for n in self.nodes], np.uint8), nodes_truenodeids=[n["yes"][0] for n in self.nodes],
                   nodes_falsenodeids=[n["no"][0] for n in self.nodes], nodes_trueleafs=[n["yes"][1] for n in self.nodes],
                   nodes_falseleafs=[n["no"][1] for n in self.nodes], nodes_missing_value_tracks_true=[n["missing"] for n in self.nodes],
                   leaf_targetids=[t for t, _ in flat], leaf_weights=np.array([w for _, w in flat], self.dtype))
        if members:
            out["membership_values"] = np.array(members, self.dtype)
        if self.per_leaf > 1:
            out["leaf_begins"] = [int(b) for b in np.cumsum([0] + [len(leaf) for leaf in self.leaves])[:-1]]
        return out


def runtime(x, attrs):
    given = {k: numpy_helper.from_array(v, k) if isinstance(v, np.ndarray) else v for k, v in attrs.items()}
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **given)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, x.shape)], [helper.make_tensor_value_info("y", kind, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("", 21)], ir_version=10)
    if MEMBER in attrs["nodes_modes"]:
        return ReferenceEvaluator(model).run(None, {"x": x})[0]
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def add(name, forest, rows, aggregate=1, missing=False, check=True):
    x = random.uniform(-3, 3, (rows, forest.features)).astype(forest.dtype)
    x[:, ::2] = np.round(x[:, ::2])  # so that equality and membership happen
    if missing:
        x[random.random(x.shape) < 0.2] = np.nan
    y, attrs = forest.evaluate(x, aggregate).astype(forest.dtype), forest.attrs(aggregate)
    if check:
        np.testing.assert_allclose(runtime(x, attrs), y, rtol=1e-4, atol=1e-5, err_msg=name)
    tolerance = {np.float32: 1e-6, np.float64: 1e-12, np.float16: 1e-3}[forest.dtype]
    cases.add("TreeEnsemble", [x], [y], attrs, name=name, domain="ai.onnx.ml", rtol=tolerance, atol=tolerance)


for mode in range(7):
    add(f"mode_{mode}", Forest(3, 3, 4, 2, [mode]), 20)
    add(f"mode_{mode}_missing", Forest(3, 3, 4, 2, [mode]), 20, missing=True, check=mode in (0, 1, 2, 3))
for aggregate in range(4):
    add(f"aggregate_{aggregate}", Forest(5, 3, 4, 3, [0]), 15, aggregate, check=False)
    add(f"one_target_{aggregate}", Forest(5, 3, 4, 1, [0]), 15, aggregate)
    add(f"many_a_leaf_{aggregate}", Forest(5, 3, 4, 5, [0], per_leaf=3), 15, aggregate, check=False)
add("mixed", Forest(8, 5, 6, 3, [0, 1, 2, 3, 4, 5, 6]), 30)
add("f64", Forest(4, 4, 5, 2, [0, 3], dtype=np.float64), 20)
add("f16", Forest(4, 4, 5, 2, [0, 3], dtype=np.float16), 20, check=False)
add("one_node", Forest(1, 1, 1, 1, [0]), 4)
add("no_rows", Forest(2, 2, 3, 2, [0]), 0, check=False)
add("deep", Forest(2, 9, 3, 1, [0, 3]), 40)

cases.write(sys.argv[1])
