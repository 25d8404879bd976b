#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ort_api/api.h"

namespace sardonyx::ort_api {
namespace {

constexpr const char* scaled = R"(<ir_version: 8, opset_import: ["" : 17]>
scaled (float[batch, 2] x, float[2] w) => (float[batch, 2] y) <float[2] w = {2, 3}> { y = Mul(x, w) })";

std::string text_and_free(char* text) {
  const std::string copy = text;
  EXPECT_OK(api().AllocatorFree(allocator(), text));
  return copy;
}

struct Described {
  ONNXTensorElementDataType type{};
  std::vector<int64_t> dims;
  std::vector<std::string> names;
};

Described described(OrtTypeInfo* info) {
  Described found;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  EXPECT_OK(api().CastTypeInfoToTensorInfo(info, &tensor));
  size_t rank = 0;
  EXPECT_OK(api().GetTensorElementType(tensor, &found.type));
  EXPECT_OK(api().GetDimensionsCount(tensor, &rank));
  found.dims.resize(rank);
  EXPECT_OK(api().GetDimensions(tensor, found.dims.data(), rank));
  std::vector<const char*> names(rank);
  EXPECT_OK(api().GetSymbolicDimensions(tensor, names.data(), rank));
  found.names.assign(names.begin(), names.end());
  api().ReleaseTypeInfo(info);
  return found;
}

class Sessions : public testing::Test {
 protected:
  Sessions() { std::filesystem::create_directory(folder); }
  ~Sessions() override { std::filesystem::remove_all(folder); }
  std::string file(const char* name, const std::string& bytes) {
    const auto path = folder / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  Held<OrtSession> session_of(const std::string& path) const {
    OrtSession* made = nullptr;
    EXPECT_OK(api().CreateSession(env.get(), path.c_str(), options.get(), &made));
    return {made, {api().ReleaseSession}};
  }
  std::vector<float> y_of(OrtSession* session) const {
    return floats_of(run(session, {{"x", input.get()}}, {"y"})[0].get());
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ort_api_session_" + std::to_string(::getpid()));
  Held<OrtEnv> env = make_env();
  Held<OrtSessionOptions> options = make_options();
  std::vector<float> x{1, 1};
  Held<OrtValue> input = floats(x, {1, 2});
};

TEST_F(Sessions, SayWhatTheyTakeAndGive) {
  const auto session = make_session(env.get(), scaled, options.get());
  size_t inputs = 0, outputs = 0, defaults = 0;
  EXPECT_OK(api().SessionGetInputCount(session.get(), &inputs));
  EXPECT_OK(api().SessionGetOutputCount(session.get(), &outputs));
  EXPECT_OK(api().SessionGetOverridableInitializerCount(session.get(), &defaults));
  EXPECT_EQ(inputs, 1u);
  EXPECT_EQ(outputs, 1u);
  EXPECT_EQ(defaults, 1u);
  char* name = nullptr;
  ASSERT_OK(api().SessionGetInputName(session.get(), 0, allocator(), &name));
  EXPECT_EQ(text_and_free(name), "x");
  ASSERT_OK(api().SessionGetOutputName(session.get(), 0, allocator(), &name));
  EXPECT_EQ(text_and_free(name), "y");
  ASSERT_OK(api().SessionGetOverridableInitializerName(session.get(), 0, allocator(), &name));
  EXPECT_EQ(text_and_free(name), "w");
  EXPECT_NE(outcome(api().SessionGetInputName(session.get(), 5, allocator(), &name)).code, ORT_OK);
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetInputTypeInfo(session.get(), 0, &info));
  const Described of_x = described(info);
  EXPECT_EQ(of_x.type, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  EXPECT_EQ(of_x.dims, (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(of_x.names, (std::vector<std::string>{"batch", ""}));
  ASSERT_OK(api().SessionGetOutputTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).names, (std::vector<std::string>{"batch", ""}));
  ASSERT_OK(api().SessionGetOverridableInitializerTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).dims, (std::vector<int64_t>{2}));
  EXPECT_EQ(floats_of(run(session.get(), {{"x", input.get()}}, {"y"})[0].get()),
            (std::vector<float>{2, 3}));
  std::vector<float> w{5, 7};
  const auto other = floats(w, {2});
  EXPECT_EQ(floats_of(run(session.get(), {{"x", input.get()}, {"w", other.get()}}, {"y"})[0].get()),
            (std::vector<float>{5, 7}));
}

TEST_F(Sessions, OutputsWithoutADeclaredShapeAreInferred) {
  const auto session = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 2] x) => (y) { y = Concat<axis = 1>(x, x) })",
                                    options.get());
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetOutputTypeInfo(session.get(), 0, &info));
  const Described y = described(info);
  EXPECT_EQ(y.dims, (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(y.names, (std::vector<std::string>{"batch", ""}));
}

TEST_F(Sessions, OutputsHaveTheSizesThatInferenceFinds) {
  const auto session = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 2] x) => (float[rows, columns] y) { y = Concat<axis = 1>(x, x) })",
                                    options.get());
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetOutputTypeInfo(session.get(), 0, &info));
  const Described y = described(info);
  EXPECT_EQ(y.dims, (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(y.names, (std::vector<std::string>{"rows", ""}));
}

TEST_F(Sessions, SizesByNamesThatSayNothing) {
  ASSERT_OK(api().AddFreeDimensionOverrideByName(options.get(), "unk__12", 5));
  const auto session = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[unk__12, 2] x, float[unk__13] z) => (float[unk__12, 2] y) { y = Relu(x) })",
                                    options.get());
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetInputTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).dims, (std::vector<int64_t>{5, 2}));
  ASSERT_OK(api().SessionGetOutputTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).dims, (std::vector<int64_t>{5, 2}));
  ASSERT_OK(api().SessionGetInputTypeInfo(session.get(), 1, &info));
  EXPECT_EQ(described(info).names, (std::vector<std::string>{"unk__13"}));
}

