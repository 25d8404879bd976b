// Windows, normalisations, losses, attention and recurrent layers over random shapes and
// attributes.
#include "gradient_draw.h"

namespace sardonyx::test {
namespace {

// Attributes of a window of `kernel` over `rank` axes; pads stay below the kernel.
struct WindowText {
  std::string attributes;
  bool automatic = false;
};
WindowText window(Draw& draw, const Shape& kernel, bool dilates = true) {
  const size_t rank = kernel.size();
  WindowText text;
  text.attributes = fmt::format("strides = {}", listed(draw.integers(rank, 1, 2)));
  if (dilates) text.attributes += ", dilations = " + listed(draw.integers(rank, 1, 2));
  if (draw.one_in(3)) {
    text.automatic = true;
    text.attributes += fmt::format(", auto_pad = \"{}\"",
                                   draw.word({"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"}));
  } else {
    std::vector<int64_t> pads;
    for (size_t i = 0; i < 2 * rank; ++i) pads.push_back(draw.below(kernel[i % rank]));
    text.attributes += ", pads = " + listed(pads);
  }
  return text;
}

Shape image(Draw& draw, int64_t batch, int64_t channels, size_t rank) {
  Shape shape{batch, channels};
  for (size_t i = 0; i < rank; ++i) shape.push_back(draw.between(5, rank == 1 ? 8 : 6));
  return shape;
}

void convolutions(const Check& check) {
  Draw draw(20);
  for (int round = 0; round < 15; ++round) {
    const size_t rank = round % 5 == 4 ? 3 : round % 5 == 3 ? 1 : 2;
    const Shape kernel = draw.integers(rank, 1, rank == 3 ? 2 : 3);
    const int64_t group = draw.between(1, 2), channels = group * draw.between(1, 2),
                  made = group * draw.between(1, 2);
    Shape w{made, channels / group}, turned{channels, made / group};
    w.insert(w.end(), kernel.begin(), kernel.end());
    turned.insert(turned.end(), kernel.begin(), kernel.end());
    const std::string attributes = window(draw, kernel).attributes;
    const bool bias = draw.one_in(2);
    std::vector<Input> inputs{draw.input("x", image(draw, rank == 3 ? 1 : 2, channels, rank)),
                              draw.input("w", w)};
    if (bias) inputs.push_back(draw.input("b", {made}));
    check(fmt::format("y = Conv<group = {}, {}>(x, w{})", group, attributes, bias ? ", b" : ""),
          inputs);
    inputs[0] = draw.input("x", rank == 3   ? Shape{1, channels, 2, 3, 2}
                                : rank == 1 ? Shape{2, channels, 5}
                                            : Shape{2, channels, 3, 4});
    inputs[1] = draw.input("w", turned);
    check(fmt::format("y = ConvTranspose<group = {}, {}>(x, w{})", group, attributes,
                      bias ? ", b" : ""),
          inputs);
  }
}

void deformed_convolutions(const Check& check) {
  Draw draw(21);
  for (int round = 0; round < 8; ++round) {
    const int64_t group = draw.between(1, 2), shared = draw.between(1, 2), channels = 2 * group;
    const std::vector<int64_t> strides = draw.integers(2, 1, 2), dilations = draw.integers(2, 1, 2),
                               pads = draw.integers(4, 0, 1);
    const Shape kernel{2, draw.between(1, 2)};
    const Shape x{2, channels, 5, 4};
    Shape out{2, 0, 0, 0};
    for (size_t d = 0; d < 2; ++d)
      out[d + 2] =
          (x[d + 2] + pads[d] + pads[d + 2] - dilations[d] * (kernel[d] - 1) - 1) / strides[d] + 1;
    const int64_t taps = kernel[0] * kernel[1] * shared;
    std::vector<Input> inputs{draw.input("x", x),
                              draw.input("w", {2 * group, channels / group, kernel[0], kernel[1]}),
                              draw.input("o", {2, 2 * taps, out[2], out[3]}, -1.3, 1.3)};
    const bool bias = draw.one_in(2), mask = draw.one_in(2);
    if (bias) inputs.push_back(draw.input("b", {2 * group}));
    if (mask) inputs.push_back(draw.input("m", {2, taps, out[2], out[3]}, 0.2, 1));
    check(fmt::format("y = DeformConv<group = {}, offset_group = {}, strides = {}, dilations = {}, "
                      "pads = {}>(x, w, o{}{})",
                      group, shared, listed(strides), listed(dilations), listed(pads),
                      bias   ? ", b"
                      : mask ? ", "
                             : "",
                      mask ? ", m" : ""),
          inputs);
  }
  check("y = DeformConv(x, w, o)",
        {draw.input("x", {1, 2, 5}), draw.input("w", {2, 2, 2}), draw.input("o", {1, 2, 4})});
  check("y = DeformConv(x, w, o)",
        {draw.input("x", {1, 1, 3, 3, 2}), draw.input("w", {1, 1, 2, 2, 1}),
         draw.input("o", {1, 12, 2, 2, 2})});
}

void pools(const Check& check) {
  Draw draw(22);
  for (int round = 0; round < 20; ++round) {
    const size_t rank = round % 5 == 4 ? 3 : round % 5 == 3 ? 1 : 2;
    const Shape kernel = draw.integers(rank, 1, 3);
    WindowText text = window(draw, kernel);
    const bool ceil = !text.automatic && draw.one_in(2);
    const std::string form =
        fmt::format("kernel_shape = {}, {}{}", listed({kernel.begin(), kernel.end()}),
                    text.attributes, ceil ? ", ceil_mode = 1" : "");
    const Input x = draw.input("x", image(draw, rank == 3 ? 1 : 2, 2, rank), 0.2, 1.5);
    check(fmt::format("y = MaxPool<{}>(x)", form), {x});
    check(fmt::format("y, i = MaxPool<storage_order = 1, {}>(x)", form), {x});
    for (const int count : {0, 1})
      check(fmt::format("y = AveragePool<{}, count_include_pad = {}>(x)", form, count), {x});
    check(fmt::format("y = LpPool<{}, p = {}>(x)", form, draw.between(1, 3)), {x});
    check("y = GlobalAveragePool(x)", {x});
    check("y = GlobalMaxPool(x)", {x});
    check(fmt::format("y = GlobalLpPool<p = {}>(x)", draw.between(1, 3)), {x});
    check(fmt::format("y = LRN<size = {}, alpha = 0.8, beta = {:.2f}, bias = 1.1>(x)",
                      draw.between(1, 4), draw.any_of<double>({0.5, 0.75, 1.2})),
          {draw.input("x", image(draw, 1, 4, 2))});
  }
  for (int round = 0; round < 4; ++round)
    check(
        "v, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)\n"
        " y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(v, i)",
        {draw.input("x", {2, 2, 2 * draw.between(1, 3), 2 * draw.between(1, 2)})});
  for (int round = 0; round < 6; ++round) {
    const Shape block = draw.integers(2, 1, 2);
    const std::vector<int64_t> strides = draw.integers(2, 1, 2), dilations = draw.integers(2, 1, 2),
                               pads = draw.integers(4, 0, 1);
    int64_t count = 1;
    for (size_t d = 0; d < 2; ++d)
      count *= (5 + pads[d] + pads[d + 2] - dilations[d] * (block[d] - 1) - 1) / strides[d] + 1;
    check(integers("s", {5, 5}) + integers("k", {block[0], block[1]}) +
              fmt::format("y = Col2Im<strides = {}, dilations = {}, pads = {}>(x, s, k)",
                          listed(strides), listed(dilations), listed(pads)),
          {draw.input("x", {1, 2 * block[0] * block[1], count})});
  }
}

void samples(const Check& check) {
  Draw draw(23);
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int corners : {0, 1}) {
        // A nearest element does not follow its place.
        Input grid = draw.input("g", {2, 2, 3, 2}, -1.4, 1.4);
        grid.differentiated = mode[0] != 'n';
        check(fmt::format(
                  "y = GridSample<mode = \"{}\", padding_mode = \"{}\", align_corners = {}>(x, g)",
                  mode, padding, corners),
              {draw.input("x", {2, 2, 3, 4}), grid});
        if (mode[0] == 'c') continue;
        Input volume = draw.input("g", {1, 2, 1, 2, 3}, -1.2, 1.2);
        volume.differentiated = mode[0] != 'n';
        check(fmt::format(
                  "y = GridSample<mode = \"{}\", padding_mode = \"{}\", align_corners = {}>(x, g)",
                  mode, padding, corners),
              {draw.input("x", {1, 2, 2, 3, 2}), volume});
      }
    }
  }
  for (const char* mode : {"avg", "max"}) {
    for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
      for (const int64_t ratio : {0, 1, 3}) {
        Input rois{"r",
                   Tensor::of<double>({0.3, 0.4, 5.1, 4.4, 1.2, 0.7, 3.3, 6.9, 2.1, 2.3, 2.9, 2.6,
                                       -2.5, -1.5, 1.3, 9.7},
                                      {4, 4}),
                   false};
        check(integers("b", {1, 0, 1, 0}) +
                  fmt::format("y = RoiAlign<mode = \"{}\", coordinate_transformation_mode = "
                              "\"{}\", sampling_ratio = {}, output_height = 2, output_width = 3, "
                              "spatial_scale = {:.1f}>(x, r, b)",
                              mode, coordinates, ratio, draw.any_of<double>({1.0, 0.6})),
              {draw.input("x", {2, 2, 5, 4}), rois});
      }
    }
  }
  Input rois{"r", Tensor::of<double>({0, 0, 0, 3, 3, 1, 1, 1, 2, 4, 0, 2, 2, 2, 2}, {3, 5}), false};
  for (const char* scale : {"1.0", "0.5"})
    check(fmt::format("y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = {}>(x, r)", scale),
          {draw.input("x", {2, 2, 5, 4}), rois});
  for (int round = 0; round < 3; ++round) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                      "align_corners", "asymmetric"}) {
        std::string more;
        if (mode[0] == 'n')
          more = ", nearest_mode = \"" +
                 draw.word({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) + "\"";
        if (mode[0] != 'n' && draw.one_in(2)) more = ", antialias = 1";
        if (mode[0] == 'c')
          more += fmt::format(", cubic_coeff_a = -0.6, exclude_outside = {}", draw.below(2));
        const std::string call =
            fmt::format("y = Resize<mode = \"{}\", coordinate_transformation_mode = \"{}\"{}", mode,
                        coordinates, more);
        check(integers("s", draw.integers(2, 1, 6)) + call + ", axes = [3, 2]>(x, , , s)",
              {draw.input("x", {1, 2, 3, 4})});
        check(fmt::format("s = Constant<value_floats = [1.0, 1.0, {:.1f}, {:.1f}]>()\n ",
                          draw.any_of<double>({0.6, 1.7, 2.0}),
                          draw.any_of<double>({0.5, 1.3, 2.5})) +
                  call + ">(x, , s)",
              {draw.input("x", {1, 2, 3, 4})});
        check(integers("s", draw.integers(2, 2, 7)) + call +
                  fmt::format(", axes = [2, 3], keep_aspect_ratio_policy = \"{}\">(x, , , s)",
                              draw.word({"not_larger", "not_smaller"})),
              {draw.input("x", {1, 2, 3, 4})});
      }
    }
  }
}

