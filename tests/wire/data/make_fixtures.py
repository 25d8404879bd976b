"""Writes the fixtures of tests/wire. Needs the onnx, numpy, ml_dtypes and pillow packages; run it in this folder.

every_field.onnx holds every field of every message that a model can hold, each with a value that
is not its default.
"""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
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
    save_values()
    np.savez("arrays_stored.npz", **arrays())
    np.savez_compressed("arrays_deflated.npz", **arrays())
    save_images()


def arrays():
    """0 to 5 as [2,3] in many types and orders; the names say which."""
    base = np.arange(6).reshape(2, 3)
    all_arrays = {}
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
        all_arrays[name] = base.astype(name)
        all_arrays[name + "_big_fortran"] = np.asfortranarray(base.astype(np.dtype(name).newbyteorder(">")))
    for name in "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int4 uint4 float4_e2m1fn float6_e2m3fn float6_e3m2fn".split():
        all_arrays[name] = base.astype(getattr(ml_dtypes, name))
    all_arrays["bool"] = base % 2 == 1
    all_arrays["unicode"] = np.array([["a", "bc", ""], ["\u00e9", "\u4e2d", "\U0001f600"]])
    all_arrays["unicode_big_fortran"] = np.asfortranarray(all_arrays["unicode"].astype(">U2"))
    all_arrays["bytes"] = np.array([[b"a", b"bc", b""], [b"d", b"e", b"\xff"]])
    all_arrays["scalar"] = np.float32(2.5)
    all_arrays["empty"] = np.zeros((0, 3), np.int64)
    all_arrays["cube_fortran"] = np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    return all_arrays


def save_values():
    """Values of each kind as the standard's test data stores them."""
    one, two = np.array([1.5], np.float32), np.array([2.5, 3.5], np.float32)
    sequence = numpy_helper.from_list([one, two], "s")
    save("sequence.pb", sequence)
    save("sequence_of_sequences.pb", numpy_helper.from_list([[one], [two, one]], "ss"))
    save("map.pb", numpy_helper.from_dict({7: one, -3: two}, "m"))
    strings = numpy_helper.from_dict({7: one, -3: two}, "m")  # from_dict fails for keys that are strings
    strings.key_type = TensorProto.STRING
    del strings.keys[:]
    strings.string_keys.extend([b"x", b"y"])
    save("map_of_strings.pb", strings)
    save("optional.pb", numpy_helper.from_optional(two, "o"))
    save("optional_empty.pb", numpy_helper.from_optional(None, "o"))
    save("optional_sequence.pb", numpy_helper.from_optional([one, two], "o"))
    values = numpy_helper.from_array(np.array([1.0, 2.0], np.float32), "sparse")
    indices = numpy_helper.from_array(np.array([[0, 1], [2, 0]], np.int64))
    save("sparse.pb", helper.make_sparse_tensor(values, indices, [3, 2]))


def save_images():
    """A gradient of 12 x 8 pixels in the colour modes there are."""
    y, x = np.mgrid[0:8, 0:12]
    rgb = np.stack([x * 20, y * 30, (x + y) * 10], axis=-1).astype(np.uint8)
    image = Image.fromarray(rgb)
    image.save("rgb.png")
    image.convert("L").save("grey.png")
    image.convert("P").save("palette.png")
    image.convert("RGBA").save("rgba.png")
    Image.fromarray((x * 5000).astype(np.uint16)).save("grey16.png")
    image.convert("1").save("bits.png")
    image.save("rgb.jpg", quality=95, subsampling=0)
    image.save("progressive.jpg", quality=95, progressive=True)
    image.convert("L").save("grey.jpg", quality=95)
    np.savez_compressed(
        "pixels.npz",
        **{f: np.asarray(Image.open(f).convert("RGB")) for f in
           ["rgb.png", "grey.png", "palette.png", "rgba.png", "bits.png", "rgb.jpg", "progressive.jpg", "grey.jpg"]},
        grey_of_rgb=np.asarray(image.convert("L"))[..., None],
        halved=np.asarray(image.resize((6, 4), Image.BILINEAR)),
        enlarged=np.asarray(image.resize((30, 21), Image.BILINEAR)),
    )


def typed_model():
    """One value info for each kind of type."""
    model = onnx.ModelProto(ir_version=14)
    for turn in range(6):
        model.graph.input.add(name=f"value-{turn}")
        fill(model.graph.input[-1].type, set(), turn)
    return model


if __name__ == "__main__":
    main()
