// Models that are built of nodes, and models that nodes are added to.
#include "ort_api/model_editor.h"

#include <filesystem>
#include <fstream>

#include "ort_api/test_operator.h"

namespace sardonyx::ort_api {
namespace {

const OrtModelEditorApi& editor() { return *api().GetModelEditorApi(); }

// --- Building -------------------------------------------------------------------------------

using HeldType = Held<OrtTypeInfo>;
HeldType hold_type(OrtTypeInfo* type) { return HeldType(type, {api().ReleaseTypeInfo}); }

struct TensorShape {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  TensorShape(ONNXTensorElementDataType element, const std::vector<int64_t>& dims,
              std::vector<const char*> names = {}) {
    EXPECT_OK(api().CreateTensorTypeAndShapeInfo(&info));
    EXPECT_OK(api().SetTensorElementType(info, element));
    EXPECT_OK(api().SetDimensions(info, dims.data(), dims.size()));
    names.resize(dims.size(), "");
    EXPECT_OK(api().SetSymbolicDimensions(info, names.data(), names.size()));
  }
  TensorShape(const TensorShape&) = delete;
  TensorShape& operator=(const TensorShape&) = delete;
  ~TensorShape() { api().ReleaseTensorTypeAndShapeInfo(info); }
};

HeldType tensor_type(const std::vector<int64_t>& dims, std::vector<const char*> names = {},
                     ONNXTensorElementDataType element = float_type) {
  OrtTypeInfo* type = nullptr;
  EXPECT_OK(
      editor().CreateTensorTypeInfo(TensorShape(element, dims, std::move(names)).info, &type));
  return hold_type(type);
}
HeldType sequence_type(const HeldType& item) {
  OrtTypeInfo* type = nullptr;
  EXPECT_OK(editor().CreateSequenceTypeInfo(item.get(), &type));
  return hold_type(type);
}
HeldType optional_type(const HeldType& held) {
  OrtTypeInfo* type = nullptr;
  EXPECT_OK(editor().CreateOptionalTypeInfo(held.get(), &type));
  return hold_type(type);
}
HeldType map_type(ONNXTensorElementDataType key, const HeldType& value) {
  OrtTypeInfo* type = nullptr;
  EXPECT_OK(editor().CreateMapTypeInfo(key, value.get(), &type));
  return hold_type(type);
}

OrtValueInfo* value_info(const char* name, const HeldType& type) {
  OrtValueInfo* info = nullptr;
  EXPECT_OK(editor().CreateValueInfo(name, type.get(), &info));
  return info;
}

OrtOpAttr* attribute(const char* name, const void* data, int count, OrtOpAttrType type) {
  OrtOpAttr* made = nullptr;
  EXPECT_OK(api().CreateOpAttr(name, data, count, type, &made));
  return made;
}

// Named after its first output.
OrtNode* node(const char* type, const std::vector<const char*>& inputs,
              const std::vector<const char*>& outputs, std::vector<OrtOpAttr*> attributes = {},
              const char* domain = "") {
  OrtNode* made = nullptr;
  EXPECT_OK(editor().CreateNode(type, domain, (std::string("make_") + outputs[0]).c_str(),
                                inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                attributes.data(), attributes.size(), &made));
  return made;
}

// A tensor of the interface's own memory.
OrtValue* own_tensor(const std::vector<float>& elements, const std::vector<int64_t>& shape) {
  OrtValue* value = nullptr;
  EXPECT_OK(
      api().CreateTensorAsOrtValue(allocator(), shape.data(), shape.size(), float_type, &value));
  void* data = nullptr;
  EXPECT_OK(api().GetTensorMutableData(value, &data));
  std::copy(elements.begin(), elements.end(), static_cast<float*>(data));
  return value;
}

struct Building {
  OrtGraph* graph = nullptr;
  Building() { EXPECT_OK(editor().CreateGraph(&graph)); }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  ~Building() { api().ReleaseGraph(graph); }