void normalizations(const Check& check) {
  Draw draw(24), running(124);
  for (int round = 0; round < 8; ++round) {
    const Shape shape = image(draw, draw.between(1, 2), 4, static_cast<size_t>(draw.between(1, 2)));
    const Input x = draw.input("x", shape), s = draw.input("s", {4}, 0.5, 2),
                b = draw.input("b", {4});
    const std::string epsilon = draw.word({"0.00001", "0.01"});
    check(fmt::format("y = BatchNormalization<epsilon = {}>(x, s, b, m, v)", epsilon),
          {x, s, b, draw.input("m", {4}), draw.input("v", {4}, 0.5, 2)});
    // With the moments of the batch nothing reads the running ones.
    check(fmt::format("y, rm, rv = BatchNormalization<epsilon = {}, training_mode = 1>(x, s, b, m, "
                      "v)",
                      epsilon),
          {x, s, b, running.input("m", {4}), running.input("v", {4}, 0.5, 2)});
    check(fmt::format("y = InstanceNormalization<epsilon = {}>(x, s, b)", epsilon), {x, s, b});
    check(fmt::format("y = GroupNormalization<epsilon = {}, num_groups = {}>(x, s, b)", epsilon,
                      draw.any_of<int64_t>({1, 2, 4})),
          {x, s, b});
    check(fmt::format("y = MeanVarianceNormalization<axes = {}>(x)",
                      draw.word({"[0, 2]", "[-1]", "[0, 1, 2]"})),
          {x});
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = draw.axis(rank);
    const Shape inner(shape.begin() + (axis < 0 ? axis + rank : axis), shape.end());
    const Input scale = draw.input("s", inner, 0.5, 2), bias = draw.input("b", inner);
    check(fmt::format("y = LayerNormalization<axis = {}, epsilon = {}>(x, s, b)", axis, epsilon),
          {x, scale, bias});
    check(fmt::format("y = LayerNormalization<axis = {}, epsilon = {}>(x, s)", axis, epsilon),
          {x, draw.input("s", draw.narrower(inner), 0.5, 2)});
    check(fmt::format("z, m, d = LayerNormalization<axis = {}, epsilon = 0.3>(x, s)\n f = "
                      "CastLike(d, z)\n y = Mul(z, f)",
                      axis),
          {x, scale}, Precision::float32);
    check(fmt::format("y = RMSNormalization<axis = {}, epsilon = {}>(x, s)", axis, epsilon),
          {x, draw.input("s", draw.narrower(inner), 0.5, 2)});
  }
}

