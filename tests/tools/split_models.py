"""Networks over images of any size as ONNX models, with seeded weights: U-Net, a fully convolutional ResNet-50, super-resolution, dilations.

Python's standard library only. Every input is `x` of 1 x CHANNELS x h x w, every output `y`.
"""
import array
import math
import random
import sys

import onnx_file as onnx

CHANNELS = 3


class Net:
    """The nodes and constants of a graph. Methods return names of values."""

    def __init__(self, seed=1):
        self.nodes, self.constants, self.random = [], [], random.Random(seed)

    def constant(self, dims, low, high):
        draw = self.random.random
        values = array.array("f", [low + (high - low) * draw() for _ in range(math.prod(dims))])
        if sys.byteorder == "big":
            values.byteswap()
        name = f"w{len(self.constants)}"
        self.constants.append(onnx.fields(1, dims) + onnx.field(2, onnx.FLOAT) + onnx.field(8, name) + onnx.field(9, values.tobytes()))
        return name

    def op(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.node(op, inputs, [name], name, **attributes))
        return name

    def conv(self, x, inputs, outputs, kernel, stride=1, dilation=1):
        pad, limit = dilation * (kernel - 1) // 2, math.sqrt(3 / (inputs * kernel * kernel))
        weights = [self.constant([outputs, inputs, kernel, kernel], -limit, limit), self.constant([outputs], -.1, .1)]
        return self.op("Conv", [x, *weights], kernel_shape=[kernel] * 2, strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4)

    def norm(self, x, channels):
        bounds = [(.5, 1.5), (-.1, .1), (-.1, .1), (.8, 1.2)]
        return self.op("BatchNormalization", [x, *(self.constant([channels], *b) for b in bounds)])

    def block(self, x, inputs, outputs, kernel=3, stride=1, dilation=1):
        return self.op("Relu", [self.norm(self.conv(x, inputs, outputs, kernel, stride, dilation), outputs)])

    def pad_to(self, x, other):
        """x with zeros around it: as many rows and columns as `other`, which has the same batch and channels."""
        lacking = self.op("Sub", [self.op("Shape", [other]), self.op("Shape", [x])])
        before = self.op("Div", [lacking, self.integer(2)])
        return self.op("Pad", [x, self.op("Concat", [before, self.op("Sub", [lacking, before])], axis=0)])

    def integer(self, value):
        name = f"w{len(self.constants)}"
        self.constants.append(onnx.tensor(name, [], [value], onnx.INT64))
        return name

    def model(self, y, channels):
        self.nodes.append(onnx.node("Identity", [y], ["y"]))
        return onnx.model(onnx.graph(self.nodes, [onnx.value("x", [1, CHANNELS, "h", "w"])],
                                     [onnx.value("y", [1, channels, "rows", "columns"])], self.constants))


def unet(width, any_size=False):
    """Four levels, as that of the zoo: the sides of the image are multiples of 16. With any_size, what comes up is padded to its skip, as
    in the most common PyTorch code."""
    net, x, channels, skips = Net(), "x", CHANNELS, []
    widths = [width << level for level in range(4)]
    for out in widths:
        x = net.block(net.block(x, channels, out), out, out)
        skips.append(x)
        x, channels = net.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), out
    x = net.block(net.block(x, channels, 2 * channels), 2 * channels, 2 * channels)
    for out in reversed(widths):
        limit = math.sqrt(3 / (2 * out))
        up = net.op("ConvTranspose", [x, net.constant([2 * out, out, 2, 2], -limit, limit)], kernel_shape=[2, 2], strides=[2, 2])
        x = net.op("Concat", [skips[-1], net.pad_to(up, skips.pop()) if any_size else up], axis=1)
        x = net.block(net.block(x, 2 * out, out), out, out)
    return net.model(net.conv(x, width, 2, 1), 2)


def unet_odd(width):
    return unet(width, any_size=True)


def resnet50(width):
    """Fully convolutional: the classifier is a 1x1 convolution at each position, without a pool before it."""
    net = Net()
    x = net.op("MaxPool", [net.block("x", CHANNELS, width, 7, 2)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = width << stage
        for number in range(blocks):
            stride = 2 if stage > 0 and number == 0 else 1
            y = net.block(net.block(x, channels, inner, 1), inner, inner, 3, stride)
            y = net.norm(net.conv(y, inner, 4 * inner, 1), 4 * inner)
            if number == 0:
                x = net.norm(net.conv(x, channels, 4 * inner, 1, stride), 4 * inner)
            x, channels = net.op("Relu", [net.op("Add", [x, y])]), 4 * inner
    return net.model(net.conv(x, channels, 10, 1), 10)


def superres(width):
    """Sub-pixel convolution (ESPCN): three times as many rows and columns."""
    net, scale = Net(), 3
    x = net.op("Relu", [net.conv("x", CHANNELS, width, 5)])
    x = net.op("Relu", [net.conv(x, width, width, 3)])
    x = net.op("Relu", [net.conv(x, width, width // 2, 3)])
    x = net.conv(x, width // 2, CHANNELS * scale * scale, 3)
    return net.model(net.op("DepthToSpace", [x], blocksize=scale, mode="CRD"), CHANNELS)


def dilated(width):
    """Parallel convolutions of dilations 1 to 6, factors from the mean of the whole image, and the scale of the image again."""
    net = Net()
    x = net.block("x", CHANNELS, width, 5, 2)
    x = net.op("Concat", [net.block(x, width, width, 3, 1, dilation) for dilation in (1, 2, 4, 6)], axis=1)
    x = net.block(net.block(x, 4 * width, width, 1), width, width, 3, 1, 3)
    factor = net.op("Sigmoid", [net.conv(net.op("GlobalAveragePool", [x]), width, width, 1)])
    x = net.conv(net.op("Mul", [x, factor]), width, 5, 1)
    net.constants.append(onnx.tensor("scales", [4], [1.0, 1.0, 2.0, 2.0]))
    return net.model(net.op("Resize", [x, "", "scales"], mode="linear"), 5)


# Name: (how to make it, its full width, rows and columns of an image that has parts of different sizes for 2, 3 and 4 ranks).
NETWORKS = {"unet": (unet, 32, (112, 80)), "unet_odd": (unet_odd, 32, (117, 83)), "resnet50": (resnet50, 64, (193, 161)), "superres": (superres, 64, (149, 83)),
            "dilated": (dilated, 32, (149, 83))}
