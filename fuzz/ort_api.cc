// Random sequences of calls of ONNX Runtime's C interface: whatever is called with whatever, each
// gives a status or a result, and nothing is left over. What the rules of that interface forbid is
// not done: no handle is used after its release, and no memory is shorter than is said.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <future>
#include <string>

#include "ort_api_handles.h"

namespace sardonyx::fuzzing {

namespace {

constexpr const char* entries[] = {"session.use_env_allocators",
                                   "session.record_ep_graph_assignment_info",
                                   "session.intra_op_thread_affinities",
                                   "session.model_external_initializers_file_folder_path",
                                   "sardonyx.packed",
                                   "custom",
                                   ""};

// --- Calls ----------------------------------------------------------------------------------

class Calls : Handles {
 public:
  Calls(const uint8_t* data, size_t size) : Handles(data, size), left_(size) {}

  void run() {
    CallersAllocator::failing_in = choices_.one_in(4) ? static_cast<int>(choices_.below(40)) : -1;
    make_environment(), use_memory(), make_session();
    // Later ones would be drawn from nothing.
    for (size_t calls = 0; calls < std::min<size_t>(left_ / 6, 80); ++calls) call();
    CallersAllocator::failing_in = -1;
  }

 private:
  void call() {
    switch (choices_.below(30)) {
      case 0: make_tensor(); break;
      case 1: view_memory(); break;
      case 2: combine(); break;
      case 3: make_sparse(); break;
      case 4: write(any(values_)); break;
      case 5: read_any(); break;
      case 6: make_environment(); break;
      case 7:
      case 8: make_options(); break;
      case 9:
      case 10:
      case 11: make_session(); break;
      case 12: release(); break;
      case 13: look_at(any(sessions_)); break;
      case 14: make_run_options(); break;
      case 15:
      case 16: bind(); break;
      case 17: use_memory(); break;
      case 18: use_pairs(); break;
      case 19: use_type_info(); break;
      case 20: use_metadata(); break;
      case 21: use_devices(); break;
      case 22: use_adapter(); break;
      default: run_session(); break;
    }
  }

  void make_environment() {
    OrtEnv* made = nullptr;
    OrtThreadingOptions* threading = nullptr;
    must(table().CreateThreadingOptions(&threading));
    must(table().SetGlobalIntraOpNumThreads(
        threading, choices_.one_in(8) ? 5000 : 1 + static_cast<int>(choices_.below(2))));
    const auto level = static_cast<OrtLoggingLevel>(choices_.below(5));
    const bool has_threads = choices_.one_in(3);
    keep(has_threads
             ? table().CreateEnvWithCustomLoggerAndGlobalThreadPools(read_log, nullptr, level,
                                                                     name(), threading, place(made))
             : table().CreateEnvWithCustomLogger(read_log, nullptr, level, name(), place(made)),
         made, environments_);
    table().ReleaseThreadingOptions(threading);
    OrtEnv* const env = any(environments_);
    take(table().UpdateEnvWithCustomLogLevel(env, level));
    if (choices_.one_in(2)) take(table().RegisterAllocator(env, callers_memory()));
    if (choices_.one_in(4)) take(table().CreateAndRegisterAllocator(env, any(infos_), nullptr));
    if (choices_.one_in(4)) take(table().UnregisterAllocator(env, any(infos_)));
    OrtAllocator* shared = nullptr;
    take(table().GetSharedAllocator(env, any(infos_), &shared), shared);
  }

  std::string entry_value() {
    std::string text;
    for (size_t length = choices_.below(6); text.size() < length;)
      text += "0112,;-x"[choices_.below(8)];
    return choices_.one_in(2) ? "1" : text;
  }

  void make_options() {
    OrtSessionOptions* options = nullptr;
    if (choices_.one_in(3)) {
      keep(table().CloneSessionOptions(any(options_), place(options)), options, options_);
    } else {
      keep(table().CreateSessionOptions(place(options)), options, options_);
    }
    if (options == nullptr) options = any(options_);
    constexpr int threads[] = {1, 1, 1, 1, 2, 3, -1, 5000};
    take(table().SetIntraOpNumThreads(options, threads[choices_.below(8)]));
    for (size_t more = choices_.below(4); more > 0; --more) change(options);
  }

