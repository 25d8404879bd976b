#include "sardonyx/model.h"

#include <algorithm>

#include "api/view_maker.h"
#include "base/fail.h"
#include "ir/walk.h"
#include "session/model.h"
#include "tools/drawing.h"
#include "tools/saving.h"
#include "wire/sink.h"
#include "wire/store.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

// A sink of the library's that hands pieces on.
class Pieces : public wire::Sink {
 public:
  explicit Pieces(const TextSink& write) : write_(write) {
    if (!write) fail(ErrorCode::bad_input, "there is no function to give the text to");
  }

  using Sink::put;
  void put(const void* data, size_t size) override {
    if (size > 0) write_({static_cast<const char*>(data), size});
  }

 private:
  const TextSink& write_;
};

template <class Write>
std::string text_of(const Write& write) {
  std::string text;
  write([&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace

const std::string& Model::path() const { return implementation_->model.path; }
const std::string& Model::folder() const { return implementation_->model.folder; }

std::optional<int64_t> Model::ir_version() const { return implementation_->model.ir_version; }
std::string_view Model::producer_name() const { return implementation_->model.producer_name; }
std::string_view Model::producer_version() const { return implementation_->model.producer_version; }
std::string_view Model::domain() const { return implementation_->model.domain; }
int64_t Model::model_version() const { return implementation_->model.model_version; }
std::string_view Model::doc_string() const { return implementation_->model.doc_string; }

ViewList<EntryView> Model::metadata() const {
  return ViewMaker::list<EntryView>(implementation_->model.metadata_props);
}

std::optional<std::string_view> Model::metadata(std::string_view key) const {
  for (const ir::StringEntry& entry : implementation_->model.metadata_props) {
    if (entry.key == key) return entry.value;
  }
  return std::nullopt;
}

ViewList<OpsetImportView> Model::opset_imports() const {
  return ViewMaker::list<OpsetImportView>(implementation_->model.opset_imports);
}

int64_t Model::opset(std::string_view domain) const {
  return ir::imported_version(implementation_->model.opset_imports, domain);
}

bool Model::has_graph() const { return implementation_->model.graph.has_value(); }

GraphView Model::graph() const {
  const ir::Model& model = implementation_->model;
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  return ViewMaker::view(*model.graph, &model.folder);
}

ViewList<FunctionView> Model::functions() const {
  const ir::Model& model = implementation_->model;
  return ViewMaker::list<FunctionView>(model.functions, &model.folder);
}

bool Model::has_training_info() const { return !implementation_->model.training_info.empty(); }

bool Model::has_external_data() const { return wire::has_external_data(implementation_->model); }

Model Model::with_external_data(bool verify_checksums) const {
  return within_limit(implementation_->memory, [&] {
    return ModelMaker::derive_same_weights(*this, implementation_->with_data(verify_checksums));
  });
}

void Model::for_each_node(
    const std::function<bool(const NodePlace& place, const NodeView& node)>& visit) const {
  if (!visit) fail(ErrorCode::bad_input, "there is no function to visit nodes with");
  const ir::Model& model = implementation_->model;
  bool goes_on = true;
  NodePlace place;
  const ir::WalkPlace* named = nullptr;
  const auto enter = [&](const ir::WalkPlace&) { return named = nullptr, goes_on; };
  const auto leave = [&](const ir::WalkPlace&) { named = nullptr; };
  const auto node = [&](const ir::WalkPlace& at, const ir::Node& one, size_t index) {
    if (!goes_on) return;
    if (named != &at) place.graph = at.path(), place.depth = at.depth, named = &at;
    place.index = index;
    goes_on = visit(place, ViewMaker::view(one, &model.folder));
  };
  ir::walk(model, {.enter = enter, .leave = leave, .node = node});
}

Saved Model::save(const std::string& path, const SaveOptions& options) const {
  SaveOptions chosen = options;
  if (chosen.trusted_folder.empty()) chosen.trusted_folder = implementation_->trusted_folder;
  return save_model(implementation_->model, path, chosen, implementation_->source.get());
}

std::string Model::to_bytes(ModelForm form) const {
  wire::StringSink sink;
  write_form(implementation_->model, form, sink);
  return sink.take();
}

void Model::write(const TextSink& sink, ModelForm form) const {
  Pieces pieces(sink);
  write_form(implementation_->model, form, pieces);
}

std::string Model::to_text(const TextOptions& options) const {
  return text_of([&](const TextSink& sink) { write_text(sink, options); });
}

void Model::write_text(const TextSink& sink, const TextOptions& options) const {
  Pieces pieces(sink);
  wire::print(implementation_->model, pieces,
              {.max_elements = options.max_elements, .annotations = options.annotations});
}

void Model::save_text(const std::string& path, const TextOptions& options) const {
  wire::write_file(path, [&](wire::Sink& sink) {
    write_text([&](std::string_view piece) { sink.put(piece); }, options);
  });
}

std::string Model::to_drawing(DrawingForm form) const {
  return text_of([&](const TextSink& sink) { draw(sink, form); });
}

void Model::draw(const TextSink& sink, DrawingForm form) const {
  if (!sink) fail(ErrorCode::bad_input, "there is no function to give the drawing to");
  draw_model(implementation_->model, form, sink);
}

void Model::save_drawing(const std::string& path, DrawingForm form) const {
  wire::write_file(path, [&](wire::Sink& sink) {
    draw([&](std::string_view piece) { sink.put(piece); }, form);
  });
}

}  // namespace sardonyx
