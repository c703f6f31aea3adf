#!/usr/bin/env python3
"""Exports the networks that inference is compared on to ONNX, with seeded weights: latency does not depend on their values.

usage: export_networks.py OUT_DIR [name ...]        without names: all of them
needs: pip install torch torchvision onnx onnxscript transformers

One network of every classification family of torchvision, two for segmentation, BERT, GPT-2 and ViT. A file that exists is kept.
"""
import os
import sys
import warnings

import torch
import torchvision.models as vision

warnings.filterwarnings("ignore")
IMAGES = {name: 224 for name in (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "maxvit_t", "mnasnet1_0",
    "mobilenet_v2", "mobilenet_v3_large", "regnet_y_400mf", "resnet50", "resnext50_32x4d", "shufflenet_v2_x1_0", "squeezenet1_1",
    "swin_t", "vgg16", "vit_b_16", "wide_resnet50_2")} | {"inception_v3": 299}
SEGMENTATION = {"deeplabv3_resnet50": 256, "lraspp_mobilenet_v3_large": 512}
TOKENS = ("bert", "gpt2", "vit")


def randomise_statistics(model):
    """Running statistics other than 0 and 1, so that folding them is not trivial."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.8, 1.2)
    return model


class FirstOutput(torch.nn.Module):
    """A model whose outputs are a dict or a tuple, with the named or first one alone."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, *inputs):
        out = self.model(*inputs)
        return out[self.name] if isinstance(out, dict) else getattr(out, self.name)


class Text(FirstOutput):
    def forward(self, ids, mask):
        return getattr(self.model(input_ids=ids, attention_mask=mask), self.name)


def build(name):
    """The model, its inputs and their names."""
    if name in IMAGES:
        options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        model = randomise_statistics(getattr(vision, name)(**options))
        if name == "vit_b_16":  # its head is zero until it is trained, and so would be the output
            torch.nn.init.normal_(model.heads.head.weight, std=0.02)
        return model, (torch.randn(1, 3, IMAGES[name], IMAGES[name]),), ["image"]
    if name in SEGMENTATION:
        model = randomise_statistics(getattr(vision.segmentation, name)(weights=None, weights_backbone=None))
        return FirstOutput(model, "out"), (torch.randn(1, 3, SEGMENTATION[name], SEGMENTATION[name]),), ["image"]
    import transformers
    tokens = torch.randint(0, 30000, (1, 128)), torch.ones(1, 128, dtype=torch.int64)
    if name == "bert":
        return Text(transformers.BertModel(transformers.BertConfig()), "last_hidden_state"), tokens, ["ids", "mask"]
    if name == "gpt2":
        return Text(transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False)), "logits"), tokens, ["ids", "mask"]
    if name == "vit":
        model = transformers.ViTModel(transformers.ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536))
        return FirstOutput(model, "last_hidden_state"), (torch.randn(1, 3, 224, 224),), ["image"]
    sys.exit(f"export_networks: there is no network '{name}'; there are {', '.join([*IMAGES, *SEGMENTATION, *TOKENS])}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:] or [*IMAGES, *SEGMENTATION, *TOKENS]
    os.makedirs(folder, exist_ok=True)
    for name in names:
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        torch.manual_seed(0)
        model, inputs, input_names = build(name)
        with torch.no_grad():
            torch.onnx.export(model.eval(), inputs, path + ".part", input_names=input_names, opset_version=18, dynamo=True,
                              external_data=False, verbose=False)
        os.replace(path + ".part", path)
        print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
