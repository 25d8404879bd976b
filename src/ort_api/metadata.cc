// What a model says of itself.
#include <algorithm>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) {
  return guarded([&] {
    OrtModelMetadata*& to = required(out, "out");
    to = new OrtModelMetadata(metadata_of(required(session, "session").model));
  });
}

OrtStatus* given_entry(const OrtModelMetadata* metadata, std::string OrtModelMetadata::*text,
                       OrtAllocator* allocator, char** out) {
  return guarded([&] {
    char*& to = required(out, "value");
    to = given_text(allocator, required(metadata, "model_metadata").*text);
  });
}

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                        char** out) {
  return given_entry(metadata, &OrtModelMetadata::producer, allocator, out);
}
OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                     char** out) {
  return given_entry(metadata, &OrtModelMetadata::graph, allocator, out);
}
OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                  char** out) {
  return given_entry(metadata, &OrtModelMetadata::domain, allocator, out);
}
OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                       char** out) {
  return given_entry(metadata, &OrtModelMetadata::description, allocator, out);
}
OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* metadata,
                                            OrtAllocator* allocator, char** out) {
  return given_entry(metadata, &OrtModelMetadata::graph_description, allocator, out);
}

OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* metadata, int64_t* out) {
  return guarded([&] { required(out, "value") = required(metadata, "model_metadata").version; });
}

// Null where there is no such key.
OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* metadata,
                                                OrtAllocator* allocator, const char* key,
                                                char** out) {
  return guarded([&] {
    char*& to = required(out, "value");
    const auto& entries = required(metadata, "model_metadata").entries;
    const std::string_view asked = &required(key, "key");
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const auto& entry) { return entry.first == asked; });
    to = found == entries.end() ? nullptr : given_text(allocator, found->second);
  });
}

OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* metadata,
                                                 OrtAllocator* allocator, char*** keys,
                                                 int64_t* count) {
  return guarded([&] {
    char**& to = required(keys, "keys");
    std::vector<std::string> names;
    for (const auto& entry : required(metadata, "model_metadata").entries)
      names.push_back(entry.first);
    int64_t& found = required(count, "num_keys");
    to = given_texts(allocator, names);
    found = static_cast<int64_t>(names.size());
  });
}

void ReleaseModelMetadata(OrtModelMetadata* metadata) { delete metadata; }

}  // namespace

OrtModelMetadata metadata_of(const Model& model) {
  OrtModelMetadata found;
  found.producer = model.producer_name();
  found.domain = model.domain();
  found.description = model.doc_string();
  if (model.has_graph()) {
    found.graph = model.graph().name();
    found.graph_description = model.graph().doc_string();
  }
  // What ONNX Runtime says of a model without a version.
  found.version = model.model_version() == 0 ? INT64_MAX : model.model_version();
  std::map<std::string_view, size_t> places;  // of two entries with one key the last one counts
  for (const EntryView entry : model.metadata()) {
    const auto [place, is_new] = places.emplace(entry.key(), found.entries.size());
    if (is_new) found.entries.emplace_back(entry.key(), "");
    found.entries[place->second].second = entry.value();
  }
  return found;
}

void add_metadata(OrtApi& table) {
  table.SessionGetModelMetadata = SessionGetModelMetadata;
  table.ModelMetadataGetProducerName = ModelMetadataGetProducerName;
  table.ModelMetadataGetGraphName = ModelMetadataGetGraphName;
  table.ModelMetadataGetDomain = ModelMetadataGetDomain;
  table.ModelMetadataGetDescription = ModelMetadataGetDescription;
  table.ModelMetadataGetGraphDescription = ModelMetadataGetGraphDescription;
  table.ModelMetadataGetVersion = ModelMetadataGetVersion;
  table.ModelMetadataLookupCustomMetadataMap = ModelMetadataLookupCustomMetadataMap;
  table.ModelMetadataGetCustomMetadataMapKeys = ModelMetadataGetCustomMetadataMapKeys;
  table.ReleaseModelMetadata = ReleaseModelMetadata;
}

}  // namespace sardonyx::ort_api
