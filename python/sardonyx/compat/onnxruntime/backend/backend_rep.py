"""onnxruntime.backend.backend_rep."""

from __future__ import annotations

from typing import Any

from onnx.backend.base import BackendRep

from .. import InferenceSession, RunOptions

_RUN_OPTIONS = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches")


def set_options(options: Any, allowed: tuple[str, ...], given: dict[str, Any]) -> Any:
    """`options` with those of `given` that it has; RuntimeError for one that it has and a backend may not set."""
    for name, value in given.items():
        if name in allowed:
            setattr(options, name, value)
        elif hasattr(options, name):
            raise RuntimeError(f"{type(options).__name__} attribute '{name}' is not permitted via the backend API. Allowed attributes: "
                               f"{', '.join(sorted(allowed))}")
    return options


class OnnxRuntimeBackendRep(BackendRep):
    """A session."""

    def __init__(self, session: InferenceSession):
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """A list in the order of the model's inputs, or the value of its only one. Returns the outputs in order."""
        options = set_options(RunOptions(), _RUN_OPTIONS, kwargs)
        names = [one.name for one in self._session.get_inputs()]
        if not isinstance(inputs, list):
            if len(names) != 1:
                raise RuntimeError(f"Model expect {len(names)} inputs")
            inputs = [inputs]
        if len(inputs) < len(names):
            raise RuntimeError(f"the model has {len(names)} inputs, and {len(inputs)} were given")
        return self._session.run(None, dict(zip(names, inputs)), options)
