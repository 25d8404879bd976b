// What kernels of the caller's see of their node, before and while it runs.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "ort_api/test_operator.h"

namespace sardonyx::ort_api {
namespace {

const std::string all_attributes =
    "<i = 4, f = 0.5, s = \"text\", is = [1, 2], fs = [2.5], ss = [\"a\", \"bcd\"], "
    "t = float[2] {7, 8}>";

// Calls `look` with the info of a node that has these attributes.
void with_info(const std::string& attributes,
               const std::function<void(const OrtKernelInfo*)>& look) {
  TestOperator op;
  bool called = false;
  op.create = [&](const OrtKernelInfo* info) -> OrtStatus* {
    called = true;
    look(info);
    return nullptr;
  };
  op.compute = [](OrtKernelContext* context) { return add(context, 0); };
  Program({&op}).session(one_node(attributes));
  EXPECT_TRUE(called);
}

// Calls `look` while a node runs on three floats.
void with_context(const std::function<void(OrtKernelContext*)>& look) {
  TestOperator op;
  bool called = false;
  op.compute = [&](OrtKernelContext* context) {
    called = true;
    look(context);
    return add(context, 0);
  };
  const Program program({&op});
  run_floats(program.session(one_node()).get(), {1, 2, 3}, {3});
  EXPECT_TRUE(called);
}

// The text that a function gives into a buffer when it is asked as the C++ wrapper asks.
template <class Call>
std::string text_by(const Call& call) {
  size_t size = 0;
  EXPECT_OK(call(nullptr, &size));
  std::string text(size, '?');
  EXPECT_OK(call(text.data(), &size));
  EXPECT_EQ(size, text.size());
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

TEST(KernelInfo, AttributesOfEachKind) {
  with_info(all_attributes, [](const OrtKernelInfo* info) {
    int64_t i = 0;
    float f = 0;
    EXPECT_OK(api().KernelInfoGetAttribute_int64(info, "i", &i));
    EXPECT_OK(api().KernelInfoGetAttribute_float(info, "f", &f));
    EXPECT_EQ(i, 4);
    EXPECT_EQ(f, 0.5f);
    EXPECT_EQ(text_by([&](char* out, size_t* size) {
                return api().KernelInfoGetAttribute_string(info, "s", out, size);
              }),
              "text");
    size_t size = 0;
    EXPECT_OK(api().KernelInfoGetAttributeArray_int64(info, "is", nullptr, &size));
    std::vector<int64_t> is(size);
    EXPECT_OK(api().KernelInfoGetAttributeArray_int64(info, "is", is.data(), &size));
    EXPECT_EQ(is, (std::vector<int64_t>{1, 2}));
    std::array<float, 4> fs{};
    size = fs.size();
    EXPECT_OK(api().KernelInfoGetAttributeArray_float(info, "fs", fs.data(), &size));
    EXPECT_EQ(size, 1u);
    EXPECT_EQ(fs[0], 2.5f);
    OrtValue* t = nullptr;
    ASSERT_OK(api().KernelInfoGetAttribute_tensor(info, "t", allocator(), &t));
    EXPECT_EQ(floats_of(hold(t).get()), (std::vector<float>{7, 8}));
  });
}

TEST(KernelInfo, ListsOfStringsAreInMemoryOfTheCallers) {
  with_info(all_attributes, [](const OrtKernelInfo* info) {
    size_t size = 0;
    char** texts = nullptr;
    EXPECT_OK(api().KernelInfoGetAttributeArray_string(info, "ss", allocator(), nullptr, &size));
    EXPECT_EQ(size, 2u);
    ASSERT_OK(api().KernelInfoGetAttributeArray_string(info, "ss", allocator(), &texts, &size));
    EXPECT_STREQ(texts[0], "a");
    EXPECT_STREQ(texts[1], "bcd");
    for (size_t i = 0; i < size; ++i) EXPECT_OK(api().AllocatorFree(allocator(), texts[i]));
    EXPECT_OK(api().AllocatorFree(allocator(), texts));
  });
}

TEST(KernelInfo, AttributesThatAreMissingOrOfAnotherKind) {
  with_info(all_attributes, [](const OrtKernelInfo* info) {
    int64_t i = 0;
    float f = 0;
    size_t size = 0;
    char** texts = nullptr;
    OrtValue* t = nullptr;
    EXPECT_REFUSED(api().KernelInfoGetAttribute_int64(info, "none", &i), ORT_FAIL,
                   "Foo 'node' has no attribute 'none'");
    EXPECT_REFUSED(api().KernelInfoGetAttribute_float(info, "none", &f), ORT_FAIL, "none");
    EXPECT_REFUSED(api().KernelInfoGetAttribute_float(info, "i", &f), ORT_FAIL, "not a float");
    EXPECT_REFUSED(api().KernelInfoGetAttribute_string(info, "i", nullptr, &size), ORT_FAIL,
                   "not a string");
    EXPECT_REFUSED(api().KernelInfoGetAttribute_tensor(info, "i", allocator(), &t), ORT_FAIL,
                   "not a tensor");
    EXPECT_REFUSED(api().KernelInfoGetAttributeArray_int64(info, "none", nullptr, &size), ORT_FAIL,
                   "none");
    EXPECT_REFUSED(
        api().KernelInfoGetAttributeArray_string(info, "none", allocator(), &texts, &size),
        ORT_FAIL, "none");
    // Of a list the other kind is an empty one.
    size = 7;
    EXPECT_OK(api().KernelInfoGetAttributeArray_int64(info, "fs", nullptr, &size));
    EXPECT_EQ(size, 0u);
  });
}

TEST(KernelInfo, BuffersThatAreTooSmallLearnTheSize) {
  with_info(all_attributes, [](const OrtKernelInfo* info) {
    char buffer[2];
    int64_t element = 0;
    size_t size = sizeof buffer;
    EXPECT_REFUSED(api().KernelInfoGetAttribute_string(info, "s", buffer, &size),
                   ORT_INVALID_ARGUMENT, "5 bytes");
    EXPECT_EQ(size, 5u);
    size = 1;
    EXPECT_REFUSED(api().KernelInfoGetAttributeArray_int64(info, "is", &element, &size),
                   ORT_INVALID_ARGUMENT, "2 elements");
    EXPECT_EQ(size, 2u);
    size = 1;
    EXPECT_REFUSED(api().KernelInfo_GetNodeName(info, buffer, &size), ORT_INVALID_ARGUMENT,
                   "5 bytes");
    EXPECT_EQ(size, 5u);
  });
}

TEST(KernelInfo, TheNodeAndItsPlaces) {
  TestOperator op;
  op.input_types = {float_type, float_type, int64_type};
  op.input_kinds = {INPUT_OUTPUT_REQUIRED, INPUT_OUTPUT_OPTIONAL, INPUT_OUTPUT_REQUIRED};
  op.compute = [](OrtKernelContext* context) { return add(context, 0); };
  op.create = [](const OrtKernelInfo* info) -> OrtStatus* {
    size_t count = 0;
    EXPECT_OK(api().KernelInfo_GetInputCount(info, &count));
    EXPECT_EQ(count, 3u);
    EXPECT_OK(api().KernelInfo_GetOutputCount(info, &count));
    EXPECT_EQ(count, 1u);
    const auto name = [&](auto function, auto... index) {
      return text_by([&](char* out, size_t* size) { return function(info, index..., out, size); });
    };
    EXPECT_EQ(name(api().KernelInfo_GetNodeName), "node");
    EXPECT_EQ(name(api().KernelInfo_GetInputName, size_t{0}), "x");
    EXPECT_EQ(name(api().KernelInfo_GetInputName, size_t{1}), "");
    EXPECT_EQ(name(api().KernelInfo_GetInputName, size_t{2}), "k");
    EXPECT_EQ(name(api().KernelInfo_GetOutputName, size_t{0}), "y");
    EXPECT_EQ(name(api().KernelInfo_GetOperatorDomain), "test");
    EXPECT_EQ(name(api().KernelInfo_GetOperatorType), "Foo");
    int since = 0;
    EXPECT_OK(api().KernelInfo_GetOperatorSinceVersion(info, &since));
    EXPECT_EQ(since, 1);

    const auto type_of = [&](auto function, size_t index) {
      OrtTypeInfo* made = nullptr;
      const OrtTensorTypeAndShapeInfo* tensor = nullptr;
      EXPECT_OK(function(info, index, &made));
      EXPECT_OK(api().CastTypeInfoToTensorInfo(made, &tensor));
      ONNXTensorElementDataType type = any_type;
      size_t rank = 0;
      EXPECT_OK(api().GetTensorElementType(tensor, &type));
      EXPECT_OK(api().GetDimensionsCount(tensor, &rank));
      std::vector<int64_t> dims(rank);
      EXPECT_OK(api().GetDimensions(tensor, dims.data(), rank));
      api().ReleaseTypeInfo(made);
      dims.insert(dims.begin(), type);
      return dims;
    };
    EXPECT_EQ(type_of(api().KernelInfo_GetInputTypeInfo, 0),
              (std::vector<int64_t>{float_type, -1}));
    EXPECT_EQ(type_of(api().KernelInfo_GetInputTypeInfo, 2), (std::vector<int64_t>{int64_type, 2}));
    EXPECT_EQ(type_of(api().KernelInfo_GetOutputTypeInfo, 0)[0], float_type);

    char buffer[4];
    size_t size = sizeof buffer;
    OrtTypeInfo* type = nullptr;
    EXPECT_REFUSED(api().KernelInfo_GetInputName(info, 3, buffer, &size), ORT_INVALID_ARGUMENT,
                   "no input 3");
    EXPECT_REFUSED(api().KernelInfo_GetOutputTypeInfo(info, 1, &type), ORT_INVALID_ARGUMENT,
                   "no output 1");
    EXPECT_REFUSED(api().KernelInfo_GetInputTypeInfo(info, 1, &type), ORT_INVALID_GRAPH,
                   "does not have input 1");
    return nullptr;
  };
  Program({&op}).session(model_text(
      "(float[N] x) => (float[N] y) <int64[2] k = {4, 5}> { [node] y = test.Foo (x, , k) }"));
  EXPECT_EQ(op.made, 1);
  EXPECT_EQ(op.destroyed, 1);
}

TEST(KernelInfo, ConstantInputsStayAsLongAsTheKernel) {
  TestOperator op;
  op.input_types = {float_type, float_type};
  const OrtValue* constant = nullptr;
  op.create = [&](const OrtKernelInfo* info) -> OrtStatus* {
    int is_constant = 7;
    EXPECT_OK(api().KernelInfoGetConstantInput_tensor(info, 0, &is_constant, &constant));
    EXPECT_EQ(is_constant, 0);
    EXPECT_OK(api().KernelInfoGetConstantInput_tensor(info, 9, &is_constant, &constant));
    EXPECT_EQ(is_constant, 0);
    EXPECT_OK(api().KernelInfoGetConstantInput_tensor(info, 1, &is_constant, &constant));
    EXPECT_EQ(is_constant, 1);
    return nullptr;
  };
  op.compute = [&](OrtKernelContext* context) {
    EXPECT_EQ(floats_of(constant), (std::vector<float>{4, 5}));
    EXPECT_EQ(input_floats(context, 1), (std::vector<float>{4, 5}));
    return add(context, floats_of(constant)[1]);
  };
  const Program program({&op});
  const auto session = program.session(
      model_text("(float[N] x) => (float[N] y) <float[2] k = {4, 5}> { y = test.Foo (x, k) }"));
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{6}));
}

TEST(KernelInfo, CopiesLiveOnTheirOwn) {
  OrtKernelInfo* copy = nullptr;
  with_info(all_attributes,
            [&](const OrtKernelInfo* info) { ASSERT_OK(api().CopyKernelInfo(info, &copy)); });
  // ONNX Runtime's copy refers to the session.
  if (is_sardonyx()) {
    int64_t i = 0;
    EXPECT_OK(api().KernelInfoGetAttribute_int64(copy, "i", &i));
    EXPECT_EQ(i, 4);
  }
  api().ReleaseKernelInfo(copy);
}

TEST(KernelInfo, EntriesOfTheOptionsAndAllocators) {
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 0); };
  op.create = [](const OrtKernelInfo* info) -> OrtStatus* {
    OrtKeyValuePairs* pairs = nullptr;
    EXPECT_OK(api().KernelInfo_GetConfigEntries(info, &pairs));
    EXPECT_STREQ(api().GetKeyValue(pairs, "test.key"), "some value");
    api().ReleaseKeyValuePairs(pairs);
    OrtAllocator* from = nullptr;
    EXPECT_OK(api().KernelInfoGetAllocator(info, OrtMemTypeDefault, &from));
    void* memory = nullptr;
    EXPECT_OK(api().AllocatorAlloc(from, 100, &memory));
    EXPECT_OK(api().AllocatorFree(from, memory));
    api().ReleaseAllocator(from);
    return nullptr;
  };
  const Program program({&op});
  EXPECT_OK(api().AddSessionConfigEntry(program.options.get(), "test.key", "some value"));
  program.session(one_node());
  EXPECT_EQ(op.made, 1);
}

