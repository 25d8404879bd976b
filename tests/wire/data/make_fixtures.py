"""Writes the fixtures of tests/wire. Needs the onnx and numpy packages; run it in this folder.

every_field.onnx holds every field of every message that a model can hold, each with a value that
is not its default.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from google.protobuf.descriptor import FieldDescriptor as F


def scalar(field, seed):
    if field.type == F.TYPE_STRING:
        return f"{field.name}-{seed}"
    if field.type == F.TYPE_BYTES:
        return bytes([0, 255, 128, seed % 256])
    if field.type == F.TYPE_FLOAT or field.type == F.TYPE_DOUBLE:
        return 0.5 + seed
    if field.type == F.TYPE_ENUM:
        return field.enum_type.values[-1].number
    if field.type == F.TYPE_INT32:
        return -3 - seed
    if field.type == F.TYPE_UINT64:
        return 2**64 - 1 - seed
    return -(2**40) - seed


def fill(message, seen, turn=0):
    """Fills every field; a message type met before (with that oneof member) gets its plain fields only."""
    descriptor = message.DESCRIPTOR
    chosen = {o.name: o.fields[turn % len(o.fields)].name for o in descriptor.oneofs}
    first_time = (descriptor.full_name, turn) not in seen
    seen.add((descriptor.full_name, turn))
    for n, field in enumerate(descriptor.fields):
        if field.containing_oneof and chosen[field.containing_oneof.name] != field.name:
            continue
        if field.type == F.TYPE_MESSAGE:
            if not first_time:
                continue
            members = max((len(o.fields) for o in field.message_type.oneofs), default=1)
            turns = range(max(members, 2)) if field.is_repeated else [turn % members]
            for next_turn in turns:
                child = getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)
                child.SetInParent()
                fill(child, seen, next_turn % members)
        elif field.is_repeated:
            getattr(message, field.name).extend(scalar(field, n + i) for i in range(2))
        else:
            setattr(message, field.name, scalar(field, n))
    return message


def save(name, message):
    with open(name, "wb") as file:
        file.write(message.SerializeToString(deterministic=True))


def small_model():
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
            helper.make_node("Softmax", ["y"], ["z"], name="probs", axis=-1),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)], producer_name="fixtures")


def main():
    save("every_field.onnx", fill(onnx.ModelProto(), set()))
    save("tensor_every_field.pb", fill(onnx.TensorProto(), set()))
    save("types.onnx", typed_model())
    save("small.onnx", small_model())


def typed_model():
    """One value info for each kind of type."""
    model = onnx.ModelProto(ir_version=14)
    for turn in range(6):
        model.graph.input.add(name=f"value-{turn}")
        fill(model.graph.input[-1].type, set(), turn)
    return model


if __name__ == "__main__":
    main()
