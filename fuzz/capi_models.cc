// Random sequences of calls of the C interface that make models of models: each gives a status or
// a result, nothing is left over, and what is made can be written and read again.
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/sardonyx.h"
#include "target.h"

namespace {

constexpr std::string_view models[] = {
    "<ir_version: 9, opset_import: [\"\": 17], metadata_props: [\"a\": \"b\"]>\n"
    "g (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 2}> "
    "{ [n] a = Mul(x, w) y = Add(a, x) }",
    "<ir_version: 9, opset_import: [\"\": 17, \"l\": 1]>\n"
    "g (float[N] x, bool c) => (float[N] y) { a = l.F(x) y = If(c) "
    "<then_branch = t () => (float[N] p) { p = l.F(a) }, "
    "else_branch = e () => (float[N] q) { q = Neg(a) }> }\n"
    "<domain: \"l\", opset_import: [\"\": 17]> F (u) => (v) { v = Exp(u) }",
    "<ir_version: 3, opset_import: [\"\": 7]>\n"
    "g (float[2, 3] x) => (float[2, 3] y) { y = Upsample<scales = [1.0, 1.0]>(x) }"};
constexpr const char* names[] = {"x", "y", "a", "w", "n", "N", "F", "c", "new", "", "x.0"};
constexpr const char* types[] = {"float[N, 2]", "seq(float)", "int64", "nonsense[", ""};

class Calls {
 public:
  Calls(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    for (sardonyx_model* model : models_) sardonyx_model_release(model);
    sardonyx_editor_release(editor_);
    sardonyx_value_release(value_);
  }
  void run() {
    for (int calls = 0; size_ > 0 && calls < 48; ++calls) call();
  }

 private:
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  const char* name() { return byte() % 16 == 0 ? nullptr : names[byte() % std::size(names)]; }
  const char* type() { return byte() % 8 == 0 ? nullptr : types[byte() % std::size(types)]; }
  const sardonyx_model* any() {  // null, too
    const size_t i = byte() % (models_.size() + 1);
    return i == models_.size() ? nullptr : models_[i];
  }

  bool took(sardonyx_status* status) {
    if (status == nullptr) return true;
    require(sardonyx_status_code(status) != SARDONYX_INTERNAL, "no defect of the library");
    require(std::strlen(sardonyx_status_message(status)) > 0, "a failure has a message");
    sardonyx_status_release(status);
    return false;
  }
  // By reference: it is written when the call that makes the status has run.
  void keep(sardonyx_status* status, sardonyx_model*& made) {
    require(took(status) == (made != nullptr), "either a result or a failure");
    if (made != nullptr) models_.push_back(made);
  }

  void call() {
    sardonyx_model* made = nullptr;
    const char* first[] = {name(), name()};
    const char* second[] = {name(), name()};
    const size_t count = byte() % 3;
    switch (byte() % 14) {
      case 0: {
        const std::string_view text = models[byte() % std::size(models)];
        return keep(sardonyx_model_parse(text.data(), text.size(), nullptr, &made), made);
      }
      case 1: return keep(sardonyx_model_convert(any(), byte() % 30, byte() % 2, &made), made);
      case 2: return keep(sardonyx_model_inline_functions(any(), &made), made);
      case 3:
        return keep(sardonyx_model_extract(any(), first, count, second, byte() % 3, &made), made);
      case 4:
        return keep(sardonyx_model_rename(any(), byte() % 5, first, second, count, &made), made);
      case 5: {
        sardonyx_merge_options options = SARDONYX_INIT(sardonyx_merge_options);
        options.from = first, options.to = second, options.connection_count = count;
        if (byte() % 4 != 0) options.second_prefix = "p_";
        return keep(sardonyx_model_merge(any(), any(), &options, &made), made);
      }
      case 6: return keep(sardonyx_model_infer(any(), nullptr, &made), made);
      case 7: return compare();
      case 8: return write();
      case 9: return look(any());
      case 10:
        sardonyx_editor_release(editor_);
        editor_ = nullptr;
        took(sardonyx_editor_create(any(), &editor_));
        return;
      case 11: return keep(sardonyx_editor_finish(editor_, &made), made);
      default: return edit();
    }
  }

  void compare() {
    sardonyx_differences* differences = nullptr;
    took(sardonyx_model_diff(any(), any(), nullptr, &differences));
    sardonyx_difference difference = SARDONYX_INIT(sardonyx_difference);
    for (size_t i = 0; i <= sardonyx_differences_count(differences); ++i)
      took(sardonyx_differences_get(differences, i, &difference));
    sardonyx_differences_release(differences);
  }

  void write() {
    sardonyx_bytes* bytes = nullptr;
    sardonyx_model* again = nullptr;
    if (!took(sardonyx_model_write(any(), SARDONYX_FORM_BINARY, &bytes))) return;
    size_t size = 0;
    const char* data = sardonyx_bytes_data(bytes, &size);
    require(took(sardonyx_model_load_memory(data, size, nullptr, nullptr, &again)),
            "what was written is read");
    sardonyx_model_release(again);
    sardonyx_bytes_release(bytes);
  }

  void look(const sardonyx_model* model) {
    sardonyx_model_info info = SARDONYX_INIT(sardonyx_model_info);
    const char *key = nullptr, *value = nullptr;
    int64_t version = 0;
    sardonyx_value* tensor = nullptr;
    sardonyx_report* report = nullptr;
    took(sardonyx_model_describe(model, &info));
    took(sardonyx_model_metadata(model, byte() % 3, &key, &value));
    took(sardonyx_model_opset(model, byte() % 3, &key, &version));
    took(sardonyx_check(model, nullptr, &report));
    sardonyx_report_release(report);
    if (!took(sardonyx_model_initializer(model, byte() % 3, &key, &tensor))) return;
    sardonyx_value_release(value_);
    value_ = tensor;
  }

  void edit() {
    const char* const of = name();
    switch (byte() % 12) {
      case 0: took(sardonyx_editor_set_text(editor_, byte() % 8, name())); break;
      case 1: took(sardonyx_editor_set_number(editor_, byte() % 8, byte())); break;
      case 2: took(sardonyx_editor_set_metadata(editor_, of, name())); break;
      case 3: took(sardonyx_editor_set_opset(editor_, of, byte() % 30)); break;
      case 4: took(sardonyx_editor_set_type(editor_, of, type())); break;
      case 5:
        took(sardonyx_editor_set_dimension(editor_, of, byte() % 3, byte() % 4 - 1, name()));
        break;
      case 6: took(sardonyx_editor_add_input(editor_, of, type())); break;
      case 7: took(sardonyx_editor_remove_input(editor_, of)); break;
      case 8: took(sardonyx_editor_add_output(editor_, of, type())); break;
      case 9: took(sardonyx_editor_remove_output(editor_, of)); break;
      default: took(sardonyx_editor_set_initializer(editor_, of, value_)); break;
    }
  }

  const uint8_t* data_;
  size_t size_;
  std::vector<sardonyx_model*> models_;
  sardonyx_editor* editor_ = nullptr;
  sardonyx_value* value_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Calls(data, size).run();
  return 0;
}
