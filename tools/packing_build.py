#!/usr/bin/env python3
"""Writes a C++ file with a hash of the sources that decide how weights are packed and read.

    tools/packing_build.py OUTPUT SOURCE_DIR FOLDER...
"""
import hashlib
import pathlib
import sys


def digest_of(root, folders):
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cc", ".h"):
                continue
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.digest()


def main():
    output, root, *folders = sys.argv[1:]
    digest = digest_of(pathlib.Path(root), folders)
    words = [int.from_bytes(digest[i : i + 8], "little") for i in (0, 8)]
    pathlib.Path(output).write_text(
        '#include "session/packing_build.h"\n\nnamespace sardonyx {\n'
        f"const ContentHash packing_build{{{words[0]:#018x}u, {words[1]:#018x}u}};\n"
        "}  // namespace sardonyx\n"
    )


if __name__ == "__main__":
    main()