  Building& inputs(std::vector<OrtValueInfo*> infos) {
    EXPECT_OK(editor().SetGraphInputs(graph, infos.data(), infos.size()));
    for (const OrtValueInfo* one : infos) EXPECT_EQ(one, nullptr);
    return *this;
  }
  Building& outputs(std::vector<OrtValueInfo*> infos) {
    EXPECT_OK(editor().SetGraphOutputs(graph, infos.data(), infos.size()));
    return *this;
  }
  Building& add(OrtNode* one) {
    EXPECT_OK(editor().AddNodeToGraph(graph, one));
    return *this;
  }
  Building& initializer(const char* name, OrtValue* value, bool is_external = false) {
    EXPECT_OK(editor().AddInitializerToGraph(graph, name, value, is_external));
    return *this;
  }
  Held<OrtModel> model(const std::vector<const char*>& domains = {""},
                       const std::vector<int>& versions = {17}) {
    OrtModel* made = nullptr;
    EXPECT_OK(editor().CreateModel(domains.data(), versions.data(), domains.size(), &made));
    EXPECT_OK(editor().AddGraphToModel(made, graph));
    graph = nullptr;
    return Held<OrtModel>(made, {api().ReleaseModel});
  }
};

Held<OrtSession> hold_session(OrtSession* session) {
  return Held<OrtSession>(session, {api().ReleaseSession});
}

Held<OrtSession> session_of(const OrtEnv* env, const Held<OrtModel>& model,
                            const OrtSessionOptions* options) {
  OrtSession* session = nullptr;
  EXPECT_OK(editor().CreateSessionFromModel(env, model.get(), options, &session));
  return hold_session(session);
}

// --- The table ------------------------------------------------------------------------------

TEST(ModelEditor, PlacesAreThoseOfOnnxRuntime) {
  const auto place = [](auto OrtModelEditorApi::*member) {
    static const OrtModelEditorApi table{};
    return (reinterpret_cast<const char*>(&(table.*member)) -
            reinterpret_cast<const char*>(&table)) /
           static_cast<ptrdiff_t>(sizeof(void*));
  };
  EXPECT_EQ(sizeof(OrtModelEditorApi), 20 * sizeof(void*));
  EXPECT_EQ(place(&OrtModelEditorApi::CreateTensorTypeInfo), 0);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateSparseTensorTypeInfo), 1);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateMapTypeInfo), 2);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateSequenceTypeInfo), 3);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateOptionalTypeInfo), 4);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateValueInfo), 5);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateNode), 6);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateGraph), 7);
  EXPECT_EQ(place(&OrtModelEditorApi::SetGraphInputs), 8);
  EXPECT_EQ(place(&OrtModelEditorApi::SetGraphOutputs), 9);
  EXPECT_EQ(place(&OrtModelEditorApi::AddInitializerToGraph), 10);
  EXPECT_EQ(place(&OrtModelEditorApi::AddNodeToGraph), 11);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateModel), 12);
  EXPECT_EQ(place(&OrtModelEditorApi::AddGraphToModel), 13);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateSessionFromModel), 14);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateModelEditorSession), 15);
  EXPECT_EQ(place(&OrtModelEditorApi::CreateModelEditorSessionFromArray), 16);
  EXPECT_EQ(place(&OrtModelEditorApi::SessionGetOpsetForDomain), 17);
  EXPECT_EQ(place(&OrtModelEditorApi::ApplyModelToModelEditorSession), 18);
  EXPECT_EQ(place(&OrtModelEditorApi::FinalizeModelEditorSession), 19);
  const auto* const places = reinterpret_cast<void* const*>(&editor());
  for (size_t i = 0; i < 20; ++i) EXPECT_NE(places[i], nullptr) << i;
}

// --- Types ----------------------------------------------------------------------------------

ONNXType kind_of(const OrtTypeInfo* type) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  EXPECT_OK(api().GetOnnxTypeFromTypeInfo(type, &kind));
  return kind;
}

void expect_shape(const OrtTypeInfo* type, const std::vector<int64_t>& dims,
                  const std::vector<std::string>& names) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ASSERT_OK(api().CastTypeInfoToTensorInfo(type, &tensor));
  ASSERT_NE(tensor, nullptr);
  size_t count = 0;
  EXPECT_OK(api().GetDimensionsCount(tensor, &count));
  ASSERT_EQ(count, dims.size());
  std::vector<int64_t> found(count);
  std::vector<const char*> found_names(count);
  EXPECT_OK(api().GetDimensions(tensor, found.data(), count));
  EXPECT_OK(api().GetSymbolicDimensions(tensor, found_names.data(), count));
  EXPECT_EQ(found, dims);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(found_names[i], names[i]);
}

TEST(ModelEditor, TypesOfEachKind) {
  const HeldType tensor = tensor_type({2, -1}, {"", "N"});
  EXPECT_EQ(kind_of(tensor.get()), ONNX_TYPE_TENSOR);
  expect_shape(tensor.get(), {2, -1}, {"", "N"});

  OrtTypeInfo* made = nullptr;
  EXPECT_OK(editor().CreateSparseTensorTypeInfo(TensorShape(float_type, {3}).info, &made));
  const HeldType sparse = hold_type(made);
  EXPECT_EQ(kind_of(sparse.get()), ONNX_TYPE_SPARSETENSOR);
  expect_shape(sparse.get(), {3}, {""});

  const HeldType map = map_type(int64_type, tensor);
  const OrtMapTypeInfo* as_map = nullptr;
  ONNXTensorElementDataType key{};
  ASSERT_OK(api().CastTypeInfoToMapTypeInfo(map.get(), &as_map));
  EXPECT_OK(api().GetMapKeyType(as_map, &key));
  EXPECT_EQ(key, int64_type);
  EXPECT_OK(api().GetMapValueType(as_map, &made));
  EXPECT_EQ(kind_of(hold_type(made).get()), ONNX_TYPE_TENSOR);

  const HeldType sequence = sequence_type(map);
  const OrtSequenceTypeInfo* as_sequence = nullptr;
  ASSERT_OK(api().CastTypeInfoToSequenceTypeInfo(sequence.get(), &as_sequence));
  EXPECT_OK(api().GetSequenceElementType(as_sequence, &made));
  EXPECT_EQ(kind_of(hold_type(made).get()), ONNX_TYPE_MAP);

  const HeldType optional = optional_type(sequence_type(tensor));
  const OrtOptionalTypeInfo* as_optional = nullptr;
  ASSERT_OK(api().CastTypeInfoToOptionalTypeInfo(optional.get(), &as_optional));
  EXPECT_OK(api().GetOptionalContainedTypeInfo(as_optional, &made));
  EXPECT_EQ(kind_of(hold_type(made).get()), ONNX_TYPE_SEQUENCE);
}

