"""The session code of fastembed, on a small model of sentences that the case makes."""

REQUIRES = "fastembed onnx tokenizers"
WHAT = "TextEmbedding on a model that the case makes"


def prepare():
    import json
    import pathlib

    import numpy
    import onnx
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = pathlib.Path("model")
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "stones", "are", "hard", "and", "red", "ONNX"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))
    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
      g (int64[b,n] input_ids, int64[b,n] attention_mask) => (float[b,n,8] last_hidden_state) {
        e = Gather (table, input_ids)
        t = MatMul (e, w)
        last_hidden_state = Tanh (t) }''')
    draws = numpy.random.default_rng(0)
    for name, shape in (("table", (len(words), 8)), ("w", (8, 8))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(draws.standard_normal(shape).astype(numpy.float32), name))
    onnx.save(model, folder / "model.onnx")
    TextEmbedding.add_custom_model(model="made/by-the-case", pooling=PoolingType.MEAN, normalization=True,
                                   sources=ModelSource(hf="made/by-the-case"), dim=8, model_file="model.onnx")
    embedding = TextEmbedding("made/by-the-case", specific_model_path=str(folder), threads=1)

    def run():
        return [numpy.asarray(one) for one in embedding.embed(["stones are hard", "ONNX and red stones"])]

    return run