TEST_F(Sessions, FromFiles) {
  const std::string path = file("model.onnx", model_bytes(scaled));
  OrtSession* made = nullptr;
  ASSERT_OK(api().CreateSession(env.get(), path.c_str(), options.get(), &made));
  const Held<OrtSession> session{made, {api().ReleaseSession}};
  EXPECT_EQ(floats_of(run(made, {{"x", input.get()}}, {"y"})[0].get()), (std::vector<float>{2, 3}));
  EXPECT_REFUSED(
      api().CreateSession(env.get(), (folder / "missing.onnx").c_str(), options.get(), &made),
      ORT_NO_SUCHFILE, "missing.onnx");
  const std::string broken = file("broken.onnx", "this is no model");
  EXPECT_REFUSED(api().CreateSession(env.get(), broken.c_str(), options.get(), &made),
                 ORT_INVALID_PROTOBUF, "broken.onnx");
  EXPECT_REFUSED(
      api().CreateSessionFromArray(env.get(), "this is no model", 16, options.get(), &made),
      ORT_INVALID_PROTOBUF, "memory");
}

TEST_F(Sessions, AModelThatCannotRunIsRefused) {
  OrtSession* made = nullptr;
  const std::string unknown = model_bytes(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = NoSuchOperator(x) })");
  const auto found = outcome(api().CreateSessionFromArray(env.get(), unknown.data(), unknown.size(),
                                                          options.get(), &made));
  EXPECT_NE(found.code, ORT_OK);
  EXPECT_NE(found.message.find("NoSuchOperator"), std::string::npos) << found.message;
}