// --- While the node runs --------------------------------------------------------------------

TEST(KernelContext, InputsAndOutputsThatThereAreNot) {
  with_context([](OrtKernelContext* context) {
    size_t count = 0;
    EXPECT_OK(api().KernelContext_GetInputCount(context, &count));
    EXPECT_EQ(count, 1u);
    EXPECT_OK(api().KernelContext_GetOutputCount(context, &count));
    EXPECT_EQ(count, 1u);
    float other = 0;
    std::vector<float> none{other};
    auto held = floats(none, {1});
    const OrtValue* input = held.get();
    EXPECT_OK(api().KernelContext_GetInput(context, 5, &input));
    EXPECT_EQ(input, nullptr);
    EXPECT_EQ(output(context, 5, {3}), nullptr);
  });
}

TEST(KernelContext, AnOutputHasOneShape) {
  with_context([](OrtKernelContext* context) {
    const int64_t negative[] = {-1}, other[] = {4};
    OrtValue* value = nullptr;
    const Outcome found = outcome(api().KernelContext_GetOutput(context, 0, negative, 1, &value));
    EXPECT_NE(found.code, ORT_OK);
    OrtValue* const first = output(context, 0, {3});
    EXPECT_EQ(output(context, 0, {3}), first);
    EXPECT_REFUSED(api().KernelContext_GetOutput(context, 0, other, 1, &value),
                   ORT_INVALID_ARGUMENT, "output 0 was asked for with shape [3]");
  });
}