TEST(ModelEditor, ValueInfosHaveNameAndType) {
  OrtValueInfo* info = nullptr;
  {
    const HeldType type = tensor_type({4, -1}, {"", "N"});
    info = value_info("x", type);
  }
  const char* name = nullptr;
  const OrtTypeInfo* type = nullptr;
  EXPECT_OK(api().GetValueInfoName(info, &name));
  EXPECT_STREQ(name, "x");
  EXPECT_OK(api().GetValueInfoTypeInfo(info, &type));
  expect_shape(type, {4, -1}, {"", "N"});
  api().ReleaseValueInfo(info);
  api().ReleaseValueInfo(nullptr);
}

// --- Sessions of models that were built -----------------------------------------------------

// y = x * w + b, with x [N,2], w [2,K] and b [1].
void add_gemm(Building& building, int64_t columns, OrtValue* w, bool is_external) {
  building.inputs({value_info("x", tensor_type({-1, 2}, {"N", ""}))})
      .outputs({value_info("y", tensor_type({-1, columns}, {"N", ""}))})
      .add(node("Gemm", {"x", "w", "b"}, {"y"}))
      .initializer("w", w, is_external)
      .initializer("b", own_tensor({0.5F}, {1}));
}

TEST(ModelEditor, InitializersInsideTheModel) {
  Building building;
  add_gemm(building, 2, own_tensor({1, 2, 3, 4}, {2, 2}), false);
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model(), nullptr);
  size_t inputs = 0;
  EXPECT_OK(api().SessionGetInputCount(session.get(), &inputs));
  EXPECT_EQ(inputs, 1U);
  OrtTypeInfo* type = nullptr;
  EXPECT_OK(api().SessionGetInputTypeInfo(session.get(), 0, &type));
  expect_shape(hold_type(type).get(), {-1, 2}, {"N", ""});
  EXPECT_EQ(run_floats(session.get(), {1, 1, 2, 0}, {2, 2}),
            (std::vector<float>{4.5, 6.5, 2.5, 4.5}));
}

TEST(ModelEditor, InitializersOfTheCallers) {
  constexpr int64_t columns = 64;
  std::vector<float> weights(static_cast<size_t>(2 * columns));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  Building building;
  add_gemm(building, columns, floats(weights, {2, columns}).release(), true);
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model(), make_options().get());
  const std::vector<float> y = run_floats(session.get(), {1, 2}, {1, 2});
  ASSERT_EQ(y.size(), static_cast<size_t>(columns));
  EXPECT_EQ(y[0], 2 * 64 + 0.5F);
  EXPECT_EQ(y[63], 63 + 2 * 127 + 0.5F);
}

TEST(ModelEditor, MemoryThatIsGivenAwayStaysAsLongAsSessions) {
  static int freed;
  freed = 0;
  struct Deleter : OrtAllocator {
    Deleter() : OrtAllocator{} {
      version = 22;
      Alloc = [](OrtAllocator*, size_t) -> void* { return nullptr; };
      Free = [](OrtAllocator*, void* memory) {
        ++freed;
        delete[] static_cast<float*>(memory);
      };
      Info = [](const OrtAllocator*) -> const OrtMemoryInfo* {
        static const auto info = cpu_info();
        return info.get();
      };
    }
  } deleter;
  float* const weights = new float[400];
  for (int i = 0; i < 400; ++i) weights[i] = static_cast<float>(i);
  const int64_t shape[] = {400};
  OrtValue* value = nullptr;
  ASSERT_OK(api().CreateTensorWithDataAndDeleterAsOrtValue(&deleter, weights, 1600, shape, 1,
                                                           float_type, &value));
  const auto env = make_env();
  Held<OrtSession> session;
  {
    Building building;
    building.inputs({value_info("x", tensor_type({1}))})
        .outputs({value_info("y", tensor_type({400}))})
        .add(node("Mul", {"x", "w"}, {"y"}))
        .initializer("w", value, true);
    session = session_of(env.get(), building.model(), nullptr);
  }
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(run_floats(session.get(), {2}, {1})[399], 798);
  session.reset();
  EXPECT_EQ(freed, 1);
}

TEST(ModelEditor, SessionsCopyMemoryThatIsNotSaidToStay) {
  const auto env = make_env();
  Held<OrtSession> session;
  {
    std::vector<float> weights{1, 2, 3, 4};
    Building building;
    add_gemm(building, 2, floats(weights, {2, 2}).release(), false);
    session = session_of(env.get(), building.model(), nullptr);
    weights.assign(4, -1);
  }
  EXPECT_EQ(run_floats(session.get(), {1, 1}, {1, 2}), (std::vector<float>{4.5, 6.5}));
}