TEST_F(Sessions, OptionsAreTaken) {
  EXPECT_OK(api().SetIntraOpNumThreads(options.get(), 1));
  EXPECT_OK(api().SetInterOpNumThreads(options.get(), 1));
  EXPECT_OK(api().SetSessionGraphOptimizationLevel(options.get(), ORT_DISABLE_ALL));
  EXPECT_OK(api().SetSessionExecutionMode(options.get(), ORT_PARALLEL));
  EXPECT_OK(api().DisableMemPattern(options.get()));
  EXPECT_OK(api().DisableCpuMemArena(options.get()));
  EXPECT_OK(api().SetSessionLogId(options.get(), "test"));
  EXPECT_OK(api().SetSessionLogSeverityLevel(options.get(), 3));
  EXPECT_OK(api().SetSessionLogVerbosityLevel(options.get(), 0));
  EXPECT_OK(api().SetDeterministicCompute(options.get(), true));
  EXPECT_OK(api().AddSessionConfigEntry(options.get(), "session.some_key", "some value"));
  int has = 0;
  EXPECT_OK(api().HasSessionConfigEntry(options.get(), "session.some_key", &has));
  EXPECT_EQ(has, 1);
  std::array<char, 32> value{};
  size_t size = value.size();
  EXPECT_OK(api().GetSessionConfigEntry(options.get(), "session.some_key", value.data(), &size));
  EXPECT_STREQ(value.data(), "some value");
  EXPECT_EQ(size, 11u);
  size = 3;
  EXPECT_REFUSED(
      api().GetSessionConfigEntry(options.get(), "session.some_key", value.data(), &size),
      ORT_INVALID_ARGUMENT, "room for 3");
  EXPECT_REFUSED(api().GetSessionConfigEntry(options.get(), "other", value.data(), &size),
                 ORT_INVALID_ARGUMENT, "'other'");
  OrtSessionOptions* copy = nullptr;
  ASSERT_OK(api().CloneSessionOptions(options.get(), &copy));
  EXPECT_OK(api().HasSessionConfigEntry(copy, "session.some_key", &has));
  EXPECT_EQ(has, 1);
  const auto session = make_session(env.get(), scaled, copy);
  api().ReleaseSessionOptions(copy);
  EXPECT_EQ(floats_of(run(session.get(), {{"x", input.get()}}, {"y"})[0].get()),
            (std::vector<float>{2, 3}));
  if (is_sardonyx()) {
    EXPECT_REFUSED(api().SetSessionLogSeverityLevel(nullptr, 3), ORT_INVALID_ARGUMENT,
                   "'options' is null");
  }
}

// Some entries stand for functions: they set what those set, and are not kept.
TEST_F(Sessions, OptionsAreTakenFromEntries) {
  const auto add = [&](const char* key, const char* value) {
    return api().AddSessionConfigEntry(options.get(), key, value);
  };
  EXPECT_OK(add("session.intra_op_num_threads", "1"));
  EXPECT_OK(add("session.inter_op_num_threads", "1"));
  EXPECT_OK(add("session.graph_optimization_level", "Disable_All"));
  EXPECT_OK(add("session.execution_mode", "parallel"));
  EXPECT_OK(add("session.enable_mem_pattern", "False"));
  EXPECT_OK(add("session.enable_cpu_mem_arena", "0"));
  EXPECT_OK(add("session.use_deterministic_compute", "true"));
  EXPECT_OK(add("session.log_severity_level", "0"));
  EXPECT_OK(add("session.log_verbosity_level", "0"));
  EXPECT_OK(add("session.log_id", "named"));
  EXPECT_OK(add("session.enable_profiling", (folder / "trace").c_str()));
  EXPECT_OK(add("session.optimized_model_filepath", (folder / "written.onnx").c_str()));
  ExecutionMode mode = ORT_SEQUENTIAL;
  EXPECT_OK(api().GetSessionExecutionMode(options.get(), &mode));
  EXPECT_EQ(mode, ORT_PARALLEL);
  int enabled = 1;
  EXPECT_OK(api().GetMemPatternEnabled(options.get(), &enabled));
  EXPECT_EQ(enabled, 0);
  EXPECT_OK(api().HasSessionConfigEntry(options.get(), "session.log_id", &enabled));
  EXPECT_EQ(enabled, 0);
  std::string id;
  const auto tell = [](void* to, OrtLoggingLevel, const char*, const char* logger, const char*,
                       const char*) { *static_cast<std::string*>(to) = logger; };
  EXPECT_OK(api().SetUserLoggingFunction(options.get(), tell, &id));
  make_session(env.get(), scaled, options.get()).reset();
  EXPECT_EQ(id, "named");
  EXPECT_TRUE(std::filesystem::exists(folder / "written.onnx"));
  const auto count = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  EXPECT_EQ(count(), 2) << "the model and a trace";
  EXPECT_OK(add("session.enable_profiling", ""));
  make_session(env.get(), scaled, options.get()).reset();
  EXPECT_EQ(count(), 2);

  EXPECT_REFUSED(add("session.intra_op_num_threads", "1.5"), ORT_INVALID_ARGUMENT, "'1.5'");
  EXPECT_REFUSED(add("session.graph_optimization_level", "99"), ORT_INVALID_ARGUMENT, "enable_all");
  EXPECT_REFUSED(add("session.execution_mode", "1"), ORT_INVALID_ARGUMENT, "parallel");
  EXPECT_REFUSED(add("session.enable_mem_pattern", "yes"), ORT_INVALID_ARGUMENT, "0 or 1");
  EXPECT_OK(add("session.use_per_session_threads", "0"));
  EXPECT_REFUSED(add("session.use_per_session_threads", "1"), ORT_INVALID_ARGUMENT,
                 "not taken back");
  OrtSession* made = nullptr;
  const std::string bytes = model_bytes(scaled);
  EXPECT_NE(outcome(api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(),
                                                 options.get(), &made))
                .code,
            ORT_OK);
}