TEST(KernelContext, ParallelForCallsWithEachNumberOnce) {
  with_context([](OrtKernelContext* context) {
    for (const size_t batches : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> counts(257);
      EXPECT_OK(api().KernelContext_ParallelFor(
          context, [](void* user, size_t i) { ++(*static_cast<decltype(counts)*>(user))[i]; },
          counts.size(), batches, &counts));
      for (const auto& count : counts) EXPECT_EQ(count, 1);
    }
    EXPECT_OK(api().KernelContext_ParallelFor(
        context, [](void*, size_t) {}, 0, 3, nullptr));
  });
}

TEST(KernelContext, MemoryAndWhatOnlyDevicesHave) {
  with_context([](OrtKernelContext* context) {
    const auto info = cpu_info();
    OrtAllocator* from = nullptr;
    void* memory = nullptr;
    ASSERT_OK(api().KernelContext_GetAllocator(context, info.get(), &from));
    ASSERT_OK(api().KernelContext_GetScratchBuffer(context, info.get(), 100, &memory));
    std::memset(memory, 1, 100);
    EXPECT_OK(api().AllocatorFree(from, memory));
    api().ReleaseAllocator(from);
    memory = &from;
    EXPECT_OK(api().KernelContext_GetGPUComputeStream(context, &memory));
    EXPECT_EQ(memory, nullptr);
    EXPECT_REFUSED(api().KernelContext_GetResource(context, 1, 2, &memory), ORT_INVALID_ARGUMENT,
                   "no resource 2");
  });
}