  void change(OrtSessionOptions* options) {
    const char* const key =
        choices_.one_in(32) ? nullptr : entries[choices_.below(std::size(entries))];
    switch (choices_.below(11)) {
      case 0: {
        take(table().AddSessionConfigEntry(options, key, entry_value().c_str()));
        int has = 0;
        char value[4];
        size_t size = choices_.below(5);
        take(table().HasSessionConfigEntry(options, key, &has));
        take(table().GetSessionConfigEntry(options, key, choices_.one_in(4) ? nullptr : value,
                                           &size));
        OrtKeyValuePairs* pairs = nullptr;
        keep(table().GetSessionOptionsConfigEntries(options, place(pairs)), pairs, pairs_);
        break;
      }
      case 1:
        take(table().AddFreeDimensionOverrideByName(options, choices_.one_in(2) ? "N" : name(),
                                                    choices_.integer()));
        break;
      case 2: take(table().AddFreeDimensionOverride(options, name(), choices_.integer())); break;
      case 3: take(table().AddInitializer(options, name(), any(values_))); break;
      case 4: {
        const char* const keys[] = {name(), "w"};
        const OrtValue* const given[] = {any(values_), any(values_)};
        take(table().AddExternalInitializers(options, keys, given, choices_.below(3)));
        break;
      }
      case 5: {
        const PathChar* const files[] = {"f", "f"};
        char* const data[] = {memory_ + choices_.below(8), choices_.one_in(8) ? nullptr : memory_};
        const size_t lengths[] = {choices_.below(24), choices_.below(24)};
        take(table().AddExternalInitializersFromFilesInMemory(options, files, data, lengths,
                                                              choices_.one_in(8) ? 2 : 1));
        break;
      }
      case 6:
        take(table().AddCustomOpDomain(options, choices_.one_in(8) ? nullptr : domain()));
        break;
      case 7:
        take(table().SetSessionGraphOptimizationLevel(
            options, static_cast<GraphOptimizationLevel>(choices_.integer())));
        break;
      case 8:
        take(table().SessionOptionsSetLoadCancellationFlag(options, choices_.one_in(4)));
        break;
      case 9:
        take(table().SetSessionLogSeverityLevel(options, static_cast<int>(choices_.below(7)) - 1));
        break;
      case 10: take(table().DisablePerSessionThreads(options)); break;
    }
  }

  // Seldom of a model that is damaged, or of drawn bytes.
  void make_session() {
    if (sessions_.held.size() > 6) return;
    std::vector<char> bytes = model_bytes(choices_.below(model_count));
    if (choices_.one_in(5)) {
      for (size_t changes = 1 + choices_.below(4); changes > 0; --changes)
        bytes[choices_.below(bytes.size())] = static_cast<char>(choices_.byte());
      if (choices_.one_in(3)) bytes.resize(choices_.below(bytes.size()));
      bytes.shrink_to_fit();
    }
    if (environments_.held.empty() && !choices_.one_in(8)) make_environment();
    OrtPrepackedWeightsContainer* container = nullptr;
    if (choices_.one_in(8))
      keep(table().CreatePrepackedWeightsContainer(place(container)), container, containers_);
    if (choices_.one_in(4)) container = any(containers_);
    OrtSessionOptions* const options = any(options_);
    if (choices_.one_in(2)) {  // what the models want
      const PathChar* const file = "f";
      char* const data = memory_;
      const size_t length = 8 + choices_.below(8);
      take(table().AddCustomOpDomain(options, domain()));
      take(table().AddExternalInitializersFromFilesInMemory(options, &file, &data, &length, 1));
    }
    OrtSession* made = nullptr;
    keep(table().CreateSessionFromArrayWithPrepackedWeightsContainer(
             any(environments_), bytes.data(), bytes.size(), options, container, place(made)),
         made, sessions_);
    if (choices_.one_in(32)) {
      made = nullptr;
      take(table().CreateSession(any(environments_), "/nothing/here.onnx", any(options_),
                                 place(made)),
           made);
    }
  }

