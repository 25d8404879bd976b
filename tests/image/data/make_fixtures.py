"""Writes the images of this folder and pixels.npz, how Pillow decodes each of them.

    pip install pillow numpy; python make_fixtures.py
"""

import pathlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
random = np.random.default_rng(5)
ramp = np.add.outer(np.arange(10) * 9, np.arange(14) * 11)
rgb = np.stack([ramp, 255 - ramp, (ramp * 3) % 256], axis=2).astype(np.uint8)
image = Image.fromarray(rgb)
grey = image.convert("L")
veiled = image.convert("RGBA")
veiled.putalpha(grey)

FILES = {
    "rgb.bmp": (image, {}),
    "grey.bmp": (grey, {}),
    "palette.bmp": (image.quantize(7), {}),
    "bits.bmp": (image.convert("1"), {}),
    "rgba.bmp": (image.convert("RGBA"), {}),
    "lossy.webp": (image, {"quality": 80}),
    "lossless.webp": (image, {"lossless": True}),
    "plain.tif": (image, {}),
    "lzw.tif": (image, {"compression": "tiff_lzw"}),
    "deflate.tif": (grey, {"compression": "tiff_adobe_deflate"}),
    "bits.tif": (image.convert("1"), {"compression": "group4"}),
    "palette.tif": (image.quantize(7), {}),
    "rgba.tif": (veiled, {"compression": "tiff_lzw"}),
    **{f"orientation{i}.tif": (grey, {"compression": "tiff_lzw", "tiffinfo": {274: i}}) for i in range(2, 9)},
    "lossless.jp2": (image, {}),
    "lossy.jp2": (image, {"irreversible": True, "quality_mode": "dB", "quality_layers": [40]}),
    "grey.j2k": (grey, {"no_jp2": True}),
    "rgb.ppm": (image, {}),
    "grey.pgm": (grey, {}),
    "bits.pbm": (image.convert("1"), {}),
    "inks.jpg": (image.convert("CMYK"), {"quality": 95}),
}

pixels = {}
for name, (image, options) in FILES.items():
    image.save(HERE / name, **options)
    pixels[name] = np.asarray(Image.open(HERE / name).convert("RGB"))
np.savez_compressed(HERE / "pixels.npz", **pixels)