struct Message {
  OrtLoggingLevel severity;
  std::string place, text;
};

TEST(KernelContext, MessagesGoToTheLogOfTheSession) {
  std::vector<Message> messages;
  OrtEnv* made = nullptr;
  ASSERT_OK(api().CreateEnvWithCustomLogger(
      [](void* user, OrtLoggingLevel severity, const char*, const char*, const char* place,
         const char* message) {
        static_cast<std::vector<Message>*>(user)->push_back({severity, place, message});
      },
      &messages, ORT_LOGGING_LEVEL_ERROR, "test", &made));
  const auto tell = [](const OrtLogger* logger, const char* text) {
    OrtLoggingLevel level = ORT_LOGGING_LEVEL_VERBOSE;
    EXPECT_OK(api().Logger_GetLoggingSeverityLevel(logger, &level));
    EXPECT_EQ(level, ORT_LOGGING_LEVEL_ERROR);
    EXPECT_OK(api().Logger_LogMessage(logger, ORT_LOGGING_LEVEL_INFO, "hidden", "file.cc", 7, "f"));
    EXPECT_OK(api().Logger_LogMessage(logger, ORT_LOGGING_LEVEL_ERROR, text, "file.cc", 7, "f"));
  };
  TestOperator op;
  op.create = [&](const OrtKernelInfo* info) -> OrtStatus* {
    const OrtLogger* logger = nullptr;
    EXPECT_OK(api().KernelInfo_GetLogger(info, &logger));
    tell(logger, "made");
    return nullptr;
  };
  op.compute = [&](OrtKernelContext* context) {
    const OrtLogger* logger = nullptr;
    EXPECT_OK(api().KernelContext_GetLogger(context, &logger));
    tell(logger, "run");
    return add(context, 0);
  };
  Program program({&op});
  program.env = {made, {api().ReleaseEnv}};
  run_floats(program.session(one_node()).get(), {1}, {1});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].text, "made");
  EXPECT_EQ(messages[1].text, "run");
  EXPECT_EQ(messages[1].severity, ORT_LOGGING_LEVEL_ERROR);
  EXPECT_EQ(messages[1].place, "file.cc:7 f");
}

