#include "session/reading.h"

#include <utility>

#include "base/fail.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/text_parse.h"

namespace sardonyx {

ModelForm form_of(const std::string& path) {
  if (path.ends_with(".onnxtxt")) return ModelForm::text;
  if (path.ends_with(".json")) return ModelForm::json;
  for (const char* end : {".textproto", ".pbtxt", ".prototxt"}) {
    if (path.ends_with(end)) return ModelForm::textproto;
  }
  return ModelForm::binary;
}

namespace {

ir::Model read_form(const Bytes& bytes, ModelForm form) {
  switch (form) {
    case ModelForm::binary: return wire::read_model(bytes);
    case ModelForm::text: return wire::parse_model(bytes.text());
    case ModelForm::json: return wire::read_named_model(bytes.text(), wire::NamedForm::json);
    case ModelForm::textproto: break;
  }
  return wire::read_named_model(bytes.text(), wire::NamedForm::textproto);
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
    ir::Model model = read_model_bytes(file.bytes(), folder_of(path), form);
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
          return wire::read_named_operator_set(bytes.text(), wire::NamedForm::json);
        case ModelForm::textproto:
          return wire::read_named_operator_set(bytes.text(), wire::NamedForm::textproto);
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
