"""Cases of ops/recurrent.cc. Oracle: the equations of the ONNX specification in NumPy, in double; wherever ONNX Runtime runs the same node,
its result must agree before a case is written."""
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from cases import BF16, Cases

random = np.random.default_rng(29)
cases = Cases("NumPy in double, checked with ONNX Runtime")
onnxruntime.set_default_logger_severity(4)

F64, F32, F16 = np.dtype("f8"), np.dtype("f4"), np.dtype("f2")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS = {  # name: function, defaults of its parameters
    "Relu": (lambda x: np.maximum(x, 0), ()),
    "Tanh": (np.tanh, ()),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), ()),
    "Affine": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "LeakyRelu": (lambda x, a: np.where(x >= 0, x, a * x), (0.01,)),
    "ThresholdedRelu": (lambda x, a: np.where(x >= a, x, 0), (1.0,)),
    "ScaledTanh": (lambda x, a, b: a * np.tanh(b * x), (1.0, 1.0)),
    "HardSigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), (0.2, 0.5)),
    "Elu": (lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), (1.0,)),
    "Softsign": (lambda x: x / (1 + np.abs(x)), ()),
    "Softplus": (lambda x: np.logaddexp(0, x), ()),
}


def functions_of(op, attrs, directions):
    names = attrs.get("activations", DEFAULTS[op] * directions)
    alphas, betas = iter(attrs.get("activation_alpha", [])), iter(attrs.get("activation_beta", []))
    clip, out = attrs.get("clip", np.inf), []
    for name in names:
        f, defaults = FUNCTIONS[name]
        parameters = [next(source, np.float32(d)) for source, d in zip((alphas, betas), defaults)]
        out.append(lambda x, f=f, p=parameters: f(np.clip(x, -clip, clip), *p))
    return out


def step(op, attrs, f, x, h, c, w, r, wb, rb, p):
    """One step of all sequences. w, r, wb, rb: lists of the gates' parameters."""
    sums = [x @ w[g].T + h @ r[g].T + wb[g] + rb[g] for g in range(len(w))]
    if op == "RNN":
        return f[0](sums[0]), c
    if op == "GRU":
        update, reset = f[0](sums[0]), f[0](sums[1])
        state = reset * (h @ r[2].T + rb[2]) if attrs.get("linear_before_reset") else (reset * h) @ r[2].T + rb[2]
        return (1 - update) * f[1](x @ w[2].T + state + wb[2]) + update * h, c
    i = f[0](sums[0] + p[0] * c)
    forget = 1 - i if attrs.get("input_forget") else f[0](sums[2] + p[2] * c)
    c = forget * c + i * f[1](sums[3])
    return f[0](sums[1] + p[1] * c) * f[2](c), c


def layer(op, attrs, x, w, r, b, lens, h0, c0, p):
    """All in double, with layout 0. Gives Y, Y_h, Y_c."""
    steps, batch, _ = x.shape
    directions, hidden = r.shape[0], r.shape[2]
    gates, functions = GATES[op], functions_of(op, attrs, directions)
    y, last_h, last_c = np.zeros((steps, directions, batch, hidden)), h0.copy(), c0.copy()
    for d in range(directions):
        f = functions[d * len(DEFAULTS[op]):]
        parts = np.split(w[d], gates), np.split(r[d], gates), *(np.split(half, gates) for half in np.split(b[d], 2)), np.split(p[d], 3)
        for n in range(batch):
            order = range(lens[n])
            for t in reversed(order) if d == 1 or attrs.get("direction") == "reverse" else order:
                h, c = step(op, attrs, f, x[t, n], last_h[d, n], last_c[d, n], *parts)
                last_h[d, n], last_c[d, n], y[t, d, n] = h, c, h
    return y, last_h, last_c


