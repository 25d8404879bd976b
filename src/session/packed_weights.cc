#include "session/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/fail.h"
#include "base/os.h"
#include "sardonyx/packing.h"
#include "session/model.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

// A name for people, and what tells it from others of the same name. A model that changes takes the
// place of what it was.
std::string name_in_cache(const Model::Implementation& model, const PackedFor& made_for) {
  const std::string& path = model.model.path;
  std::error_code ignored;
  const fs::path whole =
      path.empty() ? fs::path() : fs::absolute(os::path(path), ignored).lexically_normal();
  std::string identity = os::text(whole);
  if (path.empty()) {
    const ContentHash& structure = made_for.model.structure;
    identity = fmt::format("{:016x}{:016x}", structure[0], structure[1]);
  }
  identity += fmt::format("\n{}\n{:x}", made_for.target.version, made_for.target.processor);
  std::string stem = path.empty() ? "model" : whole.stem().string().substr(0, 64);
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  const ContentHash hash = content_hash(identity);
  return fmt::format("{}-{:016x}.sdx", stem, hash[0]);
}

int64_t bytes_of(const PackedForm& form) {
  int64_t bytes = 0;
  for (const Tensor& part : form.parts) bytes += static_cast<int64_t>(part.byte_size());
  return bytes;
}

ops::ConstantId with_content(const ops::PackCache::Identified& one) {
  ops::ConstantId id = one.id;
  if (!id.content) id.content = content_hash(one.constant);
  return id;
}

// A model that shares what the given one has and nothing that its sessions have packed.
Model apart(const Model& model) {
  return ModelMaker::derive_same_weights(model, ir::Model(model.implementation().model));
}

SessionOptions packing_options(const SessionOptions& options) {
  if (options.reference)
    fail(ErrorCode::bad_input, "a session with `reference` packs no weights; leave it out");
  SessionOptions made = options;
  made.packed.clear();
  made.cache_folder.clear();
  made.prepack = false;
  return made;
}

ModelFiles files_of(const Model::Implementation& model) { return {model.file, model.packs}; }

// What a session of a model makes that a file keeps.
struct Packed {
  PackedFor made_for;
  std::vector<PackedForm> forms;
  StoredGraphs graphs;
};

Packed pack(const Model& model, const SessionOptions& options) {
  const Model::Implementation& from = model.implementation();
  Packed made{{fingerprint_of(from), packing_target()}, {}, {}};
  from.packs.identify();
  if (made.made_for.model.knows_files()) from.graphs.ask();
  const Session session(model, options);
  session.steps();  // makes the plan where the first run would
  ThreadPool pool(options.threads);
  made.forms = packed_forms(from.packs, pool);
  const ModelFiles files = files_of(from);
  for (const OptimizedGraph& graph : from.graphs.take()) made.graphs.add(graph, files);
  return made;
}

std::string describe(const PackedForm& form) {
  return fmt::format("{}, constant of {} bytes", ops::describe(form.format), form.id.bytes);
}

// What differs between two arrays; empty where nothing does.
std::string difference(const Tensor& found, const Tensor& made, size_t part) {
  const auto* a = static_cast<const uint8_t*>(found.data());
  const auto* b = static_cast<const uint8_t*>(made.data());
  const size_t size = made.byte_size();
  if (std::memcmp(a, b, size) == 0) return "";
  const auto at = static_cast<size_t>(std::mismatch(a, a + size, b).first - a);
  return fmt::format("byte {} of part {} is {}, packing gives {}", at, part, a[at], b[at]);
}

// A graph in a file of its own: the same bytes for the same graph.
StoredGraphs alone(const StoredGraph& stored, const Bytes& constants, const ModelFiles& files) {
  StoredGraphs made;
  made.add({stored.choice, stored.is_of_clean_model, read_graph(stored.message, files, constants),
            stored.warnings},
           files);
  return made;
}

void compare_graphs(const PackedFile& file, const StoredGraphs& wanted, const ModelFiles& files,
                    PackedComparison& to) {
  const auto same = [](const Bytes& a, const Bytes& b) {
    return std::ranges::equal(a.span(), b.span());
  };
  const Bytes constants = wanted.constants.bytes();
  for (const StoredGraph& graph : wanted.graphs) {
    std::string what = "is not in the file";
    if (const StoredGraph* stored = file.find_graph(graph.choice)) {
      const StoredGraphs found = alone(*stored, file.constants(), files);
      const StoredGraphs made = alone(graph, constants, files);
      what.clear();
      if (!std::ranges::equal(found.graphs, made.graphs, same, &StoredGraph::message,
                              &StoredGraph::message)) {
        what = "has other nodes than passes make";
      } else if (!std::ranges::equal(found.constants.all(), made.constants.all(), same)) {
        what = "has other constants than passes compute";
      }
    }
    if (!what.empty()) to.differences.push_back({"the optimised graph", std::move(what)});
  }
}

}  // namespace

std::vector<PackedForm> packed_forms(const ops::PackCache& packs, ThreadPool& pool) {
  std::vector<PackedForm> forms;
  for (const ops::PackCache::Identified& one : packs.identified())
    forms.push_back({with_content(one), one.format, one.pack->parts(pool)});
  return forms;
}

