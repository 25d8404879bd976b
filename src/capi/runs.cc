// Runs with inputs by name and by position.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "capi/session.h"
#include "ir/tensor.h"

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

// The values of a run in rows, as sessions take them. Each thread keeps one for all its runs, whose
// shapes have room where those of the run before lay, so that runs allocate nothing. A run inside a
// run, of an operator of the caller's, has one of its own.
struct Rows {
  std::vector<Value> inputs, outputs;
  std::vector<size_t> places;          // of the outputs that the caller asks for, in its order
  std::vector<char> given, asked_for;  // inputs and outputs of the session
  bool is_taken = false;

  std::span<Value> room_for_inputs(size_t count) { return room(inputs, count); }
  std::span<Value> room_for_outputs(size_t count) { return room(outputs, count); }

  // Lets go of the values, not of the room for their shapes.
  void clear() {
    for (std::vector<Value>* row : {&inputs, &outputs}) {
      for (Value& value : *row) clear(value);
    }
  }
  static void clear(Value& value) {
    static const Value empty{Tensor()};
    if (value.is_tensor())
      value = empty;
    else
      value = Value();
  }

 private:
  static std::span<Value> room(std::vector<Value>& row, size_t count) {
    if (row.size() < count) row.resize(count);
    return {row.data(), count};
  }
};

class RowsOfThread {
 public:
  RowsOfThread() : rows_(of_thread().is_taken ? own_.emplace() : of_thread()) {
    rows_.is_taken = true;
  }
  RowsOfThread(const RowsOfThread&) = delete;
  RowsOfThread& operator=(const RowsOfThread&) = delete;
  ~RowsOfThread() {
    rows_.clear();
    rows_.is_taken = false;
  }
  Rows& operator*() { return rows_; }

 private:
  static Rows& of_thread() {
    thread_local Rows rows;
    return rows;
  }
  std::optional<Rows> own_;
  Rows& rows_;
};

// An output that the caller gives is a tensor to be filled.
void refuse_unfit(const sardonyx_value& output, const std::string& name) {
  if (!output.value.is_tensor() || !output.writable)
    fail(ErrorCode::bad_input,
         "the value given for output '{}' is no tensor that may be written to; "
         "sardonyx_tensor_create and sardonyx_tensor_wrap_mutable make such",
         name);
  refuse_string_output(output.value.tensor(), name);
  if (!is_alone(output))
    fail(ErrorCode::bad_input, "something else shares the elements of the tensor for output '{}'",
         name);
}

std::string type_text(const Value& value) {
  if (!value.is_tensor()) return std::string(name_of(value.kind()));
  return fmt::format("{}{}", name_of(value.tensor().element_type()),
                     to_string(value.tensor().shape()));
}

[[noreturn]] void refuse_other(const std::string& name, const Value& made, const Value& wanted) {
  fail(ErrorCode::bad_input, "output '{}' is {}, and was given memory for {}", name,
       type_text(made), type_text(wanted));
}

void require_filled(const sardonyx_value& given, const Value& made, const std::string& name) {
  const Tensor& wanted = given.value.tensor();
  if (made.is_tensor() && made.tensor().data() == wanted.data() &&
      made.tensor().element_type() == wanted.element_type() &&
      made.tensor().shape() == wanted.shape())
    return;
  refuse_other(name, made, given.value);
}

// The only output of a run, which is filled in the caller's handle itself, without a copy of its
// description. What a run puts in its place instead, since it does not fit, is taken out again.
class OnlyOutput {
 public:
  static constexpr int64_t max_rank = 8;

  explicit OnlyOutput(sardonyx_value& given) : given_(given) {
    const Tensor& tensor = given.value.tensor();
    type_ = tensor.element_type(), rank_ = tensor.rank(), bytes_ = tensor.byte_size();
    data_ = tensor.data(), owner_ = tensor.owner();
    std::copy_n(tensor.shape().data(), rank_, dims_);
  }
  OnlyOutput(const OnlyOutput&) = delete;
  OnlyOutput& operator=(const OnlyOutput&) = delete;
  ~OnlyOutput() {
    if (is_filled()) return;
    sardonyx_status_release(guarded([&] { take_out(); }));
  }

  std::span<Value> row() { return {&given_.value, 1}; }
  void require_filled(const std::string& name) {
    if (is_filled()) return;
    refuse_other(name, take_out(), given_.value);
  }

