#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "ort_api/api.h"

namespace sardonyx::ort_api {
namespace {

constexpr const char* sum = R"(<ir_version: 8, opset_import: ["" : 17]>
sum (float[n, 3] a, float[n, 3] b) => (float[n, 3] total, float[n, 3] difference) {
  total = Add(a, b)
  difference = Sub(a, b)
})";

class Running : public testing::Test {
 protected:
  Held<OrtEnv> env = make_env();
  Held<OrtSessionOptions> options = make_options();
  std::vector<float> a{1, 2, 3}, b{10, 20, 30};
  Held<OrtValue> left = floats(a, {1, 3}), right = floats(b, {1, 3});
  Held<OrtSession> session = make_session(env.get(), sum, options.get());
};

TEST_F(Running, GivesTheOutputsThatAreAskedFor) {
  const auto made =
      run(session.get(), {{"b", right.get()}, {"a", left.get()}}, {"difference", "total"});
  EXPECT_EQ(floats_of(made[0].get()), (std::vector<float>{-9, -18, -27}));
  EXPECT_EQ(floats_of(made[1].get()), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(shape_of(made[1].get()), (std::vector<int64_t>{1, 3}));
  const auto one = run(session.get(), {{"a", left.get()}, {"b", right.get()}}, {"total"});
  EXPECT_EQ(floats_of(one[0].get()), (std::vector<float>{11, 22, 33}));
}

TEST_F(Running, WritesIntoMemoryThatIsThere) {
  std::vector<float> total(3);
  const auto memory = floats(total, {1, 3});
  const std::vector<const char*> names{"a", "b"}, outputs{"total", "difference"};
  const std::vector<const OrtValue*> inputs{left.get(), right.get()};
  std::vector<OrtValue*> made{memory.get(), nullptr};
  ASSERT_OK(api().Run(session.get(), nullptr, names.data(), inputs.data(), 2, outputs.data(), 2,
                      made.data()));
  EXPECT_EQ(total, (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(made[0], memory.get());
  EXPECT_EQ(floats_of(hold(made[1]).get()), (std::vector<float>{-9, -18, -27}));
}

TEST_F(Running, MemoryForAnotherTypeOrShapeIsRefused) {
  const std::vector<const char*> names{"a", "b"}, total{"total"};
  const std::vector<const OrtValue*> inputs{left.get(), right.get()};
  std::vector<float> more(6);
  std::vector<int32_t> integers(3);
  const auto other_shape = floats(more, {2, 3});
  const auto other_type = tensor(integers, {1, 3}, static_cast<ONNXTensorElementDataType>(6));
  for (const auto* output : {other_shape.get(), other_type.get()}) {
    OrtValue* made = const_cast<OrtValue*>(output);
    EXPECT_REFUSED(
        api().Run(session.get(), nullptr, names.data(), inputs.data(), 2, total.data(), 1, &made),
        ORT_INVALID_ARGUMENT, "to be written to");
    EXPECT_EQ(made, output);
  }
  EXPECT_EQ(integers, std::vector<int32_t>(3));
}

TEST_F(Running, OneOutputAskedForTwice) {
  if (!is_sardonyx()) GTEST_SKIP() << "not said there";
  std::vector<float> memory(3);
  const auto given = floats(memory, {1, 3});
  const std::vector<const char*> names{"a", "b"}, twice{"total", "total"};
  const std::vector<const OrtValue*> inputs{left.get(), right.get()};
  std::vector<OrtValue*> made{nullptr, given.get()};
  ASSERT_OK(api().Run(session.get(), nullptr, names.data(), inputs.data(), 2, twice.data(), 2,
                      made.data()));
  EXPECT_EQ(floats_of(hold(made[0]).get()), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(memory, (std::vector<float>{11, 22, 33}));
}

TEST_F(Running, RefusesWhatDoesNotFit) {
  const std::vector<const char*> names{"a", "b"}, wrong{"a", "c"}, total{"total"},
      no_output{"nothing"};
  const std::vector<const OrtValue*> inputs{left.get(), right.get()};
  OrtValue* made = nullptr;
  const auto call = [&](const auto& input_names, const auto& values, size_t count,
                        const auto& output_names) {
    return api().Run(session.get(), nullptr, input_names.data(), values.data(), count,
                     output_names.data(), 1, &made);
  };
  EXPECT_REFUSED(call(wrong, inputs, 2, total), ORT_INVALID_ARGUMENT, "Invalid input name: c");
  EXPECT_REFUSED(call(names, inputs, 2, no_output), ORT_INVALID_ARGUMENT,
                 "Invalid output name: nothing");
  EXPECT_NE(outcome(call(names, inputs, 1, total)).code, ORT_OK);  // b is missing
  std::vector<double> doubles{1, 2, 3};
  const auto other_type = tensor(doubles, {1, 3}, static_cast<ONNXTensorElementDataType>(11));
  EXPECT_REFUSED(call(names, std::vector<const OrtValue*>{left.get(), other_type.get()}, 2, total),
                 ORT_INVALID_ARGUMENT, "double");
  const auto other_shape = floats(b, {3, 1});
  EXPECT_REFUSED(call(names, std::vector<const OrtValue*>{left.get(), other_shape.get()}, 2, total),
                 ORT_INVALID_ARGUMENT, "b");
  EXPECT_EQ(made, nullptr);
  if (is_sardonyx()) {
    EXPECT_REFUSED(call(names, std::vector<const OrtValue*>{left.get(), nullptr}, 2, total),
                   ORT_INVALID_ARGUMENT, "input b");
    EXPECT_REFUSED(api().Run(nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr),
                   ORT_INVALID_ARGUMENT, "session");
    EXPECT_REFUSED(
        api().Run(session.get(), nullptr, names.data(), inputs.data(), 2, total.data(), 1, nullptr),
        ORT_INVALID_ARGUMENT, "outputs");
  }
}

TEST_F(Running, StopsWhereItIsToldTo) {
  const auto run_options = make_run_options();
  EXPECT_OK(api().RunOptionsSetTerminate(run_options.get()));
  const std::vector<const char*> names{"a", "b"}, total{"total"};
  const std::vector<const OrtValue*> inputs{left.get(), right.get()};
  OrtValue* made = nullptr;
  EXPECT_REFUSED(api().Run(session.get(), run_options.get(), names.data(), inputs.data(), 2,
                           total.data(), 1, &made),
                 ORT_FAIL, "Exiting due to terminate flag");
  EXPECT_OK(api().RunOptionsUnsetTerminate(run_options.get()));
  const auto again =
      run(session.get(), {{"a", left.get()}, {"b", right.get()}}, {"total"}, run_options.get());
  EXPECT_EQ(floats_of(again[0].get()), (std::vector<float>{11, 22, 33}));
}

TEST_F(Running, OptionsOfARunAreKept) {
  const auto run_options = make_run_options();
  EXPECT_OK(api().RunOptionsSetRunTag(run_options.get(), "first"));
  EXPECT_OK(api().RunOptionsSetRunLogSeverityLevel(run_options.get(), 3));
  EXPECT_OK(api().RunOptionsSetRunLogVerbosityLevel(run_options.get(), 2));
  EXPECT_OK(api().AddRunConfigEntry(run_options.get(), "some.key", "some value"));
  const char* tag = nullptr;
  int severity = 0, verbosity = 0;
  EXPECT_OK(api().RunOptionsGetRunTag(run_options.get(), &tag));
  EXPECT_OK(api().RunOptionsGetRunLogSeverityLevel(run_options.get(), &severity));
  EXPECT_OK(api().RunOptionsGetRunLogVerbosityLevel(run_options.get(), &verbosity));
  EXPECT_STREQ(tag, "first");
  EXPECT_EQ(severity, 3);
  EXPECT_EQ(verbosity, 2);
}

struct Waiting {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  OrtErrorCode code = ORT_OK;
  std::vector<OrtValue*> outputs;
};

void when_done(void* user, OrtValue** outputs, size_t count, OrtStatus* status) {
  auto& waiting = *static_cast<Waiting*>(user);
  const std::lock_guard lock(waiting.mutex);
  waiting.code = outcome(status).code;
  waiting.outputs.assign(outputs, outputs + count);
  waiting.is_done = true;
  waiting.done.notify_one();
}

// The output "total" of a run that goes on while its caller does.
Held<OrtValue> run_async(OrtSession* session, const OrtValue* a, const OrtValue* b) {
  const std::vector<const char*> names{"a", "b"}, total{"total"};
  const std::vector<const OrtValue*> inputs{a, b};
  std::vector<OrtValue*> made(1);
  Waiting waiting;
  EXPECT_OK(api().RunAsync(session, nullptr, names.data(), inputs.data(), 2, total.data(), 1,
                           made.data(), when_done, &waiting));
  std::unique_lock lock(waiting.mutex);
  waiting.done.wait(lock, [&] { return waiting.is_done; });
  EXPECT_EQ(waiting.code, ORT_OK);
  EXPECT_EQ(waiting.outputs, made);
  return hold(made[0]);
}

TEST_F(Running, CanGoOnWhileTheCallerDoes) {
  const auto two_threads = make_options();
  EXPECT_OK(api().SetIntraOpNumThreads(two_threads.get(), 2));
  const auto threaded = make_session(env.get(), sum, two_threads.get());
  const auto made = run_async(threaded.get(), left.get(), right.get());
  EXPECT_EQ(floats_of(made.get()), (std::vector<float>{11, 22, 33}));
}

TEST_F(Running, BindsInputsAndOutputsOnce) {
  OrtIoBinding* binding = nullptr;
  ASSERT_OK(api().CreateIoBinding(session.get(), &binding));
  std::vector<float> difference(3);
  const auto memory = floats(difference, {1, 3});
  const auto info = cpu_info();
  EXPECT_OK(api().BindInput(binding, "a", left.get()));
  EXPECT_OK(api().BindInput(binding, "b", right.get()));
  EXPECT_OK(api().BindOutputToDevice(binding, "total", info.get()));
  EXPECT_OK(api().BindOutput(binding, "difference", memory.get()));
  EXPECT_OK(api().SynchronizeBoundInputs(binding));
  ASSERT_OK(api().RunWithBinding(session.get(), nullptr, binding));
  EXPECT_OK(api().SynchronizeBoundOutputs(binding));
  EXPECT_EQ(difference, (std::vector<float>{-9, -18, -27}));
  char* names = nullptr;
  size_t* lengths = nullptr;
  size_t count = 0;
  ASSERT_OK(api().GetBoundOutputNames(binding, allocator(), &names, &lengths, &count));
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(std::string(names, lengths[0] + lengths[1]), "totaldifference");
  EXPECT_OK(api().AllocatorFree(allocator(), names));
  EXPECT_OK(api().AllocatorFree(allocator(), lengths));
  OrtValue** values = nullptr;
  ASSERT_OK(api().GetBoundOutputValues(binding, allocator(), &values, &count));
  ASSERT_EQ(count, 2u);
  const auto first = hold(values[0]), second = hold(values[1]);
  EXPECT_OK(api().AllocatorFree(allocator(), values));
  EXPECT_EQ(floats_of(first.get()), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(floats_of(second.get()), (std::vector<float>{-9, -18, -27}));
  a[0] = 100;  // read anew by each run
  ASSERT_OK(api().RunWithBinding(session.get(), nullptr, binding));
  EXPECT_EQ(difference, (std::vector<float>{90, -18, -27}));
  if (is_sardonyx()) {  // whoever holds an output keeps it
    EXPECT_EQ(floats_of(first.get()), (std::vector<float>{11, 22, 33}));
  }
  api().ClearBoundInputs(binding);
  EXPECT_NE(outcome(api().RunWithBinding(session.get(), nullptr, binding)).code, ORT_OK);
  api().ClearBoundOutputs(binding);
  EXPECT_OK(api().BindInput(binding, "a", left.get()));
  EXPECT_OK(api().BindInput(binding, "b", right.get()));
  EXPECT_NE(outcome(api().RunWithBinding(session.get(), nullptr, binding)).code,
            ORT_OK);  // nothing is asked for
  api().ReleaseIoBinding(binding);
}

Held<OrtValue> texts(const std::vector<const char*>& from) {
  const auto count = static_cast<int64_t>(from.size());
  OrtValue* value = nullptr;
  EXPECT_OK(api().CreateTensorAsOrtValue(allocator(), &count, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  EXPECT_OK(api().FillStringTensor(value, from.data(), from.size()));
  return hold(value);
}

std::string text_at(const OrtValue* value, size_t index) {
  size_t length = 0;
  EXPECT_OK(api().GetStringTensorElementLength(value, index, &length));
  std::string text(length, ' ');
  EXPECT_OK(api().GetStringTensorElement(value, length, index, text.data()));
  return text;
}

struct Bound {
  explicit Bound(OrtSession* session_) : session(session_) {
    EXPECT_OK(api().CreateIoBinding(session, &binding));
  }
  ~Bound() { api().ReleaseIoBinding(binding); }
  void run() const { EXPECT_OK(api().RunWithBinding(session, nullptr, binding)); }
  Held<OrtValue> output() const {
    OrtValue** values = nullptr;
    size_t count = 0;
    EXPECT_OK(api().GetBoundOutputValues(binding, allocator(), &values, &count));
    EXPECT_EQ(count, 1u);
    auto first = hold(values[0]);
    EXPECT_OK(api().AllocatorFree(allocator(), values));
    return first;
  }
  OrtSession* session;
  OrtIoBinding* binding = nullptr;
};

TEST_F(Running, BindsStringsOfTheCallers) {
  const auto join = make_session(env.get(), R"(<ir_version: 9, opset_import: ["" : 20]>
    join (string[n] a, string[n] b) => (string[n] c) { c = StringConcat(a, b) })",
                                 options.get());
  const auto x = texts({"left ", "a"}), y = texts({"right", "b"}), z = texts({"", ""});
  const Bound bound(join.get());
  EXPECT_OK(api().BindInput(bound.binding, "a", x.get()));
  EXPECT_OK(api().BindInput(bound.binding, "b", y.get()));
  EXPECT_OK(api().BindOutput(bound.binding, "c", z.get()));
  EXPECT_EQ(text_at(bound.output().get(), 0), "");  // before the first run
  bound.run();
  EXPECT_EQ(text_at(z.get(), 0), "left right");
  EXPECT_EQ(text_at(bound.output().get(), 1), "ab");
}

// As decoders do whose cache grows in place.
TEST_F(Running, BindsAnOutputToTheMemoryOfAnInput) {
  const Bound bound(session.get());
  EXPECT_OK(api().BindInput(bound.binding, "a", left.get()));
  EXPECT_OK(api().BindInput(bound.binding, "b", right.get()));
  EXPECT_OK(api().BindOutput(bound.binding, "total", left.get()));
  bound.run();
  EXPECT_EQ(a, (std::vector<float>{11, 22, 33}));
  bound.run();
  EXPECT_EQ(a, (std::vector<float>{21, 42, 63}));
}

TEST_F(Running, BoundOutputsAreNotTheModels) {
  const auto constant = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x) => (float[3] y) <float[3] w = {5, 6, 7}> { y = Identity(w) })",
                                     options.get());
  const auto x = floats(a, {3});
  const auto one = [&] {
    const Bound bound(constant.get());
    EXPECT_OK(api().BindInput(bound.binding, "x", x.get()));
    EXPECT_OK(api().BindOutputToDevice(bound.binding, "y", cpu_info().get()));
    bound.run();
    return bound.output();
  };
  const auto first = one();
  void* data = nullptr;
  EXPECT_OK(api().GetTensorMutableData(first.get(), &data));
  *static_cast<float*>(data) = 100;
  EXPECT_EQ(floats_of(one().get()), (std::vector<float>{5, 6, 7}));
}

TEST_F(Running, ASequenceWithoutItemsHasAType) {
  const auto empty = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x) => (seq(int64[n]) y) { y = SequenceEmpty<dtype = 7>() })",
                                  options.get());
  const auto x = floats(a, {3});
  const auto made = run(empty.get(), {{"x", x.get()}}, {"y"});
  OrtTypeInfo *info = nullptr, *item = nullptr;
  const OrtSequenceTypeInfo* sequence = nullptr;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ONNXTensorElementDataType type{};
  ASSERT_OK(api().GetTypeInfo(made[0].get(), &info));
  ASSERT_OK(api().CastTypeInfoToSequenceTypeInfo(info, &sequence));
  ASSERT_OK(api().GetSequenceElementType(sequence, &item));
  ASSERT_OK(api().CastTypeInfoToTensorInfo(item, &tensor));
  ASSERT_OK(api().GetTensorElementType(tensor, &type));
  EXPECT_EQ(type, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  api().ReleaseTypeInfo(item);
  api().ReleaseTypeInfo(info);
}

TEST_F(Running, ManyThreadsRunOneSession) {
  std::atomic<int> right_ones = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      std::vector<float> own{float(i), float(i), float(i)};
      const auto input = floats(own, {1, 3});
      for (int j = 0; j < 100; ++j) {
        const auto made = run(session.get(), {{"a", input.get()}, {"b", right.get()}}, {"total"});
        right_ones += floats_of(made[0].get()) ==
                      std::vector<float>{10.0f + float(i), 20.0f + float(i), 30.0f + float(i)};
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right_ones, 400);
}

// Callers write to what they gave as an input, and to what they got.
TEST_F(Running, OutputsHaveMemoryOfTheirOwn) {
  const auto same = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    same (float[3] x, seq(float[3]) s) => (float[3] y, float[3] z, seq(float[3]) t, seq(float[3]) u, float[3] w)
    <float[3] v = {7, 8, 9}> {
      y = Identity(x)  z = Identity(x)  t = Identity(s)  u = SequenceConstruct(x)  w = Identity(v) })",
                                 options.get());
  const int64_t three = 3;
  OrtValue* own = nullptr;
  ASSERT_OK(api().CreateTensorAsOrtValue(allocator(), &three, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &own));
  const auto made = hold(own);
  const auto view = floats(a, {3});
  const std::vector<float> wanted{1, 2, 3}, constant{7, 8, 9};
  const auto elements = [](const OrtValue* value) {
    void* data = nullptr;
    EXPECT_OK(api().GetTensorMutableData(const_cast<OrtValue*>(value), &data));
    return static_cast<float*>(data);
  };
  const auto item = [](const OrtValue* sequence) {
    OrtValue* found = nullptr;
    EXPECT_OK(api().GetValue(sequence, 0, allocator(), &found));
    return floats_of(hold(found).get());
  };
  for (const OrtValue* x : {view.get(), made.get()}) {
    std::copy(wanted.begin(), wanted.end(), elements(x));
    OrtValue* sequence = nullptr;
    ASSERT_OK(api().CreateValue(&x, 1, ONNX_TYPE_SEQUENCE, &sequence));
    const auto s = hold(sequence);
    const auto outputs =
        run(same.get(), {{"x", x}, {"s", s.get()}}, {"y", "z", "t", "u", "w", "y"});
    *elements(x) = 100;
    EXPECT_EQ(floats_of(outputs[0].get()), wanted);
    EXPECT_EQ(item(outputs[2].get()), wanted);
    EXPECT_EQ(item(outputs[3].get()), wanted);
    *elements(outputs[0].get()) = 200;
    EXPECT_EQ(floats_of(outputs[1].get()), wanted);
    EXPECT_EQ(floats_of(outputs[4].get()), constant);
    *elements(outputs[4].get()) = 300;  // not the session's
  }
}

