"""Functions of the package onnx, on Sardonyx: they take and give onnx's own messages.

    from sardonyx.compat.onnx import checker, shape_inference

Needs the package onnx, for its messages alone. A path never goes through Python: models beyond 2 GB are checked, inferred,
converted and saved by their paths.
"""

from . import (backend, checker, compose, external_data_helper, inliner, parser, printer, reference, shape_inference, utils,
               version_converter)
from ._install import install, is_installed, uninstall

__all__ = ["backend", "checker", "compose", "external_data_helper", "inliner", "install", "is_installed", "parser", "printer",
           "reference", "shape_inference", "uninstall", "utils", "version_converter"]