  template <class T>
  void release_of(Pool<T>& pool) {
    if (!pool.held.empty()) pool.release_one(choices_.below(pool.held.size()));
  }
  void release() {
    switch (choices_.below(8)) {
      case 0:
        if (sessions_.held.empty()) break;
        // They may be released after it and for nothing else be used.
        orphans_.held.insert(orphans_.held.end(), bindings_.held.begin(), bindings_.held.end());
        bindings_.held.clear(), bound_.clear();
        release_of(sessions_);
        break;
      case 1: release_of(options_); break;
      case 2: release_of(environments_); break;
      case 3: release_of(infos_); break;
      case 4: release_of(run_options_); break;
      case 5: release_of(pairs_); break;
      default: release_of(values_); break;
    }
  }

  void look_at(OrtSession* session) {
    size_t count = 0;
    take(table().SessionGetInputCount(session, &count));
    take(table().SessionGetOutputCount(session, &count));
    OrtAllocator* const from = allocator();
    for (size_t i = 0; i <= count; ++i) {
      char* text = nullptr;
      give_text(table().SessionGetOutputName(session, i, from, place(text)), from, text);
      text = nullptr;
      give_text(table().SessionGetOverridableInitializerName(session, i, from, place(text)), from,
                text);
      OrtTypeInfo* info = nullptr;
      take(table().SessionGetOutputTypeInfo(session, i, place(info)), info);
      if (info != nullptr) read_type(info);
      table().ReleaseTypeInfo(info);
      info = nullptr;
      take(table().SessionGetOverridableInitializerTypeInfo(session, i, &info), info);
      table().ReleaseTypeInfo(info);
    }
    const OrtMemoryInfo* infos[4] = {};
    take(table().SessionGetMemoryInfoForInputs(session, infos, choices_.below(5)));
    take(table().SessionGetMemoryInfoForOutputs(session, infos, choices_.below(5)));
    const OrtEpAssignedSubgraph* const* parts = nullptr;
    take(table().Session_GetEpGraphAssignmentInfo(session, &parts, &count));
    char* path = nullptr;
    give_text(table().SessionEndProfiling(session, from, place(path)), from, path);
    if (choices_.one_in(4)) {
      OrtAllocator* made = nullptr;
      keep(table().CreateAllocator(session, any(infos_), place(made)), made, allocators_);
    }
  }

  void make_run_options() {
    OrtRunOptions* made = nullptr;
    keep(table().CreateRunOptions(place(made)), made, run_options_);
    OrtRunOptions* const options = any(run_options_);
    if (choices_.one_in(8)) take(table().RunOptionsSetTerminate(options));
    if (choices_.one_in(4)) take(table().RunOptionsUnsetTerminate(options));
    if (choices_.one_in(4)) take(table().RunOptionsAddActiveLoraAdapter(options, any(adapters_)));
    take(table().RunOptionsSetRunTag(options, name()));
    take(table().AddRunConfigEntry(options, name(), name()));
    table().GetRunConfigEntry(options, name());
    const char* tag = nullptr;
    take(table().RunOptionsGetRunTag(options, &tag));
    take(table().RunOptionsDisableProfiling(options));
  }

  void use_adapter() {
    std::vector<char> bytes = adapter_bytes();
    for (size_t changes = choices_.below(4); changes > 0; --changes)
      bytes[choices_.below(bytes.size())] = static_cast<char>(choices_.byte());
    if (choices_.one_in(8)) bytes.resize(choices_.below(bytes.size()));
    bytes.shrink_to_fit();
    OrtLoraAdapter* made = nullptr;
    keep(table().CreateLoraAdapterFromArray(bytes.data(), bytes.size(), allocator(), place(made)),
         made, adapters_);
  }

  void use_pairs() {
    OrtKeyValuePairs* made = nullptr;
    table().CreateKeyValuePairs(place(made));
    if (made != nullptr) pairs_.held.push_back(made);
    OrtKeyValuePairs* const pairs = any(pairs_);
    for (size_t i = choices_.below(4); i > 0; --i) table().AddKeyValuePair(pairs, name(), name());
    if (choices_.one_in(2)) table().RemoveKeyValuePair(pairs, name());
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    table().GetKeyValuePairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count; ++i)
      require(std::strcmp(table().GetKeyValue(pairs, keys[i]), values[i]) == 0,
              "keys have their values");
  }