TEST_F(Running, StringsThroughAModel) {
  const auto join = make_session(env.get(), R"(<ir_version: 9, opset_import: ["" : 20]>
    join (string[n] a, string[n] b) => (string[n] c) { c = StringConcat(a, b) })",
                                 options.get());
  const auto x = texts({"left ", "a"}), y = texts({"right", "b"});
  const auto made = run(join.get(), {{"a", x.get()}, {"b", y.get()}}, {"c"});
  std::string text(12, ' ');
  std::vector<size_t> offsets(2);
  EXPECT_OK(
      api().GetStringTensorContent(made[0].get(), text.data(), text.size(), offsets.data(), 2));
  EXPECT_EQ(text, "left rightab");
}

TEST_F(Running, SequencesThroughAModel) {
  const auto pair = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    pair (float[3] a, float[3] b) => (seq(float[3]) both) { both = SequenceConstruct(a, b) })",
                                 options.get());
  const auto x = floats(a, {3}), y = floats(b, {3});
  const auto made = run(pair.get(), {{"a", x.get()}, {"b", y.get()}}, {"both"});
  size_t count = 0;
  EXPECT_OK(api().GetValueCount(made[0].get(), &count));
  ASSERT_EQ(count, 2u);
  OrtValue* item = nullptr;
  ASSERT_OK(api().GetValue(made[0].get(), 1, allocator(), &item));
  EXPECT_EQ(floats_of(hold(item).get()), b);
  const auto length = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 17]>
    length (seq(float[3]) all) => (int64 n) { n = SequenceLength(all) })",
                                   options.get());
  const auto n = run(length.get(), {{"all", made[0].get()}}, {"n"});
  void* data = nullptr;
  EXPECT_OK(api().GetTensorMutableData(n[0].get(), &data));
  EXPECT_EQ(*static_cast<int64_t*>(data), 2);
}