TEST(ModelEditor, ModelsMayBeUsedAgain) {
  Building building;
  add_gemm(building, 2, own_tensor({1, 2, 3, 4}, {2, 2}), false);
  const auto model = building.model();
  const auto env = make_env();
  for (int i = 0; i < 2; ++i) {
    const auto session = session_of(env.get(), model, nullptr);
    EXPECT_EQ(run_floats(session.get(), {1, 1}, {1, 2}), (std::vector<float>{4.5, 6.5}));
  }
}

TEST(ModelEditor, NodesInAnyOrder) {
  Building building;
  building.inputs({value_info("x", tensor_type({2}))})
      .outputs({value_info("y", tensor_type({2}))})
      .add(node("Neg", {"between"}, {"y"}))
      .add(node("Sqrt", {"x"}, {"between"}));
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model(), nullptr);
  EXPECT_EQ(run_floats(session.get(), {4, 9}, {2}), (std::vector<float>{-2, -3}));
}

TEST(ModelEditor, AShapeWithoutDimensionsHoldsNobodyToIt) {
  Building building;
  building.inputs({value_info("x", tensor_type({}))})
      .outputs({value_info("y", tensor_type({}))})
      .add(node("Identity", {"x"}, {"y"}));
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model(), nullptr);
  EXPECT_EQ(run_floats(session.get(), {4, 9}, {2}), (std::vector<float>{4, 9}));
  EXPECT_EQ(run_floats(session.get(), {7}, {}), (std::vector<float>{7}));
}

TEST(ModelEditor, AttributesOfEachKind) {
  const int64_t axis = 0, perm[] = {1, 0};
  const float alpha = 0.5F, reals[] = {1, 2};
  const char* const mode = "edge";
  const char* const words[] = {"one", "two"};
  std::vector<OrtOpAttr*> given{attribute("alpha", &alpha, 1, ORT_OP_ATTR_FLOAT)};
  Building building;
  building.inputs({value_info("x", tensor_type({2, 2}))})
      .outputs({value_info("leaky", tensor_type({2, 2})),
                value_info("transposed", tensor_type({2, 2})),
                value_info("soft", tensor_type({2, 2})), value_info("reals", tensor_type({2})),
                value_info("words", tensor_type({2}, {}, string_type)),
                value_info("wide", tensor_type({2, 3}))})
      .add(node("LeakyRelu", {"x"}, {"leaky"}, given))
      .add(node("Transpose", {"x"}, {"transposed"}, {attribute("perm", perm, 2, ORT_OP_ATTR_INTS)}))
      .add(node("Softmax", {"x"}, {"soft"}, {attribute("axis", &axis, 1, ORT_OP_ATTR_INT)}))
      .add(node("Constant", {}, {"reals"},
                {attribute("value_floats", reals, 2, ORT_OP_ATTR_FLOATS)}))
      .add(node("Constant", {}, {"words"},
                {attribute("value_strings", words, 2, ORT_OP_ATTR_STRINGS)}))
      .add(node(
          "Constant", {}, {"pads"},
          {attribute("value_ints", std::vector<int64_t>{0, 0, 0, 1}.data(), 4, ORT_OP_ATTR_INTS)}))
      .add(node("Pad", {"x", "pads"}, {"wide"}, {attribute("mode", mode, 4, ORT_OP_ATTR_STRING)}));
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model(), nullptr);
  std::vector<float> x{1, -2, 1, 4};
  const auto y = run(session.get(), {{"x", floats(x, {2, 2}).get()}},
                     {"leaky", "transposed", "soft", "reals", "words", "wide"});
  ASSERT_EQ(y.size(), 6U);
  EXPECT_EQ(floats_of(y[0].get()), (std::vector<float>{1, -1, 1, 4}));
  EXPECT_EQ(floats_of(y[1].get()), (std::vector<float>{1, 1, -2, 4}));
  EXPECT_EQ(floats_of(y[2].get())[0], 0.5F);
  EXPECT_EQ(floats_of(y[3].get()), (std::vector<float>{1, 2}));
  EXPECT_EQ(texts_of(y[4].get()), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(floats_of(y[5].get()), (std::vector<float>{1, -2, -2, 1, 4, 4}));
}

TEST(ModelEditor, NodesTakeTheirAttributes) {
  const int64_t axis = 0;
  OrtOpAttr* attributes[] = {attribute("axis", &axis, 1, ORT_OP_ATTR_INT)};
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"y"};
  OrtNode* made = nullptr;
  EXPECT_OK(editor().CreateNode("Softmax", "", "n", inputs, 1, outputs, 1, attributes, 1, &made));
  EXPECT_EQ(attributes[0], nullptr);
  api().ReleaseNode(made);
}

