// com.microsoft: CropAndResize, DynamicTimeWarping, Inverse and MurmurHash3.
#include <climits>
#include <string>

#include "base/checked.h"
#include "kernels/elementwise/murmur.h"
#include "kernels/sample/crop_resize.h"
#include "kernels/signal/inverse.h"
#include "kernels/signal/time_warping.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/product.h"

namespace sardonyx::ops {
namespace contrib_small_kernels_unit {
namespace {

// --- CropAndResize ------------------------------------------------------------------------------

void require_rank(const InferContext& ctx, int i, int64_t rank) {
  if (const auto found = ctx.rank(i); found && *found != rank)
    ctx.fail("{} must have rank {}; it has {}", ctx.input_name(i), rank, *found);
}

void infer_crop(InferContext& ctx) {
  const int64_t ranks[] = {4, 2, 1, 1};
  for (int i = 0; i < 4; ++i) require_rank(ctx, i, ranks[i]);
  const std::string mode = ctx.attr_string("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    ctx.fail("mode must be bilinear or nearest; got '{}'", mode);
  if (ctx.shape(1))
    ctx.require_equal((*ctx.shape(1))[1], 4, "rois must have four numbers for each crop");
  if (ctx.shape(1) && ctx.shape(2))
    ctx.require_equal((*ctx.shape(2))[0], (*ctx.shape(1))[0],
                      "batch_indices must have a number for each crop");
  if (ctx.shape(3)) ctx.require_equal((*ctx.shape(3))[0], 2, "crop_size must have two numbers");
  Dims y = ctx.unknown_shape(4);
  if (ctx.shape(1)) y[0] = (*ctx.shape(1))[0];
  if (ctx.shape(0)) y[1] = (*ctx.shape(0))[1];
  if (const Dims* size = ctx.elements(3); size != nullptr && size->size() == 2) {
    for (size_t i = 0; i < 2; ++i) {
      if (const auto known = (*size)[i].value(); known && *known < 1)
        ctx.fail("crop_size must be positive; got {}", *known);
      y[2 + i] = (*size)[i];
    }
  }
  ctx.set(0, ctx.element(0), std::move(y));
}

struct CropState {
  kernels::CropSizes sizes;
  ConvertedArguments wide;
};

template <class T>
std::unique_ptr<Step> make_crop(bool nearest, float outside) {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<CropState>(
      "crop_and_resize",
      [](BindContext& bind, CropState& s) {
        const auto x = bind.in_shape(0), y = bind.out_shape(0);
        s.sizes = {x[0], x[1], x[2], x[3], y[0], y[2], y[3]};
        ScratchPlanner layout;
        for (const int i : {0, 1}) s.wide.plan_in(bind, i, compute, layout);
        s.wide.plan_out(bind, 0, compute, layout);
        bind.need_scratch(layout.bytes());
      },
      [nearest, outside](RunContext& run, const CropState& s) {
        const auto* images = run.in<int32_t>(2);
        for (int64_t i = 0; i < s.sizes.crops; ++i) {
          if (images[i] < 0 || images[i] >= s.sizes.images)
            throw Error(ErrorCode::run_failed,
                        fmt::format("batch_indices[{}] is {}; there are {} images", i, images[i],
                                    s.sizes.images));
        }
        kernels::crop_and_resize<T>(s.sizes, s.wide.in<T>(run, 0), s.wide.in<T>(run, 1), images,
                                    nearest, static_cast<T>(outside), s.wide.out<T>(run, 0),
                                    run.pool());
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare_crop(PrepareContext& ctx) {
  const bool nearest = ctx.attr_string("mode", "bilinear") == "nearest";
  const float outside = ctx.attr_float("extrapolation_value", 0);
  if (ctx.in_element(0) == ElementType::float64) return make_crop<double>(nearest, outside);
  if (!computes_in_float(ctx.in_element(0)))
    ctx.fail(ErrorCode::unsupported, "no crops of {}", name_of(ctx.in_element(0)));
  return make_crop<float>(nearest, outside);
}

// --- DynamicTimeWarping -------------------------------------------------------------------------

void infer_warping(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (!x) return ctx.set(0, ElementType::int32, {2, ctx.unknown()});
  if (x->size() != 2 && x->size() != 3)
    ctx.fail("the input must be [M, N] or [1, M, N]; its shape is {}", ir::to_string(*x));
  if (x->size() == 3) ctx.require_equal((*x)[0], 1, "the input must be [M, N] or [1, M, N]");
  const Dim &m = (*x)[x->size() - 2], &n = x->back();
  ctx.require_at_least(m, 1, "the matrix of costs must not be empty");
  ctx.require_at_least(n, 1, "the matrix of costs must not be empty");
  ctx.set(0, ElementType::int32, {2, ctx.unknown(m + n - Dim(1))});
}

std::unique_ptr<Step> prepare_warping(PrepareContext&) {
  return make_allocating_step("dynamic_time_warping", [](RunContext& run) {
    const auto x = run.in_shape(0);
    const int64_t m = x[x.size() - 2], n = x.back();
    if (m < 1 || n < 1 || m > INT32_MAX || n > INT32_MAX || run.in_size(0) != m * n)
      throw Error(ErrorCode::run_failed,
                  fmt::format("costs of shape {} are no matrix", to_string(x)));
    const auto path = kernels::time_warping_path(run.in<float>(0), m, n);
    const auto count = static_cast<int64_t>(path.size());
    auto* y = static_cast<int32_t*>(run.allocate_output(0, {2, count}));
    for (int64_t i = 0; i < count; ++i) {
      y[i] = path[static_cast<size_t>(i)].first;
      y[count + i] = path[static_cast<size_t>(i)].second;
    }
  });
}

// --- Inverse ------------------------------------------------------------------------------------

void infer_inverse(InferContext& ctx) {
  const auto& x = ctx.shape(0);
  if (x && x->size() < 2) ctx.fail("X must be matrices; its shape is {}", ir::to_string(*x));
  if (x) ctx.require_equal((*x)[x->size() - 2], x->back(), "the matrices must be square");
  ctx.set(0, ctx.type(0));
}

struct InverseState {
  ConvertedArguments wide;
  int64_t matrices = 0, n = 0, scratch = 0;
};

template <class T>
std::unique_ptr<Step> make_inverse() {
  constexpr ElementType compute = element_type_of<T>::value;
  return make_step<InverseState>(
      "inverse",
      [](BindContext& bind, InverseState& s) {
        const auto x = bind.in_shape(0);
        ScratchPlanner layout;
        s.wide.plan(bind, compute, layout);
        s.n = x.back(), s.matrices = count_of(x.first(x.size() - 2));
        const auto size = checked_mul(s.n, s.n);
        if (!size || *size > int64_t{1} << 40)
          throw Error(ErrorCode::run_failed, fmt::format("matrices of {} rows are too large", s.n));
        s.scratch = layout.take(kernels::inverse_scratch_bytes(s.n, bind.threads()));
        bind.need_scratch(layout.bytes());
      },
      [](RunContext& run, const InverseState& s) {
        kernels::inverse(s.wide.in<T>(run, 0), s.matrices, s.n, s.wide.out<T>(run, 0),
                         scratch_at(run, s.scratch), run.pool());
        s.wide.finish<T>(run, 0);
      });
}

std::unique_ptr<Step> prepare_inverse(PrepareContext& ctx) {
  if (ctx.in_element(0) == ElementType::float64) return make_inverse<double>();
  if (!computes_in_float(ctx.in_element(0)))
    ctx.fail(ErrorCode::unsupported, "no inverse of {}", name_of(ctx.in_element(0)));
  return make_inverse<float>();
}

// --- MurmurHash3 --------------------------------------------------------------------------------

void infer_hash(InferContext& ctx) {
  const int64_t seed = ctx.attr_int("seed", 0);
  if (seed < 0 || seed > UINT32_MAX)
    ctx.fail("seed must be a number of 32 bits without a sign; got {}", seed);
  const ElementType type =
      ctx.attr_int("positive", 1) != 0 ? ElementType::uint32 : ElementType::int32;
  if (ctx.shape(0)) return ctx.set(0, type, *ctx.shape(0));
  ctx.set(0, ValueType::tensor(type));
}

std::unique_ptr<Step> prepare_hash(PrepareContext& ctx) {
  const auto seed = static_cast<uint32_t>(ctx.attr_int("seed", 0));
  const bool text = ctx.in_element(0) == ElementType::string;
  const auto width = text ? size_t{0} : static_cast<size_t>(byte_size(ctx.in_element(0), 1));
  return make_step("murmur_hash3", [seed, text, width](RunContext& run) {
    auto* y = run.out<uint32_t>(0);
    for (int64_t i = 0; i < run.in_size(0); ++i) {
      const std::string_view bytes =
          text ? std::string_view(run.in<std::string>(0)[i])
               : std::string_view(run.in<char>(0) + static_cast<size_t>(i) * width, width);
      y[i] = kernels::murmur_hash(bytes, seed);
    }
  });
}

constexpr Operator operators[] = {
    {.name = "CropAndResize",
     .domain = "com.microsoft",
     .infer = infer_crop,
     .prepare = prepare_crop},
    {.name = "DynamicTimeWarping",
     .domain = "com.microsoft",
     .infer = infer_warping,
     .prepare = prepare_warping},
    {.name = "Inverse",
     .domain = "com.microsoft",
     .infer = infer_inverse,
     .prepare = prepare_inverse},
    {.name = "MurmurHash3",
     .domain = "com.microsoft",
     .infer = infer_hash,
     .prepare = prepare_hash},
};

}  // namespace
}  // namespace contrib_small_kernels_unit

std::span<const Operator> contrib_small_kernels_operators() {
  return contrib_small_kernels_unit::operators;
}

}  // namespace sardonyx::ops
