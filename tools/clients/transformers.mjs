// Checks of @huggingface/transformers: node transformers.mjs MODELS.
import { AutoModelForCausalLM, Tensor, env } from '@huggingface/transformers';
import { check } from './checks.mjs';

env.allowRemoteModels = false;
env.localModelPath = process.argv[2];
let model;
await check('a decoder opened', async () => {
  model = await AutoModelForCausalLM.from_pretrained('decoder', { dtype: 'fp32', device: 'cpu' });
});
await check('tokens with a cache', async () => {
  const inputs = new Tensor('int64', [5n, 17n, 33n, 8n, 64n, 90n, 3n], [1, 7]);
  const tokens = await model.generate({
    inputs,
    attention_mask: new Tensor('int64', Array(7).fill(1n), [1, 7]),
    max_new_tokens: 30,
    do_sample: false,
  });
  return [tokens.dims, Array.from(tokens.data, Number)];
});
await check('released', async () => {
  await model.dispose();
});
