#!/usr/bin/env python3
"""Exports networks in f32, f16 and 8-bit integers to ONNX, with seeded weights, to compare their speed.

usage: export_small_types.py OUT_DIR
needs: pip install torch torchvision transformers onnx onnxscript onnxruntime

Writes resnet18 and bert (base, 128 tokens) as NAME.onnx, NAME_f16.onnx (weights and arithmetic in f16), resnet18_qdq.onnx (statically
quantised, calibrated with random images) and bert_int8.onnx (dynamically quantised). A file that exists is kept.
"""
import os
import sys
import warnings

import numpy as np
import torch
import torchvision.models as vision
import transformers
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from export_networks import Text, randomise_statistics

warnings.filterwarnings("ignore")


class Images(CalibrationDataReader):
    def __init__(self, count):
        random = np.random.default_rng(0)
        self.images = iter([{"image": random.standard_normal((1, 3, 224, 224)).astype(np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.images, None)


def export(model, inputs, names, path):
    if os.path.exists(path):
        return
    torch.onnx.export(model.eval(), inputs, path, input_names=names, output_names=["output"], dynamo=True, external_data=False, verbose=False)
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name + ".onnx")
    torch.manual_seed(0)
    image = torch.randn(1, 3, 224, 224)
    tokens = torch.randint(0, 30000, (1, 128)), torch.ones(1, 128, dtype=torch.int64)
    resnet = randomise_statistics(vision.resnet18())
    bert = Text(transformers.BertModel(transformers.BertConfig()), "last_hidden_state")
    export(resnet, (image,), ["image"], path("resnet18"))
    export(bert, tokens, ["ids", "mask"], path("bert"))
    if not os.path.exists(path("resnet18_qdq")):
        quantize_static(path("resnet18"), path("resnet18_qdq"), Images(8), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    if not os.path.exists(path("bert_int8")):
        quantize_dynamic(path("bert"), path("bert_int8"), weight_type=QuantType.QInt8)
    export(resnet.half(), (image.half(),), ["image"], path("resnet18_f16"))
    export(bert.half(), tokens, ["ids", "mask"], path("bert_f16"))


if __name__ == "__main__":
    main()
