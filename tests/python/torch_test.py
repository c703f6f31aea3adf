#!/usr/bin/env python3
"""PyTorch and msrt in one process. Part of the package's tests where PyTorch is installed; by hand, with networks from the zoo:

  tests/python/torch_test.py [--large]     (in an environment with msrt, numpy and torch)

Each case runs in a process of its own, since the order of imports decides which OpenMP runtime both use.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import unittest

PROGRAM = """
import re, sys, threading
ORDER, MODEL, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
if ORDER == "torch first":
    import torch, msrt
else:
    import msrt, torch
import numpy
model = msrt.load(MODEL, threads=2)
torch.manual_seed(0)
torch.set_num_threads(2)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3)).eval()
image, given = torch.rand(1, 3, 64, 64), torch.rand(*[d if isinstance(d, int) else 2 for d in model.inputs[0].dims])
alone = {k: v.copy() for k, v in model(given.numpy()).items()}

def both(rounds, failures):
    with torch.no_grad():
        expected = network(image)
        for _ in range(rounds):
            outputs = model.run_tensors({model.inputs[0].name: given})          # DLPack in
            for name, tensor in outputs.items():
                there = torch.from_dlpack(tensor)                               # and out
                if there.data_ptr() != numpy.asarray(tensor).__array_interface__["data"][0]:
                    failures.append("copied")
                if not numpy.array_equal(there.numpy(), alone[name]):
                    failures.append("msrt differs")
            if not torch.equal(network(image), expected):
                failures.append("torch differs")

failures = []
both(ROUNDS, failures)
threads = [threading.Thread(target=both, args=(ROUNDS, failures)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures, failures[:3]
assert torch.get_num_threads() == 2, torch.get_num_threads()
assert model.runtime.info["threads"] == 2
# Tensors of types and layouts that NumPy lacks, and memory of PyTorch's for results.
strided = given.transpose(-1, -2).contiguous().transpose(-1, -2)
assert all(numpy.array_equal(value, alone[name]) for name, value in model(strided).items())
out = {spec.name: torch.zeros(alone[spec.name].shape) for spec in model.outputs}
model.run({model.inputs[0].name: given}, out=out)
assert all(numpy.array_equal(value.numpy(), alone[name]) for name, value in out.items())
half = torch.arange(6, dtype=torch.bfloat16)
assert msrt.from_dlpack(half).dtype == "bf16"
assert torch.equal(torch.from_dlpack(msrt.from_dlpack(half)), half)
with open("/proc/self/maps") as maps:
    runtimes = sorted(set(re.findall(r"/\\S*(?:libgomp|libiomp)[^/\\s]*", maps.read())))
print(len(runtimes), "OpenMP runtime(s):", *runtimes)
"""


def run_case(order, model, rounds):
    import msrt
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(msrt.__file__))}
    return subprocess.run([sys.executable, "-c", PROGRAM, order, model, str(rounds)], capture_output=True, text=True, timeout=600,
                          env=environment)


class Torch(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_both_run_in_one_process(self):
        import tempfile

        import msrt
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "lenet.msrt")
            msrt.convert("zoo:lenet", model)
            for order in ("torch first", "msrt first"):
                done = run_case(order, model, 5)
                self.assertEqual(done.returncode, 0, f"{order}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="ResNet-50 instead of ResNet-18")
    import msrt
    import tempfile
    network = "resnet50" if parser.parse_args().large else "resnet18"
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.msrt")
        msrt.convert(f"zoo:{network}", model)
        for order in ("torch first", "msrt first"):
            done = run_case(order, model, 20)
            print(f"{order}: {'good' if done.returncode == 0 else 'FAILED'}; {(done.stdout or done.stderr).strip()}")


if __name__ == "__main__":
    main()
