#!/usr/bin/env python3
"""Exports the cases of tests/data/mindir with MindSpore, and stores MindSpore's results. Run by hand where mindspore is installed:

    tests/conformance/mindir/make_cases.py tests/data/mindir [NAME...]
    tests/conformance/mindir/make_cases.py tests/data/checkpoint --checkpoint
    tests/conformance/mindir/make_cases.py tests/data/mindir --written BIN_DIR

A case is a function below that returns a network and its inputs. Networks with state get a second run, stored as again_N.npy.
"""
import os
import pathlib
import shutil
import signal
import sys
import time

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, export, mint, nn, ops

CASES = {}
STATEFUL = set()


def case(function):
    CASES[function.__name__] = function
    return function


def stateful(function):
    STATEFUL.add(function.__name__)
    return case(function)


def values(*dims, seed=0, low=-1.0, high=1.0, dtype=np.float32):
    return Tensor(np.random.RandomState(seed).uniform(low, high, dims).astype(dtype))


def integers(*dims, seed=0, low=0, high=10, dtype=np.int32):
    return Tensor(np.random.RandomState(seed).randint(low, high, dims).astype(dtype))


def number(value, dtype=ms.int32):
    return Tensor(value, dtype)


def net(construct, **members):
    """A cell whose construct is the given function and which has the given members."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            for name, member in members.items():
                setattr(self, name, member)

    Net.construct = construct
    return Net()


# Control flow.


@case
def nested_while():
    def construct(self, x, n):
        i = Tensor(0, ms.int32)
        while i < n:
            j = Tensor(0, ms.int32)
            while j < i:
                x = x * 1.5 + 0.25
                j = j + 1
            x = x - 1.0
            i = i + 1
        return x

    return net(construct), [values(2, 3), number(4)]


@case
def early_exit():
    def construct(self, x, n):
        i = Tensor(0, ms.int32)
        while i < n:
            if ops.reduce_sum(x) > 20.0:
                return x - 100.0
            x = x + 1.0
            i = i + 1
        return x * 2.0

    return net(construct), [values(2, 3), number(30)]


@case
def loop_over_weights():
    def construct(self, x, n):
        i = Tensor(0, ms.int32)
        while i < n:
            y = self.act(self.first(x))
            x = self.act(self.second(y)) + x
            i = i + 1
        return x

    cell = net(
        construct, first=nn.Dense(4, 6, weight_init=values(6, 4, seed=1)), second=nn.Dense(6, 4, weight_init=values(4, 6, seed=2)), act=nn.Tanh()
    )
    return cell, [values(2, 4), number(3)]


@case
def if_in_while_in_if():
    def construct(self, x, n):
        if ops.reduce_sum(x) > 0.0:
            i = Tensor(0, ms.int32)
            while i < n:
                if ops.reduce_max(x) > 4.0:
                    x = x * 0.5
                else:
                    x = x * 1.75
                i = i + 1
            x = x + 1.0
        else:
            x = x - 1.0
        return x * 3.0

    return net(construct), [values(2, 3, low=0.1), number(6)]


@case
def chosen_by_index():
    class Choose(nn.Cell):
        def __init__(self):
            super().__init__()
            self.branches = nn.CellList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])

        def construct(self, index, x):
            return self.branches[index](x) + 1.0

    return Choose(), [number(2), values(2, 3)]


@case
def chosen_from_the_end():
    cell, inputs = chosen_by_index()
    return cell, [number(-3), inputs[1]]


@case
def layers_chosen_by_index():
    class Choose(nn.Cell):
        def __init__(self):
            super().__init__()
            self.branches = nn.CellList([nn.Dense(3, 5, weight_init=values(5, 3, seed=i)) for i in range(3)])

        def construct(self, index, x):
            return self.branches[index](x)

    return Choose(), [number(1), values(2, 3)]


@case
def mutual_recursion():
    @ms.jit
    def is_even(n, x):
        if n == 0:
            return x
        return is_odd(n - 1, x * 2.0)

    @ms.jit
    def is_odd(n, x):
        if n == 0:
            return -x
        return is_even(n - 1, x + 1.0)

    def construct(self, n, x):
        return is_even(n, x)

    return net(construct), [number(5), values(3)]


@case
def closure_chosen():
    def construct(self, x, y):
        def add(a):
            return a + y

        def multiply(a):
            return a * y

        f = multiply
        if ops.reduce_sum(x) > 0.0:
            f = add
        return f(x) * 2.0

    return net(construct), [values(2, 3, seed=3), values(2, 3, seed=4)]


@case
def while_tuple():
    def construct(self, x, n):
        i = Tensor(0, ms.int32)
        state = (x, x * 2.0)
        while i < n:
            state = (state[1] + 1.0, state[0] * 0.5)
            i = i + 1
        return state[0] - state[1], state[1]

    return net(construct), [values(2, 2), number(5)]


@case
def nested_if():
    def construct(self, x, a, b):
        if a > 0:
            if b > 0:
                y = x + 1.0
            else:
                y = x + 2.0
            y = y * 2.0
        else:
            if b > 1:
                y = x - 1.0
            else:
                y = x - 2.0
        if b > 5:
            y = y * y
        return y + x

    return net(construct), [values(2, 3), number(1), number(-2)]


@case
def many_ifs():
    def construct(self, x, a):
        y = x
        if a > 0:
            y = y + 1.0
        if a > 1:
            y = y * 2.0
        if a > 2:
            y = y - 3.0
        if a > 3:
            y = y * 4.0
        if a > 4:
            y = y / 5.0
        if a > 5:
            y = y + 6.0
        return y

    return net(construct), [values(2, 3), number(4)]


@case
def loop_inside_branch():
    def construct(self, x, n):
        if n > 2:
            while n > 0:
                x = x + 1.0
                n = n - 1
        elif n > 0:
            x = x * 2.0
        else:
            x = x - 1.0
        return x

    return net(construct), [values(2, 3), number(4)]


@case
def tuple_in_and_out():
    def construct(self, pair, z):
        a, b = pair
        return (a + b, (a * z, b - z)), z

    return net(construct), [ms.mutable((values(2, 3, seed=1), values(2, 3, seed=2))), values(2, 3, seed=3)]


@case
def input_as_output():
    def construct(self, x, y):
        return x, y + 1.0, x

    return net(construct), [values(2, 3), values(2, 3, seed=1)]


# State.


@stateful
def counter():
    def construct(self, x):
        self.count = self.count + 1.0
        return x * self.count

    return net(construct, count=Parameter(Tensor(1.0, ms.float32), name="count", requires_grad=False)), [values(2, 3)]


@stateful
def running_mean():
    def construct(self, x):
        before = self.mean * 1.0
        ops.assign(self.mean, self.mean * 0.9 + ops.reduce_mean(x, 0) * 0.1)
        return x - self.mean, before

    return net(construct, mean=Parameter(values(3, seed=5), name="mean", requires_grad=False)), [values(4, 3)]


@stateful
def assign_in_loop():
    def construct(self, x, n):
        i = Tensor(0, ms.int32)
        while i < n:
            ops.assign_add(self.total, x)
            i = i + 1
        return self.total + 0.0

    return net(construct, total=Parameter(values(2, 3, seed=7), name="total", requires_grad=False)), [values(2, 3), number(3)]


@stateful
def assign_in_branch():
    def construct(self, x):
        if ops.reduce_sum(self.seen) > 2.0:
            ops.assign(self.seen, x * 0.0)
            y = x - 1.0
        else:
            ops.assign(self.seen, self.seen + 1.0)
            y = x + self.seen
        return y

    return net(construct, seen=Parameter(Tensor(np.zeros(3, np.float32)), name="seen", requires_grad=False)), [values(3)]


# Networks.


@case
def lstm():
    cell = nn.LSTM(3, 4, num_layers=1, batch_first=False)

    def construct(self, x, h, c):
        y, (hn, cn) = self.lstm(x, (h, c))
        return y, hn, cn

    return net(construct, lstm=cell), [values(5, 2, 3), values(1, 2, 4, seed=1), values(1, 2, 4, seed=2)]


@case
def lstm_both_ways():
    cell = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)

    def construct(self, x, h, c):
        y, (hn, cn) = self.lstm(x, (h, c))
        return y, hn, cn

    return net(construct, lstm=cell), [values(2, 5, 3), values(4, 2, 4, seed=1), values(4, 2, 4, seed=2)]


@case
def gru():
    cell = nn.GRU(3, 4, num_layers=1, batch_first=False)

    def construct(self, x, h):
        return self.gru(x, h)

    return net(construct, gru=cell), [values(5, 2, 3), values(1, 2, 4, seed=1)]


@case
def mobile_block():
    def construct(self, x):
        y = ops.relu6(self.bn1(self.expand(x)))
        y = ops.hardswish(self.bn2(self.depth(y)))
        gate = ops.hardsigmoid(self.squeeze(ops.mean(y, (2, 3), True)))
        return self.bn3(self.project(y * gate)) + x

    cell = net(
        construct,
        expand=nn.Conv2d(4, 8, 1, has_bias=False, weight_init="normal"),
        bn1=nn.BatchNorm2d(8),
        depth=nn.Conv2d(8, 8, 3, group=8, pad_mode="same", weight_init="normal"),
        bn2=nn.BatchNorm2d(8),
        squeeze=nn.Conv2d(8, 8, 1, has_bias=True, weight_init="normal"),
        project=nn.Conv2d(8, 4, 1, weight_init="normal"),
        bn3=nn.BatchNorm2d(4),
    )
    for i, p in enumerate(cell.get_parameters()):
        low = 0.5 if "variance" in p.name else -0.5
        p.set_data(values(*p.shape, seed=i, low=low, high=1.0))
    cell.set_train(False)
    return cell, [values(2, 4, 9, 9)]


@case
def attention():
    def construct(self, q, k, v, mask):
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / 2.0
        scores = ops.masked_fill(scores, mask, -1e9)
        return ops.matmul(ops.softmax(scores, -1), v)

    mask = Tensor(np.triu(np.ones((5, 5), bool), 1))
    return net(construct), [values(2, 3, 5, 4, seed=1), values(2, 3, 5, 4, seed=2), values(2, 3, 5, 4, seed=3), mask]


@case
def detection_head():
    """Scores and boxes of a grid, the best of them, with overlaps suppressed."""

    def construct(self, feature, anchors):
        scores = ops.sigmoid(self.score(feature)).reshape((-1,))
        deltas = self.box(feature).transpose((0, 2, 3, 1)).reshape((-1, 4))
        boxes = anchors + deltas * 4.0
        boxes = ops.clamp(boxes, 0.0, 64.0)
        best, index = ops.topk(scores, 12)
        chosen = ops.gather(boxes, index, 0)
        kept, kept_index, mask = self.nms(ops.concat((chosen, best.expand_dims(1)), 1))
        rois = ops.concat((ops.zeros((12, 1), ms.float32), chosen), 1)
        pooled = self.align(feature, rois)
        return best, index, kept, kept_index, mask, pooled

    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(-1, 2).astype(np.float32) * 8
    anchors = np.concatenate([grid, grid + 14], 1)
    cell = net(
        construct,
        score=nn.Conv2d(6, 1, 1, weight_init=values(1, 6, 1, 1, seed=3)),
        box=nn.Conv2d(6, 4, 1, weight_init=values(4, 6, 1, 1, seed=4)),
        nms=ops.NMSWithMask(0.4),
        align=ops.ROIAlign(3, 3, 0.125, 2),
    )
    return cell, [values(1, 6, 8, 8, seed=9), Tensor(anchors)]


@case
def embeddings():
    def construct(self, ids):
        x = self.table(ids) + ops.one_hot(ids, 6, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32))
        return self.norm(x)

    cell = net(construct, table=nn.Embedding(10, 6, embedding_table=values(10, 6, seed=1)), norm=nn.LayerNorm((6,)))
    return cell, [integers(2, 5)]


@case
def losses():
    def construct(self, logits, labels, target):
        return (
            self.sparse(logits, labels),
            ops.mse_loss(logits, target),
            ops.l1_loss(logits, target),
            ops.smooth_l1_loss(logits, target),
            ops.binary_cross_entropy_with_logits(logits, ops.sigmoid(target), ops.ones_like(logits), ops.ones_like(logits)),
            ops.kl_div(ops.log_softmax(logits), ops.softmax(target)),
        )

    cell = net(construct, sparse=nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    return cell, [values(4, 5, low=-3, high=3), integers(4, high=5), values(4, 5, seed=2)]


@case
def half_network():
    def construct(self, x):
        return self.dense(ops.relu(self.conv(x)).reshape((2, -1)))

    cell = net(construct, conv=nn.Conv2d(2, 3, 3, weight_init=values(3, 2, 3, 3, seed=1)), dense=nn.Dense(75, 4, weight_init=values(4, 75, seed=2)))
    cell.to_float(ms.float16)
    return cell, [values(2, 2, 5, 5)]


# Families of primitives.


@case
def convolutions():
    def construct(self, x):
        return self.valid(x), self.same(x), self.pad(x), self.group(x), self.dilated(x)

    cell = net(
        construct,
        valid=nn.Conv2d(4, 3, (3, 2), stride=(2, 1), pad_mode="valid", has_bias=True, weight_init=values(3, 4, 3, 2, seed=1)),
        same=nn.Conv2d(4, 3, 4, stride=3, pad_mode="same", weight_init=values(3, 4, 4, 4, seed=2)),
        pad=nn.Conv2d(4, 3, 3, pad_mode="pad", padding=(1, 2, 0, 3), weight_init=values(3, 4, 3, 3, seed=3)),
        group=nn.Conv2d(4, 8, 3, group=2, pad_mode="pad", padding=1, weight_init=values(8, 2, 3, 3, seed=4)),
        dilated=nn.Conv2d(4, 3, 3, dilation=2, pad_mode="same", weight_init=values(3, 4, 3, 3, seed=5)),
    )
    return cell, [values(2, 4, 11, 10)]


@case
def conv_transposes():
    def construct(self, x):
        return self.valid(x), self.same(x), self.pad(x)

    cell = net(
        construct,
        valid=nn.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="valid", has_bias=True, weight_init=values(3, 4, 3, 3, seed=1)),
        same=nn.Conv2dTranspose(3, 4, 4, stride=2, pad_mode="same", weight_init=values(3, 4, 4, 4, seed=2)),
        pad=nn.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="pad", padding=1, weight_init=values(3, 4, 3, 3, seed=3)),
    )
    return cell, [values(2, 3, 5, 6)]


@case
def pools():
    def construct(self, x):
        return self.a(x), self.b(x), self.c(x), self.d(x), ops.adaptive_avg_pool2d(x, (2, 3)), ops.adaptive_avg_pool2d(x, 1)

    cell = net(
        construct,
        a=nn.MaxPool2d(3, 2),
        b=nn.MaxPool2d((2, 3), (2, 1), pad_mode="same"),
        c=nn.AvgPool2d(3, 2),
        d=nn.AvgPool2d(3, 2, pad_mode="same"),
    )
    return cell, [values(2, 3, 8, 9)]


@case
def norms():
    def construct(self, x):
        return self.group(x), self.layer(x), self.batch(x)

    cell = net(
        construct,
        group=nn.GroupNorm(2, 4),
        layer=nn.LayerNorm((5, 6), begin_norm_axis=2, begin_params_axis=2),
        batch=nn.BatchNorm2d(4, gamma_init=values(4, seed=1), moving_mean_init=values(4, seed=2), moving_var_init=values(4, seed=3, low=0.5)),
    )
    cell.set_train(False)
    return cell, [values(2, 4, 5, 6)]


@case
def arithmetic():
    def construct(self, x, y, i, j):
        return x + y, x - 2, 3 * x, x / y, i + j, i * 2, i // j, i % j, x // y, x % y, x**2, i + x, 2 - i, -i, ops.maximum(x, y), i / j, ops.square(x)

    return net(construct), [values(2, 3, low=0.5, high=4), values(3, seed=1, low=0.5, high=2), integers(2, 3, low=-9), integers(3, low=1, seed=1)]


@case
def promotion():
    def construct(self, h, f, i, l, b):
        return h + f, i + l, i + f, b * i, b + f, h * 2, i * 2.5, l + i, b.astype(ms.float32) + 1, i > f, h < 1

    return net(construct), [
        values(2, 3, dtype=np.float16),
        values(2, 3, seed=1),
        integers(2, 3),
        integers(2, 3, dtype=np.int64),
        Tensor(np.array([[True, False, True], [False, True, True]])),
    ]


@case
def comparisons():
    def construct(self, x, y, a, b):
        return x > y, x >= y, x < 0, x <= y, x == x, x != y, ops.logical_and(a, b), ops.logical_or(a, b), ops.logical_not(a), ops.isnan(x)

    a = Tensor(np.array([True, False, True]))
    b = Tensor(np.array([True, True, False]))
    return net(construct), [values(3), values(3, seed=1), a, b]


@case
def functions():
    def construct(self, x, p):
        return (
            ops.abs(x), ops.exp(x), ops.log(p), ops.sqrt(p), ops.rsqrt(p), ops.sin(x), ops.cos(x), ops.tan(x), ops.asin(x), ops.acos(x),
            ops.atan(x), ops.sinh(x), ops.cosh(x), ops.tanh(x), ops.erf(x), ops.erfc(x), ops.floor(x * 3), ops.ceil(x * 3), ops.sign(x),
            ops.reciprocal(p), ops.log1p(p), ops.expm1(x), ops.pow(p, 2.5), ops.round(x * 4),
        )

    return net(construct), [values(2, 5, low=-0.9, high=0.9), values(2, 5, seed=1, low=0.1, high=3)]


@case
def activations():
    def construct(self, x):
        return (
            ops.relu(x), ops.relu6(x), ops.gelu(x, "tanh"), ops.gelu(x, "none"), ops.silu(x), ops.elu(x), ops.leaky_relu(x, 0.1), ops.hardswish(x),
            ops.hardsigmoid(x), ops.softplus(x), ops.mish(x), ops.selu(x), ops.softsign(x), ops.celu(x, 0.7), ops.sigmoid(x),
            ops.prelu(x, self.slope), ops.log_softmax(x, -1), ops.softmax(x, 1), ops.softmax(x, 0),
        )

    return net(construct, slope=Parameter(values(3, seed=1), name="slope")), [values(2, 3, 4, low=-7, high=7)]


@case
def reductions():
    def construct(self, x, b):
        return (
            ops.reduce_sum(x, 1), ops.reduce_mean(x, (0, 2)), ops.reduce_max(x, -1), ops.reduce_min(x), ops.prod(x, 1, True), x.mean(),
            ops.all(b, 1), ops.any(b), ops.logsumexp(x, 1), x.sum(axis=(0, 1)), ops.cumsum(x, 1), ops.std(x, 1), ops.norm(x, dim=2), x.max(), x.var(1),
        )

    return net(construct), [values(2, 3, 4), Tensor(np.random.RandomState(0).rand(2, 3) > 0.4)]


@case
def orders():
    def construct(self, x):
        top, where = ops.topk(x, 2)
        sorted_x, order = ops.sort(x, 1)
        least, at = ops.min(x, 1)
        return top, where, sorted_x, order, ops.argmax(x, 1), ops.argmin(x, 0), least, at, ops.sort(x, 0, True)[0], ops.argsort(x)

    return net(construct), [values(3, 5)]


@case
def indexing():
    def construct(self, x):
        return x[0], x[:, 1:3], x[..., -1], x[:, ::2, 1], x[None, 1], x[-1, 1:, :2], x[:, -2:], x[1:2, None, :, 0], x[0, 0, 0]

    return net(construct), [values(2, 4, 5)]


@case
def rearrangements():
    def construct(self, x, y):
        a, b = ops.split(x, 2, 1)
        rows = ops.unstack(y, 0)
        return (
            ops.concat((x, x), 1), ops.stack((x, x), 1), a, b, rows[1], ops.tile(y, (2, 3)), ops.broadcast_to(y, (4, 2, 3)), x.transpose((1, 0, 2)),
            ops.squeeze(y.expand_dims(0), 0), ops.flip(x, (1,)), ops.swapaxes(x, 0, 2), x.reshape((4, -1)), ops.flatten(x), ops.tril(y), ops.triu(y, 1),
        )

    return net(construct), [values(2, 4, 3), values(2, 3, seed=1)]


@case
def pads():
    def construct(self, x):
        return self.constant(x), ops.pad(x, (1, 2, 0, 1), mode="constant", value=0.5), ops.pad(x, (1, 1, 2, 2), mode="reflect"), self.edge(x)

    return net(construct, constant=ops.Pad(((0, 0), (0, 0), (1, 2), (3, 0))), edge=nn.ReplicationPad2d((1, 2, 3, 0))), [values(1, 2, 4, 5)]


@case
def gathers():
    def construct(self, x, i, pairs, flags):
        updates = ops.ones((2, 5), ms.float32)
        return (
            ops.gather(x, i, 0), ops.gather(x, i, 1), ops.gather_elements(x, 1, i.reshape((1, 3)).tile((4, 1)).astype(ms.int64)), ops.gather_nd(x, pairs),
            ops.scatter_nd(pairs[:, :1], updates, (4, 5)), ops.tensor_scatter_elements(x, i.reshape((1, 3)), x[:1, :3] * 10, 0),
            ops.index_select(x, 1, i), ops.where(x > 0, x, 0.0), ops.select(x > 0.5, x, x * 2), ops.masked_fill(x, x < 0, 3.0),
            ops.tensor_scatter_add(x, pairs, Tensor([1.0, 2.0], ms.float32)), ops.tensor_scatter_update(x, pairs, Tensor([1.0, 2.0], ms.float32)),
        )

    pairs = Tensor(np.array([[1, 2], [3, 0]], np.int32))
    return net(construct), [values(4, 5), Tensor(np.array([2, 0, 3], np.int32)), pairs, Tensor(np.array([True, False, True, True]))]


@case
def resizes():
    def construct(self, x):
        return (
            ops.interpolate(x, size=(7, 9), mode="nearest"), ops.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True),
            ops.interpolate(x, size=(3, 4), mode="bilinear", align_corners=False), ops.ResizeNearestNeighbor((8, 10), align_corners=True)(x),
        )

    return net(construct), [values(1, 2, 5, 6)]


@case
def products():
    def construct(self, a, b, c):
        return self.tb(a, a), self.ta(a, a), ops.matmul(b, c), self.bt(b, b), ops.dense(b, a, Tensor([1.0, 2.0, 3.0], ms.float32)), ops.addmm(Tensor([1.0], ms.float32), a, a.T), ops.bmm(c, b)

    cell = net(construct, tb=ops.MatMul(transpose_b=True), ta=ops.MatMul(transpose_a=True), bt=ops.BatchMatMul(transpose_b=True))
    return cell, [values(3, 4), values(2, 5, 4, seed=1), values(2, 4, 5, seed=2)]


@case
def casts():
    def construct(self, x, i):
        return x.astype(ms.int32), x.astype(ms.float16), i.astype(ms.float32), i.astype(ms.bool_), x.astype(ms.float64), i.astype(ms.int64), i.astype(ms.uint8)

    return net(construct), [values(2, 3, low=-5, high=5), integers(2, 3)]


@case
def generated():
    def construct(self, x):
        n = x.shape[0]
        return ops.ones_like(x), ops.zeros((2, 3), ms.float32) + x[0, 0], ops.arange(0, n, 1), ops.eye(3, 3, ms.float32) + x[0, 0], ops.full((2,), 1.5), ops.linspace(Tensor(0.0), Tensor(1.0), 5)

    return net(construct), [values(4, 3)]


# Primitives of the newer interface, and others that the networks above do not use.

@case
def newer_arithmetic():
    def construct(self, x, y, a, b):
        return (
            mint.add(x, y, alpha=2), mint.add(x, 2.0), mint.sub(x, y, alpha=3), mint.sub(x, 0.5), mint.pow(2.0, x), mint.pow(x, 2), mint.remainder(5.0, x),
            mint.remainder(x, 0.3), mint.ne(x, 0.75), mint.ge(x, 0.75), mint.lt(x, 0.75), mint.eq(x, 0.75), mint.bmm(a, b),
            mint.baddbmm(x, a, b, beta=0.5, alpha=2.0),
        )

    return net(construct), [values(2, 3, 4, low=0.5, high=2), values(4, seed=1), values(2, 3, 5, seed=2), values(2, 5, 4, seed=3)]


@case
def newer_reductions():
    def construct(self, x):
        most, at = mint.max(x, 1)
        least, where = mint.min(x, 2, True)
        top, place = ops.ArgMaxWithValue(1, True)(x)
        return (
            most, at, least, where, top, place, mint.argmax(x, 1), mint.min(x), mint.mean(x, 1), mint.sum(x, 2), mint.prod(x, 1), ops.ReduceProd(True)(x, 1),
            mint.nn.functional.log_softmax(x, 1),
        )

    return net(construct), [values(2, 3, 4)]


@case
def newer_movement():
    def construct(self, x, row):
        first, second = mint.split(x, 2, 2)
        small, large = mint.split(x, (1, 2), 1)
        a, b, c = mint.unbind(x, 1)
        return (
            first + 1, second + 1, small * 2, large * 2, a + b, c, mint.transpose(x, 1, 2) + 1, mint.permute(x, (2, 0, 1)) * 2, mint.broadcast_to(row, (2, 3, 4)),
            mint.narrow(x, 1, 1, 2), mint.flatten(x, 1, 2), mint.nn.functional.pad(x, (1, 2), "constant", 0.5), ops.Slice()(x, (0, 1, 0), (2, 2, 3)),
            ops.TensorShape()(x), mint.full((2, 3), 2.0) + x[0, 0, 0], mint.ones_like(x) + x, mint.zeros_like(x) + x,
        )

    return net(construct), [values(2, 3, 4), values(3, 1)]


@case
def volumes():
    def construct(self, x, w):
        return self.a(x), self.b(x), self.c(x), self.d(x), self.conv(x, w)

    cell = net(
        construct,
        a=ops.MaxPool3D(2, 2),
        b=ops.MaxPool3D(3, 2, "same"),
        c=ops.AvgPool3D(2, 2),
        d=ops.AvgPool3D(3, 2, "pad", 1),
        conv=ops.Conv3D(3, (2, 3, 3), 1, "pad", 1),
    )
    return cell, [values(1, 2, 4, 6, 6), values(3, 2, 2, 3, 3, seed=1)]


@case
def upsampling():
    def construct(self, line, image, volume):
        resize = mint.nn.functional.interpolate
        return (
            resize(line, 7, mode="nearest"), resize(image, (5, 7), mode="nearest"), resize(volume, (5, 7, 7), mode="nearest"),
            resize(volume, (5, 7, 7), mode="trilinear"), ops.interpolate(line, (7,), mode="linear", align_corners=True),
            ops.interpolate(line, (9,), mode="linear"), ops.adaptive_max_pool2d(image, (2, 3)),
        )

    return net(construct), [values(2, 3, 4), values(1, 4, 6, 6), values(1, 2, 4, 6, 6)]


@case
def bits():
    def construct(self, a, b, x, y):
        return (
            ops.bitwise_and(a, b), ops.bitwise_or(a, b), ops.bitwise_xor(a, b), ops.LeftShift()(a, b), ops.RightShift()(a, b), ops.truncate_div(-a, b + 1),
            ops.truncate_mod(-a, b + 1), ops.logical_xor(x > 0, y > 0), ops.FloorMod()(x, y), ops.nonzero(x > 0), ops.isinf(x / (x - x)),
        )

    return net(construct), [integers(2, 3), integers(3, high=4, seed=1), values(2, 3, low=-5, high=5), values(3, low=0.5, high=2, seed=1)]


@case
def more_functions():
    def construct(self, x, y):
        return (
            ops.asinh(x), ops.acosh(x + 2), ops.atanh(x * 0.5), ops.fast_gelu(x), mint.nn.functional.softplus(x), mint.clamp(x, y, y + 0.5), ops.minimum(x, y),
            ops.RealDiv()(x, y + 2), ops.Identity()(x) + 1, ops.Dropout(1.0)(x)[0],
        )

    return net(construct), [values(2, 3, 4), values(4, seed=1)]


@case
def more_layers():
    def construct(self, table, indices, image, gradient, w, scores, labels, updates, rows):
        loss, slope = ops.SoftmaxCrossEntropyWithLogits()(scores, labels)
        return (
            mint.nn.functional.embedding(indices, table), self.lookup(table, indices, 0), self.response(image), self.back(gradient, w, (1, 4, 6, 6)), loss, slope,
            ops.tensor_scatter_max(table, rows, updates), ops.tensor_scatter_min(table, rows, updates), ops.tensor_scatter_mul(table, rows, updates),
        )

    cell = net(construct, lookup=ops.EmbeddingLookup(), response=ops.LRN(1, 1.0, 0.5, 0.7), back=ops.Conv2DBackpropInput(4, 3, "pad", 1, stride=2))
    return cell, [
        values(5, 4), integers(2, 3, high=5), values(1, 4, 6, 6), values(1, 3, 3, 3, seed=1), values(3, 4, 3, 3, seed=2), values(3, 4, seed=3),
        values(3, 4, seed=4, low=0), values(2, 4, seed=5), integers(2, 1, high=5, seed=1),
    ]


@case
def open_batch():
    def construct(self, x):
        y = self.dense(x.reshape((x.shape[0], -1)))
        return y, y.sum(0)

    cell = net(construct, dense=nn.Dense(12, 3, weight_init=values(3, 12, seed=1)))
    cell.set_inputs(Tensor(shape=[None, 3, 4], dtype=ms.float32))
    return cell, [values(5, 3, 4)]


def make_checkpoint(folder):
    """A network with the weights of a checkpoint, and its outputs with them; the exported file has other weights."""
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    os.makedirs(folder, exist_ok=True)

    def build(seed):
        def construct(self, x):
            return self.last(ops.tanh(self.first(x))) * self.scale

        return net(
            construct,
            first=nn.Dense(4, 5, weight_init=values(5, 4, seed=seed), bias_init=values(5, seed=seed + 1)),
            last=nn.Dense(5, 2, weight_init=values(2, 5, seed=seed + 2), bias_init=values(2, seed=seed + 3)),
            scale=Parameter(values(2, seed=seed + 4), name="scale"),
        )

    x = values(3, 4)
    export(build(1), x, file_name=os.path.join(folder, "model"), file_format="MINDIR")
    trained = build(100)
    weights = [{"name": p.name, "data": p} for p in trained.get_parameters()]
    ms.save_checkpoint(weights, os.path.join(folder, "plain.ckpt"))
    ms.save_checkpoint(weights, os.path.join(folder, "summed.ckpt"), crc_check=True)
    ms.save_checkpoint(weights + [{"name": "moment1.scale", "data": values(2)}], os.path.join(folder, "more.ckpt"))
    wrong = [w for w in weights if w["name"] != "last.bias"]
    wrong = [{"name": w["name"], "data": values(7) if w["name"] == "scale" else w["data"]} for w in wrong]
    wrong = [{"name": w["name"], "data": values(5, dtype=np.float16) if w["name"] == "first.bias" else w["data"]} for w in wrong]
    ms.save_checkpoint(wrong, os.path.join(folder, "wrong.ckpt"))
    np.save(os.path.join(folder, "input_0.npy"), x.asnumpy())
    np.save(os.path.join(folder, "output_0.npy"), trained(x).asnumpy())
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)


def make_written(folder, bin_dir):
    """A file that msconvert wrote, with its notes, and the outputs of MindSpore for it."""
    import agreement
    import models
    target = pathlib.Path(folder) / "written_by_msconvert"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    _, content, (run,) = models.several_primitives()
    (target / "model.onnx").write_bytes(content)
    agreement.tool(bin_dir, "msconvert", target / "model.onnx", target / "model.mindir", "--quiet")
    (target / "model.onnx").unlink()
    for i, x in enumerate(run):
        x.save(target / f"input_{i}.npy")
    for i, x in enumerate(agreement.MindSporeModel(target / "model.mindir")([x.numpy() for x in run])):
        np.save(target / f"output_{i}.npy", x)


def flat(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in flat(v)]
    return [value]


def make(name, folder):
    cell, inputs = CASES[name]()
    if name not in STATEFUL:
        cell.set_train(False)
    target = os.path.join(folder, name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    given = cell.get_inputs() if hasattr(cell, "get_inputs") else None
    export(cell, *(given if given else inputs), file_name=os.path.join(target, "model"), file_format="MINDIR")
    for i, x in enumerate(flat(inputs)):
        np.save(os.path.join(target, f"input_{i}.npy"), x.asnumpy())
    for run in ["output", "again"] if name in STATEFUL else ["output"]:
        for i, x in enumerate(flat(cell(*inputs))):
            np.save(os.path.join(target, f"{run}_{i}.npy"), x.asnumpy() if isinstance(x, Tensor) else np.asarray(x))
    for root, _, files in os.walk(target):
        for f in files:
            os.chmod(os.path.join(root, f), 0o644)


def make_apart(name, folder, seconds=120):
    """Exports in a separate process, because MindSpore may hang or crash on a network."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
            make(name, folder)
            status = 0
        except Exception as error:  # pylint: disable=broad-except
            lines = str(error).strip().splitlines()
            print(f"{name}: {type(error).__name__}: {lines[0] if lines else ''}", flush=True)
        os._exit(status)  # pylint: disable=protected-access
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(f"{name}: not finished in {seconds} s", flush=True)
    return False


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(CASES)
    if names == ["--checkpoint"]:
        make_checkpoint(folder)
        return 0
    if names[0] == "--written":
        make_written(folder, names[1])
        return 0
    failed = 0
    for name in names:
        if make_apart(name, folder):
            print(f"{name}: made", flush=True)
        else:
            failed += 1
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
