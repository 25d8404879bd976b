// Random sequences of calls of the C interface: whatever is called with whatever, each gives a
// status or a result, and nothing is left over.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "sardonyx/sardonyx.h"
#include "target.h"

namespace {

constexpr std::string_view models[] = {
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N, 2] x, float[2] w = {1, 2}) => (float[N, 2] y, float[N, 2] z) "
    "{ y = Mul(x, w) z = Add(y, x) }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (seq(float[N]) s, int64 i) => (float[M] y, optional(float[M]) o) "
    "{ y = SequenceAt(s, i) o = Optional(y) }",
    "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 4]>\n"
    "g (map(string, float) m) => (float[1, 2] y) "
    "{ y = ai.onnx.ml.DictVectorizer<string_vocabulary = [\"a\", \"b\"]>(m) }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (string[N] x) => (string[N] y, bool[N] e) { y = StringConcat(x, x) e = Equal(x, y) }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[N] x) => (float[N] y) { y = Exp(a) a = Neg(x) }",
    "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N] x) => (y) { y = Nothing(x) }"};

// Reads what a log is given.
void read_log(const sardonyx_log_message* message, void*) {
  for (const char* text : {message->rule, message->place, message->message, message->advice})
    if (std::strlen(text) > 1000000) std::abort();
}

class Calls {
 public:
  Calls(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    for (sardonyx_value* value : values_) sardonyx_value_release(value);
    for (sardonyx_model* model : models_) sardonyx_model_release(model);
    for (sardonyx_session* session : sessions_) sardonyx_session_release(session);
  }

  void run() {
    for (int calls = 0; size_ > 0 && calls < 64; ++calls) call();
  }

 private:
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  template <class T>
  T* any(const std::vector<T*>& pool) {  // null, too
    const size_t i = byte() % (pool.size() + 1);
    return i == pool.size() ? nullptr : pool[i];
  }

  void take(sardonyx_status* status, const void* made = nullptr) {
    if (status == nullptr) return;
    require(made == nullptr, "a call that fails leaves its result alone");
    require(sardonyx_status_code(status) != SARDONYX_OK, "a failure has a code");
    require(sardonyx_status_code(status) != SARDONYX_INTERNAL, "no defect of the library");
    require(std::strlen(sardonyx_status_message(status)) > 0, "a failure has a message");
    require(sardonyx_status_location(status) != nullptr, "a failure has a place");
    sardonyx_status_release(status);
  }
  // By reference: it is written when the call that makes the status has run.
  void keep(sardonyx_status* status, sardonyx_value*& made) {
    take(status, made);
    if (made != nullptr) values_.push_back(made);
  }

  std::vector<const sardonyx_value*> some_values() {
    std::vector<const sardonyx_value*> some(byte() % 4);
    for (const sardonyx_value*& one : some) one = any(values_);
    return some;
  }

  void shape() {
    rank_ = byte() % 4;
    for (size_t i = 0; i < rank_; ++i) {
      dims_[i] = static_cast<int8_t>(byte()) % 5;
      if (byte() == 255) dims_[i] = INT64_MAX;
    }
  }

  void call() {
    sardonyx_value* made = nullptr;
    switch (byte() % 27) {
      case 0: {
        shape();
        keep(sardonyx_tensor_create(static_cast<sardonyx_element_type>(byte() % 32), rank_, dims_,
                                    &made),
             made);
        break;
      }
      case 1: {
        shape();
        keep(sardonyx_tensor_wrap_mutable(static_cast<sardonyx_element_type>(byte() % 32), rank_,
                                          dims_, memory_, byte() % sizeof(memory_), nullptr,
                                          nullptr, &made),
             made);
        break;
      }
      case 2: {
        static const char* const texts[] = {"a", "b", "", "long text", "a", "b", "c", "d"};
        const int64_t dims[] = {byte() % 8};
        keep(sardonyx_tensor_create_strings(1, dims, texts, nullptr, &made), made);
        break;
      }
      case 3: keep(sardonyx_value_share(any(values_), &made), made); break;
      case 4: {
        const auto some = some_values();
        keep(sardonyx_sequence_create(some.data(), some.size(), &made), made);
        break;
      }
      case 5: {
        const auto some = some_values();
        keep(sardonyx_map_create(any(values_), some.data(), some.size(), &made), made);
        break;
      }
      case 6: keep(sardonyx_optional_create(any(values_), &made), made); break;
      case 7:
        shape();
        keep(sardonyx_sparse_create(any(values_), any(values_), rank_, dims_, &made), made);
        break;
      case 8: keep(sardonyx_sequence_item(any(values_), byte() % 3, &made), made); break;
      case 9: keep(sardonyx_map_value(any(values_), byte() % 3, &made), made); break;
      case 10: keep(sardonyx_map_keys(any(values_), &made), made); break;
      case 11: keep(sardonyx_optional_held(any(values_), &made), made); break;
      case 12: read(any(values_)); break;
      case 13: write(any(values_)); break;
      case 14: release(); break;
      case 15: load(); break;
      case 16: prepare(); break;
      case 17: infer(); break;
      case 18: bind(); break;
      case 19: run_async(); break;
      case 20: exchange(); break;
      case 21: convert(); break;
      case 22: look(); break;
      case 23: tell(); break;
      case 24: learn(); break;
      default: run_session(); break;
    }
  }

