// What models say of themselves, and which provider computes their nodes.
#include <algorithm>
#include <cstdlib>

#include "ort_api/api.h"

namespace sardonyx::ort_api {
namespace {

Held<OrtModelMetadata> metadata_of(const OrtSession* session) {
  OrtModelMetadata* metadata = nullptr;
  EXPECT_OK(api().SessionGetModelMetadata(session, &metadata));
  return {metadata, {api().ReleaseModelMetadata}};
}

// Of the allocator's memory, which it gets back.
std::string taken(char* text) {
  if (text == nullptr) return "(null)";
  std::string copy = text;
  EXPECT_OK(api().AllocatorFree(allocator(), text));
  return copy;
}

using Getter = OrtStatus* (*)(const OrtModelMetadata*, OrtAllocator*, char**);
std::string get(Getter getter, const OrtModelMetadata* metadata) {
  char* text = nullptr;
  EXPECT_OK(getter(metadata, allocator(), &text));
  return taken(text);
}

std::string entry(const OrtModelMetadata* metadata, const char* key) {
  char* text = nullptr;
  EXPECT_OK(api().ModelMetadataLookupCustomMetadataMap(metadata, allocator(), key, &text));
  return taken(text);
}

std::vector<std::string> keys_of(const OrtModelMetadata* metadata) {
  char** keys = nullptr;
  int64_t count = -1;
  EXPECT_OK(api().ModelMetadataGetCustomMetadataMapKeys(metadata, allocator(), &keys, &count));
  std::vector<std::string> found;
  for (int64_t i = 0; i < count; ++i) found.push_back(taken(keys[i]));
  EXPECT_EQ(keys == nullptr, count == 0);
  EXPECT_OK(api().AllocatorFree(allocator(), keys));
  std::sort(found.begin(), found.end());  // ONNX Runtime has them in no order
  return found;
}

TEST(Metadata, IsWhatTheModelSays) {
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "maker", domain: "org.example",
     model_version: 7, doc_string: "a model", metadata_props: ["a" : "1", "b" : "", "c" : "3"]>
    the_graph (float[2] x) => (float[2] y) { y = Relu (x) })",
                                    options.get());
  ASSERT_NE(session, nullptr);
  const auto metadata = metadata_of(session.get());
  EXPECT_EQ(get(api().ModelMetadataGetProducerName, metadata.get()), "maker");
  EXPECT_EQ(get(api().ModelMetadataGetGraphName, metadata.get()), "the_graph");
  EXPECT_EQ(get(api().ModelMetadataGetDomain, metadata.get()), "org.example");
  EXPECT_EQ(get(api().ModelMetadataGetDescription, metadata.get()), "a model");
  EXPECT_EQ(get(api().ModelMetadataGetGraphDescription, metadata.get()), "");
  int64_t version = 0;
  EXPECT_OK(api().ModelMetadataGetVersion(metadata.get(), &version));
  EXPECT_EQ(version, 7);
  EXPECT_EQ(keys_of(metadata.get()), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(entry(metadata.get(), "a"), "1");
  EXPECT_EQ(entry(metadata.get(), "b"), "");
  EXPECT_EQ(entry(metadata.get(), "d"), "(null)");
  EXPECT_EQ(entry(metadata.get(), ""), "(null)");
}

TEST(Metadata, MayBeMissing) {
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Relu (x) })",
                                    options.get());
  ASSERT_NE(session, nullptr);
  const auto metadata = metadata_of(session.get());
  EXPECT_EQ(get(api().ModelMetadataGetProducerName, metadata.get()), "");
  EXPECT_EQ(get(api().ModelMetadataGetDomain, metadata.get()), "");
  EXPECT_EQ(get(api().ModelMetadataGetDescription, metadata.get()), "");
  int64_t version = 0;
  EXPECT_OK(api().ModelMetadataGetVersion(metadata.get(), &version));
  EXPECT_EQ(version, INT64_MAX);
  EXPECT_EQ(keys_of(metadata.get()), std::vector<std::string>{});
  EXPECT_EQ(entry(metadata.get(), "a"), "(null)");
  api().ReleaseModelMetadata(nullptr);
}

