#include "session/model.h"

#include "base/fail.h"
#include "check/check.h"
#include "lenient/lenient.h"
#include "session/custom.h"
#include "session/operator_sets.h"
#include "session/reading.h"
#include "wire/store.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

Warning to_warning(const check::Diagnostic& found) {
  return {std::string(found.rule), found.place.to_string(), found.message, found.advice};
}

// `mapped`: the file's bytes are a mapping, not memory of their own.
std::shared_ptr<const Model::Implementation> finish(ir::Model model, Bytes file, bool mapped,
                                                    const LoadOptions& options) {
  auto made = std::make_shared<Model::Implementation>();
  if (mapped) made->packs.add_file(file.span());
  made->file = std::move(file);
  made->model = std::move(model);
  made->custom = custom_table(options.custom_operators.get(), options.libraries);
  add_operator_sets(made->model, read_operator_sets(options.operator_sets));
  wire::ExternalData external(made->model.folder, {.trusted_folder = options.trusted_folder});
  // External tensors become views of their files; everything after this sees plain tensors.
  wire::bring_in(made->model, external,
                 [&](const Bytes& bytes) { made->packs.add_file(bytes.span()); });
  made->strict = options.strict;
  made->warn = options.warn;
  return made;
}

}  // namespace

const Model::Implementation::Judged& Model::Implementation::judged() const {
  std::call_once(once_, [&] {
    const check::Options checking{.profile = check::Profile::runnable, .more = &custom};
    std::vector<check::Diagnostic> warnings;
    if (strict) {
      judged_.findings = check::check(model, checking);
    } else {
      lenient::Repaired repaired = lenient::repair(model, checking);
      judged_.mended = std::move(repaired.model);
      judged_.findings = std::move(repaired.findings);
      warnings = std::move(repaired.repairs);
    }
    // Of a model that is refused, only that matters.
    if (!warn || check::has_errors(judged_.findings)) return;
    warnings.insert(warnings.end(), judged_.findings.begin(), judged_.findings.end());
    for (const check::Diagnostic& found : warnings) warn(to_warning(found));
  });
  return judged_;
}

std::string Warning::to_string() const {
  std::string text = place.empty() ? message : place + ": " + message;
  if (!advice.empty()) text += "; " + advice;
  if (!rule.empty()) text += " [" + rule + "]";
  return text;
}

Model::Model(const std::string& path, const LoadOptions& options) {
  Bytes file = options.read_into_memory ? read_file(path) : map_file(path);
  try {
    ir::Model model = read_model_bytes(file, folder_of(path), form_of(path));
    model.path = path;
    implementation_ = finish(std::move(model), file, !options.read_into_memory, options);
  } catch (const Error& error) {
    throw error.within(path);
  }
}

Model::Model(const void* data, size_t size, std::string folder, std::shared_ptr<const void> owner,
             const LoadOptions& options) {
  const auto* bytes = static_cast<const std::byte*>(data);
  Bytes file = owner ? Bytes(std::move(owner), bytes, size) : Bytes::copy_of({bytes, size});
  implementation_ = finish(read_model_bytes(file, std::move(folder)), {}, false, options);
}

Model Model::from_text(std::string_view text, const LoadOptions& options) {
  Model model;
  model.implementation_ = finish(wire::parse_model(text), {}, false, options);
  return model;
}

}  // namespace sardonyx