  void use_metadata() {
    OrtModelMetadata* metadata = nullptr;
    take(table().SessionGetModelMetadata(any(sessions_), place(metadata)), metadata);
    OrtAllocator* const from = allocator();
    char* text = nullptr;
    give_text(table().ModelMetadataGetGraphName(metadata, from, place(text)), from, text);
    text = nullptr;
    give_text(table().ModelMetadataLookupCustomMetadataMap(metadata, from, name(), place(text)),
              from, text);
    char** keys = nullptr;
    int64_t count = 0, version = 0;
    take(table().ModelMetadataGetCustomMetadataMapKeys(metadata, from, place(keys), &count), keys);
    for (int64_t i = 0; keys != nullptr && i < count; ++i)
      must(table().AllocatorFree(from, keys[i]));
    if (keys != nullptr) must(table().AllocatorFree(from, keys));
    take(table().ModelMetadataGetVersion(metadata, &version));
    table().ReleaseModelMetadata(metadata);
  }

  void use_devices() {
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    OrtEnv* const env = any(environments_);
    take(table().GetEpDevices(env, &devices, &count));
    take(table().SessionOptionsAppendExecutionProvider_V2(any(options_), env, devices, count,
                                                          nullptr, nullptr, choices_.below(2)));
    const OrtEpDevice* told[3] = {};
    take(table().SessionGetEpDeviceForInputs(any(sessions_), told, choices_.below(4)));
    const OrtValue* const from[] = {any(values_), any(values_)};
    OrtValue* const to[] = {any(values_), any(values_)};
    take(table().CopyTensors(env, from, to, nullptr, choices_.below(3)));
    take(table().SessionOptionsAppendExecutionProvider(any(options_), name(), nullptr, nullptr, 0));
    char** providers = nullptr;
    int length = 0;
    take(table().GetAvailableProviders(place(providers), &length), providers);
    take(table().ReleaseAvailableProviders(providers, length));
  }

  // --- Runs ---------------------------------------------------------------------------------

  struct Asked {
    std::deque<std::string> texts;
    std::vector<const char*> inputs, outputs;
    std::vector<const OrtValue*> values;
    std::vector<OrtValue*> given;  // outputs, or null
  };

  // What the session wants, with a mistake here and there.
  Asked asked_of(const OrtSession* session) {
    Asked asked;
    size_t count = 0;
    if (session != nullptr) must(table().SessionGetInputCount(session, &count));
    size_ = static_cast<int64_t>(choices_.below(4));
    for (size_t i = 0; i < count; ++i) {
      char* text = nullptr;
      OrtTypeInfo* info = nullptr;
      must(table().SessionGetInputName(session, i, default_memory(), &text));
      must(table().SessionGetInputTypeInfo(session, i, &info));
      asked.texts.emplace_back(text);
      asked.inputs.push_back(choices_.one_in(24) ? name() : asked.texts.back().c_str());
      asked.values.push_back(choices_.one_in(8) ? any(values_) : made_for(info));
      must(table().AllocatorFree(default_memory(), text));
      table().ReleaseTypeInfo(info);
    }
    if (choices_.one_in(8)) asked.inputs.push_back(name()), asked.values.push_back(any(values_));
    count = 0;
    if (session != nullptr) must(table().SessionGetOutputCount(session, &count));
    if (choices_.one_in(8)) count = choices_.below(count + 1);
    for (size_t i = 0; i < count; ++i) {
      char* text = nullptr;
      must(table().SessionGetOutputName(session, i, default_memory(), &text));
      asked.texts.emplace_back(text);
      must(table().AllocatorFree(default_memory(), text));
      asked.outputs.push_back(choices_.one_in(16) ? name() : asked.texts.back().c_str());
      asked.given.push_back(choices_.one_in(6) ? output_memory() : nullptr);
    }
    return asked;
  }

  struct Told {
    std::promise<void> ended;
    OrtStatus* status = nullptr;
  };

  OrtStatus* run_async(OrtSession* session, const OrtRunOptions* options, const Asked& asked,
                       OrtValue** outputs) {
    Told told;
    const auto done = [](void* user, OrtValue**, size_t, OrtStatus* status) {
      static_cast<Told*>(user)->status = status;
      static_cast<Told*>(user)->ended.set_value();
    };
    OrtStatus* const status =
        table().RunAsync(session, options, asked.inputs.data(), asked.values.data(),
                         asked.inputs.size(), asked.outputs.data(), asked.outputs.size(), outputs,
                         choices_.one_in(32) ? nullptr : RunAsyncCallbackFn{done}, &told);
    if (status != nullptr) return status;
    told.ended.get_future().wait();
    return told.status;
  }