void losses(const Check& check) {
  Draw draw(25);
  for (int round = 0; round < 12; ++round) {
    const int64_t classes = draw.between(2, 4);
    Shape labels = draw.shape(1, 3, false), scores = labels;
    scores.insert(scores.begin() + 1, classes);
    std::vector<int64_t> chosen =
        draw.integers(static_cast<size_t>(elements_of(labels)), 0, classes - 1);
    std::string form = fmt::format("<reduction = \"{}\"", draw.word({"none", "sum", "mean"}));
    const bool ignores = draw.one_in(2);
    if (ignores) {
      const int64_t ignored = draw.any_of<int64_t>({-100, 0, 7});
      form += fmt::format(", ignore_index = {}", ignored);
      chosen[0] = ignored;
      if (ignored == 0) chosen.back() = 1;  // not all of them
      if (chosen.size() == 1) chosen[0] = 1;
    }
    std::string weights, given;
    if (draw.one_in(2)) {
      weights =
          "w = Constant<value = double[4] {0.5, 2.0, 1.0, 3.0}>()\n n = Constant<value_ints = [" +
          std::to_string(classes) +
          "]>()\n z = Constant<value_ints = [0]>()\n c = Slice(w, z, n)\n ";
      given = ", c";
    }
    const Input x = draw.input("x", scores, -2, 2);
    const std::string lines = integers("t", labels, chosen) + weights;
    check(lines + "y = NegativeLogLikelihoodLoss" + form + ">(x, t" + given + ")", {x});
    check(lines + "y = SoftmaxCrossEntropyLoss" + form + ">(x, t" + given + ")", {x});
    check(lines + "l, p = SoftmaxCrossEntropyLoss" + form + ">(x, t" + given +
              ")\n s = ReduceSum<keepdims = 0>(l)\n y = Mul(p, s)",
          {x});
  }
}

