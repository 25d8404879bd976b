"""Every model by name: its family, how to build it small, and which sizes to try it at."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from . import (decoders, dense, diffusion, flow, generators, mobile, pipelines, quantised, seq2seq, small, speech, tables, towers,
               transformers, counterparts, vision)
from .net import Built

EXACT, HALF, BRAIN = 1e-3, 2e-2, 2e-1  # largest difference as a share of the RMS, by the arithmetic
STEPS = 2e-2  # where both engines round to small integers many times over


@dataclasses.dataclass(frozen=True)
class Entry:
    build: Callable[..., Built]
    family: str
    small: dict = dataclasses.field(default_factory=dict)  # arguments for a model of a few hundred kilobytes
    sizes: tuple[dict[str, int], ...] = ()  # of named dimensions, beside those of the model's own inputs
    tolerance: float = EXACT
    unfused: bool = False  # ONNX Runtime's fusions compute something else: compare without them
    drift: float = 0.0  # largest difference at real size, where roundings add up over many layers
    loose: float = 0.0  # share of elements that may be others at real size: places of nearly equal scores
    baseline: str = ""  # the model to time ONNX Runtime on where it can't run this one


def sizes(*rows: tuple, names: str) -> tuple[dict[str, int], ...]:
    return tuple(dict(zip(names.split(), row)) for row in rows)


BATCHES = sizes((3,), names="batch")
TEXT = sizes((2, 7), (1, 1), (3, 21), names="batch sequence")
STEP = sizes((1, 1, 0, 1), (2, 3, 6, 9), (1, 1, 20, 21), names="batch sequence past_sequence total_sequence")
ROWS = sizes((1,), (7,), (200,), names="rows")

BERT = dict(layers=2, hidden=32, heads=4, vocabulary=100, positions=64, length=16)
GPT2 = dict(layers=2, hidden=32, heads=4, vocabulary=90, positions=80, past=4)
LLAMA = dict(layers=2, hidden=64, heads=4, groups=2, inner=96, vocabulary=96, past=5)
RESNET = dict(blocks=(1, 1, 1), width=16, side=64)
MOBILENET = dict(width=0.25, side=64, blocks=9, classes=20)
TAGGER = dict(hidden=24, features=20, steps=12, vocabulary=50)
TAGS = sizes((12, 1), (20, 7), names="steps batch")

ENTRIES = {
    "resnet50": Entry(vision.resnet50, "residual network", RESNET),
    "vgg19": Entry(vision.vgg19, "plain network", dict(width=8, dense=64, side=32)),
    "squeezenet": Entry(vision.squeezenet, "SqueezeNet", dict(side=64)),
    "densenet121": Entry(vision.densenet121, "DenseNet", dict(blocks=(2, 3), growth=8, side=64)),
    "inception_v1": Entry(vision.inception_v1, "Inception", dict(side=64)),
    # Half a unit in the last place of every pixel moves its output by 5e-4 of the RMS, in either engine.
    "inception_v2": Entry(vision.inception_v2, "Inception", dict(side=160), tolerance=2e-3),
    "shufflenet": Entry(vision.shufflenet, "ShuffleNet", dict(side=128)),
    "alexnet": Entry(vision.alexnet, "plain network", dict(dense=64)),
    "zfnet512": Entry(vision.zfnet512, "plain network", dict(width=64, dense=64)),
    "mobilenet_v2": Entry(vision.mobilenet_v2, "MobileNet", dict(side=128)),
    "mobilenet_v3": Entry(mobile.mobilenet_v3, "MobileNet", MOBILENET, BATCHES),
    "efficientnet_b0": Entry(vision.efficientnet_b0, "EfficientNet", dict(side=128)),
    "resnext50": Entry(mobile.resnext50, "ResNeXt", dict(blocks=(1, 2), width=16, groups=8, side=64, classes=20)),
    "regnet_y": Entry(mobile.regnet_y, "RegNet", dict(depths=(1, 2), widths=(16, 32), side=64, classes=20), BATCHES),
    "unet": Entry(dense.unet, "U-Net", dict(width=4, levels=3, side=32),
                  sizes((2, 32, 32), (1, 64, 40), names="batch height width"), loose=1e-3),
    "yolo": Entry(dense.yolo, "YOLO, end to end", dict(width=8, side=128, classes=5, most=20), loose=0.1),
    "ssd": Entry(dense.ssd, "SSD with Loop and If", dict(width=8, side=64, classes=5, threshold=0.95)),
    "detector": Entry(small.detector, "detection head"),
    "vit_b16": Entry(transformers.vit, "ViT", dict(layers=2, hidden=32, heads=4, side=32, patch=8), BATCHES),
    "swin": Entry(towers.swin, "Swin", dict(depths=(2, 2), hidden=24, heads=(2, 4), window=4, side=64, classes=20),
                  BATCHES),
    "clip": Entry(towers.clip, "CLIP", dict(layers=2, image_hidden=32, text_hidden=32, side=64, vocabulary=100,
                                            length=20, joint=16, width=8),
                  sizes((2, 3, 9), (1, 1, 20), names="pictures texts sequence")),
    "bert": Entry(transformers.bert, "BERT", BERT, TEXT),
    "sentence": Entry(towers.sentence, "sentence encoder (DistilBERT)",
                      dict(layers=2, hidden=32, heads=4, vocabulary=100, positions=64, length=12), TEXT),
    "gpt2": Entry(transformers.gpt2, "GPT-2 with past", GPT2, STEP),
    "llama": Entry(decoders.llama, "Llama with past, opset 23", LLAMA, STEP),
    "llama_spelled": Entry(decoders.llama_spelled, "Llama with past, decomposed", LLAMA, STEP),
    "t5": Entry(seq2seq.t5, "T5", dict(layers=2, hidden=32, heads=4, vocabulary=90, length=20, target=5),
                sizes((2, 33, 7), (1, 1, 1), (3, 40, 2), names="batch sequence answer")),
    "whisper": Entry(seq2seq.whisper, "Whisper", dict(layers=2, hidden=32, heads=4, mels=16, frames=60, vocabulary=90,
                                                      positions=20),
                     sizes((2, 4), (1, 13), names="batch answer")),
    "conformer": Entry(speech.conformer, "Conformer", dict(layers=2, hidden=32, kernel=7, mels=24, frames=60, classes=30),
                       sizes((2, 60), (1, 107), names="batch frames")),
    "wav2vec": Entry(speech.wav2vec, "wav2vec", dict(layers=2, hidden=64, heads=4, channels=16, samples=4000),
                     sizes((2, 4000), (1, 7001), names="batch samples")),
    "voice_activity": Entry(speech.voice_activity, "voice activity, If and a state", {},
                            sizes((3, 512), (1, 1024), names="batch samples")),
    "mel_front_end": Entry(speech.mel_front_end, "STFT and Mel front end", dict(samples=2000),
                           sizes((2, 2000), (1, 3333), names="batch samples")),
    "dft_filter": Entry(speech.dft_filter, "DFT front end", dict(size=240, channels=2), sizes((1,), (5,), names="batch")),
    "lstm": Entry(small.lstm, "LSTM", dict(hidden=24, inputs=10, steps=7),
                  sizes((1, 3), (20, 2), names="steps batch")),
    "lstm_tagger": Entry(functools.partial(speech.tagger, "LSTM"), "LSTM tagger, both ways", TAGGER, TAGS),
    "gru_tagger": Entry(functools.partial(speech.tagger, "GRU"), "GRU tagger, both ways", TAGGER, TAGS),
    "rnn_tagger": Entry(functools.partial(speech.tagger, "RNN"), "RNN tagger, both ways", TAGGER, TAGS),
    "diffusion": Entry(diffusion.diffusion, "diffusion U-Net block, opset 21",
                       dict(width=16, side=8, heads=2, text_width=24, length=5),
                       sizes((2, 8, 8, 5), (1, 12, 10, 3), names="batch height width text")),
    "diffusion_spelled": Entry(functools.partial(diffusion.diffusion, 17), "diffusion U-Net block, opset 17",
                               dict(width=16, side=8, heads=2, text_width=24, length=5),
                               sizes((2, 8, 8, 5), (1, 12, 10, 3), names="batch height width text")),
    "generator": Entry(generators.generator, "DCGAN", dict(width=8, noise=20), BATCHES),
    "vocoder": Entry(generators.vocoder, "HiFi-GAN vocoder", dict(width=32, mels=16, frames=10),
                     sizes((2, 10), (1, 17), names="batch frames")),
    "style_transfer": Entry(generators.style_transfer, "style transfer", dict(width=8, side=32, blocks=2),
                            sizes((40, 28), (16, 64), names="height width")),
    "graph_network": Entry(tables.graph_network, "graph network", dict(nodes=30, edges=120, features=12, hidden=16),
                           sizes((30, 7), (50, 300), names="nodes edges")),
    "recommender": Entry(tables.recommender, "recommender", dict(tables=4, rows=100, width=8, batch=5),
                         sizes((1,), (33,), names="batch")),
    "mlp": Entry(small.mlp, "perceptron", {}, BATCHES),
    "resnet50_qdq": Entry(quantised.resnet50_qdq, "ResNet in int8, QDQ", RESNET, tolerance=STEPS),
    "resnet50_qlinear": Entry(quantised.resnet50_qlinear, "ResNet in int8, QOperator", RESNET, tolerance=STEPS),
    # Small, a byte that plain evaluation rounds otherwise moves the output by as much as 0.15 of its RMS.
    "mobilenet_v3_qdq": Entry(quantised.mobilenet_v3_qdq, "MobileNet in int8, QDQ", MOBILENET, BATCHES, 0.2, drift=STEPS),
    "mobilenet_v3_qlinear": Entry(quantised.mobilenet_v3_qlinear, "MobileNet in int8, QOperator", MOBILENET, BATCHES, STEPS),
    "bert_qdq": Entry(quantised.bert_qdq, "BERT in int8, QDQ", BERT, TEXT, STEPS, drift=0.25),
    "bert_dynamic": Entry(quantised.bert_dynamic, "BERT in int8, dynamic", BERT, TEXT, STEPS, drift=0.25),
    "llama_int4": Entry(quantised.llama_int4, "Llama in 4 bits, blocks", LLAMA, STEP, unfused=True, drift=0.2),
    "resnet50_f16": Entry(counterparts.MODELS["resnet50_f16"], "ResNet in float16", RESNET, tolerance=HALF),
    "resnet50_bf16": Entry(counterparts.MODELS["resnet50_bf16"], "ResNet in bfloat16", RESNET, (), BRAIN, baseline="resnet50"),
    "bert_f16": Entry(counterparts.MODELS["bert_f16"], "BERT in float16", BERT, TEXT, HALF),
    "bert_bf16": Entry(counterparts.MODELS["bert_bf16"], "BERT in bfloat16", BERT, TEXT, BRAIN, baseline="bert"),
    "gpt2_f16": Entry(counterparts.MODELS["gpt2_f16"], "GPT-2 in float16", GPT2, STEP, HALF),
    "gpt2_bf16": Entry(counterparts.MODELS["gpt2_bf16"], "GPT-2 in bfloat16", GPT2, STEP, BRAIN, baseline="gpt2"),
    "llama_f16": Entry(counterparts.MODELS["llama_f16"], "Llama in float16, opset 23", LLAMA, STEP, HALF),
    "llama_bf16": Entry(counterparts.MODELS["llama_bf16"], "Llama in bfloat16, opset 23", LLAMA, STEP, BRAIN, baseline="llama"),
    "loop": Entry(small.loop, "Loop"),
    "scan": Entry(flow.scan, "Scan", dict(hidden=12, features=6, steps=9), sizes((1, 1), (3, 20), names="batch steps")),
    "optional": Entry(flow.optional, "optional values in control flow", {}, sizes((1,), (9,), names="rows")),
    "pieces": Entry(flow.pieces, "sequences", {}, sizes((5,), (31,), names="rows")),
    "strings": Entry(flow.strings, "strings", {}, sizes((1,), (200,), names="rows")),
    "functions": Entry(small.functions, "functions of the model's own", {}, BATCHES),
    "chain20": Entry(small.chain, "element-wise chain", dict(side=64)),
    "tiny200": Entry(small.tiny_nodes, "many tiny nodes"),
    "forest": Entry(pipelines.forest, "scikit-learn: random forest, ZipMap", dict(trees=12), ROWS),
    "forest_v5": Entry(pipelines.forest_v5, "scikit-learn: extra trees as TreeEnsemble", dict(trees=8), ROWS),
    "boosting": Entry(pipelines.boosting, "scikit-learn: gradient boosting", {}, ROWS),
    "boosted_classes": Entry(pipelines.boosted_classes, "scikit-learn: gradient boosting, classes", {}, ROWS),
    "logistic": Entry(pipelines.logistic, "scikit-learn: Imputer, Scaler, LinearClassifier", {}, ROWS),
    "ridge": Entry(pipelines.ridge, "scikit-learn: Normalizer, polynomials, LinearRegressor", {}, ROWS),
    "support_vectors": Entry(pipelines.support_vectors, "scikit-learn: SVMClassifier", {}, ROWS),
    "support_regression": Entry(pipelines.support_regression, "scikit-learn: SVMRegressor", {}, ROWS),
    "neighbours": Entry(pipelines.neighbours, "scikit-learn: nearest neighbours, Scan", {}, ROWS),
    "perceptron": Entry(pipelines.perceptron, "scikit-learn: PCA and perceptron", {}, ROWS),
    "bayes": Entry(pipelines.bayes, "scikit-learn: naive Bayes", {}, ROWS),
    "votes": Entry(pipelines.votes, "scikit-learn: vote of three", {}, ROWS),
    "columns": Entry(pipelines.columns, "scikit-learn: columns, OneHotEncoder", {}, ROWS),
    "texts": Entry(pipelines.texts, "scikit-learn: StringNormalizer, TfIdfVectorizer", {}, ROWS),
    "lightgbm": Entry(pipelines.lightgbm, "LightGBM", dict(trees=8), ROWS),
    "xgboost": Entry(pipelines.xgboost, "XGBoost", {}, ROWS),
    "classic": Entry(pipelines.classic, "ai.onnx.ml: FeatureVectorizer, ArrayFeatureExtractor, CategoryMapper, LabelEncoder",
                     {}, ROWS),
}

KINDS = {"float32": "networks in float32", "reduced": "networks in reduced precision", "classic": "classic models",
         "micro": "micro models"}
MICRO = {"small", "flow"}  # modules whose models compute for less than a millisecond, but for the LSTM


def kind(name: str) -> str:
    """Which of KINDS a model is, by the module that builds it."""
    build = ENTRIES[name].build
    module = getattr(build, "func", build).__module__.rpartition(".")[2]
    if module in MICRO:
        return "float32" if name == "lstm" else "micro"
    return {"pipelines": "classic", "quantised": "reduced", "counterparts": "reduced"}.get(module, "float32")