TEST(ModelEditor, SequencesInsideAndSeveralOperatorSets) {
  const float scale = 3, offset = 1;
  Building building;
  building.inputs({value_info("x", tensor_type({1, 2}))})
      .outputs({value_info("count", tensor_type({}, {}, int64_type)),
                value_info("scaled", tensor_type({1, 2}))})
      .add(node("SequenceConstruct", {"x", "x"}, {"pair"}))
      .add(node("SequenceLength", {"pair"}, {"count"}))
      .add(node("Scaler", {"x"}, {"scaled"},
                {attribute("scale", &scale, 1, ORT_OP_ATTR_FLOATS),
                 attribute("offset", &offset, 1, ORT_OP_ATTR_FLOATS)},
                "ai.onnx.ml"));
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model({"", "ai.onnx.ml"}, {17, 3}), nullptr);
  std::vector<float> x{1, 2};
  const auto y = run(session.get(), {{"x", floats(x, {1, 2}).get()}}, {"count", "scaled"});
  ASSERT_EQ(y.size(), 2U);
  void* count = nullptr;
  EXPECT_OK(api().GetTensorMutableData(y[0].get(), &count));
  EXPECT_EQ(*static_cast<const int64_t*>(count), 2);
  EXPECT_EQ(floats_of(y[1].get()), (std::vector<float>{0, 3}));
  int version = 0;
  EXPECT_OK(editor().SessionGetOpsetForDomain(session.get(), "ai.onnx.ml", &version));
  EXPECT_EQ(version, 3);
}

TEST(ModelEditor, SequencesAndMapsAsOutputs) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime builds graphs of tensors alone";
  const int64_t labels[] = {7, 8};
  Building building;
  building.inputs({value_info("x", tensor_type({1, 2}))})
      .outputs({value_info("pair", sequence_type(tensor_type({1, 2}))),
                value_info("maps", sequence_type(map_type(int64_type, tensor_type({}))))})
      .add(node("SequenceConstruct", {"x", "x"}, {"pair"}))
      .add(node("ZipMap", {"x"}, {"maps"},
                {attribute("classlabels_int64s", labels, 2, ORT_OP_ATTR_INTS)}, "ai.onnx.ml"));
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model({"", "ai.onnx.ml"}, {17, 3}), nullptr);
  std::vector<float> x{1, 2};
  const auto y = run(session.get(), {{"x", floats(x, {1, 2}).get()}}, {"pair", "maps"});
  ASSERT_EQ(y.size(), 2U);
  size_t count = 0;
  EXPECT_OK(api().GetValueCount(y[0].get(), &count));
  EXPECT_EQ(count, 2U);
  OrtValue* item = nullptr;
  EXPECT_OK(api().GetValue(y[1].get(), 0, allocator(), &item));
  const auto map = hold(item);
  EXPECT_OK(api().GetValue(map.get(), 1, allocator(), &item));
  EXPECT_EQ(floats_of(hold(item).get()), (std::vector<float>{1, 2}));
}

TEST(ModelEditor, OptionalInputs) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime builds graphs of tensors alone";
  Building building;
  building.inputs({value_info("x", optional_type(tensor_type({2})))})
      .outputs({value_info("y", tensor_type({2}))})
      .add(node("OptionalGetElement", {"x"}, {"y"}));
  const auto env = make_env();
  const auto session = session_of(env.get(), building.model(), nullptr);
  EXPECT_EQ(run_floats(session.get(), {4, 9}, {2}), (std::vector<float>{4, 9}));
}

// That ONNX Runtime gives domains of the caller's.
constexpr int callers_version = 1000;

TEST(ModelEditor, OperatorsOfTheCallers) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime does not look for them in built models";
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 1); };
  const Program program({&op});
  Building building;
  building.inputs({value_info("x", tensor_type({-1}))})
      .outputs({value_info("y", tensor_type({-1}))})
      .add(node("Foo", {"x"}, {"y"}, {}, "test"));
  const auto session =
      session_of(program.env.get(), building.model({"", "test"}, {17, callers_version}),
                 program.options.get());
  EXPECT_EQ(run_floats(session.get(), {4, 9}, {2}), (std::vector<float>{5, 10}));
}

// --- Wrong uses -----------------------------------------------------------------------------

