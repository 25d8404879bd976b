#include "tools/saving.h"

#include <filesystem>
#include <optional>

#include "base/fail.h"
#include "base/os.h"
#include "session/reading.h"
#include "tools/drawing.h"
#include "wire/external.h"
#include "wire/named_forms.h"
#include "wire/store.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t protobuf_limit = (uint64_t{1} << 31) - 1;

// The first external tensor's name, "" where it has none; nothing where all data is inside.
std::optional<std::string> external_tensor(ir::Model model) {
  std::optional<std::string> found;
  const auto needs = [&](const ir::TensorProto& tensor) {
    if (tensor.is_external() && !found) found = tensor.name;
    return false;
  };
  wire::change_tensors(model, needs, [](ir::TensorProto&) {});
  return found;
}

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || fs::equivalent(os::path(a), os::path(b), ignored);
}

// Files beside the model need a folder that it is in; and none may take the place of the model that
// is read.
void require_place_for_data(const ir::Model& model, const std::string& path,
                            const std::string& data_name) {
  std::error_code ignored;
  const auto info = os::info_of(path);
  if (info && !info->is_regular() && !info->is_folder())
    fail_at(path, ErrorCode::bad_input,
            "is no file that '{}' could lie beside; name a file, or put all data into the model",
            data_name);
  if (os::descriptor_named(path))
    fail_at(path, ErrorCode::bad_input,
            "names no folder that '{}' could lie in; name a file, or put all data into the model",
            data_name);
  if (!model.path.empty() && path != model.path &&
      fs::equivalent(os::path(os::folder_of(path)) / os::path(data_name), os::path(model.path),
                     ignored))
    fail_at(model.path, ErrorCode::bad_input,
            "would be overwritten by the weights: choose another name for their file");
}

uint64_t size_of(const fs::path& path) {
  std::error_code problem;
  const uint64_t size = fs::file_size(path, problem);
  return problem ? 0 : size;
}

}  // namespace

void write_form(const ir::Model& model, ModelForm form, wire::Sink& sink) {
  switch (form) {
    case ModelForm::binary: return wire::write_model(model, sink);
    case ModelForm::text: return wire::print(model, sink);
    case ModelForm::json: return wire::write_named(model, wire::NamedForm::json, sink);
    case ModelForm::textproto: return wire::write_named(model, wire::NamedForm::textproto, sink);
  }
}

void bring_in_external_data(ir::Model& model, const SaveOptions& options) {
  wire::ExternalData external(model.folder, {.trusted_folder = options.trusted_folder,
                                             .verify_checksums = options.verify_checksums});
  try {
    wire::bring_in(model, external);
  } catch (const Error& error) {
    throw model.path.empty() ? error : error.within(model.path);
  }
}

void require_data_in(const ir::Model& model, const std::string& folder) {
  if (same_folder(folder, model.folder)) return;
  if (const auto tensor = external_tensor(model)) {
    fail(ErrorCode::bad_input,
         "tensor '{}' is external data in the folder '{}', where a model in '{}' would not find "
         "it; put the data into the model file (--embed) or a file beside it (--external-data "
         "FILE)",
         *tensor, model.folder, folder);
  }
}

namespace {

Saved save_drawing(const ir::Model& model, DrawingForm form, const std::string& path,
                   const SaveOptions& options) {
  if (options.moves_data())
    fail_at(path, ErrorCode::bad_input,
            "is a drawing, which holds no weights; --embed and --external-data are for models");
  Saved saved;
  saved.model_bytes = wire::write_file(path, [&](wire::Sink& sink) {
    draw_model(model, form, [&](std::string_view piece) { sink.put(piece); });
  });
  return saved;
}

}  // namespace

Saved save_model(const ir::Model& model, const std::string& path, const SaveOptions& options,
                 const MappedFile* source) {
  if (!options.form) {
    if (const std::string problem = ending_problem(path, model.path); !problem.empty())
      fail_at(path, ErrorCode::bad_input, "{}", problem);
    if (const auto drawing = drawing_form_of(path))
      return save_drawing(model, *drawing, path, options);
  }
  if (options.embed && !options.external_data.empty())
    fail(ErrorCode::bad_input, "data goes into the model file or into one beside it, not both");
  const ModelForm form = options.form.value_or(form_of(path));
  const std::string folder = os::folder_of(path);
  std::optional<ir::Model> whole;
  if (options.moves_data()) {
    bring_in_external_data(whole.emplace(model), options);
  } else {
    require_data_in(model, folder);
  }
  Saved saved;
  const auto write = [form](const ir::Model& written, wire::Sink& sink) {
    write_form(written, form, sink);
  };
  if (options.external_data.empty()) {
    saved.model_bytes = wire::write_file(
        path, [&](wire::Sink& sink) { write(whole ? *whole : model, sink); }, source);
  } else {
    require_place_for_data(model, path, options.external_data);
    wire::write_model_with_data(std::move(*whole), path, options.external_data,
                                {.at_least = options.threshold,
                                 .alignment = options.alignment,
                                 .checksum = options.checksum,
                                 .source = source},
                                write);
    saved.data_bytes = size_of(os::path(folder) / os::path(options.external_data));
    saved.model_bytes = size_of(os::path(path));
  }
  if (form == ModelForm::binary && saved.model_bytes > protobuf_limit) {
    saved.notes.push_back(
        "the file is larger than 2 GiB, where readers built on protobuf stop; --external-data FILE "
        "keeps weights outside");
  }
  return saved;
}

Saved convert_model(const std::string& from, const std::string& to, const SaveOptions& options) {
  const MappedFile file(from);
  return save_model(read_model_file(file), to, options, &file);
}

}  // namespace sardonyx
