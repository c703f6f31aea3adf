#!/usr/bin/env python3
"""Time and peak memory of a training step in msrun against PyTorch, on the CPU, in alternating rounds.

usage: train_step.py [--bin build/release/bin] [--threads 2] [--rounds 3] [--seconds 4] [--networks lenet,bert] [--json FILE]
needs: pip install torch

Each run is a process of its own: msrun bench --training for msrt, this script with --torch for PyTorch, which runs in its default
and its channels_last layout. A round is one run of each, and counts with its median. The figure is the median over rounds of
msrt / the faster PyTorch of that same round, so that noise of the machine hits both alike. Memory is the peak of the resident
set of the process; "own" is without what the process had before it built the model (the libraries and interpreter of PyTorch).

--cpu-time compares processor time (of all threads, which sleep while they wait) instead: on a machine that others use, threads
that spin at a barrier for one that does not run make the time of a step meaningless.
"""
import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time

# name: (msrun's arguments, batch, input dims)
NETWORKS = {
    "lenet": ["zoo:lenet", "--shape", "batch=32", "--training", "momentum:0.9"],
    "resnet18": ["zoo:resnet18", "--image", "32", "--shape", "batch=64", "--training", "momentum:0.9"],
    "resnet50": ["zoo:resnet50", "--shape", "batch=8", "--training", "momentum:0.9"],
    "unet": ["zoo:unet", "--shape", "batch=4", "--training", "momentum:0.9"],
    "bert": ["zoo:bert", "--shape", "batch=8", "--shape", "sequence=128", "--training", "adamw", "--loss", "mse"],
}


def resident_now():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---- PyTorch: the networks of tools/msconvert/zoo_vision.cc and zoo_text.cc ------------------------------------------------------


def torch_network(name):
    import torch
    from torch import nn
    import torch.nn.functional as F

    def conv_norm(cin, cout, kernel=1, stride=1, pad=0, bias=False):
        return nn.Sequential(nn.Conv2d(cin, cout, kernel, stride, pad, bias=bias), nn.BatchNorm2d(cout))

    class Block(nn.Module):
        def __init__(self, cin, width, stride, bottleneck):
            super().__init__()
            cout = width * (4 if bottleneck else 1)
            self.shortcut = conv_norm(cin, cout, 1, stride) if stride != 1 or cin != cout else nn.Identity()
            relu = nn.ReLU(inplace=True)
            if bottleneck:
                self.body = nn.Sequential(conv_norm(cin, width), relu, conv_norm(width, width, 3, stride, 1), relu, conv_norm(width, cout))
            else:
                self.body = nn.Sequential(conv_norm(cin, width, 3, stride, 1), relu, conv_norm(width, width, 3, 1, 1))

        def forward(self, x):
            return F.relu(self.body(x) + self.shortcut(x), inplace=True)

    class ResNet(nn.Module):
        def __init__(self, blocks, bottleneck):
            super().__init__()
            layers = [conv_norm(3, 64, 7, 2, 3), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
            channels = 64
            for stage, count in enumerate(blocks):
                for i in range(count):
                    layers.append(Block(channels, 64 << stage, 2 if stage and i == 0 else 1, bottleneck))
                    channels = (64 << stage) * (4 if bottleneck else 1)
            self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))

        def forward(self, x):
            return self.body(x)

    class UNet(nn.Module):
        def __init__(self, width=32):
            super().__init__()

            def double(cin, cout):
                return nn.Sequential(conv_norm(cin, cout, 3, 1, 1, True), nn.ReLU(inplace=True),
                                     conv_norm(cout, cout, 3, 1, 1, True), nn.ReLU(inplace=True))
            self.down = nn.ModuleList(double(4 if i == 0 else width << (i - 1), width << i) for i in range(4))
            self.bottom = double(width << 3, width << 4)
            self.enlarge = nn.ModuleList(nn.ConvTranspose2d(width << (i + 1), width << i, 2, 2) for i in range(4))
            self.up = nn.ModuleList(double(width << (i + 1), width << i) for i in range(4))
            self.head = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            skips = []
            for layer in self.down:
                x = layer(x)
                skips.append(x)
                x = F.max_pool2d(x, 2, 2)
            x = self.bottom(x)
            for i in reversed(range(4)):
                x = self.up[i](torch.cat([skips[i], self.enlarge[i](x)], 1))
            return self.head(x)

    class BertLayer(nn.Module):
        def __init__(self, hidden, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden) for _ in range(4))
            self.up, self.out = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
            self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)

        def forward(self, x, keep):
            def split(t):
                return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
            y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)), keep)
            x = self.norm1(self.o(y.transpose(1, 2).flatten(2)) + x)
            return self.norm2(self.out(F.gelu(self.up(x))) + x)

    class Bert(nn.Module):
        def __init__(self, hidden=768, layers=12, heads=12):
            super().__init__()
            self.tokens = nn.Embedding(30522, hidden)
            self.positions = nn.Parameter(torch.randn(512, hidden) * 0.1)
            self.norm = nn.LayerNorm(hidden)
            self.layers = nn.ModuleList(BertLayer(hidden, heads) for _ in range(layers))

        def forward(self, ids, mask):
            keep = mask.bool()[:, None, None, :]
            x = self.norm(self.tokens(ids) + self.positions[: ids.shape[1]])
            for layer in self.layers:
                x = layer(x, keep)
            return x


    if name == "lenet":
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                     nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    return {"resnet18": lambda: ResNet((2, 2, 2, 2), False), "resnet50": lambda: ResNet((3, 4, 6, 3), True), "unet": UNet,
            "bert": Bert}[name]()


