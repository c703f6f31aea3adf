"""Losses of PyTorch over 50 steps, which tests/training follows from the same weights and batches. Run from the root of the
repository:
    python tests/data/generate/training.py tests/data/training/losses.txt

Weights and data are functions of integers (`uniform`), so that the test makes the same numbers without a file.
"""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, FIRST_BATCH, BATCHES = 50, 8, 50, 5
MASK = (1 << 64) - 1


def uniform(stream, count):
    """`count` numbers in [0, 1): the upper 53 bits of splitmix64 of (stream << 32) + i."""
    z = (np.uint64(stream << 32) + np.arange(count, dtype=np.uint64)) * np.uint64(0x9e3779b97f4a7c15) + np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def weight(number, shape, center=0.0):
    """Parameter `number` of a network: uniform in a range that follows from its inputs; vectors are close to `center`."""
    bound = np.sqrt(3.0 / np.prod(shape[1:])) if len(shape) > 1 else 0.05
    return ((2 * uniform(1000 + number, int(np.prod(shape))) - 1) * bound + center).reshape(shape)


def batch(number, shape, classes):
    images = uniform(1 + 2 * number, int(np.prod(shape))).reshape(shape)
    labels = (uniform(2 + 2 * number, shape[0]) * classes).astype(np.int64)
    return images, labels


class LeNet(nn.Module):
    """zoo:lenet without its Softmax."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class ConvNorm(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.shortcut = ConvNorm(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()
        self.first, self.second = ConvNorm(inputs, outputs, 3, stride), ConvNorm(outputs, outputs, 3)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet18(nn.Module):
    """zoo:resnet18 with 8 channels in its first stage and 10 classes. Layers are in the order in which the zoo makes them."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = ConvNorm(3, width, 7, 2)
        blocks, inputs = [], width
        for stage in range(4):
            for i in range(2):
                blocks.append(BasicBlock(inputs, width << stage, 2 if stage and not i else 1))
                inputs = width << stage
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, 10)

    def forward(self, x):
        x = self.blocks(F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1))
        return self.head(x.mean((2, 3)))


OPTIMIZERS = {"momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
              "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01)}


def losses(make_network, make_optimizer, shape, classes, dtype):
    torch.manual_seed(0)
    network = make_network().to(dtype)
    with torch.no_grad():
        scales = {id(m.weight) for m in network.modules() if isinstance(m, nn.BatchNorm2d)}
        for number, parameter in enumerate(network.parameters()):
            parameter.copy_(torch.from_numpy(weight(number, tuple(parameter.shape), float(id(parameter) in scales))))
    optimizer = make_optimizer(network.parameters())
    for step in range(STEPS):
        images, labels = batch(FIRST_BATCH + step % BATCHES, shape, classes)
        loss = F.cross_entropy(network(torch.from_numpy(images).to(dtype)), torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
    images, labels = batch(FIRST_BATCH, shape, classes)
    with torch.no_grad():
        yield F.cross_entropy(network.eval()(torch.from_numpy(images).to(dtype)), torch.from_numpy(labels)).item()


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    lines = [f"# torch {torch.__version__}: network, optimizer, type, then the losses of {STEPS} steps and one of evaluation"]
    for network_name, network, image, class_count in (("lenet", LeNet, (BATCH, 1, 28, 28), 10),
                                                    ("resnet18", ResNet18, (BATCH, 3, 64, 64), 10)):
        for optimizer_name, optimizer_of in OPTIMIZERS.items():
            for type_name, torch_type in (("f64", torch.float64), ("f32", torch.float32)):
                numbers = " ".join(f"{x:.17g}" for x in losses(network, optimizer_of, image, class_count, torch_type))
                lines.append(f"{network_name} {optimizer_name} {type_name} {numbers}")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