TEST(ModelEditor, WhatIsWrongIsRefused) {
  const HeldType type = tensor_type({2});
  OrtValueInfo* none = nullptr;
  EXPECT_REFUSED(editor().CreateValueInfo("", type.get(), &none), ORT_INVALID_ARGUMENT, "empty");
  EXPECT_REFUSED(editor().CreateValueInfo(nullptr, type.get(), &none), ORT_INVALID_ARGUMENT,
                 "'name'");
  EXPECT_REFUSED(editor().CreateValueInfo("x", nullptr, &none), ORT_INVALID_ARGUMENT,
                 "'type_info'");

  Building building;
  OrtValueInfo* const info = value_info("x", type);
  OrtValueInfo* twice[] = {info, info};
  EXPECT_REFUSED(editor().SetGraphInputs(building.graph, twice, 2), ORT_INVALID_ARGUMENT, "'x'");
  EXPECT_EQ(twice[0], info);
  OrtValueInfo* missing[] = {info, nullptr};
  EXPECT_REFUSED(editor().SetGraphOutputs(building.graph, missing, 2), ORT_INVALID_ARGUMENT,
                 "'outputs'");
  EXPECT_EQ(missing[0], info);
  building.inputs({info}).inputs({value_info("x", type)});

  OrtNode* const neg = node("Neg", {"x"}, {"y"});
  building.add(neg);
  EXPECT_REFUSED(editor().AddNodeToGraph(building.graph, neg), ORT_INVALID_ARGUMENT, "make_y");
  EXPECT_REFUSED(editor().AddNodeToGraph(building.graph, nullptr), ORT_INVALID_ARGUMENT, "'node'");

  std::vector<float> few(4);
  const auto small = floats(few, {4});
  EXPECT_REFUSED(editor().AddInitializerToGraph(building.graph, "w", small.get(), true),
                 ORT_INVALID_ARGUMENT, "16 bytes");
  OrtValue* const own = own_tensor({1}, {1});
  building.initializer("w", own);
  EXPECT_REFUSED(editor().AddInitializerToGraph(building.graph, "w", small.get(), false),
                 ORT_INVALID_ARGUMENT, "'w'");
  EXPECT_REFUSED(editor().AddInitializerToGraph(building.graph, "other", own, false),
                 ORT_INVALID_ARGUMENT, "as 'w'");
  EXPECT_REFUSED(editor().AddInitializerToGraph(building.graph, "", small.get(), false),
                 ORT_INVALID_ARGUMENT, "empty");
  EXPECT_REFUSED(editor().AddInitializerToGraph(building.graph, "v", nullptr, false),
                 ORT_INVALID_ARGUMENT, "'tensor'");
  const OrtValue* const items[] = {small.get()};
  OrtValue* sequence = nullptr;
  ASSERT_OK(api().CreateValue(items, 1, ONNX_TYPE_SEQUENCE, &sequence));
  EXPECT_REFUSED(editor().AddInitializerToGraph(building.graph, "v", hold(sequence).get(), false),
                 ORT_INVALID_ARGUMENT, "tensor");

  const auto model = building.model();
  const Building other;
  EXPECT_REFUSED(editor().AddGraphToModel(model.get(), other.graph), ORT_INVALID_ARGUMENT,
                 "has a graph already");
}

TEST(ModelEditor, NullIsRefused) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime ends the process";
  OrtTypeInfo* type = nullptr;
  EXPECT_REFUSED(editor().CreateTensorTypeInfo(nullptr, &type), ORT_INVALID_ARGUMENT,
                 "'tensor_info'");
  EXPECT_REFUSED(editor().CreateSequenceTypeInfo(nullptr, &type), ORT_INVALID_ARGUMENT,
                 "'sequence_type'");
  const HeldType tensor = tensor_type({});
  EXPECT_REFUSED(editor().CreateOptionalTypeInfo(tensor.get(), nullptr), ORT_INVALID_ARGUMENT,
                 "'type_info'");
  const char* const names[] = {"x", nullptr};
  OrtNode* none = nullptr;
  EXPECT_REFUSED(editor().CreateNode(nullptr, "", "n", names, 1, names, 1, nullptr, 0, &none),
                 ORT_INVALID_ARGUMENT, "'operator_name'");
  EXPECT_REFUSED(editor().CreateNode("Neg", "", "n", names, 2, names, 1, nullptr, 0, &none),
                 ORT_INVALID_ARGUMENT, "'input_names'");
  EXPECT_REFUSED(editor().CreateNode("Neg", "", "n", names, 1, names, 1, nullptr, 1, &none),
                 ORT_INVALID_ARGUMENT, "'attributes'");
  EXPECT_REFUSED(editor().CreateGraph(nullptr), ORT_INVALID_ARGUMENT, "'graph'");
  OrtModel* made = nullptr;
  EXPECT_REFUSED(editor().CreateModel(nullptr, nullptr, 1, &made), ORT_INVALID_ARGUMENT, "null");
  ASSERT_OK(editor().CreateModel(nullptr, nullptr, 0, &made));
  const Held<OrtModel> empty(made, {api().ReleaseModel});
  const auto env = make_env();
  OrtSession* session = nullptr;
  EXPECT_REFUSED(editor().CreateSessionFromModel(env.get(), empty.get(), nullptr, &session),
                 ORT_INVALID_ARGUMENT, "no graph");
  EXPECT_REFUSED(editor().CreateSessionFromModel(env.get(), nullptr, nullptr, &session),
                 ORT_INVALID_ARGUMENT, "'model'");
  EXPECT_REFUSED(editor().CreateSessionFromModel(nullptr, empty.get(), nullptr, &session),
                 ORT_INVALID_ARGUMENT, "'env'");
  EXPECT_REFUSED(editor().ApplyModelToModelEditorSession(nullptr, empty.get()),
                 ORT_INVALID_ARGUMENT, "'session'");
  EXPECT_REFUSED(editor().FinalizeModelEditorSession(nullptr, nullptr, nullptr),
                 ORT_INVALID_ARGUMENT, "'session'");
  api().ReleaseNode(nullptr), api().ReleaseGraph(nullptr), api().ReleaseModel(nullptr);
}

TEST(ModelEditor, TypesMayNotNestWithoutEnd) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime has no bound";
  HeldType type = tensor_type({});
  for (int i = 0; i < 31; ++i) type = sequence_type(type);
  type = sequence_type(type);
  OrtTypeInfo* deeper = nullptr;
  EXPECT_REFUSED(editor().CreateSequenceTypeInfo(type.get(), &deeper), ORT_INVALID_ARGUMENT,
                 "32 levels");
}

