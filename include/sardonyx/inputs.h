// Values for a model's inputs: from files, from text, from a picture, or made up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// Sizes that a user gives by name: of the model's names, "batch", and of places that the model
// leaves open, "image.2" for dimension 2 of input 'image'.
using DimSizes = std::map<std::string, int64_t, std::less<>>;

// Throws Error (bad_input) where a name is none of these: with the names there are, and what may
// have been meant.
void refuse_unknown_sizes(const DimSizes& sizes, std::span<const std::string> names);

// How pixels become numbers: (pixel * scale - mean) / deviation, for each channel; those of a uint8
// input stay as they are. All are finite, and no deviation is 0.
struct ImageOptions {
  float scale = 1.0f / 255;
  std::vector<float> mean = {};       // one number, or one for each channel; empty: 0
  std::vector<float> deviation = {};  // empty: 1
  std::optional<bool> nhwc = {};      // unset: where the input has 1 or 3 channels
};

// Whether the name's ending is that of a file read_value_file reads.
bool is_value_file_name(std::string_view name);

// Reads a value for an input (or an expected output) of the model: .npy, .npz (the array of that
// name, or the only one), .pb (as the standard's test data), .json, .txt, .csv, and images (PNG,
// JPEG, and by what is in them the other formats that ImageDecoder reads).
// Throws Error: (unreadable) where the file can't be read, (bad_input) where its content is no
// sound value, (unsupported).
Value read_value_file(const std::string& path, const Model& model, const ValueDescription& wanted,
                      const ImageOptions& picture = {});

// All arrays of an .npz file. `wanted`: the values they are for; other names are read as they are.
std::vector<NamedValue> read_npz_values(const std::string& path,
                                        const std::vector<ValueDescription>& wanted);

// A tensor as people type it: "1", "[[1, 2], [3, 4]]", "0.5 1.5".
Value value_from_text(std::string_view text, const ValueDescription& wanted);

// The input's shape where sizes give its names, and 1 where nothing does: such names are added to
// `unset`, unless that is null. Throws Error (bad_input) where the model leaves the rank open, or
// the input is no tensor.
Shape shape_for(const ValueDescription& wanted, const DimSizes& sizes,
                std::vector<std::string>* unset = nullptr);

// Puts the sizes that the value gives to the input's named dimensions into `sizes`; sizes that are
// there already stay.
void learn_sizes(const ValueDescription& wanted, const Value& value, DimSizes& sizes);

// Evenly distributed in [low, high), the same for each seed and input name. Without a range: floats
// in [-1, 1), integers 0 or 1, which most tables that they index have. A range that the element
// type can't hold is an Error (bad_input).
struct RandomRange {
  double low = 0;
  double high = 0;
};
Value random_value(const ValueDescription& wanted, const Shape& shape, uint64_t seed,
                   std::optional<RandomRange> range = {});
Value ones_value(const ValueDescription& wanted, const Shape& shape);

}  // namespace sardonyx

#pragma GCC visibility pop
