#include "session/model.h"

#include "base/content_hash.h"
#include "base/fail.h"
#include "base/os.h"
#include "check/check.h"
#include "lenient/lenient.h"
#include "session/custom.h"
#include "session/operator_sets.h"
#include "session/reading.h"
#include "wire/footprint.h"
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
  const auto info = os::info_of(path);
  const auto known = info && info->is_regular() ? static_cast<int64_t>(info->size) : 0;
  charge_memory(known, [&] { return path; });
  Bytes file = read_file(path);
  charge_memory(static_cast<int64_t>(file.size()) - known, [&] { return path; });
  return file;
}

Warning to_warning(const check::Diagnostic& found) {
  return {std::string(found.rule), found.place.to_string(), found.message, found.advice};
}

// Where a tensor's external data begins, as PackCache tells files apart.
ops::ConstantPlace external_place(const ir::TensorProto& tensor) {
  std::string text;
  for (const ir::StringEntry& entry : tensor.external_data) {
    if (entry.key == "location" || entry.key == "offset")
      text += fmt::format("{}={}\n", entry.key, entry.value);
  }
  return {content_hash(text)[0] | 1, 0};
}

// `mapped`: the file's bytes are a mapping, not memory of their own.
std::shared_ptr<Model::Implementation> finish(ir::Model model, Bytes file, bool mapped,
                                              const LoadOptions& options,
                                              std::optional<FileStamp> stamp = {}) {
  auto made = std::make_shared<Model::Implementation>();
  made->memory = current_account();
  made->is_mapped = mapped;
  if (mapped) made->packs.add_file(file);
  made->stamp = std::move(stamp);
  made->file = std::move(file);
  made->model = std::move(model);
  made->custom = custom_table(options.custom_operators.get(), options.libraries);
  add_operator_sets(made->model, read_operator_sets(options.operator_sets));
  made->trusted_folder = options.trusted_folder;
  made->defers_data = !options.load_external_data;
  // External tensors become views of their files; everything after this sees plain tensors.
  if (options.load_external_data) made->bring_in(made->model);
  made->strict = options.strict;
  made->warn = options.warn;
  return made;
}

// For tools: the file stays open, so that its weights can go from file to file.
std::shared_ptr<Model::Implementation> open_for_tools(const std::string& path,
                                                      const LoadOptions& options) {
  auto source = std::make_shared<const MappedFile>(path);
  ir::Model model;
  if (!options.form || *options.form == form_of(path)) {
    model = read_model_file(*source);
  } else {
    model = read_model_bytes(source->bytes(), os::folder_of(path), *options.form);
    model.path = path;
  }
  auto made =
      finish(std::move(model), source->bytes(), source->is_mapped(), options, stamp_of(path));
  made->source = std::move(source);
  return made;
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  const auto info = os::info_of(path);
  if (!info || !info->is_regular()) return std::nullopt;
  return FileStamp{info->size, info->seconds, info->nanoseconds};
}

const Model::Implementation::Judged& Model::Implementation::judged() const {
  if (!is_judged_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(judging_);
    if (!is_judged_.load(std::memory_order_relaxed)) within_limit(memory, [&] { judge(); });
    is_judged_.store(true, std::memory_order_release);
  }
  return judged_;
}

void Model::Implementation::bring_in(ir::Model& into, bool verify) const {
  wire::ExternalData external(into.folder,
                              {.trusted_folder = trusted_folder, .verify_checksums = verify});
  wire::bring_in(into, external, [&](const ir::TensorProto& tensor) {
    packs.add_file(tensor.raw_data, external_place(tensor));
    for (const ir::StringEntry& entry : tensor.external_data) {
      if (entry.key == "location" && !external_files.contains(entry.value))
        external_files[entry.value] = stamp_of(into.folder + "/" + entry.value);
    }
  });
}

ir::Model Model::Implementation::with_data(bool verify) const {
  ir::Model whole = model;
  if (defers_data) {
    try {
      bring_in(whole, verify);
    } catch (const Error& error) {
      throw model.path.empty() ? error : error.within(model.path);
    }
  }
  return whole;
}

