// Checks of @gutenye/ocr-node, which reads text by three models: node ocr.mjs SCRATCH.
import path from 'node:path';
import Ocr from '@gutenye/ocr-node';
import sharp from 'sharp';
import { check } from './checks.mjs';

const picture = path.join(process.argv[2], 'text.png');
const line = (y, text) => `<text x="20" y="${y}" font-size="44" font-family="DejaVu Sans">${text}</text>`;
const lines = line(70, 'Hello World 2026') + line(150, 'ONNX engine test');
const drawing = `<svg width="640" height="200"><rect width="640" height="200" fill="white"/>${lines}</svg>`;
await sharp(Buffer.from(drawing)).png().toFile(picture);
let ocr;
await check('three models opened', async () => {
  ocr = await Ocr.create();
});
for (const name of ['text of a picture', 'the same again']) {
  await check(name, async () => {
    const found = await ocr.detect(picture);
    if (!found.length) throw new Error('no text was found');
    return found.map((one) => [one.text, one.mean, one.box]);
  });
}
