#!/usr/bin/env python3
"""Writes an image folder of drawn shapes, 26 classes: OUT/train/CLASS/0001.png, OUT/test/CLASS/0001.png.

usage: shapes_dataset.py OUT [--train 100] [--test 25] [--size 48] [--classes 26] [--seed 1]     (Python's standard library only)

Every picture has its own place, scale, tilt and colours, and some noise. A shape stays the same class when it is mirrored left to right.
"""
import argparse
import math
import os
import random
import struct
import zlib


def polygon(corners, inner=None):
    """A regular polygon, or a star whose inner corners are at the radius `inner`; a corner is on top."""
    def inside(x, y):
        angle = math.atan2(x, y) % (2 * math.pi / corners)
        radius = math.hypot(x, y)
        half = math.pi / corners
        angle = min(angle, 2 * half - angle)  # 0 at a corner, half at the middle of a side
        if inner is None:
            return radius * math.cos(half - angle) < 0.85 * math.cos(half)
        # The line from the outer corner (0.9, 0) to the inner one.
        ax, ay, bx, by = 0.9, 0.0, inner * math.cos(half), inner * math.sin(half)
        px, py = radius * math.cos(angle), radius * math.sin(angle)
        return (bx - ax) * (py - ay) - (by - ay) * (px - ax) > 0
    return inside


# Points are in -1 to 1, y goes up.
SHAPES = {
    "disc": lambda x, y: x * x + y * y < 0.64,
    "ring": lambda x, y: 0.3 < x * x + y * y < 0.75,
    "square": lambda x, y: max(abs(x), abs(y)) < 0.7,
    "frame": lambda x, y: 0.45 < max(abs(x), abs(y)) < 0.8,
    "diamond": lambda x, y: abs(x) + abs(y) < 0.85,
    "plus": lambda x, y: min(abs(x), abs(y)) < 0.2 and max(abs(x), abs(y)) < 0.85,
    "times": lambda x, y: abs(abs(x) - abs(y)) < 0.25 and max(abs(x), abs(y)) < 0.75,
    "triangle": polygon(3),
    "wedge": lambda x, y: -0.6 < y < 0.7 and abs(x) < 0.75 * (y + 0.6) / 1.3,
    "pentagon": polygon(5),
    "star5": polygon(5, 0.35),
    "star4": polygon(4, 0.25),
    "star8": polygon(8, 0.45),
    "wide_ellipse": lambda x, y: (x / 0.9) ** 2 + (y / 0.4) ** 2 < 1,
    "tall_ellipse": lambda x, y: (x / 0.4) ** 2 + (y / 0.9) ** 2 < 1,
    "half_disc": lambda x, y: y > -0.3 and x * x + (y + 0.3) ** 2 < 0.8,
    "moon": lambda x, y: x * x + y * y < 0.7 and (x - 0.4) ** 2 + y * y > 0.4,
    "heart": lambda x, y: (1.3 * x * x + (1.3 * y - 0.1) ** 2 * 1.2 - 0.6) ** 3 < 1.6 * x * x * (1.3 * y - 0.1) ** 3 * 1.2,
    "arrow": lambda x, y: (-0.85 < x < 0.1 and abs(y) < 0.2) or (0.1 <= x < 0.85 and abs(y) < 0.85 - x),
    "letter_t": lambda x, y: (0.45 < y < 0.85 and abs(x) < 0.75) or (abs(x) < 0.2 and -0.85 < y <= 0.45),
    "letter_l": lambda x, y: (-0.6 < x < -0.2 and abs(y) < 0.85) or (-0.85 < y < -0.45 and -0.6 < x < 0.65),
    "letter_u": lambda x, y: 0.35 < abs(x) < 0.75 and abs(y) < 0.8 or (-0.8 < y < -0.4 and abs(x) <= 0.35),
    "letter_h": lambda x, y: 0.35 < abs(x) < 0.75 and abs(y) < 0.8 or (abs(y) < 0.18 and abs(x) <= 0.35),
    "bars": lambda x, y: abs(x) < 0.8 and abs(y) < 0.8 and int((y + 0.8) / 0.32) % 2 == 0,
    "fence": lambda x, y: abs(x) < 0.8 and abs(y) < 0.8 and int((x + 0.8) / 0.32) % 2 == 0,
    "dots": lambda x, y: abs(x) < 0.85 and abs(y) < 0.85 and math.hypot((x + 0.85) % 0.57 - 0.28, (y + 0.85) % 0.57 - 0.28) < 0.2,
}


def draw(shape, size, rng):
    """Rows of size x size pixels, three bytes each."""
    inside = SHAPES[shape]
    tilt, scale = math.radians(rng.uniform(-12, 12)), rng.uniform(0.75, 1.05)
    dx, dy = rng.uniform(-0.12, 0.12), rng.uniform(-0.12, 0.12)
    cosine, sine = math.cos(tilt) / scale, math.sin(tilt) / scale
    paper = [rng.randrange(256) for _ in range(3)]
    ink = [rng.randrange(256) for _ in range(3)]
    while abs(sum(ink) - sum(paper)) < 220:
        ink = [rng.randrange(256) for _ in range(3)]
    rows = []
    for row in range(size):
        line = bytearray()
        for col in range(size):
            share = 0.0
            for sub_row, sub_col in ((0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)):
                u = 2 * (col + sub_col) / size - 1 - dx
                v = 1 - 2 * (row + sub_row) / size - dy
                share += 0.25 * bool(inside(cosine * u + sine * v, cosine * v - sine * u))
            noise = rng.gauss(0, 6)
            line += bytes(min(255, max(0, round(p + share * (i - p) + noise))) for p, i in zip(paper, ink))
        rows.append(bytes(line))
    return rows


def write_png(path, rows):
    size = len(rows)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]) // 3, size, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 6)) + chunk(b"IEND", b""))


def write_dataset(folder, counts, size, classes=None, seed=1):
    """`counts` has the pictures per class of each part: {"train": 100, "test": 25}."""
    for part, count in counts.items():
        for shape in list(SHAPES)[:classes]:
            os.makedirs(os.path.join(folder, part, shape), exist_ok=True)
            for i in range(1, count + 1):
                rng = random.Random(f"{seed} {part} {shape} {i}")
                write_png(os.path.join(folder, part, shape, f"{i:04}.png"), draw(shape, size, rng))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--train", type=int, default=100, help="pictures per class")
    parser.add_argument("--test", type=int, default=25, help="pictures per class")
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--classes", type=int, default=len(SHAPES))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write_dataset(options.out, {"train": options.train, "test": options.test}, options.size, options.classes, options.seed)


if __name__ == "__main__":
    main()
