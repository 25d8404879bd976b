// Checks of onnxruntime-node: node node.js MODELS DIGITS SCRATCH. Prints a line of JSON for each check: its name, whether it
// passed, and what it saw, which is to be the same with all libraries; `note` may differ.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const ort = require('onnxruntime-node');

const [models, digits, scratch] = isMainThread ? process.argv.slice(2) : workerData;
const model = (name) => path.join(models, `${name}.onnx`);
const create = (name, options) => ort.InferenceSession.create(model(name), options);
const T = (...args) => new ort.Tensor(...args);
const filter = isMainThread && process.argv[5] ? new RegExp(process.argv[5]) : /./;

function plain(value) {
  if (value === null || typeof value !== 'object') return typeof value === 'bigint' ? `${value}n` : value;
  if (value instanceof ort.Tensor) return { type: value.type, dims: plain(value.dims), data: plain(Array.from(value.data)) };
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
}

async function check(name, body) {
  if (!filter.test(name)) return;
  const line = { check: name, ok: true };
  try {
    const notes = [];
    line.value = plain(await body((note) => notes.push(note)));
    if (notes.length) line.note = notes.join('; ');
  } catch (error) {
    line.ok = false;
    line.note = String((error && error.message) || error).slice(0, 600);
  }
  console.log(JSON.stringify(line));
}

// What is thrown is noted: the words are the library's own.
const fails = (name, body) =>
  check(name, async (note) => {
    let thrown = null;
    try {
      await body();
    } catch (error) {
      thrown = error;
    }
    assert(thrown instanceof Error, 'nothing was thrown');
    assert(thrown.message.length > 0, 'the error has no message');
    note(thrown.message.split('\n')[0].slice(0, 300));
  });

const image = () =>
  T(
    'float32',
    Float32Array.from({ length: 512 }, (_, i) => ((i * 37) % 101) / 101),
    [2, 1, 16, 16],
  );
const pair = () => ({
  a: T('float32', Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]),
  b: T('float32', Float32Array.of(6, 5, 4, 3, 2, 1), [2, 3]),
});

async function opening() {
  await check('digits from a path', async () => {
    const session = await ort.InferenceSession.create(digits);
    return [session.inputNames, session.outputNames, session.inputMetadata, session.outputMetadata, await session.run({ image: image() })];
  });
  const bytes = fs.readFileSync(digits);
  await check('digits from a Uint8Array', async () => (await ort.InferenceSession.create(new Uint8Array(bytes))).run({ image: image() }));
  await check('digits from a part of a buffer', async () => {
    const large = new Uint8Array(bytes.length + 40).fill(255);
    large.set(bytes, 13);
    return (await ort.InferenceSession.create(large.subarray(13, 13 + bytes.length))).run({ image: image() });
  });
  await check('digits from an ArrayBuffer and offsets', async () => {
    const large = new Uint8Array(bytes.length + 40);
    large.set(bytes, 8);
    return (await ort.InferenceSession.create(large.buffer, 8, bytes.length)).run({ image: image() });
  });
  await check('the bytes may change once the session is there', async () => {
    const copy = new Uint8Array(bytes);
    const session = await ort.InferenceSession.create(copy);
    copy.fill(0);
    return session.run({ image: image() });
  });
  await check('metadata of several inputs and outputs', async () => {
    const session = await create('multi');
    return [session.inputNames, session.outputNames, session.inputMetadata, session.outputMetadata];
  });
  await check('metadata of a sequence', async () => {
    const session = await create('split');
    return [session.inputMetadata, session.outputMetadata];
  });
  await check('metadata of an initializer that inputs override', async () => {
    const session = await create('overridable');
    return [session.inputNames, await session.run({ x: T('float32', [1, 2], [2]) })];
  });
  await check('the initializer overridden', async () => {
    const session = await create('overridable');
    return session.run({ x: T('float32', [1, 2], [2]), scale: T('float32', [5], [1]) });
  });
  await check('supported backends', async () => ort.listSupportedBackends().filter((one) => one.name === 'cpu'));
  await fails('a path without a file', () => create('no such file'));
  for (const name of ['garbage', 'empty', 'unknown_op', 'custom_domain']) {
    await fails(`${name}.onnx`, () => create(name));
    await fails(`${name}.onnx as bytes`, () => ort.InferenceSession.create(new Uint8Array(fs.readFileSync(model(name)))));
  }
  await check('50 sessions made and released', async () => {
    for (let i = 0; i < 50; ++i) await (await ort.InferenceSession.create(digits, { intraOpNumThreads: 1 })).release();
  });
}

