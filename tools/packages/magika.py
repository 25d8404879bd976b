"""What kind of file bytes are."""

REQUIRES = "magika"
WHAT = "kinds of content"


def prepare():
    from magika import Magika

    magika = Magika()
    contents = [b"import os\n\ndef main():\n    print(os.getcwd())\n\nif __name__ == '__main__':\n    main()\n" * 4,
                b"<!doctype html><html><head><title>x</title></head><body><p>text</p></body></html>\n" * 4,
                b"#include <stdio.h>\nint main(void) { printf(\"hello\\n\"); return 0; }\n" * 4, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
                b'{"name": "value", "list": [1, 2, 3]}\n' * 8]

    def run():
        found = [magika.identify_bytes(one) for one in contents]
        return [[str(one.output.label) for one in found], [float(one.score) for one in found]]

    return run
