"""python -m sardonyx.compat PROGRAM.py [ARGUMENT]…, or -m MODULE [ARGUMENT]…: runs a program of onnxruntime's on Sardonyx."""

from __future__ import annotations

import runpy
import sys

from . import install


def main() -> None:
    arguments = sys.argv[1:]
    is_module = bool(arguments) and arguments[0] == "-m"
    if is_module:
        del arguments[0]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    install()
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        import os

        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
