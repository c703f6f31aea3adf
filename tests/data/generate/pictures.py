#!/usr/bin/env python3
"""Pictures before and after resizing, cropping, rotating and changes of colour, by Pillow and numpy: the oracle of core/train/data.

usage: pictures.py [FOLDER]      (writes tests/data/pictures; needs numpy and pillow)
"""
import os
import sys

import numpy as np
from PIL import Image

MEAN, DEVIATION = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)


def resized(picture, rows, cols):
    """Pillow's float images are resized without rounding to bytes."""
    return np.stack([np.asarray(Image.fromarray(plane, "F").resize((cols, rows), Image.BILINEAR)) for plane in picture])


def cropped(picture, row, col, rows, cols, padding):
    padded = np.pad(picture, ((0, 0), (padding, padding), (padding, padding)))
    return padded[:, row + padding:row + padding + rows, col + padding:col + padding + cols]


def rotated(picture, degrees):
    """Inverse mapping with complex numbers: counter-clockwise where rows go down, zeros outside."""
    channels, rows, cols = picture.shape
    padded = np.pad(picture, ((0, 0), (1, 1), (1, 1))).astype(np.float64)
    y, x = np.mgrid[0:rows, 0:cols].astype(np.float64)
    # The y axis of complex numbers goes up.
    target = (x - (cols - 1) / 2) - 1j * (y - (rows - 1) / 2)
    source = target * np.exp(-1j * np.deg2rad(degrees))
    sx, sy = source.real + (cols - 1) / 2, -source.imag + (rows - 1) / 2
    result = np.zeros(picture.shape)
    for row in range(-1, rows + 1):
        for col in range(-1, cols + 1):
            weight = np.maximum(1 - abs(sy - row), 0) * np.maximum(1 - abs(sx - col), 0)
            result += weight * padded[:, row + 1, col + 1][:, None, None]
    return result.astype(np.float32)


def colored(picture, brightness, contrast, saturation):
    grey = np.array([0.299, 0.587, 0.114])
    p = np.clip(picture.astype(np.float64) * brightness, 0, 255)
    mean = np.tensordot(grey, p, 1).mean()
    p = np.clip(mean + contrast * (p - mean), 0, 255)
    pixel_grey = np.tensordot(grey, p, 1)
    return np.clip(pixel_grey + saturation * (p - pixel_grey), 0, 255).astype(np.float32)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(here), "pictures")
    os.makedirs(folder, exist_ok=True)
    picture = np.random.default_rng(5).integers(0, 256, (3, 23, 17)).astype(np.float32)
    results = {
        "picture": picture,
        "smaller": resized(picture, 9, 8),
        "larger": resized(picture, 40, 31),
        "wider": resized(picture, 5, 60),
        "cropped": cropped(picture, -3, 6, 20, 14, 4),
        "rotated": rotated(picture, 25),
        "turned": np.rot90(picture, 1, (1, 2)).copy(),
        "colored": colored(picture, 1.3, 0.7, 1.4),
        "normalized": ((picture - np.float32(MEAN)[:, None, None]) / np.float32(DEVIATION)[:, None, None]).astype(np.float32),
    }
    for name, values in results.items():
        np.save(os.path.join(folder, name + ".npy"), values)


if __name__ == "__main__":
    main()
