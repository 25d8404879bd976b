"""Small transformers with made weights, exported by optimum and run by its ORTModel classes; held against PyTorch's answers too."""

REQUIRES = "optimum-onnx onnxruntime transformers torch"
WHAT = "ORTModel: a classifier, a decoder and an encoder-decoder that generate, a quantised classifier, each exported"


def prepare():
    import logging

    import numpy
    import torch
    from optimum.onnxruntime import (AutoQuantizationConfig, ORTModelForCausalLM, ORTModelForSeq2SeqLM,
                                     ORTModelForSequenceClassification, ORTQuantizer)
    from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration)

    logging.disable(logging.WARNING)
    torch.manual_seed(0)
    bert = BertForSequenceClassification(BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)).eval()
    gpt = GPT2LMHeadModel(GPT2Config(
        vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2, initializer_range=0.5)).eval()
    t5 = T5ForConditionalGeneration(T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, initializer_factor=4.0)).eval()
    for model, name in ((bert, "bert"), (gpt, "gpt"), (t5, "t5")):
        model.save_pretrained(name)
    classifier = ORTModelForSequenceClassification.from_pretrained("bert", export=True)
    decoder = ORTModelForCausalLM.from_pretrained("gpt", export=True, use_cache=True)
    bound = ORTModelForCausalLM.from_pretrained("gpt", export=True, use_cache=True, use_io_binding=True)
    translator = ORTModelForSeq2SeqLM.from_pretrained("t5", export=True)
    classifier.save_pretrained("exported")
    ORTQuantizer.from_pretrained("exported").quantize(
        save_dir="quantised", quantization_config=AutoQuantizationConfig.avx2(is_static=False, per_channel=False))
    quantised = ORTModelForSequenceClassification.from_pretrained("quantised", file_name="model_quantized.onnx")

    ids = torch.randint(3, 100, (2, 7))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    sentences = {"input_ids": ids, "attention_mask": mask}
    prompt = {"input_ids": ids[:, :4], "attention_mask": mask[:, :4]}
    longer = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}

    def run():
        # Beams and greedy tokens are integers: they are compared as they are.
        return [classifier(**sentences).logits.numpy(), quantised(**sentences).logits.numpy(),
                decoder.generate(**prompt, **longer).numpy(), bound.generate(**prompt, **longer).numpy(),
                decoder.generate(**prompt, num_beams=3, **longer).numpy(), translator.generate(**sentences, **longer).numpy()]

    with torch.no_grad():
        wanted = [bert(**sentences).logits.numpy(), *(gpt.generate(**prompt, **longer).numpy() for _ in range(2)),
                  gpt.generate(**prompt, num_beams=3, **longer).numpy(), t5.generate(**sentences, **longer).numpy()]
    made = run()
    numpy.testing.assert_allclose(made[0], wanted[0], atol=1e-4)
    numpy.testing.assert_allclose(made[1], wanted[0], atol=0.05)
    for one, other in zip(made[2:], wanted[1:]):
        numpy.testing.assert_array_equal(one, other)
    assert len(set(made[2].ravel().tolist())) > 4, "a decoder that says one thing shows nothing"
    return run
