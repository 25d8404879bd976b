#include "session/model.h"

#include <filesystem>
#include <system_error>

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

// The caller's, where it has one and this model no limit of its own.
SharedAccount account_of(const LoadOptions& options) {
  if (options.memory_limit == 0 && current_account()) return current_account();
  return std::make_shared<MemoryAccount>(options.memory_limit, "LoadOptions::memory_limit");
}

Bytes copied(const void* data, size_t size) {
  charge_memory(static_cast<int64_t>(size), [] { return "the copy of the model's bytes"; });
  return Bytes::copy_of({static_cast<const std::byte*>(data), size});
}

// The size of a pipe is not known before it has been read.
Bytes read_charged(const std::string& path) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  const auto known = ignored ? int64_t{0} : static_cast<int64_t>(size);
  charge_memory(known, [&] { return path; });
  Bytes file = read_file(path);
  charge_memory(static_cast<int64_t>(file.size()) - known, [&] { return path; });
  return file;
}

Warning to_warning(const check::Diagnostic& found) {
  return {std::string(found.rule), found.place.to_string(), found.message, found.advice};
}

// `mapped`: the file's bytes are a mapping, not memory of their own.
std::shared_ptr<const Model::Implementation> finish(ir::Model model, Bytes file, bool mapped,
                                                    const LoadOptions& options) {
  auto made = std::make_shared<Model::Implementation>();
  made->memory = current_account();
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
  std::call_once(once_, [&] { within_limit(memory, [&] { judge(); }); });
  return judged_;
}

void Model::Implementation::judge() const {
  const check::Options checking{.profile = check::Profile::runnable, .more = &custom};
  std::vector<check::Diagnostic> warnings;
  if (strict) {
    judged_.findings = check::check(model, checking);
  } else {
    lenient::Repaired repaired = lenient::repair(model, checking);
    judged_.memory = std::move(repaired.memory);
    judged_.mended = std::move(repaired.model);
    judged_.findings = std::move(repaired.findings);
    warnings = std::move(repaired.repairs);
  }
  // Of a model that is refused, only that matters.
  if (!warn || check::has_errors(judged_.findings)) return;
  warnings.insert(warnings.end(), judged_.findings.begin(), judged_.findings.end());
  for (const check::Diagnostic& found : warnings) warn(to_warning(found));
}

std::string Warning::to_string() const {
  std::string text = place.empty() ? message : place + ": " + message;
  if (!advice.empty()) text += "; " + advice;
  if (!rule.empty()) text += " [" + rule + "]";
  return text;
}

Model::Model(const std::string& path, const LoadOptions& options) {
  try {
    implementation_ = within_limit(account_of(options), [&] {
      const bool mapped = !options.read_into_memory;
      Bytes file = mapped ? map_file(path) : read_charged(path);
      ir::Model model = read_model_bytes(file, folder_of(path), form_of(path));
      model.path = path;
      return finish(std::move(model), file, mapped, options);
    });
  } catch (const Error& error) {
    throw error.location().starts_with(path) ? error : error.within(path);
  }
}

Model::Model(const void* data, size_t size, std::string folder, std::shared_ptr<const void> owner,
             const LoadOptions& options) {
  implementation_ = within_limit(account_of(options), [&] {
    const auto* bytes = static_cast<const std::byte*>(data);
    Bytes file = owner ? Bytes(std::move(owner), bytes, size) : copied(data, size);
    return finish(read_model_bytes(file, std::move(folder)), {}, false, options);
  });
}

Model Model::from_text(std::string_view text, const LoadOptions& options) {
  Model model;
  model.implementation_ = within_limit(
      account_of(options), [&] { return finish(wire::parse_model(text), {}, false, options); });
  return model;
}

}  // namespace sardonyx