  void run_session() {
    OrtSession* const session = any(sessions_);
    const OrtRunOptions* const options = choices_.one_in(4) ? any(run_options_) : nullptr;
    const Asked asked = asked_of(session);
    std::vector<OrtValue*> made = asked.given;
    OrtStatus* const status =
        choices_.one_in(6) ? run_async(session, options, asked, made.data())
                           : table().Run(session, options, asked.inputs.data(), asked.values.data(),
                                         asked.inputs.size(), asked.outputs.data(),
                                         asked.outputs.size(), made.data());
    const bool failed = status != nullptr;
    take(status);
    for (size_t i = 0; i < made.size(); ++i) {
      if (failed || asked.given[i] != nullptr)
        require(made[i] == asked.given[i], "what was given stays");
      if (failed) continue;
      require(made[i] != nullptr, "a run that succeeds gives its outputs");
      read(made[i], {memory_, sizeof(memory_)});
      if (options == nullptr) require_sum(asked, i, made[i]);
      if (asked.given[i] == nullptr) values_.held.push_back(made[i]);
    }
  }

  // Of the model whose only output is "sum".
  void require_sum(const Asked& asked, size_t output, const OrtValue* made) {
    if (asked.outputs[output] != std::string_view("sum") || asked.inputs.size() != 2) return;
    const auto a = floats_in(asked.values[0]), b = floats_in(asked.values[1]),
               sum = floats_in(made);
    if (a.size() != sum.size() || b.size() != sum.size()) return;  // one was broadcast
    for (size_t i = 0; i < sum.size(); ++i)
      require(sum[i] == a[i] + b[i] || (std::isnan(sum[i]) && std::isnan(a[i] + b[i])),
              "a sum is the sum");
  }

  void bind() {
    OrtIoBinding* made = nullptr;
    OrtSession* session = any(sessions_);
    if (keep(table().CreateIoBinding(session, place(made)), made, bindings_) != nullptr)
      bound_.push_back(session);
    OrtIoBinding* binding = nullptr;
    if (!bindings_.held.empty()) {
      const size_t which = choices_.below(bindings_.held.size());
      binding = bindings_.held[which], session = bound_[which];
    }
    const Asked asked = asked_of(session);
    for (size_t i = 0; i < asked.inputs.size(); ++i)
      take(table().BindInput(binding, asked.inputs[i], asked.values[i]));
    OrtMemoryInfo* const info = any(infos_);
    for (size_t i = 0; i < asked.outputs.size(); ++i)
      take(asked.given[i] != nullptr ? table().BindOutput(binding, asked.outputs[i], asked.given[i])
                                     : table().BindOutputToDevice(binding, asked.outputs[i], info));
    OrtStatus* const status =
        table().RunWithBinding(choices_.one_in(16) ? any(sessions_) : session,
                               choices_.one_in(4) ? any(run_options_) : nullptr, binding);
    const bool failed = status != nullptr;
    take(status);
    if (choices_.one_in(8)) table().ClearBoundInputs(binding);
    OrtAllocator* const from = allocator();
    char* text = nullptr;
    size_t* lengths = nullptr;
    size_t count = 0;
    take(table().GetBoundOutputNames(binding, from, place(text), &lengths, &count), text);
    if (text != nullptr)
      must(table().AllocatorFree(from, text)), must(table().AllocatorFree(from, lengths));
    OrtValue** outputs = nullptr;
    take(table().GetBoundOutputValues(binding, from, place(outputs), &count), outputs);
    for (size_t i = 0; outputs != nullptr && i < count; ++i) {
      if (!failed) read(outputs[i]);
      // What lies in bound memory is written to by later runs, and no input.
      outputs_.held.push_back(outputs[i]);
    }
    if (outputs != nullptr) must(table().AllocatorFree(from, outputs));
    if (choices_.one_in(8)) table().ClearBoundOutputs(binding);
  }

  size_t left_;
};

}  // namespace

}  // namespace sardonyx::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sardonyx::fuzzing;
  Calls(data, size).run();
  require(CallersAllocator::live == 0, "all memory of the caller's allocator is given back");
  return 0;
}