def runtime(op, attrs, inputs, outputs):
    """What ONNX Runtime gives, or None where it refuses."""
    names = [f"i{i}" if a is not None else "" for i, a in enumerate(inputs)]
    given = {n: a for n, a in zip(names, inputs) if n}
    node = helper.make_node(op, names, [f"o{i}" for i in range(outputs)], **attrs)
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    results = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in node.output]
    model = helper.make_model(helper.make_graph([node], "g", values, results), opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
    except Exception as refused:
        print(f"ONNX Runtime refuses {op} {attrs}: {str(refused).splitlines()[0][-90:]}")
        return None


TOLERANCE = {F64: (1e-12, 1e-12), F32: (1e-5, 1e-6), F16: (2e-3, 1e-3), BF16: (2e-2, 1e-2)}


def add(op, name, steps, batch, size, hidden, attrs=None, *, use=("B",), lens=None, dtype=F32, outputs=None, scale=1.0, check=True):
    """use: the optional inputs that are given: B, h, c, P."""
    attrs = attrs or {}
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    gates = GATES[op]

    def values(*shape):
        return random.uniform(-scale, scale, shape).astype(dtype)

    def optional(key, *shape):
        return values(*shape) if key in use else None

    x, w, r = values(steps, batch, size), values(directions, gates * hidden, size), values(directions, gates * hidden, hidden)
    b = optional("B", directions, 2 * gates * hidden)
    h, c = optional("h", directions, batch, hidden), optional("c", directions, batch, hidden)
    p = optional("P", directions, 3 * hidden)
    lengths = None if lens is None else np.array(lens, np.int32)

    def wide(a, *shape):
        return np.zeros(shape) if a is None else a.astype(np.float64)

    lengths_of_all = [steps] * batch if lens is None else lens
    results = layer(op, attrs, wide(x), wide(w), wide(r), wide(b, directions, 2 * gates * hidden), lengths_of_all,
                    wide(h, directions, batch, hidden), wide(c, directions, batch, hidden), wide(p, directions, 3 * hidden))
    count = outputs or (3 if op == "LSTM" else 2)
    batch_first = attrs.get("layout") == 1
    inputs = [x, w, r, b, lengths, h] + ([c, p] if op == "LSTM" else [])
    if check and dtype == F32 and not batch_first:
        got = runtime(op, dict(attrs, hidden_size=hidden), inputs, count)
        for mine, theirs in zip(results, got or []):
            np.testing.assert_allclose(theirs, mine, rtol=1e-4, atol=1e-5, err_msg=f"{op} {name}")
    if batch_first:
        inputs[0] = x.transpose(1, 0, 2)
        for i in (5, 6):
            if i < len(inputs) and inputs[i] is not None:
                inputs[i] = inputs[i].transpose(1, 0, 2)
        results = [results[0].transpose(2, 0, 1, 3)] + [s.transpose(1, 0, 2) for s in results[1:]]
    while inputs[-1] is None:
        inputs.pop()
    rtol, atol = TOLERANCE[dtype]
    cases.add(op, inputs, [a.astype(dtype) for a in results[:count]], attrs, name=name, rtol=rtol, atol=atol)


for op in GATES:
    state = ("B", "h", "c")
    add(op, "defaults", 4, 3, 2, 5, use=())
    add(op, "bias", 4, 3, 2, 5, {"hidden_size": 5})
    for direction in ("forward", "reverse", "bidirectional"):
        add(op, direction, 5, 3, 4, 3, {"direction": direction}, use=state)
        add(op, f"{direction}_lengths", 5, 4, 4, 3, {"direction": direction}, use=state, lens=[5, 2, 1, 4])
        add(op, f"{direction}_batch_first", 5, 3, 4, 2, {"direction": direction, "layout": 1}, use=state, lens=[3, 5, 1])
    add(op, "batch_first", 3, 2, 4, 3, {"layout": 1}, use=("B",))
    add(op, "no_steps_of_one", 3, 2, 2, 2, use=state, lens=[0, 3], check=False)  # runtimes disagree; here the state stays
    for dtype in (F64, F16, BF16):
        add(op, dtype.name, 3, 2, 4, 3, use=state, dtype=dtype, scale=0.5)
    # The input of every activation is clipped, says ONNX; ONNX Runtime's LSTM leaves out the cell on its way to the output.
    clips_all = op != "LSTM"
    add(op, "clip", 4, 3, 3, 4, {"clip": 0.4}, use=state, scale=2.0, check=clips_all)
    add(op, "clip_bidirectional", 4, 2, 3, 4, {"clip": 0.9, "direction": "bidirectional"}, use=state, scale=2.0, check=clips_all)
    add(op, "one_output", 3, 2, 2, 2, outputs=1)
    add(op, "one_of_everything", 1, 1, 1, 1, use=state)
    add(op, "no_batch", 3, 0, 2, 2, check=False)
    add(op, "no_steps", 0, 2, 3, 2, use=state, check=False)
    names = list(FUNCTIONS)
    per = len(DEFAULTS[op])
    for k in range(len(names)):
        chosen = [names[(k + i) % len(names)] for i in range(per)]
        # ONNX Runtime's defaults of these are zeros; ONNX's are those of the ops of these names.
        agreed = not {"Affine", "ScaledTanh", "ThresholdedRelu"} & set(chosen)
        add(op, f"functions_{k}", 3, 2, 3, 2, {"activations": chosen}, use=state, scale=0.6, check=agreed)
    chosen = [["HardSigmoid", "LeakyRelu", "ScaledTanh"], ["Elu", "Affine", "ThresholdedRelu"]]
    takes = {name: len(defaults) for name, (_, defaults) in FUNCTIONS.items()}
    both = chosen[0][:per] + chosen[1][:per]
    alphas = [round(0.3 + 0.1 * i, 2) for i in range(sum(takes[f] >= 1 for f in both))]
    betas = [round(0.2 + 0.1 * i, 2) for i in range(sum(takes[f] >= 2 for f in both))]
    attrs = {"direction": "bidirectional", "activations": both, "activation_alpha": [float(np.float32(a)) for a in alphas]}
    if betas:
        attrs["activation_beta"] = [float(np.float32(b)) for b in betas]
    add(op, "parameters", 4, 2, 3, 2, attrs, use=state, scale=0.6)

add("RNN", "both_names", 3, 2, 3, 2, {"activations": ["Relu", "Tanh"]}, check=False)
for direction in ("forward", "bidirectional"):
    add("GRU", f"linear_before_reset_{direction}", 4, 3, 3, 4, {"linear_before_reset": 1, "direction": direction}, use=("B", "h"))
    add("LSTM", f"peepholes_{direction}", 4, 3, 3, 4, {"direction": direction}, use=("B", "h", "c", "P"))
    add("LSTM", f"input_forget_{direction}", 4, 3, 3, 4, {"input_forget": 1, "direction": direction}, use=("B", "h", "c"))
add("GRU", "linear_before_reset_clip", 4, 3, 3, 4, {"linear_before_reset": 1, "clip": 0.5}, use=("B", "h"), scale=2.0, lens=[4, 1, 2])
add("LSTM", "peepholes_clip", 4, 3, 3, 4, {"clip": 0.5}, use=("B", "h", "c", "P"), scale=2.0, lens=[4, 3, 2], check=False)
add("LSTM", "peepholes_batch_first", 4, 3, 3, 2, {"layout": 1}, use=("h", "c", "P"))
add("LSTM", "two_outputs", 3, 2, 2, 2, outputs=2)

cases.write(sys.argv[1])