async function types() {
  const cases = {
    float: ['float32', Float32Array.of(1.5, -2, Infinity, NaN, 0, 3e38)],
    double: ['float64', Float64Array.of(1.5, -2, 1e300, 0, -0, 7)],
    int8: ['int8', Int8Array.of(1, -128, 127, 0, 5, 6)],
    uint8: ['uint8', Uint8Array.of(1, 255, 127, 0, 5, 6)],
    int16: ['int16', Int16Array.of(1, -32768, 32767, 0, 5, 6)],
    uint16: ['uint16', Uint16Array.of(1, 65535, 9, 0, 5, 6)],
    int32: ['int32', Int32Array.of(1, -(2 ** 31), 2 ** 31 - 1, 0, 5, 6)],
    uint32: ['uint32', Uint32Array.of(1, 2 ** 32 - 1, 9, 0, 5, 6)],
    int64: ['int64', BigInt64Array.of(1n, -(2n ** 63n), 2n ** 63n - 1n, 0n, 5n, 6n)],
    uint64: ['uint64', BigUint64Array.of(1n, 2n ** 64n - 1n, 9n, 0n, 5n, 6n)],
    bool: ['bool', [true, false, true, true, false, false]],
    string: ['string', ['a', '', 'Größe', '大きい', 'x'.repeat(500), '\u{1F600}']],
    float16: ['float16', Uint16Array.of(0x3c00, 0xc000, 0x7bff, 0, 1, 0x3555)],
  };
  for (const [name, [type, data]] of Object.entries(cases)) {
    await check(`identity of ${type}`, async () => {
      const session = await create(`identity_${name}`);
      const { y } = await session.run({ x: T(type, data, [2, 3]) });
      assert.deepStrictEqual(
        plain(Array.from(y.data)),
        plain(Array.from(data)).map((one) => (type === 'bool' ? Number(one) : one)),
      );
      return [session.inputMetadata, y];
    });
    await check(`identity of ${type} without items`, async () =>
      (await create(`identity_${name}`)).run({ x: T(type, data.slice(0, 0), [0, 3]) }),
    );
  }
}

async function running() {
  await check('all outputs', async () => (await create('multi')).run(pair()));
  await check('one output', async () => (await create('multi')).run(pair(), ['product']));
  await check('two outputs, in another order', async () => (await create('multi')).run(pair(), ['shape', 'sum']));
  await check('outputs by null', async () => (await create('multi')).run(pair(), { ints: null, total: null }));
  await check('a tensor that is there takes the output', async () => {
    const sum = T('float32', new Float32Array(6), [2, 3]);
    const result = await (await create('multi')).run(pair(), { sum });
    return [result, sum];
  });
  await fails('a tensor of the wrong shape for the output', async () =>
    (await create('multi')).run(pair(), { sum: T('float32', new Float32Array(4), [2, 2]) }),
  );
  await fails('a tensor of the wrong type for the output', async () =>
    (await create('multi')).run(pair(), { sum: T('int32', new Int32Array(6), [2, 3]) }),
  );
  await fails('an input is missing', async () => (await create('multi')).run({ a: pair().a }));
  await fails('an input of the wrong type', async () =>
    (await create('multi')).run({ ...pair(), b: T('int32', new Int32Array(6), [2, 3]) }),
  );
  await fails('an input of the wrong rank', async () =>
    (await create('multi')).run({ a: T('float32', new Float32Array(6), [6]), b: pair().b }),
  );
  await fails('an input of the wrong size', async () =>
    (await ort.InferenceSession.create(digits)).run({ image: T('float32', new Float32Array(64), [1, 1, 8, 8]) }),
  );
  await fails('sizes that do not fit', async () =>
    (await create('multi')).run({ ...pair(), b: T('float32', new Float32Array(8), [2, 4]) }),
  );
  await fails('an output that is not there', async () => (await create('multi')).run(pair(), ['nothing']));
  await fails('an index out of range', async () =>
    (await create('gather')).run({ x: T('float32', new Float32Array(4), [4]), i: T('int64', [9n], [1]) }),
  );
  await fails('a reshape that is impossible', async () =>
    (await create('reshape')).run({ x: T('float32', new Float32Array(4), [4]), s: T('int64', [3n, 5n], [2]) }),
  );
  await check('the session goes on after errors', async () => {
    const session = await create('gather');
    const x = T('float32', [1, 2, 3, 4], [4]);
    await assert.rejects(session.run({ x, i: T('int64', [9n], [1]) }));
    return session.run({ x, i: T('int64', [-1n, 2n], [2]) });
  });
  await check('a reshape', async () =>
    (await create('reshape')).run({ x: T('float32', [1, 2, 3, 4], [4]), s: T('int64', [2n, -1n], [2]) }),
  );
  await check('a loop', async () => (await create('long_loop')).run({ n: T('int64', [1000n], []), x: T('float32', [0.5], []) }));
  await check('no items', async () => (await create('zero')).run({ x: T('float32', new Float32Array(0), [0, 2]) }));
  await check('a classic classifier', async () => (await create('classifier')).run({ x: T('float32', [1, 2, 3, -3, 0.5, 0], [2, 3]) }));
  await check('strings and their sequence beside it', async () => {
    const session = await create('zipmap_strings');
    return [session.outputMetadata, await session.run({ x: T('float32', [1, 2, 3, -3, 0.5, 0], [2, 3]) }, ['label'])];
  });
  await check('the tensor of an output beside a sequence', async () =>
    (await create('split')).run({ x: T('float32', new Float32Array(6), [3, 2]) }, ['count']),
  );
  await fails('a sequence as the result', async () =>
    (await create('split')).run({ x: T('float32', new Float32Array(6), [3, 2]) }, ['parts']),
  );
  await check('100 runs at once of four sessions', async () => {
    const sessions = await Promise.all([1, 2, 3, 4].map(() => ort.InferenceSession.create(digits)));
    const results = await Promise.all(Array.from({ length: 100 }, (_, i) => sessions[i % 4].run({ image: image() })));
    const first = JSON.stringify(plain(results[0]));
    assert(results.every((one) => JSON.stringify(plain(one)) === first));
  });
  await check('worker threads', async () => {
    const one = () =>
      new Promise((resolve, reject) => {
        const worker = new Worker(__filename, { workerData: [models, digits, scratch] });
        worker.on('message', resolve);
        worker.on('error', reject);
      });
    return Promise.all([one(), one()]);
  });
  await check('results stay after their session is gone', async () => {
    const session = await create('multi');
    const result = await session.run(pair());
    await session.release();
    return result;
  });
  await fails('a run after the release', async () => {
    const session = await create('multi');
    await session.release();
    await session.run(pair());
  });
}

