#include "session/compose.h"

#include <algorithm>

#include "base/fail.h"
#include "compose/extract.h"
#include "session/reading.h"

namespace sardonyx {
namespace {

// Runs a tool; its errors name the file.
template <class Tool>
auto within(const std::string& path, const Tool& tool) {
  try {
    return tool();
  } catch (const Error& error) {
    throw error.within(path);
  }
}

}  // namespace

Saved extract_file(const std::string& from, const std::string& to,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const SaveOptions& options) {
  const MappedFile file(from);
  const ir::Model model = read_model_file(file);
  return save_model(within(from, [&] { return compose::extract(model, inputs, outputs); }), to,
                    options.from(file));
}

Saved merge_files(const std::string& first, const std::string& second, const std::string& to,
                  const compose::MergeOptions& merging, const SaveOptions& options) {
  const MappedFile file(first);
  ir::Model a = read_model_file(file), b = read_model_file(second);
  if (options.moves_data()) {
    bring_in_external_data(a, options);
    bring_in_external_data(b, options);
  } else {
    require_data_in(b, folder_of(to));
  }
  return save_model(compose::merge(std::move(a), std::move(b), merging), to, options.from(file));
}

Saved rename_in_file(const std::string& from, const std::string& to,
                     const compose::Renaming& renaming, const std::string& prefix,
                     const SaveOptions& options) {
  const MappedFile file(from);
  ir::Model model = read_model_file(file);
  within(from, [&] {
    compose::rename(model, renaming);
    if (!prefix.empty()) compose::rename(model, compose::prefixed(model, prefix));
  });
  return save_model(std::move(model), to, options.from(file));
}

Saved edit_file(const std::string& from, const std::string& to, const ModelEdits& edits,
                const SaveOptions& options) {
  const MappedFile file(from);
  ir::Model model = read_model_file(file);
  const auto set = [](auto& member, const auto& edit) {
    if (edit) member = *edit;
  };
  set(model.producer_name, edits.producer_name);
  set(model.producer_version, edits.producer_version);
  set(model.domain, edits.domain);
  set(model.doc_string, edits.doc_string);
  set(model.model_version, edits.model_version);
  if (edits.ir_version) model.ir_version = *edits.ir_version;
  if (edits.graph_name && !model.graph)
    fail_at(from, ErrorCode::invalid_model, "the model has no graph to name");
  if (edits.graph_name) model.graph->name = *edits.graph_name;
  for (const std::string& key : edits.remove_metadata) {
    if (std::erase_if(model.metadata_props,
                      [&](const ir::StringEntry& entry) { return entry.key == key; }) == 0)
      fail_at(from, ErrorCode::bad_input, "the model has no metadata '{}' to remove", key);
  }
  for (const auto& [key, value] : edits.set_metadata) {
    const auto found = std::ranges::find(model.metadata_props, key, &ir::StringEntry::key);
    if (found != model.metadata_props.end()) {
      found->value = value;
    } else {
      model.metadata_props.push_back({key, value, {}});
    }
  }
  return save_model(std::move(model), to, options.from(file));
}

}  // namespace sardonyx
