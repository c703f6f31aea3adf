#!/usr/bin/env python3
"""Latency of zoo:resnet50 in msrun against ONNX Runtime on the same network, in alternating rounds.

usage: compare_ort.py [--bin build/release/bin] [--threads 2] [--rounds 5] [--seconds 2]
needs: pip install numpy onnx onnxruntime

The network is written to ONNX here, layer by layer like the zoo's, with random weights: latency does not depend on their values.
Each engine runs in a process of its own; a round is one run of each, and counts with its minimum and its median. The figure is the
median over rounds of msrt / ONNX Runtime in that same round, so that noise hits both alike.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def write_resnet50(path):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(0)
    nodes, weights = [], []

    def constant(shape, deviation, mean=0.0):
        name = f"w{len(weights)}"
        weights.append(numpy_helper.from_array((mean + deviation * rng.standard_normal(shape)).astype(np.float32), name))
        return name

    def op(kind, inputs, **attributes):
        out = f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def conv_norm(x, cin, cout, kernel, stride, relu=True):
        pad = kernel // 2
        x = op("Conv", [x, constant((cout, cin, kernel, kernel), (2 / (cin * kernel * kernel)) ** 0.5)], strides=[stride, stride], pads=[pad] * 4)
        ones = np.ones(cout, np.float32)
        weights.append(numpy_helper.from_array(ones, f"w{len(weights)}"))
        variance = weights[-1].name
        x = op("BatchNormalization", [x, constant((cout,), .1, 1), constant((cout,), .1), constant((cout,), .1), variance])
        return op("Relu", [x]) if relu else x

    x = conv_norm("image", 3, 64, 7, 2)
    x = op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and block == 0 else 1
            shortcut = x
            if block == 0:
                shortcut = conv_norm(x, channels, 4 * width, 1, stride, relu=False)
            y = conv_norm(x, channels, width, 1, 1)
            y = conv_norm(y, width, width, 3, stride)
            y = conv_norm(y, width, 4 * width, 1, 1, relu=False)
            x = op("Relu", [op("Add", [y, shortcut])])
            channels = 4 * width
    x = op("Flatten", [op("GlobalAveragePool", [x])])
    nodes.append(helper.make_node("Gemm", [x, constant((1000, 2048), .02), constant((1000,), .02)], ["logits"], transB=1))
    graph = helper.make_graph(nodes, "resnet50", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run_ort(path, threads, seconds):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = {"image": np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    for _ in range(5):
        session.run(None, x)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, x)
        times.append((time.perf_counter() - start) * 1000)
    print(json.dumps({"min": min(times), "median": statistics.median(times)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(__file__), "../../build/release/bin"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--ort-child", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.ort_child:
        return run_ort(a.ort_child, a.threads, a.seconds)
    try:
        import numpy, onnx, onnxruntime  # noqa: F401, E401
    except ImportError as e:
        sys.exit(f"{e}: pip install numpy onnx onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        model, report, network = f"{folder}/resnet50.msrt", f"{folder}/report.json", f"{folder}/resnet50.onnx"
        write_resnet50(network)
        subprocess.run([f"{a.bin}/msconvert", "zoo:resnet50", model, "--quiet"], check=True)
        ratios = {"min": [], "median": []}
        for r in range(a.rounds):
            subprocess.run([f"{a.bin}/msrun", model, "--threads", str(a.threads), "--seconds", str(a.seconds), "--json", report],
                           check=True, stdout=subprocess.DEVNULL)
            with open(report) as f:
                ours = json.load(f)
            child = [sys.executable, __file__, "--ort-child", network, "--threads", str(a.threads), "--seconds", str(a.seconds)]
            theirs = json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
            for key, values in ratios.items():
                values.append(ours["latency_ms"][key] / theirs[key])
            print(f"round {r + 1}: msrt min {ours['latency_ms']['min']:.1f} median {ours['latency_ms']['median']:.1f} ms, "
                  f"ONNX Runtime min {theirs['min']:.1f} median {theirs['median']:.1f} ms")
        for key, values in ratios.items():
            print(f"msrt / ONNX Runtime by {key}: {statistics.median(values):.3f} (rounds {min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