 private:
  bool is_filled() const {
    if (!given_.value.is_tensor()) return false;
    const Tensor& tensor = given_.value.tensor();
    return tensor.data() == data_ && tensor.element_type() == type_ && tensor.rank() == rank_ &&
           std::equal(dims_, dims_ + rank_, tensor.shape().data());
  }
  Value take_out() {
    Value back = Tensor::view(type_, Shape(dims_, dims_ + rank_), data_, bytes_, owner_);
    return std::exchange(given_.value, std::move(back));
  }

  sardonyx_value& given_;
  ElementType type_;
  int64_t rank_;
  size_t bytes_;
  const void* data_;
  std::shared_ptr<const void> owner_;
  int64_t dims_[max_rank];
};

void refuse_overlaps(const Value& output, std::span<const Value> inputs, const std::string& name) {
  for (const Value& input : inputs) {
    if (ir::overlap(output.tensor(), input))
      fail(ErrorCode::bad_input, "output '{}' was given memory that is an input of the run", name);
  }
}

// Handles of what a run has made; all or none.
void give_new(std::span<Value> made, std::span<const size_t> places, sardonyx_value** outputs) {
  const auto wanted = static_cast<size_t>(std::count(outputs, outputs + places.size(), nullptr));
  if (wanted == 0) return;
  if (wanted == 1) {  // as most models have it
    sardonyx_value** const at = std::find(outputs, outputs + places.size(), nullptr);
    *at = new_value(std::move(made[places[static_cast<size_t>(at - outputs)]]));
    return;
  }
  std::vector<std::unique_ptr<sardonyx_value>> fresh;
  fresh.reserve(wanted);
  for (size_t i = 0; i < places.size(); ++i) {
    if (outputs[i] == nullptr) fresh.emplace_back(new_value(std::move(made[places[i]])));
  }
  auto next = fresh.begin();
  for (size_t i = 0; i < places.size(); ++i) {
    if (outputs[i] == nullptr) outputs[i] = (next++)->release();
  }
}

bool is_only_output(const sardonyx_session& session, const sardonyx_value* const* outputs,
                    size_t count) {
  return count == 1 && session.outputs.size() == 1 && outputs[0] != nullptr;
}

// Not one of so many dimensions that they would need memory.
bool fits_only_output(const sardonyx_value* output) {
  return is_usable(output) && output->value.is_tensor() &&
         output->value.tensor().rank() <= OnlyOutput::max_rank;
}

void run_only(const sardonyx_session& session, std::span<const Value> inputs,
              const sardonyx_run_options* options, sardonyx_value* output) {
  sardonyx_value& given = required(output, "outputs");
  const std::string& name = session.outputs[0]->name;
  refuse_unfit(given, name);
  refuse_overlaps(given.value, inputs, name);
  OnlyOutput only(given);
  session.session.run(inputs, only.row(), run_options(options));
  only.require_filled(name);
}

// `places`: of the session's outputs, for each of the caller's.
void run(const sardonyx_session& session, Rows& rows, std::span<const Value> inputs,
         const sardonyx_run_options* options, sardonyx_value** outputs) {
  const std::span<const size_t> places = rows.places;
  if (is_only_output(session, outputs, places.size()) && fits_only_output(outputs[0]))
    return run_only(session, inputs, options, outputs[0]);
  const std::span<Value> made = rows.room_for_outputs(session.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (!rows.asked_for[i]) made[i] = Value();
  }
  for (size_t i = 0; i < places.size(); ++i) {
    Value& value = made[places[i]];
    if (outputs[i] == nullptr) {
      value = Value();
      continue;
    }
    const std::string& name = session.outputs[places[i]]->name;
    const sardonyx_value& given = required(outputs[i], "outputs");
    refuse_unfit(given, name);
    refuse_overlaps(given.value, inputs, name);
    for (size_t k = 0; k < i; ++k) {
      if (outputs[k] != nullptr && ir::overlap(given.value.tensor(), outputs[k]->value))
        fail(ErrorCode::bad_input, "output '{}' was given memory of another output", name);
    }
    value = given.value;
  }
  session.session.run(inputs, made, run_options(options));
  for (size_t i = 0; i < places.size(); ++i) {
    if (outputs[i] != nullptr)
      require_filled(*outputs[i], made[places[i]], session.outputs[places[i]]->name);
  }
  give_new(made, places, outputs);
}