// --- Attributes by themselves ---------------------------------------------------------------

struct Made {
  OrtOpAttr* attribute = nullptr;
  Made(const void* data, int count, OrtOpAttrType type) {
    EXPECT_OK(api().CreateOpAttr("name", data, count, type, &attribute));
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() { api().ReleaseOpAttr(attribute); }
  OrtOpAttrType type() const {
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    EXPECT_OK(api().OpAttr_GetType(attribute, &type));
    return type;
  }
  // As ReadOpAttr gives it.
  std::string bytes() const {
    size_t size = 0;
    outcome(api().ReadOpAttr(attribute, type(), nullptr, 0, &size));
    std::string bytes(size, '?');
    EXPECT_OK(api().ReadOpAttr(attribute, type(), bytes.data(), size, &size));
    return bytes;
  }
};

TEST(OpAttr, IsReadAsItWasMade) {
  const int64_t ints[] = {3, -4};
  const float reals[] = {0.5f, 2};
  const char* const texts[] = {"a", "bcd"};
  const auto raw = [](const auto* first, size_t count) {
    return std::string(reinterpret_cast<const char*>(first), count * sizeof *first);
  };
  EXPECT_EQ(Made(ints, 1, ORT_OP_ATTR_INT).bytes(), raw(ints, 1));
  EXPECT_EQ(Made(ints, 2, ORT_OP_ATTR_INTS).bytes(), raw(ints, 2));
  EXPECT_EQ(Made(reals, 1, ORT_OP_ATTR_FLOAT).bytes(), raw(reals, 1));
  EXPECT_EQ(Made(reals, 2, ORT_OP_ATTR_FLOATS).bytes(), raw(reals, 2));
  EXPECT_EQ(Made("text", 4, ORT_OP_ATTR_STRING).bytes(), "text");
  EXPECT_EQ(Made(texts, 2, ORT_OP_ATTR_STRINGS).bytes(), std::string("a\0bcd\0", 6));
  EXPECT_EQ(Made(texts, 0, ORT_OP_ATTR_STRINGS).type(), ORT_OP_ATTR_STRINGS);
  const char* name = nullptr;
  const Made one(ints, 1, ORT_OP_ATTR_INT);
  EXPECT_OK(api().OpAttr_GetName(one.attribute, &name));
  EXPECT_STREQ(name, "name");
}

TEST(OpAttr, WhatIsRefused) {
  const int64_t number = 3;
  const Made made(&number, 1, ORT_OP_ATTR_INT);
  size_t size = 0;
  float other = 0;
  EXPECT_REFUSED(api().ReadOpAttr(made.attribute, ORT_OP_ATTR_FLOAT, &other, 4, &size),
                 ORT_INVALID_ARGUMENT, "'name' is of type 1 and not 3");
  char small[2];
  EXPECT_REFUSED(api().ReadOpAttr(made.attribute, ORT_OP_ATTR_INT, small, 2, &size),
                 ORT_INVALID_ARGUMENT, "takes 8 bytes");
  OrtValue* tensor = nullptr;
  EXPECT_REFUSED(api().OpAttr_GetTensorAttributeAsOrtValue(made.attribute, &tensor),
                 ORT_INVALID_ARGUMENT, "no tensor");
  OrtOpAttr* none = nullptr;
  EXPECT_REFUSED(api().CreateOpAttr("g", &number, 1, ORT_OP_ATTR_GRAPH, &none), ORT_FAIL,
                 "of type 7 can't be made");
  if (!is_sardonyx()) return;
  EXPECT_REFUSED(api().CreateOpAttr(nullptr, &number, 1, ORT_OP_ATTR_INT, &none),
                 ORT_INVALID_ARGUMENT, "'name' is null");
  EXPECT_REFUSED(api().CreateOpAttr("n", nullptr, 1, ORT_OP_ATTR_INT, &none), ORT_INVALID_ARGUMENT,
                 "'data' is null");
  EXPECT_REFUSED(api().CreateOpAttr("n", nullptr, 2, ORT_OP_ATTR_INTS, &none), ORT_INVALID_ARGUMENT,
                 "'data' is null");
}

// --- Shapes ---------------------------------------------------------------------------------

// The sizes of the session's output, "?" for those without a number or a name.
std::vector<std::string> output_sizes(const OrtSession* session) {
  OrtTypeInfo* type = nullptr;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  EXPECT_OK(api().SessionGetOutputTypeInfo(session, 0, &type));
  EXPECT_OK(api().CastTypeInfoToTensorInfo(type, &tensor));
  size_t rank = 0;
  EXPECT_OK(api().GetDimensionsCount(tensor, &rank));
  std::vector<int64_t> dims(rank);
  std::vector<const char*> names(rank);
  EXPECT_OK(api().GetDimensions(tensor, dims.data(), rank));
  EXPECT_OK(api().GetSymbolicDimensions(tensor, names.data(), rank));
  std::vector<std::string> sizes;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] >= 0)
      sizes.push_back(std::to_string(dims[i]));
    else
      sizes.push_back(names[i][0] == '\0' ? "?" : names[i]);
  }
  api().ReleaseTypeInfo(type);
  return sizes;
}

