#include "model_inputs.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "arguments.h"
#include "fail.h"
#include "input_advice.h"
#include "os.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

std::string place(const std::string& name) { return fmt::format("input '{}'", name); }

double number_from(const std::string& text, const std::string& input) {
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  if (text.empty() || used != text.size())
    throw UsageError(fmt::format("--input {}: '{}' is not a number", input, text));
  return number;
}

std::string list(const std::vector<ValueDescription>& inputs) {
  std::string text;
  for (const ValueDescription& input : inputs) {
    text += fmt::format("{}'{}' ({}{})", text.empty() ? "" : ", ", input.name, input.type,
                        input.optional ? ", has a default" : "");
  }
  return text.empty() ? "none" : text;
}

}  // namespace

void ModelInputs::add_options(const Options& command) {
  command
      .add_option(
          "-i,--input", input_texts_,
          "A value for an input: NAME=FILE (.npy .npz .pb .json .txt .png .jpg), NAME=random,\n"
          "NAME=random:LOW:HIGH, NAME=ones, or NAME=VALUE as in x=1.5 or \"x=[[1,2],[3,4]]\";\n"
          "NAME=@FILE is a file whatever its name")
      .type_name("NAME=WHAT")
      .one_value_each();
  command
      .add_option(
          "--inputs", from_,
          "All inputs at once: an .npz with arrays of their names, or a folder with input_0.pb, …")
      .check(not_empty())
      .type_name("NPZ|DIR");
  command.add_flag("--random-inputs", random_inputs_,
                   "Random values for the inputs that are not given");
  dims_.add(command, std::string(open_sizes_help) + "; of random inputs and ones, 1 without it");
  command
      .add_option("--seed", seed_, "Of random values, and of random operators without a seed (0)")
      .check(whole_number(0))
      .type_name("N");
  command
      .add_option("--scale", image_.scale,
                  "Images: what pixels of 0 to 255 are multiplied by (1/255)")
      .type_name("X");
  command
      .add_option("--mean", image_.mean,
                  "Images: subtracted after that, one number or one for each channel")
      .type_name("X[,X,X]")
      .delimiter(',')
      .one_value_each();
  command.add_option("--std", image_.deviation, "Images: divided by at the end")
      .type_name("X[,X,X]")
      .delimiter(',')
      .one_value_each();
  command
      .add_option("--image-layout", layout_,
                  "Images: the order of dimensions, where the input's shape does not tell")
      .type_name("{NCHW,NHWC}");
}

void ModelInputs::parse() {
  for (const std::string& text : input_texts_) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      const bool holds_all = text.ends_with(".npz") || os::is_folder(text);
      throw UsageError(fmt::format("--input {}: expected NAME=WHAT, as in --input x=x.npy{}", text,
                                   holds_all ? "; all inputs at once are --inputs " + text : ""));
    }
    Named input{text.substr(0, equals), text.substr(equals + 1)};
    for (const Named& other : named_) {
      if (other.name == input.name)
        throw UsageError(fmt::format("--input {}: '{}' is given twice", text, input.name));
    }
    named_.push_back(std::move(input));
  }
  given_sizes_ = dims_.sizes();
  if (!layout_.empty()) {
    std::string upper = layout_;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    if (upper != "NCHW" && upper != "NHWC")
      throw UsageError(fmt::format("--image-layout {}: expected NCHW or NHWC", layout_));
    image_.nhwc = upper == "NHWC";
  }
  for (const auto* numbers : {&image_.mean, &image_.deviation}) {
    if (numbers->size() == 2 || numbers->size() > 3)
      throw UsageError("--mean and --std take one number or three");
  }
}

const ValueDescription& ModelInputs::find(const std::vector<ValueDescription>& inputs,
                                          const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return *found->second;
  fail_at(place(name), ErrorCode::bad_input, "the model has no input of this name; it has {}",
          list(inputs));
}

void ModelInputs::check_sizes(const std::vector<ValueDescription>& inputs) const {
  std::vector<std::string> names;
  for (const ValueDescription& input : inputs) {
    if (!input.shape) continue;
    for (const auto& dim : *input.shape) {
      if (!dim.size) names.push_back(dim.name);
    }
  }
  refuse_unknown_sizes(given_sizes_, names);
}

Error ModelInputs::with_unset_sizes(const Error& error) const {
  const bool may_follow =
      error.code() == ErrorCode::bad_input || error.code() == ErrorCode::run_failed;
  if (unset_.empty() || !may_follow) return error;
  constexpr size_t max_shown = 10;
  std::string names;
  std::unordered_set<std::string_view> told;
  for (const std::string& name : unset_) {
    if (told.insert(name).second && told.size() <= max_shown)
      names += (names.empty() ? "" : ", ") + name;
  }
  if (told.size() > max_shown) names += fmt::format(" and {} more", told.size() - max_shown);
  return Error(error.code(),
               fmt::format("{}; sizes taken as 1, since nothing set them: {}; set them with "
                           "--dim {}=N",
                           error.message(), names, unset_[0]),
               error.location());
}

