#!/usr/bin/env python3
"""One U-Net over one image: 'msrun image' next to MONAI's sliding window on PyTorch, with the same weights, in turn.

usage: compare_monai.py BIN_DIR [--size 4096] [--window 512] [--overlap 0.25] [--threads 2] [--rounds 1] [--memory 2GiB] [--folder DIR]
(needs numpy, torch and monai)

The U-Net has 4 levels of width 32, batch norms and 2 classes; its weights are made by PyTorch and written to ONNX for msconvert. Each run is
a process of its own. Prints for each way the seconds, pixels per second and peak resident memory, then the ratios and the errors against the
same network on the whole image, where that fits (--whole-limit): the seams of the sliding window (largest and mean difference, classes that
differ), and whether msrun has the bits of its own run by tiles. Exits with 1 if msrun is slower, needs more memory or has seams.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import onnx_file as onnx  # noqa: E402

CHANNELS, WIDTH, LEVELS, CLASSES = 4, 32, 4, 2


def build():
    import torch
    from torch import nn

    class Pair(nn.Sequential):
        def __init__(self, inputs, outputs):
            layers = []
            for channels in (inputs, outputs):
                layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
            super().__init__(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [WIDTH << level for level in range(LEVELS)]
            self.down = nn.ModuleList(Pair(a, b) for a, b in zip([CHANNELS] + widths, widths))
            self.middle = Pair(widths[-1], 2 * widths[-1])
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in widths)
            self.join = nn.ModuleList(Pair(2 * w, w) for w in widths)
            self.head = nn.Conv2d(WIDTH, CLASSES, 1)

        def forward(self, x):
            skips = []
            for pair in self.down:
                skips.append(pair(x))
                x = nn.functional.max_pool2d(skips[-1], 2)
            x = self.middle(x)
            for level in reversed(range(LEVELS)):
                x = self.join[level](torch.cat([skips[level], self.up[level](x)], 1))
            return self.head(x)

    torch.manual_seed(17)
    net = UNet()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):  # as if trained
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    return net.eval()


def to_onnx(net):
    nodes, weights = [], []

    def add(op, inputs, **attributes):
        nodes.append(onnx.node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    def constant(tensor):
        weights.append(onnx.tensor(f"w{len(weights)}", list(tensor.shape), tensor.detach().numpy().ravel().tolist()))
        return f"w{len(weights) - 1}"

    def pair(layers, x):
        for i in (0, 3):
            conv, norm = layers[i], layers[i + 1]
            x = add("Conv", [x, constant(conv.weight), constant(conv.bias)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            x = add("BatchNormalization", [x, *(constant(t) for t in (norm.weight, norm.bias, norm.running_mean, norm.running_var))])
            x = add("Relu", [x])
        return x
    x, skips = "image", []
    for layers in net.down:
        skips.append(pair(layers, x))
        x = add("MaxPool", [skips[-1]], kernel_shape=[2, 2], strides=[2, 2])
    x = pair(net.middle, x)
    for level in reversed(range(LEVELS)):
        up = net.up[level]
        x = add("ConvTranspose", [x, constant(up.weight), constant(up.bias)], kernel_shape=[2, 2], strides=[2, 2])
        x = pair(net.join[level], add("Concat", [skips[level], x], axis=1))
    nodes.append(onnx.node("Conv", [x, constant(net.head.weight), constant(net.head.bias)], ["scores"], kernel_shape=[1, 1]))
    return onnx.model(onnx.graph(nodes, [onnx.value("image", [1, CHANNELS, "rows", "columns"])],
                                 [onnx.value("scores", [1, CLASSES, "rows", "columns"])], weights))


def torch_run(a):
    """In a process of its own: the sliding window (or the whole image) on PyTorch."""
    import torch
    torch.set_num_threads(a.threads)
    net = build()
    image = torch.from_numpy(np.load(a.image).astype(np.float32))[None] / 255
    with torch.inference_mode():
        if a.role == "monai":
            from monai.inferers import sliding_window_inference
            net(image[:, :, :a.window, :a.window])  # warm
            began = time.monotonic()
            scores = sliding_window_inference(image, (a.window, a.window), 1, net, overlap=a.overlap)
        else:
            began = time.monotonic()
            scores = net(image)
    seconds = time.monotonic() - began
    np.save(a.out, scores[0].numpy())
    print(json.dumps({"seconds": seconds, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def run_torch(a, role, image, out):
    command = [sys.executable, os.path.abspath(__file__), a.bin, "--role", role, "--image", image, "--out", out, "--threads", str(a.threads),
               "--window", str(a.window), "--overlap", str(a.overlap)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def run_msrt(a, folder, image, out, *more):
    report = os.path.join(folder, "report.json")
    command = [os.path.join(a.bin, "msrun"), "image", os.path.join(folder, "unet.msrt"), image, out, "--normalize", "scale=1/255", "--threads",
               str(a.threads), "--memory", a.memory, "--json", report, "--overwrite", "--quiet", *more]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"compare_monai: {' '.join(command)} failed")
    with open(report, encoding="utf-8") as f:
        found = json.load(f)
    return {"seconds": found["seconds"], "rss": usage.ru_maxrss * 1024, "recomputed_rows": found["recomputed_rows"]}


def show(name, run, pixels):
    print(f"{name:22} {run['seconds']:8.2f} s  {pixels / run['seconds'] / 1e6:7.3f} Mpixel/s  peak resident {run['rss'] / 2**30:.2f} GiB", flush=True)


def errors(name, got, want):
    different = np.abs(got - want)
    print(f"{name} against the whole image: largest difference {different.max():.3g} (scores reach {np.abs(want).max():.3g}), mean "
          f"{different.mean():.3g}, other classes at {np.mean(got.argmax(0) != want.argmax(0)) * 100:.4f} % of the pixels", flush=True)
    return float(different.max())


def compare(a, folder):
    net = build()
    with open(os.path.join(folder, "unet.onnx"), "wb") as f:
        f.write(to_onnx(net))
    subprocess.run([os.path.join(a.bin, "msconvert"), os.path.join(folder, "unet.onnx"), os.path.join(folder, "unet.msrt"), "--quiet"], check=True)
    image, paths = os.path.join(folder, "image.npy"), {n: os.path.join(folder, n + ".npy") for n in ("monai", "stream", "tiles", "whole")}
    rows, columns = np.mgrid[0:a.size, 0:a.size].astype(np.float32)
    noise = np.random.default_rng(1).integers(0, 64, (CHANNELS, a.size, a.size))
    waves = np.stack([np.sin(rows / 97 + c) * np.cos(columns / 61 - c) * 90 + 96 for c in range(CHANNELS)])
    np.save(image, (waves + noise).astype(np.uint8))
    pixels, ours, theirs = a.size * a.size, [], []
    for _ in range(a.rounds):
        theirs.append(run_torch(a, "monai", image, paths["monai"]))
        show(f"MONAI {a.window}, {a.overlap}", theirs[-1], pixels)
        ours.append(run_msrt(a, folder, image, paths["stream"], "--executor", "stream"))
        show("msrun image", ours[-1], pixels)
    tiles = run_msrt(a, folder, image, paths["tiles"], "--executor", "tiles")
    show("msrun image, tiles", tiles, pixels)
    with open(paths["stream"], "rb") as f, open(paths["tiles"], "rb") as g:
        same = f.read() == g.read()
    speed = sorted(t["seconds"] / o["seconds"] for t, o in zip(theirs, ours))[len(ours) // 2]
    memory = max(o["rss"] for o in ours) / min(t["rss"] for t in theirs)
    print(f"msrun is {speed:.2f} times as fast, with {memory:.2f} of the memory; rows computed twice: {ours[-1]['recomputed_rows']}; "
          f"rows and tiles have {'the same bits: seams 0' if same else 'DIFFERENT bits'}", flush=True)
    if a.size <= a.whole_limit:
        show("PyTorch, whole image", run_torch(a, "whole", image, paths["whole"]), pixels)
        whole = np.load(paths["whole"])
        errors("MONAI", np.load(paths["monai"]), whole)
        same &= errors("msrun", np.load(paths["stream"]), whole) < 1e-4 * np.abs(whole).max()
    else:
        errors("MONAI (the whole by msrun)", np.load(paths["monai"]), np.load(paths["stream"]))
    limits = {"msrun is faster": speed > 1, "msrun needs less memory": memory < 1, "msrun has no seams": same,
              "msrun computes no row twice": ours[-1]["recomputed_rows"] == 0}
    for limit in (name for name, holds in limits.items() if not holds):
        print("limit missed:", limit)
    return all(limits.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--overlap", type=float, default=0.25)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", default="2GiB", help="limit of msrun")
    parser.add_argument("--whole-limit", type=int, default=2048, help="the largest image that PyTorch also computes whole")
    parser.add_argument("--folder", help="for the image and the results; without it, a temporary one")
    for hidden in ("--role", "--image", "--out"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.role:
        return torch_run(a)
    with tempfile.TemporaryDirectory(prefix="msrt-monai-") as temporary:
        folder = a.folder or temporary
        os.makedirs(folder, exist_ok=True)
        return 0 if compare(a, folder) else 1


if __name__ == "__main__":
    sys.exit(main())