void attention(const Check& check) {
  Draw draw(26);
  for (int round = 0; round < 30; ++round) {
    const int64_t batch = draw.between(1, 2), group = draw.between(1, 2),
                  heads = draw.between(1, 2), rows = draw.between(1, 3),
                  keys = rows + draw.between(0, 2), size = draw.between(1, 3),
                  values = draw.between(1, 3);
    const bool three = draw.one_in(2), past = draw.one_in(4);
    const int64_t q_heads = group * heads, old = past ? draw.between(1, 2) : 0;
    std::string form = fmt::format("is_causal = {}", draw.below(2));
    if (three) form += fmt::format(", q_num_heads = {}, kv_num_heads = {}", q_heads, heads);
    if (draw.one_in(2)) form += ", scale = 0.8";
    if (draw.one_in(2)) form += ", softcap = 1.3";
    if (draw.one_in(3))
      form += fmt::format(", left_window_size = {}, right_window_size = {}", draw.between(0, 2),
                          draw.between(-1, 1));
    const auto operand = [&](const char* name, int64_t count, int64_t length, int64_t width) {
      return draw.input(
          name, three ? Shape{batch, length, count * width} : Shape{batch, count, length, width});
    };
    std::vector<Input> inputs{operand("q", q_heads, rows, size), operand("k", heads, keys, size),
                              operand("v", heads, keys, values)};
    std::string lines, mask;
    const Shape whole{batch, q_heads, rows, keys + old};
    switch (draw.below(3)) {
      case 1: {
        Shape shape = draw.narrower(whole);
        while (shape.size() < 2) shape.insert(shape.begin(), 1);
        shape.back() = keys + old;
        inputs.push_back(draw.input("m", shape));
        mask = ", m";
        break;
      }
      case 2: {
        std::vector<int64_t> seen = draw.integers(static_cast<size_t>(rows * (keys + old)), 0, 1);
        for (int64_t i = 0; i < rows; ++i) seen[static_cast<size_t>(i * (keys + old))] = 1;
        lines = integers("m", {rows, keys + old}, seen, "bool");
        mask = ", m";
        break;
      }
      default: break;
    }
    if (past) {
      inputs.push_back(draw.input("pk", {batch, heads, old, size}));
      inputs.push_back(draw.input("pv", {batch, heads, old, values}));
      check(lines + fmt::format(
                        "r, nk, nv = Attention<{}>(q, k, v{}, pk, pv)\n s = ReduceSum<keepdims = "
                        "0>(nk)\n t = ReduceSum<keepdims = 0>(nv)\n u = Add(s, t)\n y = Mul(r, u)",
                        form, mask.empty() ? ", " : mask),
            inputs);
    } else {
      check(lines + fmt::format("y = Attention<{}>(q, k, v{})", form, mask), inputs);
      if (!draw.one_in(3)) continue;
      const int64_t last = keys;
      std::vector<int64_t> lengths(static_cast<size_t>(batch), last);
      lengths[0] = std::max<int64_t>(1, last - 1);
      check(
          lines + integers("n", lengths) +
              fmt::format("y = Attention<{}>(q, k, v{}, , , n)", form, mask.empty() ? ", " : mask),
          inputs);
    }
  }
  for (const int mode : {0, 1, 2, 3})
    check(fmt::format(
              "r, pk, pv, z = Attention<softcap = 1.4, qk_matmul_output_mode = {}>(q, k, v, m)\n"
              " s = ReduceSum<keepdims = 0>(z)\n y = Mul(r, s)",
              mode),
          {draw.input("q", {1, 2, 3, 2}), draw.input("k", {1, 2, 4, 2}),
           draw.input("v", {1, 2, 4, 3}), draw.input("m", {3, 4})});
  // One value three times over.
  check("y = Attention(x, x, x)", {draw.input("x", {1, 2, 3, 2})});
}