void take_all_places(const sardonyx_session& session, size_t count, Rows& rows) {
  if (count != session.outputs.size())
    fail(ErrorCode::bad_input, "there is room for {} outputs, and the model has {}", count,
         session.outputs.size());
  rows.places.resize(count);
  for (size_t i = 0; i < count; ++i) rows.places[i] = i;
  rows.asked_for.assign(count, 1);
}

// The place of a name; the number of all where none has it. A few names are compared faster than
// one is hashed.
size_t place_of(const Descriptions& all, const std::unordered_map<std::string_view, size_t>& places,
                std::string_view name) {
  constexpr size_t few = 8;
  if (all.size() <= few) {
    const auto found =
        std::ranges::find_if(all, [&](const auto& one) { return one->name == name; });
    return static_cast<size_t>(found - all.begin());
  }
  const auto found = places.find(name);
  return found == places.end() ? all.size() : found->second;
}

void take_places(const sardonyx_session& session, const char* const* names, size_t count,
                 Rows& rows) {
  if (names == nullptr) return take_all_places(session, count, rows);
  rows.places.clear();
  rows.asked_for.assign(session.outputs.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = &required(names[i], "output_names");
    const size_t at = place_of(session.outputs, session.output_places, name);
    if (at == session.outputs.size())
      fail(ErrorCode::bad_input, "the model has no output '{}'", name);
    if (rows.asked_for[at]++) fail(ErrorCode::bad_input, "output '{}' is asked for twice", name);
    rows.places.push_back(at);
  }
}

// By the session's order; throws for names that it does not have, or that come twice.
std::span<const Value> by_name(const sardonyx_session& session, Rows& rows,
                               const char* const* names, const sardonyx_value* const* inputs,
                               size_t count) {
  if (count > 0) required(inputs, "inputs"), required(names, "input_names");
  const std::span<Value> values = rows.room_for_inputs(session.inputs.size());
  std::vector<char>& given = rows.given;
  given.assign(values.size(), 0);
  for (size_t k = 0; k < count; ++k) {
    const std::string_view name = &required(names[k], "input_names");
    const size_t at = place_of(session.inputs, session.input_places, name);
    if (at == values.size()) fail(ErrorCode::bad_input, "the model has no input '{}'", name);
    if (given[at]++) fail(ErrorCode::bad_input, "input '{}' is given twice", name);
    values[at] = value_of(inputs[k], "inputs");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!given[i]) values[i] = Value();
  }
  return values;
}

// One input is taken where it lies.
std::span<const Value> in_order(Rows& rows, const sardonyx_value* const* inputs, size_t count) {
  if (count > 0) required(inputs, "inputs");
  if (count == 1 && inputs[0] != nullptr) return {&value_of(inputs[0], "inputs"), 1};
  const std::span<Value> values = rows.room_for_inputs(count);
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i] != nullptr)
      values[i] = value_of(inputs[i], "inputs");
    else
      values[i] = Value();
  }
  return values;
}

}  // namespace

sardonyx_status* sardonyx_session_run(const sardonyx_session* session,
                                      const sardonyx_run_options* options,
                                      const char* const* input_names,
                                      const sardonyx_value* const* inputs, size_t input_count,
                                      const char* const* output_names, size_t output_count,
                                      sardonyx_value** outputs) {
  return guarded([&] {
    const sardonyx_session& of = required(session, "session");
    RowsOfThread rows;
    take_places(of, output_names, output_count, *rows);
    if (output_count > 0) required(outputs, "outputs");
    run(of, *rows, by_name(of, *rows, input_names, inputs, input_count), options, outputs);
  });
}

sardonyx_status* sardonyx_session_run_in_order(const sardonyx_session* session,
                                               const sardonyx_run_options* options,
                                               const sardonyx_value* const* inputs,
                                               size_t input_count, sardonyx_value** outputs,
                                               size_t output_count) {
  return guarded([&] {
    const sardonyx_session& of = required(session, "session");
    if (output_count > 0) required(outputs, "outputs");
    const bool one_of_each = input_count == 1 && inputs != nullptr && inputs[0] != nullptr &&
                             is_only_output(of, outputs, output_count);
    if (one_of_each && fits_only_output(outputs[0]))
      return run_only(of, {&value_of(inputs[0], "inputs"), 1}, options, outputs[0]);
    RowsOfThread rows;
    take_all_places(of, output_count, *rows);
    run(of, *rows, in_order(*rows, inputs, input_count), options, outputs);
  });
}