TEST_F(Sessions, OptionsMayAskForModelsToBeRefused) {
  const auto refused = [&](const char* key, const char* text) {
    const auto strict = make_options();
    EXPECT_OK(api().AddSessionConfigEntry(strict.get(), key, "0"));
    make_session(env.get(), text, strict.get()).reset();
    EXPECT_OK(api().AddSessionConfigEntry(strict.get(), key, "1"));
    const std::string bytes = model_bytes(text);
    OrtSession* made = nullptr;
    return api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), strict.get(), &made);
  };
  EXPECT_REFUSED(refused("session.disable_cpu_ep_fallback", scaled), ORT_FAIL, "fallback to CPU");
  constexpr const char* contradicting = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 3] x) => (float[n, 5] y) { y = Relu(x) })";
  EXPECT_REFUSED(refused("session.strict_shape_type_inference", contradicting), ORT_FAIL,
                 "float[n,5]");
  EXPECT_OK(api().AddSessionConfigEntry(options.get(), "session.strict_shape_type_inference", "1"));
  EXPECT_EQ(y_of(make_session(env.get(), scaled, options.get()).get()), (std::vector<float>{2, 3}));
}

TEST_F(Sessions, RefusalsHaveTheCodesOfOnnxRuntime) {
  EXPECT_REFUSED(api().SetSessionGraphOptimizationLevel(options.get(), GraphOptimizationLevel{4}),
                 ORT_INVALID_ARGUMENT, "4 is no level");
  const auto session = make_session(env.get(), scaled, options.get());
  OrtTypeInfo* info = nullptr;
  char* name = nullptr;
  EXPECT_REFUSED(api().SessionGetInputTypeInfo(session.get(), 1, &info), ORT_FAIL, "number 1");
  EXPECT_REFUSED(api().SessionGetOutputTypeInfo(session.get(), 1, &info), ORT_FAIL, "number 1");
  EXPECT_REFUSED(api().SessionGetOverridableInitializerTypeInfo(session.get(), 1, &info), ORT_FAIL,
                 "number 1");
  EXPECT_REFUSED(api().SessionGetInputName(session.get(), 1, allocator(), &name), ORT_FAIL,
                 "number 1");
  EXPECT_REFUSED(api().SessionGetOutputName(session.get(), 1, allocator(), &name), ORT_FAIL,
                 "number 1");
  EXPECT_REFUSED(api().SessionGetOverridableInitializerName(session.get(), 1, allocator(), &name),
                 ORT_FAIL, "number 1");
  const char* const other = "other";
  const char* const y = "y";
  const OrtValue* const given = input.get();
  OrtValue* value = nullptr;
  EXPECT_REFUSED(api().Run(session.get(), nullptr, &other, &given, 1, &y, 1, &value),
                 ORT_INVALID_ARGUMENT, "Invalid input name: other (the model has 'x', 'w')");
  const OrtMemoryInfo* memory = nullptr;
  EXPECT_REFUSED(api().SessionGetMemoryInfoForInputs(session.get(), &memory, 0),
                 ORT_INVALID_ARGUMENT, "room for 0");
}