void set_output(OrtShapeInferContext* context, const std::vector<int64_t>& dims,
                std::vector<const char*> names, ONNXTensorElementDataType type = float_type) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  EXPECT_OK(api().CreateTensorTypeAndShapeInfo(&info));
  EXPECT_OK(api().SetTensorElementType(info, type));
  EXPECT_OK(api().SetDimensions(info, dims.data(), dims.size()));
  EXPECT_OK(api().SetSymbolicDimensions(info, names.data(), names.size()));
  EXPECT_OK(api().ShapeInferContext_SetOutputTypeShape(context, 0, info));
  api().ReleaseTensorTypeAndShapeInfo(info);
}

TEST(ShapeInferContext, SizesAreNumbersNamesOrOpen) {
  TestOperator op;
  op.compute = [](OrtKernelContext* context) -> OrtStatus* {
    const auto x = input_floats(context, 0);
    give_floats(context, 0, {x[0], x[1], x[2], 0, 0, 0}, {3, 2, 1});
    return nullptr;
  };
  op.infer_with([](OrtShapeInferContext* context) -> OrtStatus* {
    size_t count = 0;
    EXPECT_OK(api().ShapeInferContext_GetInputCount(context, &count));
    EXPECT_EQ(count, 1u);
    OrtTensorTypeAndShapeInfo* input = nullptr;
    EXPECT_OK(api().ShapeInferContext_GetInputTypeShape(context, 0, &input));
    size_t rank = 0;
    EXPECT_OK(api().GetDimensionsCount(input, &rank));
    EXPECT_EQ(rank, 2u);
    int64_t dims[2];
    const char* names[2];
    EXPECT_OK(api().GetDimensions(input, dims, 2));
    EXPECT_OK(api().GetSymbolicDimensions(input, names, 2));
    EXPECT_EQ(dims[1], 1);
    if (dims[0] == -1) {
      EXPECT_STREQ(names[0], "N");
    } else {
      EXPECT_EQ(dims[0], 3);  // while the node runs
    }
    set_output(context, {dims[0], 2, -1}, {names[0], "", ""});
    return nullptr;
  });
  const Program program({&op});
  const auto session = program.session(model_text("(float[N, 1] x) => (y) { y = test.Foo (x) }"));
  EXPECT_EQ(output_sizes(session.get()), (std::vector<std::string>{"N", "2", "?"}));
  EXPECT_EQ(run_floats(session.get(), {1, 2, 3}, {3, 1}), (std::vector<float>{1, 2, 3, 0, 0, 0}));
}