std::shared_ptr<const PackedFile> open_packed(const std::string& path, const PackedFor& wanted) {
  auto file = PackedFile::open(path);
  if (const std::string reason = file->mismatch(wanted); !reason.empty())
    fail_at(path, ErrorCode::bad_input,
            "can't be used here: {}; make it again with `sardonyx pack`", reason);
  return file;
}

PackedWeights::PackedWeights(const Model::Implementation& model, const SessionOptions& options,
                             SessionLog log)
    : model_(model),
      packs_(model.packs),
      files_(files_of(model)),
      given_path_(options.packed),
      log_(std::move(log)) {
  made_for_ = {fingerprint_of(model), packing_target()};
  if (!options.packed.empty()) {
    given_ = open_packed(options.packed, made_for_);
    add_source(given_);
  }
  if (options.cache_folder.empty()) return;
  path_ = os::text(os::path(options.cache_folder) / os::path(name_in_cache(model, made_for_)));
  take_cached();
  if (made_for_.model.knows_files()) model.graphs.ask();
  if (file_) {
    add_source(file_);
  } else {
    model.packs.identify();
  }
}

namespace {

// Throws Error where the file's graph can't be the one that was stored.
OptimizedGraph graph_of(const PackedFile& file, const StoredGraph& stored, const ModelFiles& files,
                        std::span<const std::string> inputs, std::span<const std::string> outputs) {
  OptimizedGraph made{stored.choice, stored.is_of_clean_model,
                      read_graph(stored.message, files, file.constants()), stored.warnings};
  const auto have = [](const std::vector<ir::ValueInfo>& values,
                       std::span<const std::string> names) {
    return std::ranges::equal(values, names, {}, &ir::ValueInfo::name);
  };
  if (!have(made.graph.inputs, inputs) || !have(made.graph.outputs, outputs))
    fail(ErrorCode::unreadable, "the graph has other inputs or outputs than the model");
  return made;
}

}  // namespace

std::vector<std::shared_ptr<const PackedFile>> PackedWeights::files_of_same() const {
  std::vector<std::shared_ptr<const PackedFile>> files;
  for (const auto& file : {given_, file_}) {
    if (file && made_for_.model.knows_files() &&
        file->made_for().model.files == made_for_.model.files)
      files.push_back(file);
  }
  return files;
}

bool PackedWeights::knows_clean_model(std::string_view choice) const {
  for (const auto& file : files_of_same()) {
    if (const StoredGraph* stored = file->find_graph(choice)) return stored->is_of_clean_model;
  }
  return false;
}

std::optional<OptimizedGraph> PackedWeights::graph(const std::string& choice,
                                                   std::span<const std::string> inputs,
                                                   std::span<const std::string> outputs) const {
  for (const auto& file : files_of_same()) {
    const StoredGraph* stored = file->find_graph(choice);
    if (stored == nullptr) continue;
    try {
      OptimizedGraph taken = graph_of(*file, *stored, files_, inputs, outputs);
      log_.tell({.level = LogLevel::debug,
                 .place = file == given_ ? given_path_ : path_,
                 .message = "the optimised graph is taken from the file of packed weights"});
      return taken;
    } catch (const Error& error) {
      if (file == given_)
        fail_at(given_path_, ErrorCode::unreadable,
                "its optimised graph can't be used: {}; make it again with `sardonyx pack`",
                error.what());
      log_.tell(
          {.level = LogLevel::info,
           .place = path_,
           .message = fmt::format("an optimised graph in the file is of no use: {}", error.what()),
           .advice = "the model is optimised anew"});
    }
  }
  return std::nullopt;
}

void PackedWeights::take_cached() {
  std::error_code problem;
  if (!fs::exists(os::path(path_), problem)) {
    log_.tell({.level = LogLevel::debug,
               .place = path_,
               .message = "there is no file of packed weights yet",
               .advice = "weights are packed now, and written to it"});
    return;
  }
  std::string reason = "the model's files have changed since it was made";
  try {
    auto file = open_packed(path_, made_for_);
    // Files of another time may differ where the fingerprint does not see it.
    if (file->made_for().model.files == made_for_.model.files) {
      file_ = std::move(file);
      return;
    }
  } catch (const Error& error) {
    reason = error.message();
  }
  log_.tell({.level = LogLevel::info,
             .place = path_,
             .message = fmt::format("the file of packed weights is of no use: {}", reason),
             .advice = "weights are packed anew, and it is replaced"});
}

PackedWeights::~PackedWeights() {
  for (const auto& source : sources_) packs_.remove_source(*source);
}

void PackedWeights::add_source(const std::shared_ptr<const PackedFile>& file) {
  sources_.push_back(source_of(file, made_for_.model));
  packs_.add_source(sources_.back());
}

bool PackedWeights::is_stored(const ops::PackCache::Identified& one) const {
  if (one.is_from_source || stored_.contains(one.pack.get())) return true;
  if (!file_) return false;
  return file_->find(one.id, one.format, one.parts, !made_for_.model.knows_files()).has_value();
}

