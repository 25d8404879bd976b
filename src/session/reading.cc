#include "session/reading.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/os.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/utf.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view binary_endings[] = {".onnx", ".pb"};
constexpr std::string_view read_only_ending = ".ort";

}  // namespace

std::string lowered_ending(std::string_view path) {
  const size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] == '/') return {};
  std::string ending(path.substr(dot));
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return ending;
}

ModelForm form_of(const std::string& path) {
  const std::string ending = lowered_ending(path);
  if (ending == ".onnxtxt") return ModelForm::text;
  if (ending == ".json") return ModelForm::json;
  for (const char* end : {".textproto", ".pbtxt", ".prototxt"}) {
    if (ending == end) return ModelForm::textproto;
  }
  return ModelForm::binary;
}

std::optional<DrawingForm> drawing_form_of(std::string_view path) {
  const std::string ending = lowered_ending(path);
  if (ending == ".svg") return DrawingForm::svg;
  if (ending == ".dot" || ending == ".gv") return DrawingForm::dot;
  return std::nullopt;
}

std::string ending_problem(const std::string& path, const std::string& source) {
  const std::string ending = lowered_ending(path);
  if (ending.empty() || form_of(path) != ModelForm::binary || drawing_form_of(path) ||
      std::ranges::find(binary_endings, ending) != std::end(binary_endings) ||
      os::descriptor_named(path))
    return {};
  std::error_code ignored;
  const fs::path file = os::path(path);
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) return {};
  if (ending == read_only_ending)
    return "'.ort' is ONNX Runtime's own format, which is only read; write .onnx";
  if (!source.empty() && fs::equivalent(file, os::path(source), ignored)) return {};
  return fmt::format(
      "'{}' says no form that a model can be written in; known are .onnx (.pb), .onnxtxt, .json, "
      ".textproto (.pbtxt, .prototxt), and drawings: .svg, .dot (.gv)",
      ending);
}

namespace {

ir::Model read_text_form(std::string_view text, ModelForm form) {
  if (form == ModelForm::text) return wire::parse_model(text);
  return wire::read_named_model(
      text, form == ModelForm::json ? wire::NamedForm::json : wire::NamedForm::textproto);
}

ir::Model read_form(const Bytes& bytes, ModelForm form) {
  if (form == ModelForm::binary) return wire::read_model(bytes);
  ir::Model model = read_text_form(wire::without_mark(bytes.text()), form);
  // As of the binary form: such a message says nothing of a model, and an empty text is one.
  if (!model.graph && !model.ir_version && model.opset_imports.empty())
    fail(ErrorCode::unreadable,
         "is not an ONNX model: it has neither a graph nor ir_version nor opset_import");
  return model;
}

// The file could be read; what is in it is no sound model.
template <class Read>
auto reading(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unreadable) throw;
    throw Error(ErrorCode::invalid_model, error.message(), error.location());
  }
}

}  // namespace

ir::Model read_model_bytes(const Bytes& bytes, std::string folder, ModelForm form) {
  ir::Model model = reading([&] { return read_form(bytes, form); });
  model.folder = std::move(folder);
  return model;
}

ir::Model read_model_file(const std::string& path) { return read_model_file(MappedFile(path)); }

ir::Model read_model_file(const MappedFile& file) {
  const std::string& path = file.path();
  const ModelForm form = form_of(path);
  if (form == ModelForm::binary) return reading([&] { return wire::read_model(file); });
  try {
    ir::Model model = read_model_bytes(file.bytes(), os::folder_of(path), form);
    model.path = path;
    return model;
  } catch (const Error& error) {
    throw error.within(path);
  }
}

ir::OperatorSet read_operator_set_file(const std::string& path) {
  const Bytes bytes = map_file(path);
  try {
    return reading([&] {
      switch (form_of(path)) {
        case ModelForm::binary: return wire::read_operator_set(bytes);
        case ModelForm::json:
          return wire::read_named_operator_set(wire::without_mark(bytes.text()),
                                               wire::NamedForm::json);
        case ModelForm::textproto:
          return wire::read_named_operator_set(wire::without_mark(bytes.text()),
                                               wire::NamedForm::textproto);
        case ModelForm::text: break;
      }
      fail(ErrorCode::unsupported,
           "the textual syntax has no operator set documents; write it in binary, .json or "
           ".textproto");
    });
  } catch (const Error& error) {
    throw error.within(path);
  }
}

}  // namespace sardonyx