// What callers write who mean what there is without their saying so.
TEST_F(Sessions, NegativeNumbersLeaveOptionsAsTheyAre) {
  EXPECT_OK(api().SetIntraOpNumThreads(options.get(), -1));
  EXPECT_OK(api().SetSessionLogSeverityLevel(options.get(), -1));
  EXPECT_OK(api().AddFreeDimensionOverrideByName(options.get(), "batch", -1));
  const auto session = make_session(env.get(), scaled, options.get());
  EXPECT_EQ(y_of(session.get()), (std::vector<float>{2, 3}));
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetInputTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).dims, (std::vector<int64_t>{-1, 2}));
}

TEST_F(Sessions, OpenSizesBecomeNumbers) {
  EXPECT_OK(api().AddFreeDimensionOverrideByName(options.get(), "batch", 3));
  EXPECT_OK(api().AddFreeDimensionOverrideByName(options.get(), "nowhere", 3));
  const auto session = make_session(env.get(), scaled, options.get());
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetInputTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).dims, (std::vector<int64_t>{3, 2}));
}

TEST_F(Sessions, OutputsWithoutADeclaredShapeHaveTheseSizes) {
  EXPECT_OK(api().AddFreeDimensionOverrideByName(options.get(), "batch", 3));
  const auto session = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 2] x) => (y) { y = Relu(x) })",
                                    options.get());
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetOutputTypeInfo(session.get(), 0, &info));
  EXPECT_EQ(described(info).dims, (std::vector<int64_t>{3, 2}));
}

TEST_F(Sessions, InitializersOfTheCallers) {
  std::vector<float> w{10, 20};
  const auto value = floats(w, {2});
  EXPECT_OK(api().AddInitializer(options.get(), "w", value.get()));
  const auto session = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2] x) => (float[1, 2] y) <float[2] w = {2, 3}> { y = Mul(x, w) })",
                                    options.get());
  EXPECT_EQ(floats_of(run(session.get(), {{"x", input.get()}}, {"y"})[0].get()),
            (std::vector<float>{10, 20}));
}

// Options with shared weights serve models that don't have all of them.
TEST_F(Sessions, InitializersThatAModelLacksAreLeftOut) {
  std::vector<float> w{10, 20};
  const auto value = floats(w, {2});
  EXPECT_OK(api().AddInitializer(options.get(), "w", value.get()));
  EXPECT_OK(api().AddInitializer(options.get(), "elsewhere", value.get()));
  EXPECT_REFUSED(api().AddInitializer(options.get(), "w", value.get()), ORT_INVALID_ARGUMENT,
                 "already been added");
  for (const char* name : {"w", "v"}) {
    const std::string text = std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[1, 2] x) => (float[1, 2] y) <float[2] )") +
                             name + " = {2, 3}> { y = Mul(x, " + name + ") }";
    const auto session = make_session(env.get(), text.c_str(), options.get());
    EXPECT_EQ(floats_of(run(session.get(), {{"x", input.get()}}, {"y"})[0].get()),
              *name == 'w' ? w : (std::vector<float>{2, 3}));
  }
}

TEST_F(Sessions, ExternalDataIsReadWhereOtherInitializersAreGiven) {
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2] x) => (float[1, 2] y) <float[2] w = {4, 5}> { y = Mul(x, w) })");
  const std::string path = (folder / "model.onnx").string();
  model.save(path, {.external_data = "weights.bin", .threshold = 1});
  std::vector<float> v{6, 7};
  const auto value = floats(v, {2});
  EXPECT_OK(api().AddInitializer(options.get(), "v", value.get()));
  const auto session = session_of(path);
  EXPECT_EQ(y_of(session.get()), (std::vector<float>{4, 5}));
}

