// ImageDecoder.
#include <utility>

#include "image/decode.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace image_decoder_unit {
namespace {

struct Pixels {
  int channels = 3;
  bool reversed = false;  // blue first
};

Pixels pixels_of(const NodeView& node) {
  const std::string format = node.attr_string("pixel_format", "RGB");
  if (format == "RGB") return {3, false};
  if (format == "BGR") return {3, true};
  if (format == "Grayscale") return {1, false};
  node.fail("pixel_format must be RGB, BGR or Grayscale; got '{}'", format);
}

void infer(InferContext& ctx) {
  if (ctx.shape(0) && ctx.shape(0)->size() != 1)
    ctx.fail("the encoded stream must have one dimension; its shape is {}",
             ir::to_string(*ctx.shape(0)));
  ctx.set(0, ElementType::uint8, {ctx.unknown(), ctx.unknown(), Dim(pixels_of(ctx).channels)});
}

// What cannot be decoded gives an image of no pixels, as the standard asks; what this build could
// not decode though it is sound is an error.
Tensor decoded(const Bytes& bytes, int channels) {
  const image::Format format = image::format_of(bytes);
  if (format != image::Format::unknown && !image::supports(format)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("this build of Sardonyx reads no {} images; build it with the library "
                            "for them",
                            image::name_of(format)));
  }
  try {
    return image::decode(bytes, channels);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unreadable && error.code() != ErrorCode::unsupported) throw;
    return Tensor(ElementType::uint8, {0, 0, channels});
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Pixels pixels = pixels_of(ctx);
  auto step = make_step("image_decoder", [pixels](RunContext& run) {
    const Bytes bytes(nullptr, run.in<std::byte>(0), static_cast<size_t>(run.in_size(0)));
    Tensor image = decoded(bytes, pixels.channels);
    run.environment().charge(static_cast<int64_t>(image.byte_size()));
    if (pixels.reversed) {
      uint8_t* data = image.mutable_elements<uint8_t>().data();
      for (int64_t i = 0; i < image.size(); i += 3) std::swap(data[i], data[i + 2]);
    }
    run.set_output(0, std::move(image));
  });
  step->traits().allocates_outputs = true;
  return step;
}

constexpr Operator operators[] = {{.name = "ImageDecoder", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace image_decoder_unit

std::span<const Operator> image_decoder_operators() { return image_decoder_unit::operators; }

}  // namespace sardonyx::ops