std::vector<NamedValue> ModelInputs::values(const Model& model,
                                            const std::vector<ValueDescription>& inputs) {
  by_name_.clear();
  for (const ValueDescription& input : inputs) by_name_.emplace(input.name, &input);
  for (const Named& input : named_) find(inputs, input.name);
  check_sizes(inputs);
  sizes_ = given_sizes_;
  unset_.clear();
  std::vector<NamedValue> values;
  take_named(model, inputs, values);
  if (!from_.empty()) take_all(model, inputs, values);
  std::unordered_set<std::string> given;
  for (const auto& [name, value] : values) {
    learn_sizes(find(inputs, name), value, sizes_);
    given.insert(name);
  }

  std::vector<ValueDescription> missing;
  for (const ValueDescription& input : inputs) {
    if (given.contains(input.name)) continue;
    const auto named = std::find_if(named_.begin(), named_.end(),
                                    [&](const Named& n) { return n.name == input.name; });
    const bool needed = !input.optional && input.kind != Value::Kind::optional;
    if (named != named_.end()) {
      values.emplace_back(input.name, made(*named, input));
    } else if (needed && random_inputs_) {
      values.emplace_back(input.name,
                          random_value(input, shape_for(input, sizes_, &unset_), seed_));
    } else if (needed) {
      missing.push_back(input);
    }
  }
  if (missing.empty()) return values;
  fail(ErrorCode::bad_input,
       "missing inputs: {}; give them with --input NAME=FILE, or --random-inputs to try the model",
       list(missing));
}

void ModelInputs::take_named(const Model& model, const std::vector<ValueDescription>& inputs,
                             std::vector<NamedValue>& values) {
  for (const Named& input : named_) {
    if (!is_made(input))
      values.emplace_back(input.name, read(input, model, find(inputs, input.name)));
  }
}

// From an .npz or from a folder like those of the standard's test data. What is named by itself
// comes first.
void ModelInputs::take_all(const Model& model, const std::vector<ValueDescription>& inputs,
                           std::vector<NamedValue>& values) {
  std::unordered_set<std::string> names;
  for (const NamedValue& value : values) names.insert(value.first);
  for (const Named& input : named_) names.insert(input.name);
  const auto taken = [&](const std::string& name) { return !names.insert(name).second; };
  if (from_.ends_with(".npz")) {
    for (NamedValue& value : read_npz_values(from_, inputs)) {
      find(inputs, value.first);
      if (!taken(value.first)) values.push_back(std::move(value));
    }
    return;
  }
  if (!os::exists(from_)) fail_at(from_, ErrorCode::unreadable, "no such file or folder");
  if (!os::is_folder(from_))
    fail_at(from_, ErrorCode::bad_input,
            "is a file and no .npz; --inputs takes an .npz with arrays of the inputs' names, or a "
            "folder with input_0.pb, …; one input is --input NAME=FILE");
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const char* kind : {"pb", "npy"}) {
      const std::string path = fmt::format("{}/input_{}.{}", from_, i, kind);
      if (!os::exists(path)) continue;
      any = true;
      if (!taken(inputs[i].name))
        values.emplace_back(inputs[i].name, read_value_file(path, model, inputs[i], image_));
      break;
    }
  }
  if (!any)
    fail_at(from_, ErrorCode::bad_input, "has no input_0.pb or input_0.npy; the model takes {}",
            list(inputs));
}

bool ModelInputs::is_made(const Named& input) const {
  return input.text == "random" || input.text == "ones" || input.text.starts_with("random:");
}

Value ModelInputs::made(const Named& input, const ValueDescription& wanted) {
  const Shape shape = shape_for(wanted, sizes_, &unset_);
  if (input.text == "ones") return ones_value(wanted, shape);
  if (input.text == "random") return random_value(wanted, shape, seed_);
  const std::string range = input.text.substr(sizeof "random:" - 1);
  const size_t colon = range.find(':');
  if (colon == std::string::npos)
    throw UsageError(
        fmt::format("--input {}={}: expected random:LOW:HIGH", input.name, input.text));
  return random_value(wanted, shape, seed_,
                      RandomRange{number_from(range.substr(0, colon), input.name),
                                  number_from(range.substr(colon + 1), input.name)});
}

Value ModelInputs::read(const Named& input, const Model& model,
                        const ValueDescription& wanted) const {
  if (input.text.starts_with('@'))
    return read_value_file(input.text.substr(1), model, wanted, image_);
  const bool text =
      wanted.kind == Value::Kind::tensor && wanted.element_type == ElementType::string;
  const bool looks_like_file =
      is_value_file_name(input.text) || input.text.find('/') != std::string::npos;
  if (looks_like_file && (!text || os::exists(input.text)))
    return read_value_file(input.text, model, wanted, image_);
  try {
    return value_from_text(input.text, wanted);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{}; {}", error.message(), input_advice(input.name, input.text, wanted)),
        error.location())
        .within(place(input.name));
  }
}

}  // namespace sardonyx::cli
