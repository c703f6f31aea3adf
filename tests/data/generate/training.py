"""Losses of PyTorch over 50 steps, which tests/training follows from the same weights and batches. Run from the root of the
repository:
    python tests/data/generate/training.py tests/data/training/losses.txt

Weights and data are functions of integers (`uniform`), so that the test makes the same numbers without a file.
"""
import sys
import typing

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


def batch(number, case):
    """Inputs in [0, 1), or tokens, and classes."""
    inputs = uniform(1 + 2 * number, int(np.prod(case.inputs))).reshape(case.inputs)
    labels = (uniform(2 + 2 * number, int(np.prod(case.labels))) * case.classes).astype(np.int64).reshape(case.labels)
    return (inputs * case.tokens).astype(np.int64) if case.tokens else inputs, labels


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


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        layers = []
        for _ in range(2):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        super().__init__(*layers)


class UNet(nn.Module):
    """zoo:unet with 4 channels on its first level and 3 classes of pixels."""

    def __init__(self, width=4):
        super().__init__()
        self.down = nn.ModuleList([DoubleConv(width << level >> 1 if level else 4, width << level) for level in range(4)])
        self.bottom = DoubleConv(width << 3, width << 4)
        up = []
        for level in range(3, -1, -1):
            up += [nn.ConvTranspose2d(width << level + 1, width << level, 2, 2), DoubleConv(width << level + 1, width << level)]
        self.up, self.head = nn.ModuleList(up), nn.Conv2d(width, 3, 1)

    def forward(self, x):
        skips = []
        for level in self.down:
            skips.append(level(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for enlarge, convolve in zip(self.up[::2], self.up[1::2]):
            x = convolve(torch.cat((skips.pop(), enlarge(x)), 1))
        return self.head(x)


class Dense(nn.Module):
    """A product with a matrix of inputs x outputs."""

    def __init__(self, inputs, outputs, has_bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if has_bias else None

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class TransformerLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(hidden)
        self.query, self.key, self.value = Dense(hidden, hidden), Dense(hidden, hidden), Dense(hidden, hidden)
        self.project = Dense(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.widen, self.narrow = Dense(hidden, 4 * hidden), Dense(4 * hidden, hidden)

    def forward(self, x):
        y = self.norm1(x)
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query(y), self.key(y), self.value(y)))
        scores = query @ key.transpose(2, 3) / np.sqrt(query.shape[3])
        later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
        y = scores.masked_fill(later, -np.inf).softmax(3) @ value
        x = x + self.project(y.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    """zoo:gpt2 with 4 layers of 4 heads, 32 numbers for each token, 48 tokens. Its scores are [batch, token, position]."""

    def __init__(self, hidden=32, tokens=48):
        super().__init__()
        self.embedding, self.positions = nn.Parameter(torch.empty(tokens, hidden)), nn.Parameter(torch.empty(1024, hidden))
        self.layers = nn.Sequential(*[TransformerLayer(hidden, 4) for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(hidden), Dense(hidden, tokens, has_bias=False)

    def forward(self, ids):
        x = self.layers(self.embedding[ids] + self.positions[:ids.shape[1]])
        return self.head(self.norm(x)).transpose(1, 2)


OPTIMIZERS = {"momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
              "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01)}


class Case(typing.NamedTuple):
    make: type
    inputs: tuple
    labels: tuple
    classes: int
    tokens: int = 0  # inputs are numbers below this; 0: they are images


CASES = {"lenet": Case(LeNet, (BATCH, 1, 28, 28), (BATCH,), 10),
         "resnet18": Case(ResNet18, (BATCH, 3, 64, 64), (BATCH,), 10),
         "unet": Case(UNet, (4, 4, 32, 32), (4, 32, 32), 3),
         "transformer": Case(Transformer, (4, 16), (4, 16), 48, 48)}


def losses(case, make_optimizer, dtype):
    torch.manual_seed(0)
    network = case.make().to(dtype)

    def loss_of(number):
        inputs, labels = map(torch.from_numpy, batch(number, case))
        return F.cross_entropy(network(inputs if case.tokens else inputs.to(dtype)), labels)

    with torch.no_grad():
        scales = {id(m.weight) for m in network.modules() if isinstance(m, (nn.BatchNorm2d, nn.LayerNorm))}
        for number, parameter in enumerate(network.parameters()):
            parameter.copy_(torch.from_numpy(weight(number, tuple(parameter.shape), float(id(parameter) in scales))))
    optimizer = make_optimizer(network.parameters())
    for step in range(STEPS):
        loss = loss_of(FIRST_BATCH + step % BATCHES)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
    network.eval()
    with torch.no_grad():
        yield loss_of(FIRST_BATCH).item()


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    lines = [f"# torch {torch.__version__}: network, optimizer, type, then the losses of {STEPS} steps and one of evaluation"]
    for case_name, each_case in CASES.items():
        for optimizer_name, optimizer_of in OPTIMIZERS.items():
            for type_name, torch_type in (("f64", torch.float64), ("f32", torch.float32)):
                numbers = " ".join(f"{x:.17g}" for x in losses(each_case, optimizer_of, torch_type))
                lines.append(f"{case_name} {optimizer_name} {type_name} {numbers}")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