// Gives memory three times, and then none.
struct ShortAllocator : OrtAllocator {
  int left = 3, held = 0;
  ShortAllocator() : OrtAllocator{} {
    version = 1;
    Alloc = [](OrtAllocator* self, size_t size) -> void* {
      auto& its = *static_cast<ShortAllocator*>(self);
      if (its.left-- <= 0) return nullptr;
      ++its.held;
      return std::malloc(size);
    };
    Free = [](OrtAllocator* self, void* memory) {
      if (memory != nullptr) --static_cast<ShortAllocator*>(self)->held;
      std::free(memory);
    };
    Info = [](const OrtAllocator*) -> const OrtMemoryInfo* { return nullptr; };
  }
};

TEST(Metadata, MemoryIsGivenBackWhereItIsShort) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime writes to what it did not get";
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), R"(
    <ir_version: 8, opset_import: ["" : 17], metadata_props: ["a" : "1", "b" : "2", "c" : "3"]>
    g (float[2] x) => (float[2] y) { y = Relu (x) })",
                                    options.get());
  ASSERT_NE(session, nullptr);
  const auto metadata = metadata_of(session.get());
  ShortAllocator few;
  char** keys = nullptr;
  int64_t count = 0;
  EXPECT_REFUSED(api().ModelMetadataGetCustomMetadataMapKeys(metadata.get(), &few, &keys, &count),
                 ORT_FAIL, "no memory");
  EXPECT_EQ(few.held, 0);
  EXPECT_EQ(keys, nullptr);
}

TEST(Metadata, MissingArgumentsAreRefused) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime reads them";
  OrtModelMetadata* metadata = nullptr;
  char* text = nullptr;
  EXPECT_REFUSED(api().SessionGetModelMetadata(nullptr, &metadata), ORT_INVALID_ARGUMENT,
                 "'session'");
  EXPECT_REFUSED(api().ModelMetadataGetDomain(nullptr, allocator(), &text), ORT_INVALID_ARGUMENT,
                 "'model_metadata'");
  EXPECT_REFUSED(api().ModelMetadataGetVersion(nullptr, nullptr), ORT_INVALID_ARGUMENT, "is null");
}

struct AssignedNode {
  std::string provider, name, domain, type;
  bool operator==(const AssignedNode&) const = default;
};

std::vector<AssignedNode> assignment_of(const OrtSession* session) {
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  EXPECT_OK(api().Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count));
  std::vector<AssignedNode> found;
  for (size_t i = 0; i < count; ++i) {
    const char *provider = nullptr, *name = nullptr, *domain = nullptr, *type = nullptr;
    const OrtEpAssignedNode* const* nodes = nullptr;
    size_t node_count = 0;
    EXPECT_OK(api().EpAssignedSubgraph_GetEpName(subgraphs[i], &provider));
    EXPECT_OK(api().EpAssignedSubgraph_GetNodes(subgraphs[i], &nodes, &node_count));
    EXPECT_EQ(node_count, 1u);
    EXPECT_OK(api().EpAssignedNode_GetName(nodes[0], &name));
    EXPECT_OK(api().EpAssignedNode_GetDomain(nodes[0], &domain));
    EXPECT_OK(api().EpAssignedNode_GetOperatorType(nodes[0], &type));
    found.push_back({provider, name, domain, type});
  }
  return found;
}

constexpr const char* two_nodes = R"(
  <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
  g (float[2] x) => (float[2] y) {
    [first] z = Relu (x)
    [second] y = com.microsoft.Gelu (z)
  })";

TEST(Assignment, IsKeptForSessionsThatAskForIt) {
  const auto env = make_env();
  const auto options = make_options();
  ASSERT_OK(
      api().AddSessionConfigEntry(options.get(), "session.record_ep_graph_assignment_info", "1"));
  const auto session = make_session(env.get(), two_nodes, options.get());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(
      assignment_of(session.get()),
      (std::vector<AssignedNode>{{"CPUExecutionProvider", "first", "", "Relu"},
                                 {"CPUExecutionProvider", "second", "com.microsoft", "Gelu"}}));
}

TEST(Assignment, IsRefusedOtherwise) {
  const auto env = make_env();
  const auto options = make_options();
  const auto session = make_session(env.get(), two_nodes, options.get());
  ASSERT_NE(session, nullptr);
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  EXPECT_REFUSED(api().Session_GetEpGraphAssignmentInfo(session.get(), &subgraphs, &count),
                 ORT_FAIL, "session.record_ep_graph_assignment_info");
}

}  // namespace
}  // namespace sardonyx::ort_api
