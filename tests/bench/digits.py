#!/usr/bin/env python3
"""The 1,797 digits of scikit-learn as .npy files, a fifth of them held out: OUT/train_images.npy, train_labels.npy, test_*.npy.

usage: digits.py OUT [--train BIN_DIR] [--seed 1]     (needs numpy and scikit-learn)

--train runs 'msrun train' with LeNet on them; exits with 1 unless at least 98 % of the held-out digits are recognised within a minute.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

LIMIT_SECONDS, LIMIT_ACCURACY = 60, 0.98


def write_digits(folder, seed):
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    held_out = len(order) // 5
    os.makedirs(folder, exist_ok=True)
    for part, chosen in (("test", order[:held_out]), ("train", order[held_out:])):
        np.save(os.path.join(folder, part + "_images.npy"), digits.images[chosen].astype(np.uint8))
        np.save(os.path.join(folder, part + "_labels.npy"), digits.target[chosen].astype(np.int64))


def train(tools, folder):
    output, report = os.path.join(folder, "run"), os.path.join(folder, "report.json")
    begin = time.monotonic()
    subprocess.run([os.path.join(tools, "msrun"), "train", "--model", "zoo:lenet", "--data", folder, "--eval", folder, "--size", "28",
                    "--normalize", "scale=1/16", "--epochs", "40", "--batch", "32", "--augment", "crop:8:1 rotate:10", "--optimizer", "momentum:0.9", "--lr", "0.02",
                    "--schedule", "cosine", "--output", output, "--json", report], check=True)
    seconds = time.monotonic() - begin
    with open(report) as f:
        accuracy = json.load(f)["accuracy"]
    print(f"accuracy {accuracy:.4f} (at least {LIMIT_ACCURACY}), {seconds:.1f} s (at most {LIMIT_SECONDS})")
    return accuracy >= LIMIT_ACCURACY and seconds <= LIMIT_SECONDS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--train", metavar="BIN_DIR")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write_digits(options.out, options.seed)
    if options.train and not train(options.train, options.out):
        sys.exit(1)


if __name__ == "__main__":
    main()