TEST_F(Running, OptionalsHoldOrDoNot) {
  const auto ask = make_session(env.get(), R"(<ir_version: 8, opset_import: ["" : 18]>
    ask (optional(float[3]) x) => (bool has) { has = OptionalHasElement(x) })",
                                options.get());
  OrtTypeInfo* info = nullptr;
  ASSERT_OK(api().SessionGetInputTypeInfo(ask.get(), 0, &info));
  const OrtOptionalTypeInfo* optional = nullptr;
  ASSERT_OK(api().CastTypeInfoToOptionalTypeInfo(info, &optional));
  ASSERT_NE(optional, nullptr);
  OrtTypeInfo* held = nullptr;
  ASSERT_OK(api().GetOptionalContainedTypeInfo(optional, &held));
  ONNXType kind{};
  EXPECT_OK(api().GetOnnxTypeFromTypeInfo(held, &kind));
  EXPECT_EQ(kind, ONNX_TYPE_TENSOR);
  api().ReleaseTypeInfo(held);
  api().ReleaseTypeInfo(info);
  const auto x = floats(a, {3});
  const auto made = run(ask.get(), {{"x", x.get()}}, {"has"});
  void* data = nullptr;
  EXPECT_OK(api().GetTensorMutableData(made[0].get(), &data));
  EXPECT_TRUE(*static_cast<bool*>(data));
}

