// Values from files and to files. What a model's inputs need: sardonyx/inputs.h; the outputs of a
// run in one go: sardonyx/outputs.h.
//
//   auto image = sardonyx::read_value("x.npy");
//   sardonyx::write_value("y.pb", outputs[0]);
//
// All functions throw Error: (unreadable) with the path where a file can't be read or written,
// (bad_input) where what is in it is no sound value; and may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "sardonyx/element_type.h"
#include "sardonyx/session.h"
#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// A value from a file, by the end of its name: .npy, .npz with one array, .pb (TensorProto), .json
// and .txt or .csv (numbers, or nested lists of them), and by what is in them the images that
// ImageDecoder reads (uint8 pixels, [height, width, 3]). `element_type`, where it is not
// `undefined`: what numbers in texts become, and what arrays of types that NumPy does not have are.
// Elements are the caller's own.
Value read_value(const std::string& path, ElementType element_type = ElementType::undefined);

// The bytes of a file of any kind, in memory of their own.
std::string read_text(const std::string& path);

// Writes a value to a file that appears when it is whole, by the end of its name: .npy (tensors
// only), .pb (any value, as the standard's test data), .json. Throws Error (bad_input) for other
// ends and for what the form can't hold.
void write_value(const std::string& path, const Value& value);

// All arrays of an .npz file, in its order.
std::vector<NamedValue> read_npz(const std::string& path);
// Tensors as one .npz file, stored without compression. Throws Error (bad_input) where a value is
// no tensor, two have one name, or a name could lead out of a folder when somebody unpacks it.
void write_npz(const std::string& path, const std::vector<NamedValue>& values);

}  // namespace sardonyx

#pragma GCC visibility pop
