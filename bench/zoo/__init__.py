"""Models of real architectures with seeded weights, made with the onnx helper API alone."""

from . import small, transformers, vision
from .net import LAYERS, Built, Net, rms

MODELS = {
    "resnet50": vision.resnet50,
    "vgg19": vision.vgg19,
    "squeezenet": vision.squeezenet,
    "densenet121": vision.densenet121,
    "inception_v1": vision.inception_v1,
    "inception_v2": vision.inception_v2,
    "shufflenet": vision.shufflenet,
    "alexnet": vision.alexnet,
    "zfnet512": vision.zfnet512,
    "mobilenet_v2": vision.mobilenet_v2,
    "efficientnet_b0": vision.efficientnet_b0,
    "vit_b16": transformers.vit,
    "bert": transformers.bert,
    "gpt2": transformers.gpt2,
    "mlp": small.mlp,
    "lstm": small.lstm,
    "chain20": small.chain,
    "tiny200": small.tiny_nodes,
    "detector": small.detector,
    "loop": small.loop,
    "functions": small.functions,
}

__all__ = ["LAYERS", "MODELS", "Built", "Net", "rms", "small", "transformers", "vision"]