TEST(ShapeInferContext, AttributesAndWhatThereIsNot) {
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 0); };
  op.infer_with([](OrtShapeInferContext* context) -> OrtStatus* {
    const OrtOpAttr* attribute = nullptr;
    EXPECT_REFUSED(api().ShapeInferContext_GetAttribute(context, "none", &attribute),
                   ORT_INVALID_ARGUMENT, "no attribute 'none'");
    OrtTensorTypeAndShapeInfo* input = nullptr;
    EXPECT_REFUSED(api().ShapeInferContext_GetInputTypeShape(context, 4, &input),
                   ORT_RUNTIME_EXCEPTION, "no input 4");
    size_t size = 0;
    int64_t i = 0;
    EXPECT_OK(api().ShapeInferContext_GetAttribute(context, "i", &attribute));
    EXPECT_OK(api().ReadOpAttr(attribute, ORT_OP_ATTR_INT, &i, sizeof i, &size));
    EXPECT_EQ(i, 4);
    char texts[6];
    EXPECT_OK(api().ShapeInferContext_GetAttribute(context, "ss", &attribute));
    EXPECT_OK(api().ReadOpAttr(attribute, ORT_OP_ATTR_STRINGS, texts, sizeof texts, &size));
    EXPECT_STREQ(texts + 2, "bcd");
    OrtValue* tensor = nullptr;
    EXPECT_OK(api().ShapeInferContext_GetAttribute(context, "t", &attribute));
    EXPECT_OK(api().OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor));
    EXPECT_EQ(floats_of(hold(tensor).get()), (std::vector<float>{7, 8}));
    return nullptr;
  });
  const Program program({&op});
  EXPECT_EQ(run_floats(program.session(one_node(all_attributes)).get(), {1}, {1}),
            (std::vector<float>{1}));
}