namespace {

std::shared_ptr<Model::Implementation> derived(const Model::Implementation& given,
                                               ir::Model changed) {
  auto made = std::make_shared<Model::Implementation>();
  made->memory = given.memory;
  made->messages =
      within_limit(given.memory, [&] { return MemoryCharge(wire::memory_of(changed)); });
  made->model = std::move(changed);
  made->file = given.file;
  made->is_mapped = given.is_mapped;
  made->external_files = given.external_files;
  made->packs.add_files_of(given.packs);
  made->source = given.source;
  made->defers_data = given.defers_data;
  made->trusted_folder = given.trusted_folder;
  made->custom = given.custom;
  made->strict = given.strict;
  made->warn = given.warn;
  return made;
}

}  // namespace

Model ModelMaker::derive(const Model& from, ir::Model changed) {
  return make(derived(from.implementation(), std::move(changed)));
}

Model ModelMaker::derive_same_weights(const Model& from, ir::Model changed) {
  auto made = derived(from.implementation(), std::move(changed));
  made->stamp = from.implementation().stamp;
  return make(std::move(made));
}

void Model::Implementation::judge() const {
  std::optional<ir::Model> whole;
  if (defers_data) bring_in(whole.emplace(model));
  const ir::Model& judged_model = whole ? *whole : model;
  const check::Options checking{.profile = check::Profile::runnable, .more = &custom};
  std::vector<check::Diagnostic> warnings;
  if (strict) {
    judged_.findings = check::check(judged_model, checking);
  } else {
    lenient::Repaired repaired = lenient::repair(judged_model, checking);
    judged_.memory = std::move(repaired.memory);
    judged_.mended = std::move(repaired.model);
    judged_.findings = std::move(repaired.findings);
    warnings = std::move(repaired.repairs);
  }
  judged_.is_clean =
      !strict && !judged_.mended && judged_.findings.empty() && warnings.empty() && !whole;
  if (whole && !judged_.mended) {
    judged_.memory = MemoryCharge(wire::memory_of(*whole));
    judged_.mended = std::move(whole);
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
      if (!options.load_external_data && !options.read_into_memory)
        return open_for_tools(path, options);
      const bool mapped = !options.read_into_memory;
      const auto before = stamp_of(path);
      Bytes file = mapped ? map_file(path) : read_charged(path);
      // A file that changes meanwhile has no stamp: what was read may be of either.
      auto stamp = stamp_of(path);
      if (stamp != before) stamp.reset();
      ir::Model model =
          read_model_bytes(file, os::folder_of(path), options.form.value_or(form_of(path)));
      model.path = path;
      return finish(std::move(model), file, mapped, options, std::move(stamp));
    });
  } catch (const Error& error) {
    throw error.location().starts_with(path) ? error : error.within(path);
  }
}

Model::Model(const void* data, size_t size, std::string folder, std::shared_ptr<const void> owner,
             const LoadOptions& options) {
  if (data == nullptr && size > 0)
    fail(ErrorCode::bad_input, "there is no memory for the {} bytes of the model", size);
  implementation_ = within_limit(account_of(options), [&] {
    const auto* bytes = static_cast<const std::byte*>(data);
    Bytes file = owner ? Bytes(std::move(owner), bytes, size) : copied(data, size);
    return finish(
        read_model_bytes(file, std::move(folder), options.form.value_or(ModelForm::binary)), {},
        false, options);
  });
}

Model Model::from_text(std::string_view text, const LoadOptions& options) {
  Model model;
  model.implementation_ = within_limit(
      account_of(options), [&] { return finish(wire::parse_model(text), {}, false, options); });
  return model;
}

Model Model::from_stream(const ByteSource& read, std::string folder, const LoadOptions& options) {
  if (!read) fail(ErrorCode::bad_input, "there is no function to read the model from");
  constexpr size_t piece = size_t{1} << 20;
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const SharedAccount account = account_of(options);
  Model model;
  model.implementation_ = within_limit(account, [&] {
    size_t filled = 0;
    for (size_t got = 1; got > 0; filled += got) {
      if (bytes->size() - filled < piece / 16) {
        const size_t more = std::max(piece, bytes->size() / 2);
        charge_memory(static_cast<int64_t>(more), [] { return "the model's bytes"; });
        bytes->resize(bytes->size() + more);
      }
      const size_t asked = bytes->size() - filled;
      got = read(bytes->data() + filled, asked);
      if (got > asked)
        fail(ErrorCode::bad_input, "the stream gave {} bytes where {} were asked for", got, asked);
    }
    bytes->resize(filled);
    const Bytes file(bytes, bytes->data(), bytes->size());
    return finish(
        read_model_bytes(file, std::move(folder), options.form.value_or(ModelForm::binary)), {},
        false, options);
  });
  return model;
}

}  // namespace sardonyx