void scans(const Check& check) {
  Draw draw(27);
  for (int round = 0; round < 10; ++round) {
    const int64_t length = draw.between(round == 0 ? 0 : 1, 4);
    const int64_t a = draw.below(2), b = draw.below(2), out = draw.below(2);
    const Shape rows = {length, 3}, columns = {3, length};
    check(fmt::format(
              "f, s = Scan<num_scan_inputs = 2, scan_input_axes = [{}, {}], scan_input_directions "
              "= [{}, {}], scan_output_axes = [{}], scan_output_directions = [{}], "
              "body = b (s, e, g) => (t, o) {{ p = Mul(s, e)\n q = Sin(p)\n t = Add(q, g)\n r = "
              "Mul(t, w)\n o = Mul(r, e) }}>(h, x, z)\n"
              " k = ReduceSum<keepdims = 0>(s)\n y = Mul(f, k)",
              a == 0 ? 0 : 1, b == 0 ? 0 : -1, draw.below(2), draw.below(2), out, draw.below(2)),
          {draw.input("h", {3}), draw.input("x", a == 0 ? rows : columns),
           draw.input("z", b == 0 ? rows : columns), draw.input("w", {3})});
  }
}

void recurrent_layers(const Check& check) {
  Draw draw(28);
  for (int round = 0; round < 24; ++round) {
    const std::string op = draw.word({"RNN", "GRU", "LSTM"});
    const int64_t gates = op == "RNN" ? 1 : op == "GRU" ? 3 : 4;
    const std::string direction = draw.word({"forward", "reverse", "bidirectional"});
    const int64_t d = direction == "bidirectional" ? 2 : 1, hidden = draw.between(1, 3),
                  batch = draw.between(1, 2), steps = draw.between(1, 3), size = draw.between(1, 2);
    const bool first = draw.one_in(3), bias = !draw.one_in(3), lengths = draw.one_in(2);
    std::string form = fmt::format("hidden_size = {}, direction = \"{}\", layout = {}", hidden,
                                   direction, int{first});
    if (op == "GRU" && draw.one_in(2)) form += ", linear_before_reset = 1";
    if (op == "LSTM" && draw.one_in(2)) form += ", input_forget = 1";
    if (draw.one_in(3)) form += ", clip = 0.9";
    std::vector<Input> inputs{
        draw.input("x", first ? Shape{batch, steps, size} : Shape{steps, batch, size}),
        draw.input("w", {d, gates * hidden, size}), draw.input("r", {d, gates * hidden, hidden})};
    if (bias) inputs.push_back(draw.input("b", {d, 2 * gates * hidden}));
    const bool peepholes = op == "LSTM" && draw.one_in(2);
    if (peepholes) inputs.push_back(draw.input("p", {d, 3 * hidden}));
    const std::string call = fmt::format("{}<{}>(x, w, r, {}, {}{})", op, form, bias ? "b" : "",
                                         lengths ? "n" : "", peepholes ? ", , , p" : "");
    check(integers("n", {batch}, draw.integers(static_cast<size_t>(batch), 1, steps), "int32") +
              (op == "LSTM" ? "s, h, c = " : "s, h = ") + call + "\n t = ReduceSum<keepdims = 0>(" +
              (op == "LSTM" ? "c" : "h") + ")\n y = Mul(s, t)",
          inputs);
  }
}

