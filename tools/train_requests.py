#!/usr/bin/env python3
"""Trains the text classifier of examples/text_classification and writes its model.

The model names what somebody who writes to a shop wants. Its training sentences are made from the parts below; the
sentences of examples/text_classification/requests.txt were written one by one, are never trained on, and give the accuracy
that is printed. TF-IDF and logistic regression are scikit-learn's, the model is skl2onnx's: strings go in, labels come out.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib

import numpy as np
import onnx
import skl2onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples" / "text_classification"
OPENINGS = ["", "hello", "please help me", "dear team", "hi there", "i have a question"]

# Of each topic: what may come first, what may follow.
TOPICS = {
    "delivery": (
        ["where is", "when will i get", "i am still waiting for", "i did not receive", "can you track", "what happened to",
         "the courier has lost", "how long does it take to ship"],
        ["my order", "my parcel", "the package", "the shipment", "my delivery", "the box that was to arrive on monday",
         "the goods you sent last week", "the tracking number of my order"]),
    "refund": (
        ["i want to return", "how do i send back", "i would like my money back for", "please refund",
         "when do i get the refund for", "can i exchange", "you have not paid me back for", "i changed my mind about"],
        ["the shoes", "this jacket", "the item i bought", "an unused product", "the wrong size", "the blue shirt",
         "what i returned two weeks ago", "this purchase"]),
    "payment": (
        ["my credit card was charged twice for", "i can not pay for", "the payment failed for", "i need an invoice for",
         "there is a mistake in the bill for", "which cards do you accept for", "paypal does not work for",
         "the discount code was not applied to"],
        ["my order", "the cart", "two items", "my last purchase", "this month", "the subscription", "the total amount",
         "the checkout"]),
    "account": (
        ["i forgot", "how do i change", "please delete", "i can not log in to", "somebody has changed", "i want to update",
         "the link to reset does not work for", "i never got the mail to confirm"],
        ["my password", "my account", "my email address", "my user name", "my login", "my profile",
         "the phone number of my account", "my registration"]),
    "defect": (
        ["it does not work any more:", "something is broken about", "there is a crack in", "a part is missing from",
         "the battery is dead in", "there is a strange noise from", "it stopped after two days:", "the screen is black on"],
        ["the phone", "the lamp", "the washing machine", "this device", "the headphones", "the kettle", "the tablet",
         "the charger i bought"]),
    "praise": (
        ["thank you for", "i am very happy with", "great work on", "i love", "many thanks for", "excellent:",
         "i just want to say how nice was", "five stars for"],
        ["the fast delivery", "your kind help", "the friendly service", "the quality", "this wonderful product",
         "the quick answer", "everything", "my new shoes"]),
}


def sentences() -> tuple[list[str], list[str]]:
    texts, labels = [], []
    for topic, (begins, ends) in TOPICS.items():
        for index, (begin, end) in enumerate(itertools.product(begins, ends)):
            texts.append(f"{OPENINGS[index % len(OPENINGS)]} {begin} {end}".strip())
            labels.append(topic)
    return texts, labels


def kept_out(file: pathlib.Path) -> tuple[list[str], list[str]]:
    """Lines of label, tab, text."""
    rows = [line.split("\t", 1) for line in file.read_text().splitlines() if line]
    return [text for _, text in rows], [label for label, _ in rows]


def convert(pipeline) -> onnx.ModelProto:
    model = skl2onnx.to_onnx(pipeline, initial_types=[("text", StringTensorType([None, 1]))],
                             options={id(pipeline[-1]): {"zipmap": False}}, target_opset={"": 18, "ai.onnx.ml": 3})
    for node in model.graph.node:  # the converter names a locale that few machines have; the texts are English
        if node.op_type == "StringNormalizer":
            node.attribute.append(onnx.helper.make_attribute("locale", "C"))
    model.producer_name, model.producer_version = "tools/train_requests.py", "1"
    model.domain, model.doc_string = "sardonyx.examples", "What somebody who writes to a shop wants."
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER, help="the folder with requests.txt")
    options = parser.parse_args()
    texts, labels = sentences()
    pipeline = make_pipeline(TfidfVectorizer(token_pattern="[a-zA-Z0-9]+", ngram_range=(1, 2), min_df=3, sublinear_tf=False),
                             LogisticRegression(C=20, max_iter=2000))
    pipeline.fit(texts, labels)
    unseen, wanted = kept_out(options.out / "requests.txt")
    right = np.asarray(wanted) == pipeline.predict(unseen)
    for text, label, found in zip(unseen, wanted, pipeline.predict(unseen)):
        if label != found:
            print(f"wrong: {found}, not {label}: {text}")
    print(f"{right.sum()} of {len(right)} right; trained on {len(texts)} sentences")
    onnx.save(convert(pipeline), options.out / "requests.onnx")


if __name__ == "__main__":
    main()
