#include "infer/conversion_advice.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace sardonyx::infer {
namespace {

// How NumPy calls the types it has.
constexpr std::pair<ElementType, std::string_view> numpy_names[] = {
    {ElementType::float32, "np.float32"},
    {ElementType::float64, "np.float64"},
    {ElementType::float16, "np.float16"},
    {ElementType::int8, "np.int8"},
    {ElementType::int16, "np.int16"},
    {ElementType::int32, "np.int32"},
    {ElementType::int64, "np.int64"},
    {ElementType::uint8, "np.uint8"},
    {ElementType::uint16, "np.uint16"},
    {ElementType::uint32, "np.uint32"},
    {ElementType::uint64, "np.uint64"},
    {ElementType::boolean, "np.bool_"},
    {ElementType::complex64, "np.complex64"},
    {ElementType::complex128, "np.complex128"},
    {ElementType::bfloat16, "ml_dtypes.bfloat16"},
};

bool is_number(ElementType type) {
  return is_known(type) && type != ElementType::undefined && type != ElementType::string;
}

}  // namespace

std::string conversion_advice(ElementType given, ElementType wanted) {
  if (!is_number(given)) return {};
  for (const auto& [type, name] : numpy_names) {
    if (type == wanted) return fmt::format("; convert it, as with array.astype({})", name);
  }
  return {};
}

}  // namespace sardonyx::infer