async function options() {
  const digitsWith = async (how) => (await ort.InferenceSession.create(digits, how)).run({ image: image() });
  const all = {
    graphOptimizationLevel: ['disabled', 'basic', 'extended', 'layout', 'all'],
    intraOpNumThreads: [0, 1, 2],
    interOpNumThreads: [1, 2],
    executionMode: ['sequential', 'parallel'],
    enableCpuMemArena: [true, false],
    enableMemPattern: [true, false],
    logId: ['digits'],
    logSeverityLevel: [0, 2, 4],
    logVerbosityLevel: [0, 3],
    preferredOutputLocation: ['cpu'],
    executionProviders: [['cpu'], [{ name: 'cpu' }], [{ name: 'cpu', useArena: false }]],
    extra: [
      { session: { set_denormal_as_zero: '1', intra_op: { allow_spinning: '0' }, disable_prepacking: '1' } },
      { unheard_of: { entry: 'x' } },
    ],
  };
  for (const [name, values] of Object.entries(all)) {
    for (const value of values) await check(`${name}: ${JSON.stringify(value)}`, () => digitsWith({ [name]: value }));
  }
  await fails('an optimisation level that is none', () => digitsWith({ graphOptimizationLevel: 'most' }));
  await fails('an execution mode that is none', () => digitsWith({ executionMode: 'random' }));
  await fails('an execution provider that is none', () => digitsWith({ executionProviders: ['abacus'] }));
  await fails('an execution provider that is not there', () => digitsWith({ executionProviders: ['cuda'] }));
  await check('external data beside the model', async () => (await create('external')).run({ x: T('float32', [1, 2, 3, 4], [1, 4]) }));
  const data = fs.readFileSync(path.join(models, 'external.bin'));
  const bytes = () => new Uint8Array(fs.readFileSync(model('external')));
  await check('external data given', async () =>
    (await ort.InferenceSession.create(bytes(), { externalData: [{ path: 'external.bin', data: new Uint8Array(data) }] })).run({
      x: T('float32', [1, 2, 3, 4], [1, 4]),
    }),
  );
  await check('external data given, other than the file', async () =>
    (await ort.InferenceSession.create(bytes(), { externalData: [{ path: 'external.bin', data: new Uint8Array(data.length) }] })).run({
      x: T('float32', [1, 2, 3, 4], [1, 4]),
    }),
  );
  await fails('external data is not given', () => ort.InferenceSession.create(bytes()));
  await fails('external data that is too short', () =>
    ort.InferenceSession.create(bytes(), { externalData: [{ path: 'external.bin', data: new Uint8Array(8) }] }),
  );
  await check('the optimised model is written', async () => {
    const file = path.join(scratch, 'optimised.onnx');
    await create('multi', { optimizedModelFilePath: file });
    const session = await ort.InferenceSession.create(file);
    return [session.inputNames, session.outputNames, await session.run(pair())];
  });
  await check('profiling', async () => {
    const prefix = path.join(scratch, 'profile');
    const session = await create('multi', { enableProfiling: true, profileFilePrefix: prefix });
    await session.run(pair());
    session.startProfiling();
    session.endProfiling();
    const files = fs.readdirSync(scratch).filter((name) => name.startsWith('profile'));
    assert.strictEqual(files.length, 1);
    const events = JSON.parse(fs.readFileSync(path.join(scratch, files[0])));
    assert(
      events.some((one) => one.args && one.args.op_name === 'Add'),
      'no event names the operator Add',
    );
  });
  await check('run options', async () =>
    (await create('multi')).run(pair(), ['sum'], { tag: 'run', logSeverityLevel: 3, logVerbosityLevel: 1 }),
  );
  await check('run options with entries', async () =>
    (await create('multi')).run(pair(), ['sum'], { extra: { memory: { enable_memory_arena_shrinkage: 'cpu:0' } } }),
  );
}

async function main() {
  await opening();
  await types();
  await running();
  await options();
}

if (isMainThread) {
  main();
} else {
  ort.InferenceSession.create(digits)
    .then((session) => session.run({ image: image() }))
    .then((result) => parentPort.postMessage(plain(result)));
}
