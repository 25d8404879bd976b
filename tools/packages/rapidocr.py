"""Text in an image: detection, classification and recognition by the models of the package."""

REQUIRES = "rapidocr onnxruntime"
WHAT = "detects and reads lines of text"


def image_of_text():
    import numpy
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (640, 200), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(36)
    draw.text((20, 20), "Sardonyx 2026", "black", font)
    draw.text((20, 110), "reads ONNX models", "black", font)
    return numpy.asarray(image)


def prepare():
    from rapidocr import RapidOCR

    engine, image = RapidOCR(), image_of_text()

    def run():
        found = engine(image)
        return [list(found.txts), [float(one) for one in found.scores], found.boxes]

    return run