def torch_batch(name):
    import torch
    if name == "bert":
        mask = torch.ones(8, 128, dtype=torch.int64)
        mask[:, 96:] = 0
        return (torch.randint(0, 30522, (8, 128)), mask), torch.randn(8, 128, 768)
    dims, classes = {"lenet": ((32, 1, 28, 28), 10), "resnet18": ((64, 3, 32, 32), 1000), "resnet50": ((8, 3, 224, 224), 1000),
                     "unet": ((4, 4, 256, 256), 2)}[name]
    target = (dims[0], *dims[2:]) if name == "unet" else (dims[0],)
    return (torch.randn(dims),), torch.randint(0, classes, target)


def run_torch(a):
    import torch
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    before = resident_now()
    network = torch_network(a.torch).train()
    inputs, target = torch_batch(a.torch)
    if a.channels_last:
        network = network.to(memory_format=torch.channels_last)
        inputs = tuple(x.contiguous(memory_format=torch.channels_last) for x in inputs)
    if a.torch == "bert":
        optimizer, loss = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=True), torch.nn.MSELoss()
    else:
        optimizer, loss = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, fused=True), torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss(network(*inputs), target)
        value.backward()
        optimizer.step()
        return value.item()

    for _ in range(3):
        step()
    millis, begin, cpu_begin = [], time.perf_counter(), time.process_time()
    while len(millis) < 3 or time.perf_counter() - begin < a.seconds:
        start = time.perf_counter()
        step()
        millis.append((time.perf_counter() - start) * 1e3)
    cpu = (time.process_time() - cpu_begin) * 1e3 / len(millis)
    if a.profile:
        with torch.profiler.profile() as profile:
            step()
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25), file=sys.stderr)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"millis": cpu if a.cpu_time else statistics.median(millis), "peak": peak, "own": peak - before}))


# ---- rounds ----------------------------------------------------------------------------------------------------------------------


def environment(a):
    return {**os.environ, "OMP_WAIT_POLICY": "passive"} if a.cpu_time else None


def measure_torch(a, name, channels_last):
    command = [sys.executable, __file__, "--torch", name, "--threads", str(a.threads), "--seconds", str(a.seconds)]
    command += ["--channels-last"] * channels_last + ["--cpu-time"] * a.cpu_time
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment(a)).stdout
    return json.loads(text.splitlines()[-1])


# Processor time of a step: the difference between processes that run a different number of them.
def msrt_cpu_millis(a, name, command):
    steps, times = (20, 420) if name == "lenet" else (2, 8), []
    for warmup in steps:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command + ["--warmup", str(warmup), "--seconds", "0"], check=True, capture_output=True, env=environment(a))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (times[1] - times[0]) * 1e3 / (steps[1] - steps[0])


def measure_msrt(a, name):
    command = [os.path.join(a.bin, "msrun"), "bench", *NETWORKS[name], "--threads", str(a.threads), "--quiet", "--no-ops", "--json", "-"]
    seconds = ["--seconds", "0" if a.cpu_time else str(a.seconds)]
    report = json.loads(subprocess.run(command + seconds, check=True, capture_output=True, text=True, env=environment(a)).stdout)
    millis = msrt_cpu_millis(a, name, command) if a.cpu_time else report["latency_ms"]["median"]
    return {"millis": millis, "peak": report["peak_rss_bytes"]}


def compare(a, name):
    rounds = []
    for _ in range(a.rounds):
        msrt, plain = measure_msrt(a, name), measure_torch(a, name, False)
        last = plain if name == "bert" else measure_torch(a, name, True)
        rounds.append((msrt, min(plain, last, key=lambda r: r["millis"]), min(plain["peak"], last["peak"]),
                       min(plain["own"], last["own"])))

    def median(pick):
        return statistics.median(pick(r) for r in rounds)
    result = {"msrt_ms": median(lambda r: r[0]["millis"]), "torch_ms": median(lambda r: r[1]["millis"]),
              "time_ratio": median(lambda r: r[0]["millis"] / r[1]["millis"]), "msrt_peak": median(lambda r: r[0]["peak"]),
              "torch_peak": median(lambda r: r[2]), "torch_own": median(lambda r: r[3])}
    print(f"{name:9} msrt {result['msrt_ms']:9.2f} ms   torch {result['torch_ms']:9.2f} ms   ratio {result['time_ratio']:6.3f}   peak "
          f"msrt {result['msrt_peak'] / 1e6:6.0f} MB   torch {result['torch_peak'] / 1e6:6.0f} MB (own {result['torch_own'] / 1e6:.0f})",
          flush=True)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--json")
    parser.add_argument("--cpu-time", action="store_true", help="compare processor time")
    parser.add_argument("--torch", help="measure one network in PyTorch alone")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--profile", action="store_true", help="with --torch: the costs of its ops")
    a = parser.parse_args()
    if a.torch:
        return run_torch(a)
    results = {name: compare(a, name) for name in a.networks.split(",")}
    ratios = [r["time_ratio"] for r in results.values()]
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, greatest {max(ratios):.3f}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(results, f, indent=2)


if __name__ == "__main__":
    main()
