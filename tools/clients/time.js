// The median time of a run, in microseconds: node time.js MODEL digits|add [RUNS].
'use strict';
const ort = require('onnxruntime-node');

async function main(file, kind, runs) {
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: 1, interOpNumThreads: 1 });
  const four = () => new ort.Tensor('float32', [1, 2, 3, 4], [4]);
  const image = () =>
    new ort.Tensor(
      'float32',
      Float32Array.from({ length: 256 }, (_, i) => (i % 11) / 11),
      [1, 1, 16, 16],
    );
  const feeds = kind === 'digits' ? { image: image() } : { A: four(), B: four() };
  const times = [];
  for (let i = -200; i < runs; ++i) {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    if (i >= 0) times.push(Number(process.hrtime.bigint() - start) / 1e3);
  }
  console.log(times.sort((a, b) => a - b)[runs >> 1]);
}

main(process.argv[2], process.argv[3], Number(process.argv[4] || 400));
