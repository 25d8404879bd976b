// Tensors as people type them: nested JSON lists, or numbers separated by commas or blanks.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "sardonyx/value.h"

namespace sardonyx::formats {

// What a value is wanted to be. Dimensions of -1 may have any size; no shape: any rank.
struct Wanted {
  ElementType type = ElementType::undefined;  // undefined: bool, int64, float or string, as found
  std::optional<Shape> shape;
};

// Sound JSON that nests no deeper than tensors do: what is read from files, before anything walks
// it. Throws Error (bad_input).
nlohmann::json parse_json(std::string_view text);

// A tensor from a number, truth value, string or nested lists of them. Lists give the shape; a
// flat list or a lone value takes the wanted shape where its size fits. Complex numbers are pairs
// [real, imaginary]. NaN and the infinities, which JSON lacks, are the strings "NaN", "Infinity"
// and "-Infinity". Throws Error (bad_input) for ragged lists, for what does not fit the type (an
// integer out of range, 1.5 for an integer) and for a wrong shape.
Tensor tensor_from_json(const nlohmann::json& json, const Wanted& wanted = {});

// The same from text: JSON, or values separated by commas, semicolons or blanks ("1, 2.5 3").
// Lines of several values, as many each, are rows where two dimensions are wanted that take them.
// Else of several unknown dimensions all but the last are taken as 1.
Tensor tensor_from_text(std::string_view text, const Wanted& wanted = {});

// Nested lists, one level for each dimension; a scalar is a lone value. Throws Error (unsupported)
// for ranks beyond 64, and where a tensor without elements has more than 2^20 lists.
nlohmann::json json_from_tensor(const Tensor& tensor);

}  // namespace sardonyx::formats