TEST_F(Sessions, ExternalDataFromMemory) {
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2] x) => (float[1, 2] y) <float[2] w = {4, 5}> { y = Mul(x, w) })");
  model.save((folder / "model.onnx").string(), {.external_data = "weights.bin", .threshold = 1});
  const auto bytes_of = [&](const char* name) {
    std::ifstream stream(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string bytes = bytes_of("model.onnx");
  std::string weights = bytes_of("weights.bin");
  OrtSession* none = nullptr;
  const Outcome refused =
      outcome(api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), nullptr, &none));
  EXPECT_NE(refused.code, ORT_OK);
  constexpr const char* folder_entry = "session.model_external_initializers_file_folder_path";
  if (is_sardonyx()) {
    EXPECT_NE(refused.message.find(folder_entry), std::string::npos) << refused.message;
  }
  const auto with_folder = make_options();
  EXPECT_OK(api().AddSessionConfigEntry(with_folder.get(), folder_entry, folder.c_str()));
  OrtSession* found = nullptr;
  ASSERT_OK(api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), with_folder.get(),
                                         &found));
  EXPECT_EQ(y_of(found), (std::vector<float>{4, 5}));
  api().ReleaseSession(found);
  const std::array<const PathChar*, 1> names{"weights.bin"};
  const std::array<char*, 1> buffers{weights.data()};
  const std::array<size_t, 1> lengths{weights.size()};
  EXPECT_OK(api().AddExternalInitializersFromFilesInMemory(options.get(), names.data(),
                                                           buffers.data(), lengths.data(), 1));
  OrtSession* made = nullptr;
  ASSERT_OK(
      api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), options.get(), &made));
  const Held<OrtSession> session{made, {api().ReleaseSession}};
  weights.assign(weights.size(), 0);  // is the caller's again
  EXPECT_EQ(floats_of(run(made, {{"x", input.get()}}, {"y"})[0].get()), (std::vector<float>{4, 5}));
}

TEST_F(Sessions, ExternalInitializersAreCopied) {
  const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2] x) => (float[1, 2] y) <float[2] w = {4, 5}> { y = Mul(x, w) })");
  const std::string path = (folder / "model.onnx").string();
  model.save(path, {.external_data = "weights.bin", .threshold = 1});
  std::vector<float> w{6, 7};
  const auto value = floats(w, {2});
  const char* const name = "w";
  const OrtValue* const given = value.get();
  ASSERT_OK(api().AddExternalInitializers(options.get(), &name, &given, 1));
  const auto session = session_of(path);
  w.assign(2, 0);  // is the caller's again
  EXPECT_EQ(y_of(session.get()), (std::vector<float>{6, 7}));
}

TEST_F(Sessions, ExternalDataThatIsTooSmallIsRefused) {
  // A shape of more bytes than there is memory for must not be allocated before that is seen.
  for (const char* w : {"float[3] w = [\"location\": \"f\"]",
                        "float[2] w = [\"location\": \"f\", \"offset\": \"8\"]",
                        "float[2] w = [\"location\": \"f\", \"offset\": \"-4\"]",
                        "float[1000000, 1000000] w = [\"location\": \"f\"]"}) {
    const auto fresh = make_options();
    LoadOptions load;
    load.load_external_data = false;
    const std::string bytes =
        Model::from_text(std::string("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                     "g (float[1] x) => (y) <") +
                             w + "> { y = Mul(x, w) }",
                         load)
            .to_bytes();
    const PathChar* const name = "f";
    std::string data(8, 'x');
    char* const buffer = data.data();
    const size_t length = data.size();
    ASSERT_OK(
        api().AddExternalInitializersFromFilesInMemory(fresh.get(), &name, &buffer, &length, 1));
    OrtSession* made = nullptr;
    EXPECT_NE(outcome(api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(),
                                                   fresh.get(), &made))
                  .code,
              ORT_OK)
        << w;
    EXPECT_EQ(made, nullptr);
  }
}

TEST_F(Sessions, WhatIsMadeWithoutAPlaceForItIsGivenBack) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime does not look";
  const auto session = make_session(env.get(), scaled, options.get());
  EXPECT_REFUSED(api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "", nullptr), ORT_INVALID_ARGUMENT,
                 "out");
  EXPECT_REFUSED(api().CloneSessionOptions(options.get(), nullptr), ORT_INVALID_ARGUMENT, "out");
  EXPECT_REFUSED(api().GetSessionOptionsConfigEntries(options.get(), nullptr), ORT_INVALID_ARGUMENT,
                 "out");
  EXPECT_REFUSED(api().SessionGetInputName(session.get(), 0, allocator(), nullptr),
                 ORT_INVALID_ARGUMENT, "value");
  EXPECT_REFUSED(api().SessionGetOutputName(session.get(), 0, allocator(), nullptr),
                 ORT_INVALID_ARGUMENT, "value");
  EXPECT_REFUSED(api().SessionGetOverridableInitializerName(session.get(), 0, allocator(), nullptr),
                 ORT_INVALID_ARGUMENT, "");
}