TEST(ModelEditor, ModelsThatCanNotRunAreRefused) {
  const auto env = make_env();
  Building building;
  building.inputs({value_info("x", tensor_type({2}))})
      .outputs({value_info("y", tensor_type({2}))})
      .add(node("Nonsense", {"x"}, {"y"}));
  OrtSession* session = nullptr;
  const Outcome found = outcome(
      editor().CreateSessionFromModel(env.get(), building.model().get(), nullptr, &session));
  EXPECT_NE(found.code, ORT_OK);
  EXPECT_NE(found.message.find("Nonsense"), std::string::npos) << found.message;
}

// --- Models that nodes are added to ---------------------------------------------------------

// y = sqrt(x)
std::string original() {
  return model_bytes(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) "
      "{ y = Sqrt(x) }");
}

Held<OrtSession> edited_session(const OrtEnv* env, const OrtSessionOptions* options) {
  const std::string bytes = original();
  OrtSession* session = nullptr;
  EXPECT_OK(editor().CreateModelEditorSessionFromArray(env, bytes.data(), bytes.size(), options,
                                                       &session));
  return hold_session(session);
}

// z = y * scale
Held<OrtModel> scaling(int version = 17) {
  Building building;
  building.outputs({value_info("z", tensor_type({2}))})
      .add(node("Mul", {"y", "scale"}, {"z"}))
      .initializer("scale", own_tensor({10}, {1}));
  return building.model({""}, {version});
}

std::vector<float> run_edited(OrtSession* session, const char* input, const char* output) {
  std::vector<float> x{4, -9};
  const auto y = run(session, {{input, floats(x, {2}).get()}}, {output});
  return y.empty() ? std::vector<float>() : floats_of(y[0].get());
}

std::string name_of_output(const OrtSession* session) {
  char* name = nullptr;
  EXPECT_OK(api().SessionGetOutputName(session, 0, allocator(), &name));
  const std::string text = name;
  EXPECT_OK(api().AllocatorFree(allocator(), name));
  return text;
}

TEST(ModelEditor, AddsNodesBehindAModel) {
  const auto env = make_env();
  const auto session = edited_session(env.get(), make_options().get());
  int version = 0;
  EXPECT_OK(editor().SessionGetOpsetForDomain(session.get(), "", &version));
  EXPECT_EQ(version, 17);
  EXPECT_EQ(name_of_output(session.get()), "y");
  EXPECT_OK(editor().ApplyModelToModelEditorSession(session.get(), scaling().get()));
  EXPECT_EQ(name_of_output(session.get()), "z");
  const auto options = make_options();
  EXPECT_OK(editor().FinalizeModelEditorSession(session.get(), options.get(), nullptr));
  std::vector<float> x{4, 9};
  EXPECT_EQ(floats_of(run(session.get(), {{"x", floats(x, {2}).get()}}, {"z"})[0].get()),
            (std::vector<float>{20, 30}));
}

TEST(ModelEditor, AddsNodesBeforeAndBehindAModel) {
  const auto env = make_env();
  const auto session = edited_session(env.get(), nullptr);
  Building before;
  before.inputs({value_info("raw", tensor_type({2}))}).add(node("Abs", {"raw"}, {"x"}));
  EXPECT_OK(editor().ApplyModelToModelEditorSession(session.get(), before.model().get()));
  EXPECT_OK(editor().ApplyModelToModelEditorSession(session.get(), scaling().get()));
  EXPECT_OK(editor().FinalizeModelEditorSession(session.get(), nullptr, nullptr));
  EXPECT_EQ(run_edited(session.get(), "raw", "z"), (std::vector<float>{20, 30}));
}

TEST(ModelEditor, AModelOfAFileMayStayAsItIs) {
  const auto path = std::filesystem::path(testing::TempDir()) / "edited.onnx";
  std::ofstream(path, std::ios::binary) << original();
  const auto env = make_env();
  OrtSession* made = nullptr;
  ASSERT_OK(
      editor().CreateModelEditorSession(env.get(), path.c_str(), make_options().get(), &made));
  const auto session = hold_session(made);
  EXPECT_OK(editor().FinalizeModelEditorSession(session.get(), make_options().get(), nullptr));
  EXPECT_OK(editor().FinalizeModelEditorSession(session.get(), nullptr, nullptr));
  std::vector<float> x{4, 9};
  EXPECT_EQ(floats_of(run(session.get(), {{"x", floats(x, {2}).get()}}, {"y"})[0].get()),
            (std::vector<float>{2, 3}));
  std::filesystem::remove(path);
}

TEST(ModelEditor, ASessionRunsOnceItIsFinalized) {
  const auto env = make_env();
  const auto session = edited_session(env.get(), nullptr);
  EXPECT_EQ(outcome_of_run(session.get(), {4, 9}, {2}).code, ORT_FAIL);
  OrtIoBinding* binding = nullptr;
  EXPECT_REFUSED(api().CreateIoBinding(session.get(), &binding), ORT_FAIL, "not initialized");
  EXPECT_OK(editor().FinalizeModelEditorSession(session.get(), nullptr, nullptr));
  EXPECT_EQ(run_floats(session.get(), {4, 9}, {2}), (std::vector<float>{2, 3}));
  EXPECT_REFUSED(editor().ApplyModelToModelEditorSession(session.get(), scaling().get()),
                 ORT_MODEL_LOADED, "already been initialized");
}

