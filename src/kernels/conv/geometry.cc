#include "kernels/conv/geometry.h"

#include <array>

namespace sardonyx::kernels {
namespace {

using Dims = ConvParams::Dims;

// Removes dimension `i` of `rank`, the later ones moving up.
void drop(Dims& dims, int i, int rank) {
  for (; i + 1 < rank; ++i) dims[static_cast<size_t>(i)] = dims[static_cast<size_t>(i) + 1];
}

}  // namespace

ConvGeometry::ConvGeometry(const ConvParams& s, bool joins_plain)
    : batch(s.batch),
      group(s.group),
      group_in(s.in_channels / s.group),
      group_out(s.out_channels / s.group),
      in(s.in),
      kernel(s.kernel),
      stride(s.stride),
      dilation(s.dilation),
      pad(s.pad_begin),
      out(s.out),
      nhwc(s.nhwc),
      coarse(s.coarse),
      winograd(s.winograd),
      shuffle(s.shuffle),
      nchw_input(s.nchw_input),
      shuffles_output(s.shuffles_output) {
  int rank = s.rank;
  const auto plain = [&](size_t i) {
    return kernel[i] == 1 && stride[i] == 1 && pad[i] == 0 && in[i] == out[i];
  };
  for (int i = rank - 1; joins_plain && i >= 0 && rank > 1; --i) {
    const auto at = static_cast<size_t>(i);
    if (!plain(at)) continue;
    // A plain dimension of size 1 goes; two neighbouring plain ones become one.
    const bool joins = at > 0 && plain(at - 1);
    if (in[at] != 1 && !joins) continue;
    if (joins) {
      in[at - 1] *= in[at];
      out[at - 1] *= out[at];
    }
    for (Dims* dims : {&in, &kernel, &stride, &dilation, &pad, &out}) drop(*dims, i, rank);
    --rank;
  }
  for (; rank < ConvParams::max_rank; ++rank) {
    for (Dims* dims : {&in, &kernel, &stride, &dilation, &out}) {
      for (size_t i = ConvParams::max_rank - 1; i > 0; --i) (*dims)[i] = (*dims)[i - 1];
      (*dims)[0] = 1;
    }
    for (size_t i = ConvParams::max_rank - 1; i > 0; --i) pad[i] = pad[i - 1];
    pad[0] = 0;
  }
  in_pixels = in[0] * in[1] * in[2];
  out_pixels = out[0] * out[1] * out[2];
  taps = kernel[0] * kernel[1] * kernel[2];
  terms = group_in * taps;
  const auto last = static_cast<size_t>(s.rank - 1);
  near_terms = group_in * (s.dilation[last] == 1 ? s.kernel[last] : 1);
}

}  // namespace sardonyx::kernels
