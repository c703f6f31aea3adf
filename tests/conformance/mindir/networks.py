#!/usr/bin/env python3
"""ResNet-50 exported by MindSpore, through msconvert and msrun, compared with MindSpore, and back to MindSpore: too large to be a committed file.

    tests/conformance/mindir/networks.py BIN_DIR

Runs again with $MSRT_MINDSPORE_PYTHON where this Python has no MindSpore; skips (77) where neither has.
"""
import os
import pathlib
import sys
import tempfile

from export_test import find_mindspore

find_mindspore()
os.environ.setdefault("GLOG_v", "3")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn, ops  # noqa: E402

from agreement import MindSporeModel, run_msrun, tool  # noqa: E402

TOLERANCE = 1e-4  # of the range of an output


class Bottleneck(nn.Cell):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(channels, width, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, pad_mode="pad", padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1),
            nn.BatchNorm2d(4 * width),
        )
        same = stride == 1 and channels == 4 * width
        self.way = nn.Identity() if same else nn.SequentialCell(nn.Conv2d(channels, 4 * width, 1, stride), nn.BatchNorm2d(4 * width))

    def construct(self, x):
        return ops.relu(self.body(x) + self.way(x))


class ResNet50(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(
            nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="same")
        )
        blocks, channels = [], 64
        for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for i in range(count):
                blocks.append(Bottleneck(channels, width, 2 if i == 0 and width != 64 else 1))
                channels = 4 * width
        self.blocks = nn.SequentialCell(*blocks)
        self.head = nn.Dense(channels, 1000)

    def construct(self, x):
        return self.head(ops.mean(self.blocks(self.stem(x)), (2, 3)))


def seeded(cell, seed=0):
    """Weights of a size that keeps activations in range."""
    rng = np.random.default_rng(seed)
    for p in cell.get_parameters():
        fan = int(np.prod(p.shape[1:])) if len(p.shape) > 1 else 0
        if fan:
            made = rng.standard_normal(p.shape) * np.sqrt(2.0 / fan)
        elif "variance" in p.name or "gamma" in p.name:
            made = rng.uniform(0.5, 1.0, p.shape)
        else:
            made = rng.uniform(-0.1, 0.1, p.shape)
        p.set_data(ms.Tensor(made.astype(np.float32)))
    cell.set_train(False)
    return cell


def deviation(got, want):
    return float(np.abs(got - want).max() / (want.max() - want.min()))


def main():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    bin_dir = sys.argv[1]
    net = seeded(ResNet50())
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        first, native, back, again = (folder / name for name in ("first.mindir", "first.msrt", "again.mindir", "again.msrt"))
        ms.export(net, ms.Tensor(x), file_name=str(first), file_format="MINDIR")
        for source, target in ((first, native), (native, back), (back, again)):
            tool(bin_dir, "msconvert", source, target, "--quiet")
        want = net(ms.Tensor(x)).asnumpy()
        (ours,) = run_msrun(bin_dir, native, {"x": x}, folder)
        (ours_again,) = run_msrun(bin_dir, again, {"x": x}, folder)
        (theirs_again,) = MindSporeModel(back)([x])
    figures = {"in msrun": deviation(ours, want), "back in MindSpore": deviation(theirs_again, want)}
    same = np.array_equal(ours, ours_again)
    print("resnet50: " + ", ".join(f"{where} {d:.2e} of the range" for where, d in figures.items()) +
          ("; back in msrun the same bits" if same else "; back in msrun OTHER bits"))
    return 0 if max(figures.values()) <= TOLERANCE and same else 1


if __name__ == "__main__":
    sys.exit(main())