// The forms of the file that was there are for other options of the same model; they are kept up to
// the size of those that are used now.
std::vector<PackedForm> PackedWeights::with_earlier(std::vector<PackedForm> forms) const {
  if (!file_) return forms;
  int64_t room = 0;
  for (const PackedForm& form : forms) room += bytes_of(form);
  const size_t used = forms.size();
  for (size_t i = 0; i < file_->form_count(); ++i) {
    PackedForm form = file_->form(i);
    const auto same = [&](const PackedForm& other) {
      return other.id.content == form.id.content && other.id.bytes == form.id.bytes &&
             other.id.place == form.id.place && other.format == form.format;
    };
    if (std::any_of(forms.begin(), forms.begin() + static_cast<int64_t>(used), same)) continue;
    room -= bytes_of(form);
    if (room < 0) break;
    forms.push_back(std::move(form));
  }
  return forms;
}

// Those that the file has for other choices are kept up to a number.
StoredGraphs PackedWeights::with_earlier(const std::vector<OptimizedGraph>& graphs) const {
  StoredGraphs made;
  for (const OptimizedGraph& graph : graphs) made.add(graph, files_);
  for (const StoredGraph& earlier : file_ ? file_->graphs() : std::span<const StoredGraph>()) {
    if (made.graphs.size() >= KeptGraphs::max_graphs) break;
    if (std::ranges::find(made.graphs, earlier.choice, &StoredGraph::choice) != made.graphs.end())
      continue;
    try {
      made.add({earlier.choice, earlier.is_of_clean_model,
                read_graph(earlier.message, files_, file_->constants()), earlier.warnings},
               files_);
    } catch (const Error&) {  // it is of no use to anybody
    }
  }
  return made;
}

// What is stored next comes on top of what this has written.
void PackedWeights::take_written() {
  try {
    auto file = open_packed(path_, made_for_);
    if (file->made_for().model.files == made_for_.model.files) file_ = std::move(file);
  } catch (const Error&) {  // another process has changed it since
    file_ = nullptr;
  }
}

void PackedWeights::store(ThreadPool& pool) {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) return;
  const std::vector<ops::PackCache::Identified> list = packs_.identified();
  const std::vector<OptimizedGraph> graphs = model_.graphs.take();
  if (graphs.empty() && std::ranges::all_of(list, [&](const auto& one) { return is_stored(one); }))
    return;
  try {
    std::error_code problem;
    fs::create_directories(os::path(path_).parent_path(), problem);
    const uint64_t bytes = write_packed(path_, made_for_, with_earlier(packed_forms(packs_, pool)),
                                        with_earlier(graphs));
    take_written();
    for (const ops::PackCache::Identified& one : list) stored_.insert(one.pack.get());
    log_.tell({.level = LogLevel::info,
               .place = path_,
               .message = fmt::format("packed weights were written, {} bytes", bytes)});
  } catch (const Error& error) {
    const std::string path = std::exchange(path_, {});
    log_.tell(
        {.level = LogLevel::warning,
         .place = path,
         .message = fmt::format("the file of packed weights can't be written: {}", error.message()),
         .advice = "sessions pack their weights anew until their cache_folder can be written to"});
  }
}

PackedModel pack_model(const Model& model, const std::string& path, const SessionOptions& options) {
  const SessionOptions packing = packing_options(options);
  std::error_code ignored;
  const std::string& source = model.implementation().model.path;
  if (!source.empty() && fs::equivalent(os::path(path), os::path(source), ignored))
    fail_at(path, ErrorCode::bad_input,
            "is the model; its packed weights need a file of their own");
  const Packed made = pack(apart(model), packing);
  return {made.forms.size(), write_packed(path, made.made_for, made.forms, made.graphs)};
}

PackedComparison compare_packed(const Model& model, const std::string& path,
                                const SessionOptions& options) {
  const SessionOptions packing = packing_options(options);
  const Model apart_from_it = apart(model);
  const auto file =
      open_packed(path, {fingerprint_of(apart_from_it.implementation()), packing_target()});
  const Packed packed = pack(apart_from_it, packing);
  PackedComparison made;
  made.forms = packed.forms.size();
  if (file->made_for().model.files == packed.made_for.model.files)
    compare_graphs(*file, packed.graphs, files_of(apart_from_it.implementation()), made);
  for (const PackedForm& form : packed.forms) {
    std::vector<ops::PackPart> parts;
    for (const Tensor& part : form.parts) parts.push_back({part.element_type(), part.size()});
    // Both ways to know a constant must lead to the same bytes.
    for (const bool by_content : {false, true}) {
      if (!by_content && !form.id.place) continue;
      const auto found = file->find(form.id, form.format, parts, by_content);
      if (!found) {
        made.differences.push_back({describe(form), "is not in the file"});
        break;
      }
      std::string what;
      for (size_t i = 0; i < parts.size() && what.empty(); ++i)
        what = difference((*found)[i], form.parts[i], i);
      if (what.empty()) continue;
      made.differences.push_back({describe(form), std::move(what)});
      break;
    }
  }
  return made;
}

}  // namespace sardonyx