TEST(ShapeInferContext, ItsFailureLeavesShapesOpen) {
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 1); };
  op.infer_with(
      [](OrtShapeInferContext*) { return api().CreateStatus(ORT_FAIL, "nothing is known"); });
  const Program program({&op});
  const auto session = program.session(
      model_text("(float[N] x) => (y) { a = test.Foo (x)\n b = Add (a, x)\n y = test.Foo (b) }"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2}), (std::vector<float>{4, 6}));
}

TEST(ShapeInferContext, InputsOfOpenRankDecideNothing) {
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 1); };
  op.infer_with([](OrtShapeInferContext* context) -> OrtStatus* {
    OrtTensorTypeAndShapeInfo* input = nullptr;
    EXPECT_OK(api().ShapeInferContext_GetInputTypeShape(context, 0, &input));
    EXPECT_OK(api().ShapeInferContext_SetOutputTypeShape(context, 0, input));
    return nullptr;
  });
  const Program program({&op});
  const auto session = program.session(model_text("(float[] x) => (y) { y = test.Foo (x) }"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2, 1}), (std::vector<float>{2, 3}));
}

TEST(ShapeInferContext, TheTypeOfAnOutputOfAnyType) {
  TestOperator op;
  op.output_types = {any_type};
  op.compute = [](OrtKernelContext* context) -> OrtStatus* {
    void* data = nullptr;
    require(api().GetTensorMutableData(output(context, 0, {1}), &data));
    *static_cast<int64_t*>(data) = 5;
    return nullptr;
  };
  op.infer_with([](OrtShapeInferContext* context) -> OrtStatus* {
    set_output(context, {1}, {""}, int64_type);
    return nullptr;
  });
  const Program program({&op});
  const auto session = program.session(
      model_text("(float[N] x) => (float[1] y) { a = test.Foo (x)\n y = Cast <to = 1> (a) }"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2}), (std::vector<float>{5}));
}

// What the C++ wrapper of these versions made of {N, 2}.
TEST(ShapeInferContext, NumbersOfOldOperatorsSayNothing) {
  TestOperator op;
  op.version = 18;
  op.compute = [](OrtKernelContext* context) { return add(context, 1); };
  op.infer_with([](OrtShapeInferContext* context) -> OrtStatus* {
    set_output(context, {-1, 1}, {"N", ""});
    return nullptr;
  });
  const Program program({&op});
  const auto session =
      program.session(model_text("(float[N, 2] x) => (y) { a = test.Foo (x)\n y = Neg (a) }"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {1, 2}), (std::vector<float>{-2, -3}));
}

TEST(ShapeInferContext, ARunHoldsTheKernelToTheShape) {
  if (!is_sardonyx()) return;  // ONNX Runtime goes on with the other shape
  TestOperator op;
  op.compute = [](OrtKernelContext* context) { return add(context, 1); };
  op.infer_with([](OrtShapeInferContext* context) -> OrtStatus* {
    set_output(context, {9}, {""});
    return nullptr;
  });
  const Program program({&op});
  const auto session = program.session(model_text("(float[N] x) => (y) { y = test.Foo (x) }"));
  const Outcome found = outcome_of_run(session.get(), {1, 2}, {2});
  EXPECT_EQ(found.code, ORT_RUNTIME_EXCEPTION);
  EXPECT_NE(found.message.find("output 'y' has shape [2], inference said [9]"), std::string::npos)
      << found.message;
}

}  // namespace
}  // namespace sardonyx::ort_api
