// Col2Im.
#include <complex>
#include <type_traits>

#include "base/checked.h"
#include "kernels/conv/columns.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/window.h"

namespace sardonyx::ops {
namespace col2im_unit {
namespace {

using kernels::ConvParams;

Dim blocks_along(const Window& window, size_t axis, const Dim& image, const Dim& block) {
  return window_output(window, axis, image, block);
}

void infer(InferContext& ctx) {
  const Window window = read_window(ctx, WindowKind::pool);
  const auto& x = ctx.shape(0);
  const Dims *image = ctx.elements(1), *block = ctx.elements(2);
  if (x && x->size() != 3)
    ctx.fail("the input must have three dimensions; its shape is {}", ir::to_string(*x));
  for (const int i : {1, 2}) {
    if (ctx.shape(i) && ctx.shape(i)->size() != 1)
      ctx.fail("{} must have one dimension; its shape is {}", ctx.input_name(i),
               ir::to_string(*ctx.shape(i)));
  }
  if (image && block && image->size() != block->size())
    ctx.fail("image_shape and block_shape must have the same length; got {} and {}", image->size(),
             block->size());
  std::optional<size_t> rank;
  for (const auto* known : {image, block}) {
    if (known) rank = known->size();
  }
  for (const int i : {1, 2}) {
    const auto& shape = ctx.shape(i);
    if (!rank && shape && shape->size() == 1 && (*shape)[0].value())
      rank = static_cast<size_t>(*(*shape)[0].value());
  }
  for (const std::string_view name : {"dilations", "pads", "strides"}) {
    if (rank || !ctx.has_attribute(name)) continue;
    rank = ctx.attr_ints(name)->size() / (name == "pads" ? 2 : 1);
  }
  if (!rank) return ctx.set(0, ValueType::tensor(ctx.element(0)));
  if (*rank == 0 || *rank > 64) ctx.fail("image_shape must have 1 to 64 entries; got {}", *rank);
  check_window_rank(ctx, window, static_cast<int64_t>(*rank));
  for (const int i : {1, 2}) require_elements(ctx, i, *rank);
  for (size_t i = 0; i < *rank; ++i) {
    if (image && (*image)[i].value() && *(*image)[i].value() < 0)
      ctx.fail("image_shape must not be negative; got {}", *(*image)[i].value());
    if (block && (*block)[i].value() && *(*block)[i].value() < 1)
      ctx.fail("block_shape must be at least 1; got {}", *(*block)[i].value());
  }
  Dims y{x ? (*x)[0] : ctx.unknown(), ctx.unknown()};
  if (block && x) {
    Dim taps = 1, positions = 1;
    for (size_t i = 0; i < *rank; ++i) taps = taps * (*block)[i];
    y[1] = floor_div((*x)[1], taps);
    ctx.require_equal(y[1] * taps, (*x)[1],
                      "the input's second dimension must be a multiple of the block's size");
    for (size_t i = 0; image && i < *rank; ++i)
      positions = positions * blocks_along(window, i, (*image)[i], (*block)[i]);
    if (image)
      ctx.require_equal((*x)[2], positions,
                        "the input's last dimension must be the number of blocks");
  }
  for (size_t i = 0; i < *rank; ++i) y.push_back(image ? (*image)[i] : ctx.unknown());
  ctx.set(0, ctx.element(0), std::move(y));
}

struct State {
  ConvParams shape;
  ConvertedArguments wide;
  int64_t planes = 0;
};

// The block's shape is read when the step runs: only then is a computed one there.
void set_blocks(ConvParams& shape, const Window& window, const int64_t* block, int64_t planes,
                int64_t elements) {
  int64_t positions = 1, taps = 1;
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
    if (block[i] < 1 || block[i] > INT32_MAX)
      throw Error(ErrorCode::run_failed,
                  fmt::format("block_shape must be in [1, {}]; got {}", INT32_MAX, block[i]));
    shape.kernel[i] = block[i];
    shape.in[i] =
        kernels::conv_out_size(shape.out[i], block[i], window.stride(i), window.dilation(i),
                               window.pad_begin(i), window.pad_end(i));
    positions = checked_mul(positions, shape.in[i]).value_or(-1),
    taps = checked_mul(taps, block[i]).value_or(-1);
  }
  const auto count = checked_mul(checked_mul(planes, positions).value_or(-1), taps);
  if (positions < 0 || taps < 0 || !count || *count != elements)
    throw Error(ErrorCode::run_failed, "image_shape and block_shape do not fit the input");
}

template <class T>
std::unique_ptr<Step> make_columns(const Window& window) {
  constexpr bool is_complex = !std::is_arithmetic_v<T>;  // never converted
  return make_step<State>(
      "col2im",
      [window](BindContext& bind, State& s) {
        const auto y = bind.out_shape(0);
        if (y.size() > ConvParams::max_rank + 2)
          throw Error(
              ErrorCode::unsupported,
              fmt::format("images of {} dimensions; at most 3 are supported", y.size() - 2));
        ScratchPlanner layout;
        if constexpr (!is_complex) {
          s.wide.plan_in(bind, 0, element_type_of<T>::value, layout);
          s.wide.plan_out(bind, 0, element_type_of<T>::value, layout);
        }
        bind.need_scratch(layout.bytes());
        s.shape = {};
        s.shape.rank = static_cast<int>(y.size()) - 2;
        s.planes = y[0] * y[1];
        for (size_t i = 0; i + 2 < y.size(); ++i) {
          s.shape.out[i] = y[i + 2];
          s.shape.stride[i] = window.stride(i), s.shape.dilation[i] = window.dilation(i),
          s.shape.pad_begin[i] = window.pad_begin(i);
        }
      },
      [window](RunContext& run, const State& s) {
        ConvParams shape = s.shape;
        set_blocks(shape, window, run.in<int64_t>(2), s.planes, run.in_size(0));
        if constexpr (is_complex) {
          kernels::add_columns(shape, s.planes, run.in<T>(0), run.out<T>(0), run.pool());
        } else {
          kernels::add_columns(shape, s.planes, s.wide.in<T>(run, 0),
                               static_cast<const T*>(nullptr), 1, s.wide.out<T>(run, 0),
                               run.pool());
          s.wide.finish<T>(run, 0);
        }
      });
}

std::unique_ptr<Step> step_for(ElementType type, const Window& window) {
  if (type == ElementType::complex64) return make_columns<std::complex<float>>(window);
  if (type == ElementType::complex128) return make_columns<std::complex<double>>(window);
  if (is_integer(type)) return make_columns<uint64_t>(window);  // sums wrap around
  if (type == ElementType::float64) return make_columns<double>(window);
  return make_columns<float>(window);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (type == ElementType::string) ctx.fail(ErrorCode::unsupported, "no sums of {}", name_of(type));
  auto step = step_for(type, read_window(ctx, WindowKind::pool));
  step->traits().unread_inputs = {1};
  return step;
}

constexpr Operator operators[] = {{.name = "Col2Im", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace col2im_unit

std::span<const Operator> col2im_operators() { return col2im_unit::operators; }

}  // namespace sardonyx::ops