TEST_F(Sessions, ShareWhatTheyPackWhereTheyHaveAContainer) {
  OrtPrepackedWeightsContainer* container = nullptr;
  ASSERT_OK(api().CreatePrepackedWeightsContainer(&container));
  const std::string path = file("model.onnx", model_bytes(scaled)), bytes = model_bytes(scaled);
  for (int i = 0; i < 4; ++i) {
    OrtSession* made = nullptr;
    if (i < 2) {
      ASSERT_OK(api().CreateSessionWithPrepackedWeightsContainer(env.get(), path.c_str(),
                                                                 options.get(), container, &made));
    } else {
      ASSERT_OK(api().CreateSessionFromArrayWithPrepackedWeightsContainer(
          env.get(), bytes.data(), bytes.size(), options.get(), container, &made));
    }
    const Held<OrtSession> session{made, {api().ReleaseSession}};
    EXPECT_EQ(floats_of(run(made, {{"x", input.get()}}, {"y"})[0].get()),
              (std::vector<float>{2, 3}));
  }
  api().ReleasePrepackedWeightsContainer(container);
}

TEST_F(Sessions, AContainerSeesThatExternalDataChanged) {
  OrtPrepackedWeightsContainer* container = nullptr;
  ASSERT_OK(api().CreatePrepackedWeightsContainer(&container));
  const std::string path = (folder / "model.onnx").string();
  int later = 0;
  for (const char* weights : {"{4, 5}", "{6, 7}"}) {
    const Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[1, 2] x) => (float[1, 2] y) <float[2] w = )" +
                                         std::string(weights) + "> { y = Mul(x, w) }");
    model.save(path, {.external_data = "weights.bin", .threshold = 1});
    // Only the weights are others, and later than the clock of files can tell.
    const std::filesystem::file_time_type zero{};
    std::filesystem::last_write_time(path, zero);
    std::filesystem::last_write_time(folder / "weights.bin", zero + std::chrono::seconds(later++));
    OrtSession* made = nullptr;
    ASSERT_OK(api().CreateSessionWithPrepackedWeightsContainer(env.get(), path.c_str(),
                                                               options.get(), container, &made));
    const Held<OrtSession> session{made, {api().ReleaseSession}};
    EXPECT_EQ(floats_of(run(made, {{"x", input.get()}}, {"y"})[0].get()),
              *(weights + 1) == '4' ? (std::vector<float>{4, 5}) : (std::vector<float>{6, 7}));
  }
  api().ReleasePrepackedWeightsContainer(container);
}

// A program that writes its next model to the file of the last one.
TEST_F(Sessions, RunOnWhenTheirFileIsWrittenAnew) {
  const std::string path = file("model.onnx", model_bytes(scaled));
  const auto session = session_of(path);
  file("model.onnx", "");
  EXPECT_EQ(y_of(session.get()), (std::vector<float>{2, 3}));
}

TEST_F(Sessions, TheModelCanBeWritten) {
  const std::string path = folder / "optimized.onnx";
  EXPECT_OK(api().SetOptimizedModelFilePath(options.get(), path.c_str()));
  const auto session = make_session(env.get(), scaled, options.get());
  OrtSession* made = nullptr;
  const auto others = make_options();
  ASSERT_OK(api().CreateSession(env.get(), path.c_str(), others.get(), &made));
  const Held<OrtSession> again{made, {api().ReleaseSession}};
  EXPECT_EQ(floats_of(run(made, {{"x", input.get()}}, {"y"})[0].get()), (std::vector<float>{2, 3}));
}

TEST_F(Sessions, AModelThatCanNotBeWritten) {
  const std::string bytes = model_bytes(scaled);
  OrtSession* made = nullptr;
  const auto create = [&](const OrtSessionOptions* with) {
    return api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), with, &made);
  };
  EXPECT_OK(api().SetOptimizedModelFilePath(options.get(), (folder / "none/x.onnx").c_str()));
  EXPECT_REFUSED(create(options.get()), ORT_INVALID_ARGUMENT, "could not be written");
  const auto sized = make_options();
  EXPECT_OK(api().SetOptimizedModelFilePath(sized.get(), (folder / "x.onnx").c_str()));
  EXPECT_OK(api().AddSessionConfigEntry(
      sized.get(), "session.optimized_model_external_initializers_file_name", "x.bin"));
  EXPECT_OK(api().AddSessionConfigEntry(
      sized.get(), "session.optimized_model_external_initializers_min_size_in_bytes", "1k"));
  EXPECT_REFUSED(create(sized.get()), ORT_FAIL, "'1k'");
}

