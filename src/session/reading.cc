#include "session/reading.h"

#include <utility>

#include "base/fail.h"
#include "wire/read.h"
#include "wire/text_parse.h"

namespace sardonyx {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

ModelForm form_of(const std::string& path) {
  return path.ends_with(".onnxtxt") ? ModelForm::text : ModelForm::binary;
}

ir::Model read_model_bytes(const Bytes& bytes, std::string folder, ModelForm form) {
  try {
    if (form == ModelForm::binary) return wire::read_model(bytes, std::move(folder));
    ir::Model model = wire::parse_model(bytes.text());
    model.folder = std::move(folder);
    return model;
  } catch (const Error& error) {
    // The file could be read; what is in it is no sound model.
    if (error.code() != ErrorCode::unreadable) throw;
    throw Error(ErrorCode::invalid_model, error.message(), error.location());
  }
}

ir::Model read_model_file(const std::string& path) {
  const Bytes bytes = map_file(path);
  try {
    ir::Model model = read_model_bytes(bytes, folder_of(path), form_of(path));
    model.path = path;
    return model;
  } catch (const Error& error) {
    throw error.within(path);
  }
}

}  // namespace sardonyx
