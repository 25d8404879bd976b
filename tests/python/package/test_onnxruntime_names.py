"""The public names of onnxruntime's package beside ours: what is left off has its reason here."""

from __future__ import annotations

import types

import onnxruntime as theirs
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as their_state

import sardonyx
import sardonyx.compat.onnxruntime as ours
from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state as our_state

LEFT_OFF = {
    "a provider's own data in a model, of which there is none": {"OrtEpContextData", "OrtEpContextDataBuffer"},
    "streams of a device": {"OrtSyncStream"},
    "what the module imports for itself": {"contextlib", "import_capi_exception", "onnxruntime_validation"},
}
LEFT_OFF_OF_THE_EXTENSION = {
    "a provider's own data in a model, of which there is none": {"OrtEpContextData", "OrtEpContextDataBuffer"},
    "streams of a device": {"OrtSyncStream"},
    "whether a model that a provider has compiled fits a device": {
        "OrtCompiledModelCompatibility", "OrtDeviceEpIncompatibilityReason", "get_compatibility_info_from_model",
        "get_compatibility_info_from_model_bytes", "get_hardware_device_ep_incompatibility_details",
        "get_model_compatibility_for_ep_devices"},
    "tables of schemas and kernels; sardonyx.operator_signature has the signatures": {
        "get_all_operator_schema", "get_all_opkernel_def", "get_registered_ep_kernel_defs", "opkernel", "schemadef"},
    "how other builds of onnxruntime put a session's beginning in its place": {"SessionObjectInitializer", "get_session_initializer"},
    "sparse tensors in blocks": {"SparseBlockSparseView"},
    "weights for graphics processors": {"pack_fp4_weights_for_cuda_moe_gemm"},
}
# Of the classes: what theirs have and ours do not.
LEFT_OFF_OF_CLASSES = {
    "SessionOptions": {"a provider's own data in a model": {"clear_ep_context_data_read_func", "set_ep_context_data_read_func"}},
    "OrtEpDevice": {"memory and streams of a device": {"create_sync_stream", "memory_info"}},
}
CLASSES = ["AdapterFormat", "IOBinding", "InferenceSession", "LoraAdapter", "ModelCompiler", "ModelMetadata", "NodeArg", "OrtArenaCfg",
           "OrtDevice", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice", "OrtExternalInitializerInfo", "OrtHardwareDevice",
           "OrtMemoryInfo", "OrtValue", "RunOptions", "SessionOptions", "SparseTensor"]
CLASSES_OF_THE_EXTENSION = ["OrtDevice", "OrtValue", "OrtValueVector", "SessionIOBinding", "SparseCooView", "SparseCsrView"]


def public(thing) -> set[str]:
    """Without the modules of Python that a module imports, and without its own parts, which appear once anybody imports them."""
    prefix = getattr(thing, "__name__", "") + "."
    return {name for name in dir(thing) if not name.startswith("_")
            and not (isinstance(getattr(thing, name), types.ModuleType) and getattr(thing, name).__name__ in (name, prefix + name))}


def test_of_the_package():
    left_off = set().union(*LEFT_OFF.values())
    assert public(theirs) - public(ours) - {"contextlib"} == left_off - {"contextlib"}


def test_of_the_extension():
    left_off = set().union(*LEFT_OFF_OF_THE_EXTENSION.values())
    missing = {name for name in dir(their_state) if not name.startswith("_")} - set(dir(our_state))
    assert missing == left_off


# Of those whose attributes __init__ sets.
INSTANCES = {
    "ModelMetadata": lambda: ours.ModelMetadata(), "NodeArg": lambda: ours.NodeArg("x", "tensor(float)", []),
    "OrtArenaCfg": lambda: ours.OrtArenaCfg({}), "OrtEpDevice": lambda: ours.OrtEpDevice(),
    "OrtHardwareDevice": lambda: ours.OrtHardwareDevice(), "OrtMemoryInfo": lambda: ours.OrtMemoryInfo("Cpu"),
    "OrtExternalInitializerInfo": lambda: ours.OrtExternalInitializerInfo("weights", 0, 4),
    "OrtEpAssignedNode": lambda: ours.OrtEpAssignedNode(sardonyx.Model.from_text(SMALL).nodes[0]),
    "OrtEpAssignedSubgraph": lambda: ours.OrtEpAssignedSubgraph([])}
SMALL = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Relu(x) }'


@pytest.mark.parametrize("module", [ours, our_state])
def test_what_is_public_is_exported(module):
    """For programs that are checked for types strictly, and `import *`."""
    names = {name for name in public(module) if name not in ("Any", "annotations", "backend")}
    assert names - set(module.__all__) == set() and all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", CLASSES)
def test_of_classes(name):
    left_off = set().union(*LEFT_OFF_OF_CLASSES.get(name, {}).values())
    mine = INSTANCES.get(name, lambda: getattr(ours, name))()
    assert {one for one in dir(getattr(theirs, name)) if not one.startswith("_")} - set(dir(mine)) == left_off


@pytest.mark.parametrize("name", CLASSES_OF_THE_EXTENSION)
def test_of_classes_of_the_extension(name):
    missing = {one for one in dir(getattr(their_state, name)) if not one.startswith("_")} - set(dir(getattr(our_state, name)))
    assert missing <= {"ortvalue_from_shape_and_onnx_type_for_memory_info", "ortvalue_from_shape_and_type_for_memory_info"}


ENUMERATIONS = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtCompileApiFlags",
                "OrtDeviceMemoryType", "OrtExecutionProviderDevicePolicy", "OrtHardwareDeviceType", "OrtMemType",
                "OrtMemoryInfoDeviceType", "OrtSparseFormat"]


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_enumerations_have_the_same_numbers(name):
    members = [getattr(ort, name).__members__.items() for ort in (ours, theirs)]
    numbers, texts = ([{key: kind(value) for key, value in one} for one in members] for kind in (int, str))
    assert numbers[0] == numbers[1] and texts[0] == texts[1]


def test_providers_that_have_a_name():
    assert ours.get_all_providers() == theirs.get_all_providers()


def test_exceptions():
    names = [name for name in public(their_state) if isinstance(getattr(their_state, name), type)
             and issubclass(getattr(their_state, name), BaseException)]
    assert len(names) == 15
    for name in names:
        kind = getattr(our_state, name)
        assert kind.__mro__[1] is Exception and kind.__name__ == name