TEST_F(Sessions, LoadingCanBeCancelled) {
  OrtSessionOptions* clone = nullptr;
  ASSERT_OK(api().CloneSessionOptions(options.get(), &clone));
  const Held<OrtSessionOptions> held{clone, {api().ReleaseSessionOptions}};
  EXPECT_OK(api().SessionOptionsSetLoadCancellationFlag(options.get(), true));
  const std::string bytes = model_bytes(scaled);
  OrtSession* made = nullptr;
  EXPECT_REFUSED(
      api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), options.get(), &made),
      ORT_MODEL_LOAD_CANCELED, "cancel");
  EXPECT_REFUSED(api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), clone, &made),
                 ORT_MODEL_LOAD_CANCELED, "cancel");
  EXPECT_OK(api().SessionOptionsSetLoadCancellationFlag(options.get(), false));
  make_session(env.get(), scaled, clone).reset();
}

struct Told {
  std::vector<std::string> lines;
};

void tell(void* user, OrtLoggingLevel, const char*, const char* id, const char*,
          const char* message) {
  static_cast<Told*>(user)->lines.push_back(std::string(id) + ": " + message);
}

TEST_F(Sessions, MessagesGoToTheCallersFunction) {
  Told told;
  OrtEnv* logging = nullptr;
  ASSERT_OK(
      api().CreateEnvWithCustomLogger(tell, &told, ORT_LOGGING_LEVEL_VERBOSE, "mine", &logging));
  if (is_sardonyx()) {  // ONNX Runtime has one environment for all
    const auto session = make_session(logging, scaled, options.get());
    ASSERT_FALSE(told.lines.empty());
    EXPECT_TRUE(told.lines[0].starts_with("mine: ")) << told.lines[0];
  }
  api().ReleaseEnv(logging);
  Told of_session;
  EXPECT_OK(api().SetUserLoggingFunction(options.get(), tell, &of_session));
  EXPECT_OK(api().SetSessionLogSeverityLevel(options.get(), ORT_LOGGING_LEVEL_VERBOSE));
  {
    const auto session = make_session(env.get(), scaled, options.get());
    EXPECT_FALSE(of_session.lines.empty());
  }
}

struct Refusing : OrtAllocator {
  int given = 0;
};

TEST_F(Sessions, OutputsInMemoryOfAnAllocatorOfTheEnvironment) {
  Refusing counting{};
  counting.version = 22;
  counting.Alloc = [](OrtAllocator* self, size_t size) {
    return ++static_cast<Refusing*>(self)->given, std::malloc(size);
  };
  counting.Free = [](OrtAllocator* self, void* memory) {
    --static_cast<Refusing*>(self)->given, std::free(memory);
  };
  counting.Info = [](const OrtAllocator*) -> const OrtMemoryInfo* {
    static const auto info = cpu_info();
    return info.get();
  };
  counting.Reserve = counting.Alloc;
  const auto info = cpu_info();
  ASSERT_OK(api().RegisterAllocator(env.get(), &counting));
  EXPECT_OK(api().RegisterAllocator(env.get(), &counting));  // takes the other's place
  EXPECT_OK(api().AddSessionConfigEntry(options.get(), "session.use_env_allocators", "1"));
  {
    const auto session = make_session(env.get(), scaled, options.get());
    const auto made = run(session.get(), {{"x", input.get()}}, {"y"});
    EXPECT_EQ(floats_of(made[0].get()), (std::vector<float>{2, 3}));
    EXPECT_GE(counting.given, 1);
  }
  EXPECT_OK(api().UnregisterAllocator(env.get(), info.get()));
  EXPECT_EQ(counting.given, 0);
}

}  // namespace
}  // namespace sardonyx::ort_api