TEST_F(Running, TracesHaveRunsThatGoOnWhileTheCallerDoes) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ort_api_async_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto profiled = make_options();
  EXPECT_OK(api().SetIntraOpNumThreads(profiled.get(), 2));
  EXPECT_OK(api().EnableProfiling(profiled.get(), (folder / "trace").c_str()));
  const auto traced = make_session(env.get(), sum, profiled.get());
  run_async(traced.get(), left.get(), right.get());
  char* path = nullptr;
  ASSERT_OK(api().SessionEndProfiling(traced.get(), allocator(), &path));
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("\"Add\""), std::string::npos) << path;
  // As tools read them: whole microseconds, names that end in those of nodes.
  EXPECT_FALSE(std::regex_search(text, std::regex("\"(dur|ts)\" ?:[0-9]+[.]"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\"name\" ?:\"[^\" ']*_kernel_time\""))) << text;
  EXPECT_OK(api().AllocatorFree(allocator(), path));
  std::filesystem::remove_all(folder);
}

TEST_F(Running, TracesGoToAFile) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ort_api_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto profiled = make_options();
  EXPECT_OK(api().EnableProfiling(profiled.get(), (folder / "trace").c_str()));
  const auto traced = make_session(env.get(), sum, profiled.get());
  run(traced.get(), {{"a", left.get()}, {"b", right.get()}}, {"total"});
  uint64_t begin = 0;
  EXPECT_OK(api().SessionGetProfilingStartTimeNs(traced.get(), &begin));
  EXPECT_NE(begin, 0u);
  char* path = nullptr;
  ASSERT_OK(api().SessionEndProfiling(traced.get(), allocator(), &path));
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("\"model_run\""), std::string::npos) << path;
  EXPECT_NE(text.find("\"Add\""), std::string::npos);
  EXPECT_OK(api().AllocatorFree(allocator(), path));
  std::filesystem::remove_all(folder / "");
  std::filesystem::create_directory(folder);
  make_session(env.get(), sum, profiled.get()).reset();
  EXPECT_FALSE(std::filesystem::is_empty(folder)) << "a session that goes leaves its trace";
  std::filesystem::remove_all(folder);
}

TEST_F(Running, EachTraceHasAFile) {
  if (!is_sardonyx()) GTEST_SKIP() << "ONNX Runtime writes over those of the same millisecond";
  const auto folder =
      std::filesystem::temp_directory_path() / ("ort_traces_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto profiled = make_run_options();
  EXPECT_OK(api().RunOptionsEnableProfiling(profiled.get(), (folder / "trace").c_str()));
  constexpr int runs = 40;
  for (int i = 0; i < runs; ++i)
    run(session.get(), {{"a", left.get()}, {"b", right.get()}}, {"total"}, profiled.get());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), runs);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sardonyx::ort_api