// The standard's marks leave these states out; the layers pass on what flows into them.
void initial_states(const Check& check) {
  Draw draw(29);
  const Input x = draw.input("x", {3, 2, 2}), h = draw.input("h", {1, 2, 2}),
              c = draw.input("c", {1, 2, 2});
  check("y, f = GRU<hidden_size = 2>(x, w, r, , , h)",
        {x, draw.input("w", {1, 6, 2}), draw.input("r", {1, 6, 2}), h});
  check(
      "s, f, l = LSTM<hidden_size = 2>(x, w, r, , , h, c)\n t = ReduceSum<keepdims = 0>(l)\n y = "
      "Mul(s, t)",
      {x, draw.input("w", {1, 8, 2}), draw.input("r", {1, 8, 2}), h, c});
  // Of the state alone, too.
  Input still = x;
  still.differentiated = false;
  Input w = draw.input("w", {1, 2, 2}), r = draw.input("r", {1, 2, 2});
  w.differentiated = r.differentiated = false;
  check("y, f = RNN<hidden_size = 2>(x, w, r, , , h)", {still, w, r, h});
}

constexpr GradientCases groups[] = {
    {"RandomConvolutions", convolutions},
    {"RandomDeformedConvolutions", deformed_convolutions},
    {"RandomPools", pools},
    {"RandomSamples", samples},
    {"RandomNormalizations", normalizations},
    {"RandomLosses", losses},
    {"RandomAttention", attention},
    {"RandomScans", scans},
    {"RandomRecurrentLayers", recurrent_layers},
    {"InitialStates", initial_states},
};

}  // namespace

std::span<const GradientCases> random_layer_cases() { return groups; }

}  // namespace sardonyx::test