TEST(ModelEditor, AddedNodesMustFitTheModel) {
  const auto env = make_env();
  const auto session = edited_session(env.get(), nullptr);
  EXPECT_REFUSED(editor().ApplyModelToModelEditorSession(session.get(), scaling(18).get()),
                 ORT_INVALID_ARGUMENT, "version 17 of domain ''");
  Building nonsense;
  nonsense.outputs({value_info("z", tensor_type({2}))}).add(node("Nonsense", {"y"}, {"z"}));
  const Outcome found =
      outcome(editor().ApplyModelToModelEditorSession(session.get(), nonsense.model().get()));
  EXPECT_NE(found.code, ORT_OK);
  EXPECT_NE(found.message.find("Nonsense"), std::string::npos) << found.message;
  if (!is_sardonyx()) return;  // ONNX Runtime's session is of no use from here on
  EXPECT_OK(editor().ApplyModelToModelEditorSession(session.get(), scaling().get()));
  EXPECT_OK(editor().FinalizeModelEditorSession(session.get(), nullptr, nullptr));
  EXPECT_EQ(name_of_output(session.get()), "z");
}

TEST(ModelEditor, AddsOperatorsOfTheCallers) {
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 1); };
  const Program program({&op});
  const auto session = edited_session(program.env.get(), program.options.get());
  Building building;
  building.outputs({value_info("z", tensor_type({2}))}).add(node("Foo", {"y"}, {"z"}, {}, "test"));
  ASSERT_OK(editor().ApplyModelToModelEditorSession(
      session.get(), building.model({"", "test"}, {17, callers_version}).get()));
  ASSERT_OK(editor().FinalizeModelEditorSession(session.get(), program.options.get(), nullptr));
  std::vector<float> x{4, 9};
  EXPECT_EQ(floats_of(run(session.get(), {{"x", floats(x, {2}).get()}}, {"z"})[0].get()),
            (std::vector<float>{3, 4}));
}

TEST(ModelEditor, EditedSessionsAreProfiledOnceTheyRun) {
  const auto env = make_env();
  const auto options = make_options();
  const auto prefix = (std::filesystem::path(testing::TempDir()) / "edited_profile").string();
  ASSERT_OK(api().EnableProfiling(options.get(), prefix.c_str()));
  const auto session = edited_session(env.get(), options.get());
  ASSERT_OK(editor().ApplyModelToModelEditorSession(session.get(), scaling().get()));
  ASSERT_OK(editor().FinalizeModelEditorSession(session.get(), options.get(), nullptr));
  run_edited(session.get(), "x", "z");
  char* path = nullptr;
  ASSERT_OK(api().SessionEndProfiling(session.get(), allocator(), &path));
  EXPECT_TRUE(std::filesystem::exists(path)) << path;
  std::filesystem::remove(path);
  EXPECT_OK(api().AllocatorFree(allocator(), path));
}

TEST(ModelEditor, EditedModelsAreWrittenWhenTheyAreWhole) {
  const auto path = std::filesystem::path(testing::TempDir()) / "edited_whole.onnx";
  std::filesystem::remove(path);
  const auto env = make_env();
  const auto options = make_options();
  ASSERT_OK(api().SetOptimizedModelFilePath(options.get(), path.c_str()));
  const auto session = edited_session(env.get(), options.get());
  ASSERT_OK(editor().ApplyModelToModelEditorSession(session.get(), scaling().get()));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_OK(editor().FinalizeModelEditorSession(session.get(), options.get(), nullptr));
  OrtSession* made = nullptr;
  ASSERT_OK(api().CreateSession(env.get(), path.c_str(), nullptr, &made));
  const auto written = hold_session(made);
  for (OrtSession* const one : {session.get(), written.get()}) {
    std::vector<float> x{4, 9};
    EXPECT_EQ(floats_of(run(one, {{"x", floats(x, {2}).get()}}, {"z"})[0].get()),
              (std::vector<float>{20, 30}));
  }
  std::filesystem::remove(path);
}

TEST(ModelEditor, SaysWhichVersionOfADomainAModelHas) {
  const auto env = make_env();
  const auto session = make_session(
      env.get(),
      "<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Neg(x) }",
      nullptr);
  int version = 0;
  EXPECT_OK(editor().SessionGetOpsetForDomain(session.get(), "", &version));
  EXPECT_EQ(version, 15);
  EXPECT_REFUSED(editor().SessionGetOpsetForDomain(session.get(), "nobody's", &version), ORT_FAIL,
                 "'nobody's'");
  if (!is_sardonyx()) return;  // ONNX Runtime ends the process
  EXPECT_REFUSED(editor().SessionGetOpsetForDomain(session.get(), nullptr, &version),
                 ORT_INVALID_ARGUMENT, "'domain'");
}

}  // namespace
}  // namespace sardonyx::ort_api