  void read(const sardonyx_value* value) {
    sardonyx_element_type type = SARDONYX_UNDEFINED;
    const void* data = nullptr;
    const char* text = nullptr;
    size_t bytes = 0, length = 0;
    int64_t elements = 0;
    take(sardonyx_tensor_type(value, &type, nullptr, nullptr, &elements));
    take(sardonyx_tensor_data(value, &data, &bytes));
    if (bytes > 0) touched_ += static_cast<const uint8_t*>(data)[bytes - 1];
    take(sardonyx_tensor_string(value, byte() % 4, &text, &length));
    if (text != nullptr) require(text[length] == 0, "texts end with a zero");
  }

  void write(sardonyx_value* value) {
    void* data = nullptr;
    size_t bytes = 0;
    sardonyx_status* status = sardonyx_tensor_mutable_data(value, &data, &bytes);
    take(status, data);
    if (bytes > 0) std::memset(data, byte() % 2, bytes);
  }

  void release() {
    if (values_.empty()) return;
    const size_t i = byte() % values_.size();
    sardonyx_value_release(values_[i]);
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void load() {
    sardonyx_model* model = nullptr;
    const std::string_view text = models[byte() % std::size(models)];
    const size_t length = byte() % 8 == 0 ? byte() % text.size() : text.size();
    sardonyx_status* status = sardonyx_model_parse(text.data(), length, nullptr, &model);
    take(status, model);
    if (model != nullptr) models_.push_back(model);
  }

  void prepare() {
    sardonyx_session* session = nullptr;
    sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
    options.threads = 1;
    options.reference = byte() % 2;
    options.all_outputs = byte() % 4 == 0;
    static const char* const names[] = {"N", "x.0", "w", "y", "nothing"};
    const int64_t sizes[] = {static_cast<int8_t>(byte()) % 4, 2};
    const auto replaced = some_values();
    options.size_names = names + byte() % 3;
    options.sizes = sizes;
    options.size_count = byte() % 8 == 0 ? 1 + byte() % 2 : 0;
    options.initializer_names = names + 2;
    options.initializers = replaced.data();
    options.initializer_count = byte() % 8 == 0 ? std::min<size_t>(replaced.size(), 1) : 0;
    options.extra_outputs = names + 3;
    options.extra_output_count = byte() % 8 == 0 ? 1 + byte() % 2 : 0;
    if (byte() % 2 == 0) options.log = read_log;
    options.log_level = static_cast<sardonyx_log_level>(byte() % 64 == 0 ? 5 : byte() % 5);
    sardonyx_model* model = any(models_);
    sardonyx_status* status = sardonyx_session_create(model, &options, &session);
    take(status, session);
    if (session == nullptr) return;
    sessions_.push_back(session);
    if (byte() % 4 == 0) {
      std::erase(models_, model);
      sardonyx_model_release(model);
    }
  }

  void infer() {
    sardonyx_inference* inference = nullptr;
    sardonyx_status* status = sardonyx_infer(any(models_), nullptr, &inference);
    take(status, inference);
    sardonyx_value_info info = SARDONYX_INIT(sardonyx_value_info);
    for (size_t i = 0; i <= sardonyx_inference_count(inference); ++i)
      take(sardonyx_inference_value(inference, i, &info));
    sardonyx_inference_release(inference);
  }

  // Data of any values, and a few steps on what is one.
  void learn() {
    static const char* const names[] = {"x", "target", "nothing"};
    sardonyx_trainable_options options = SARDONYX_INIT(sardonyx_trainable_options);
    options.loss = byte() % 2 == 0 ? "mse" : "huber";
    options.huber_delta = static_cast<int8_t>(byte());
    options.has_class_axis = byte() % 2, options.class_axis = static_cast<int8_t>(byte());
    options.clip_value = static_cast<int8_t>(byte());
    sardonyx_model* trainable = nullptr;
    sardonyx_trainable_report* report = nullptr;
    sardonyx_status* status =
        sardonyx_make_trainable_reported(any(models_), &options, &trainable, &report);
    take(status, report);
    sardonyx_trainable_report_release(report);
    sardonyx_training* training = nullptr;
    const sardonyx_model* const of = trainable == nullptr ? any(models_) : trainable;
    status = sardonyx_training_create(of, nullptr, &training);
    take(status, training);
    sardonyx_model_release(trainable);
    const auto arrays = some_values();
    sardonyx_training_data* data = nullptr;
    status = sardonyx_training_data_create(names, arrays.data(), arrays.size(), &data);
    take(status, data);
    sardonyx_fit_options fitting = SARDONYX_INIT(sardonyx_fit_options);
    fitting.batch = static_cast<int8_t>(byte()), fitting.epochs = static_cast<int8_t>(byte()) % 4;
    fitting.no_shuffle = byte() % 2, fitting.drop_last = byte() % 2, fitting.flip = byte() % 2;
    fitting.crop = static_cast<int8_t>(byte()) % 4, fitting.patience = byte() % 2;
    fitting.validation = byte() % 2 == 0 ? data : nullptr;
    fitting.skip_bad_loss = byte() % 2, fitting.algorithm = byte() % 3;
    fitting.has_measure = byte() % 2, fitting.measure = byte() % 3;
    sardonyx_fit_result* result = nullptr;
    status = sardonyx_training_fit(training, data, &fitting, &result);
    take(status, result);
    sardonyx_fit_summary summary = SARDONYX_INIT(sardonyx_fit_summary);
    take(sardonyx_fit_result_describe(result, &summary));
    const int64_t places[] = {byte() % 5, static_cast<int8_t>(byte())};
    sardonyx_named_values* batch = nullptr;
    status = sardonyx_training_data_batch(data, places, byte() % 3, &batch);
    take(status, batch);
    sardonyx_named_values_release(batch);
    sardonyx_fit_result_release(result);
    sardonyx_training_data_release(data);
    sardonyx_training_release(training);
  }

  // What a binding has given stays as it is, whatever later runs make.
  void bind() {
    static const char* const inputs[] = {"x", "w", "s", "i", "m", "nothing"};
    static const char* const outputs[] = {"y", "z", "o", "e", "nothing"};
    sardonyx_binding* binding = nullptr;
    sardonyx_status* status = sardonyx_binding_create(any(sessions_), &binding);
    take(status, binding);
    std::vector<uint8_t> before;
    sardonyx_value* kept = nullptr;
    for (int runs = 0; binding != nullptr && runs < 3; ++runs) {
      for (const char* input : inputs) take(sardonyx_binding_input(binding, input, any(values_)));
      const char* output = outputs[byte() % std::size(outputs)];
      take(sardonyx_binding_output(binding, output, byte() % 8 == 0 ? any(values_) : nullptr));
      take(sardonyx_binding_run(binding, nullptr));
      if (kept != nullptr) require(bytes_of(kept) == before, "a value that is held stays");
      if (kept == nullptr && runs < 2 && byte() % 2 == 0) {
        status = sardonyx_binding_value(binding, "y", &kept);
        take(status, kept);
        before = bytes_of(kept);
      }
      // Memory that is bound changes with each run.
      if (kept != nullptr && lies_in_memory(kept)) {
        sardonyx_value_release(kept);
        kept = nullptr;
      }
    }
    sardonyx_binding_release(binding);
    if (kept != nullptr) values_.push_back(kept);
  }

  std::vector<uint8_t> bytes_of(const sardonyx_value* value) {
    const void* data = nullptr;
    size_t bytes = 0;
    take(sardonyx_tensor_data(value, &data, &bytes));
    const auto* from = static_cast<const uint8_t*>(data);
    return {from, from + bytes};
  }

  // The fuzzer's, or that of a value which somebody may write to.
  bool lies_in_memory(const sardonyx_value* value) {
    const void *data = nullptr, *other = nullptr;
    take(sardonyx_tensor_data(value, &data, nullptr));
    if (data >= memory_ && data < memory_ + sizeof memory_) return true;
    return std::any_of(values_.begin(), values_.end(), [&](const sardonyx_value* one) {
      other = nullptr;
      take(sardonyx_tensor_data(one, &other, nullptr));
      return other == data;
    });
  }

  struct Told {
    std::promise<void> ended;
    std::vector<sardonyx_value*> made;
    sardonyx_status* status = nullptr;
  };

  void run_async() {
    static const char* const known[] = {"x", "w", "s", "i", "m", "nothing"};
    const auto inputs = some_values();
    std::vector<const char*> names;
    for (size_t i = 0; i < inputs.size(); ++i) names.push_back(known[byte() % std::size(known)]);
    Told told;
    const auto done = [](sardonyx_status* status, sardonyx_value** outputs, size_t count,
                         void* user) {
      auto& to = *static_cast<Told*>(user);
      to.status = status;
      to.made.assign(outputs, outputs + count);
      to.ended.set_value();
    };
    sardonyx_status* status = sardonyx_session_run_async(any(sessions_), nullptr, names.data(),
                                                         inputs.data(), inputs.size(), done, &told);
    const bool has_begun = status == nullptr;
    take(status);
    if (!has_begun) return;
    told.ended.get_future().wait();
    require(told.status == nullptr || told.made.empty(), "either a status or outputs");
    take(told.status);
    values_.insert(values_.end(), told.made.begin(), told.made.end());
  }

  void exchange() {
    shape();
    const int64_t strides[] = {static_cast<int8_t>(byte()) % 9, static_cast<int8_t>(byte()) % 9,
                               byte() == 255 ? INT64_MAX : byte() % 4, 1};
    const size_t before = byte() % 128, bytes = byte() % 128;
    sardonyx_value* made = nullptr;
    keep(sardonyx_tensor_wrap_strided(static_cast<sardonyx_element_type>(byte() % 32), rank_, dims_,
                                      strides, memory_ + 128, bytes, before, nullptr, nullptr,
                                      &made),
         made);
    const int versioned = byte() % 2;
    void* managed = nullptr;
    sardonyx_status* status = sardonyx_tensor_to_dlpack(any(values_), versioned, 0, &managed);
    take(status, managed);
    if (managed == nullptr) return;
    sardonyx_value* back = nullptr;
    status = sardonyx_tensor_from_dlpack(managed, versioned, &back);
    require(status == nullptr, "what goes out comes back");
    values_.push_back(back);
  }

  void convert() {
    static const std::array<float, 64> numbers = {1, -2, 0.5f, 300, 1e30f, -7};
    std::array<float, 64> floats{};
    std::array<int64_t, 64> integers{};
    shape();
    sardonyx_value* made = nullptr;
    keep(sardonyx_tensor_from_floats(static_cast<sardonyx_element_type>(byte() % 32), rank_, dims_,
                                     numbers.data(), byte() % 65, &made),
         made);
    const size_t count = byte() % 65;
    take(sardonyx_tensor_read_floats(any(values_), floats.data(), count));
    take(sardonyx_tensor_read_integers(any(values_), integers.data(), count));
  }

  // All of a model, whatever it holds, and beyond the ends of its lists.
  void look() {
    const sardonyx_model* model = any(models_);
    const auto visit = [](const sardonyx_node_place* place, sardonyx_node node, void* user) {
      auto& self = *static_cast<Calls*>(user);
      require(std::strlen(place->graph) > 0, "a node has a place");
      self.look_at(node);
      return 1;
    };
    take(sardonyx_model_visit_nodes(model, visit, this));
    sardonyx_graph graph{};
    sardonyx_graph_info info = SARDONYX_INIT(sardonyx_graph_info);
    take(sardonyx_model_graph(model, &graph));
    take(sardonyx_graph_describe(graph, &info));
    for (size_t i = 0; i <= info.input_count; ++i) {
      sardonyx_declared_value value{};
      sardonyx_declared_value_info told = SARDONYX_INIT(sardonyx_declared_value_info);
      sardonyx_declared_type_info type = SARDONYX_INIT(sardonyx_declared_type_info);
      take(sardonyx_graph_input(graph, i, &value));
      take(sardonyx_declared_value_describe(value, &told));
      take(sardonyx_declared_type_describe(told.type, &type));
      for (size_t d = 0; d <= type.rank; ++d)
        take(sardonyx_declared_type_dimension(told.type, d, nullptr, nullptr, nullptr));
    }
    for (size_t i = 0; i <= info.initializer_count; ++i) {
      sardonyx_stored_tensor tensor{};
      sardonyx_value* made = nullptr;
      take(sardonyx_graph_initializer(graph, i, &tensor));
      keep(sardonyx_stored_tensor_value(tensor, &made), made);
    }
  }

  void look_at(sardonyx_node node) {
    sardonyx_node_info info = SARDONYX_INIT(sardonyx_node_info);
    const char* text = nullptr;
    take(sardonyx_node_describe(node, &info));
    for (size_t i = 0; i <= info.input_count; ++i) take(sardonyx_node_input(node, i, &text));
    for (size_t i = 0; i <= info.attribute_count; ++i) {
      sardonyx_attribute attribute{};
      sardonyx_attribute_info told = SARDONYX_INIT(sardonyx_attribute_info);
      sardonyx_graph inner{};
      int64_t number = 0;
      take(sardonyx_node_attribute(node, i, &attribute));
      take(sardonyx_attribute_describe(attribute, &told));
      take(sardonyx_attribute_int(attribute, &number));
      take(sardonyx_attribute_string(attribute, byte() % 3, &text, nullptr));
      take(sardonyx_attribute_graph(attribute, byte() % 2, &inner));
    }
  }

  // Values as text and beside each other.
  void tell() {
    const sardonyx_value *value = any(values_), *other = any(values_);
    sardonyx_bytes* text = nullptr;
    take(sardonyx_value_type_text(value, &text));
    sardonyx_bytes_release(text);
    text = nullptr;
    take(sardonyx_value_to_json(value, &text));
    sardonyx_bytes_release(text);
    sardonyx_comparisons* comparisons = nullptr;
    take(sardonyx_values_compare(value, other, nullptr, &comparisons));
    sardonyx_comparison one = SARDONYX_INIT(sardonyx_comparison);
    for (size_t i = 0; i <= sardonyx_comparisons_count(comparisons); ++i)
      take(sardonyx_comparisons_get(comparisons, i, &one));
    sardonyx_comparisons_release(comparisons);
    shape();
    sardonyx_value* made = nullptr;
    keep(sardonyx_tensor_reshape(value, rank_, dims_, &made), made);
    int64_t indices[8];
    double probabilities[8];
    size_t rows = 0, columns = 0;
    take(sardonyx_rank_answers(value, byte() % 3, byte() % 3, indices, probabilities, &rows,
                               &columns, nullptr));
    require(rows * columns <= 4, "no more answers than there is room for");
  }

  void run_session() {
    const sardonyx_session* session = any(sessions_);
    sardonyx_run_options options = SARDONYX_INIT(sardonyx_run_options);
    options.memory_limit = byte() % 2 == 0 ? 1 << 16 : 0;
    const auto inputs = some_values();
    const size_t count = byte() % 8 == 0 ? byte() % 4 : sardonyx_session_output_count(session);
    std::vector<sardonyx_value*> outputs(count, nullptr);
    for (sardonyx_value*& output : outputs) output = byte() % 4 == 0 ? any(values_) : nullptr;
    const std::vector<sardonyx_value*> given = outputs;
    sardonyx_status* status = byte() % 2 == 0 ? sardonyx_session_run_in_order(
                                                    session, &options, inputs.data(), inputs.size(),
                                                    outputs.data(), outputs.size())
                                              : run_by_name(session, options, inputs, outputs);
    const bool failed = status != nullptr;
    take(status);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (given[i] != nullptr || failed) require(outputs[i] == given[i], "what was given stays");
      if (given[i] == nullptr && outputs[i] != nullptr) values_.push_back(outputs[i]);
    }
  }

  sardonyx_status* run_by_name(const sardonyx_session* session, const sardonyx_run_options& options,
                               const std::vector<const sardonyx_value*>& inputs,
                               std::vector<sardonyx_value*>& outputs) {
    static const char* const known[] = {"x", "w", "s", "i", "m", "nothing"};
    std::vector<const char*> names;
    for (size_t i = 0; i < inputs.size(); ++i) names.push_back(known[byte() % std::size(known)]);
    return sardonyx_session_run(session, &options, names.data(), inputs.data(), inputs.size(),
                                nullptr, outputs.size(), outputs.data());
  }

  const uint8_t* data_;
  size_t size_;
  std::vector<sardonyx_value*> values_;
  std::vector<sardonyx_model*> models_;
  std::vector<sardonyx_session*> sessions_;
  size_t rank_ = 0;
  int64_t dims_[4] = {};
  alignas(64) char memory_[256] = {};
  unsigned touched_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Calls(data, size).run();
  return 0;
}
