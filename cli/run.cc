// sardonyx run
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "arguments.h"
#include "commands.h"
#include "comparison.h"
#include "fail.h"
#include "loading.h"
#include "model_inputs.h"
#include "os.h"
#include "sardonyx/compare_runs.h"
#include "sardonyx/files.h"
#include "sardonyx/outputs.h"
#include "sardonyx/ranking.h"
#include "sardonyx/text.h"
#include "statistics.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t shown_elements = 8;
constexpr size_t shown_differences = 20;
constexpr int64_t json_elements = 1000;  // of an output that JSON holds whole

struct RunCommand {
  LoadingOptions loading;
  ModelInputs inputs;
  std::string output, expect, labels_file;
  bool all_outputs = false;
  int repeat = 1;
  int64_t top = 5;
  Tolerance tolerance;
  bool as_json = false;

  int run();

 private:
  void check_output_form(const Session& session) const;
  std::vector<std::string> read_labels() const;
  // The session that gives all that is expected, and how many of its outputs are those asked for.
  Loaded load_for_expected();
  void read_expected(const Loaded& loaded);
  void compare_with_expected(const Loaded& loaded, const std::vector<Value>& outputs);
  std::vector<Value> run_all(const Session& session, const std::vector<NamedValue>& given);
  std::vector<std::string> write(const Session& session, const std::vector<Value>& outputs) const;
  int labelled_output(const Session& session, const std::vector<Value>& outputs) const;
  void print_text(const Loaded& loaded, const std::vector<Value>& outputs) const;
  void print_json(const Loaded& loaded, const std::vector<Value>& outputs) const;
  std::string answer_name(int64_t index) const;

  std::vector<std::string> labels_;
  std::vector<double> times_;
  std::vector<std::string> files_;
  std::vector<NamedValue> expected_;
  std::optional<RunComparison> comparison_;
  size_t asked_outputs_ = SIZE_MAX;  // what is told and written; the others are only compared
  std::vector<std::pair<size_t, Difference>> differences_;
  int labelled_ = -1;
};

std::string trimmed(std::string line) {
  const size_t last = line.find_last_not_of(" \t\r");
  line.erase(last == std::string::npos ? 0 : last + 1);
  return line;
}

std::vector<std::string> RunCommand::read_labels() const {
  std::vector<std::string> labels;
  if (labels_file.empty()) return labels;
  const std::string bytes = read_text(labels_file);
  std::string_view text = bytes;
  constexpr std::string_view mark = "\xef\xbb\xbf";  // that some editors begin UTF-8 with
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    labels.push_back(trimmed(std::string(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.empty())
    fail_at(labels_file, ErrorCode::bad_input, "holds no labels; one a line is expected");
  return labels;
}

// What --output can't hold is said before the run.
void RunCommand::check_output_form(const Session& session) const {
  if (output == "-")
    throw UsageError("--output -: outputs go to FILE.npz or a folder, not to standard output");
  if (!output.ends_with(".npz")) {
    for (const char* ending : {".npy", ".pb", ".json", ".txt", ".csv", ".png"}) {
      if (!output.ends_with(ending)) continue;
      throw UsageError(fmt::format(
          "--output {}: expected FILE.npz or a folder, which gets output_0.npy and so on", output));
    }
    return;
  }
  const size_t written = std::min(session.outputs().size(), asked_outputs_);
  for (const ValueDescription& description : std::span(session.outputs()).first(written)) {
    if (description.kind == Value::Kind::tensor) continue;
    fail_at(fmt::format("output '{}'", description.name), ErrorCode::bad_input,
            "is {}, which an .npz file cannot hold; give --output a folder", description.type);
  }
}

bool has(const std::vector<ValueDescription>& list, const std::string& name) {
  return std::ranges::find(list, name, &ValueDescription::name) != list.end();
}

// Files like those of the standard's test data: output_0.pb (or .npy), … in the model's order.
bool is_test_data(const std::string& folder, const Session& session) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const std::string file = fmt::format("{}/output_{}", folder, i);
    if (os::exists(file + ".pb") || os::exists(file + ".npy")) return true;
  }
  return false;
}

// Values that only nodes give to each other have to become outputs, where they are expected.
Loaded RunCommand::load_for_expected() {
  Loaded loaded = load(loading, all_outputs);
  if (expect.empty()) return loaded;
  if (!os::exists(expect)) fail_at(expect, ErrorCode::unreadable, "no such file or folder");
  if (is_test_data(expect, loaded.session) || all_outputs) return loaded;
  const std::vector<NamedValue> expected =
      read_run(expect, &loaded.model, loaded.session.outputs());
  const bool any_inside = std::ranges::any_of(expected, [&](const NamedValue& value) {
    return !has(loaded.session.outputs(), value.first) &&
           !has(loaded.session.inputs(), value.first);
  });
  if (!any_inside) return loaded;
  asked_outputs_ = loaded.session.outputs().size();
  return load(loading, true);
}

void RunCommand::read_expected(const Loaded& loaded) {
  if (expect.empty()) return;
  const auto& outputs = loaded.session.outputs();
  if (!is_test_data(expect, loaded.session)) {
    expected_ = read_run(expect, &loaded.model, outputs);
    // Dumps often hold the inputs, too.
    std::erase_if(expected_, [&](const NamedValue& value) {
      return has(loaded.session.inputs(), value.first) && !has(outputs, value.first);
    });
    if (std::ranges::any_of(expected_, [&](const NamedValue& v) { return has(outputs, v.first); }))
      return;
    std::vector<std::string> names;
    for (const ValueDescription& output : outputs) names.push_back(output.name);
    fail_at(expect, ErrorCode::bad_input,
            "has no value of a name that the run gives; the model's outputs are: {}",
            fmt::join(names, ", "));
  }
  const auto file_of = [&](size_t i) {
    for (const char* kind : {"pb", "npy"}) {
      std::string path = fmt::format("{}/output_{}.{}", expect, i, kind);
      if (os::exists(path)) return path;
    }
    return std::string();
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string path = file_of(i);
    const bool is_known =
        std::ranges::find(expected_, outputs[i].name, &NamedValue::first) != expected_.end();
    if (!path.empty() && !is_known)
      expected_.emplace_back(outputs[i].name, read_value_file(path, loaded.model, outputs[i]));
  }
  // More than the run gives: a difference each.
  for (size_t i = outputs.size(); !file_of(i).empty(); ++i)
    expected_.emplace_back(file_of(i), Value());
}

void RunCommand::compare_with_expected(const Loaded& loaded, const std::vector<Value>& outputs) {
  if (expect.empty()) return;
  const auto& descriptions = loaded.session.outputs();
  std::vector<NamedValue> made;
  for (const size_t i : making_order(loaded.model, descriptions))
    made.emplace_back(descriptions[i].name, outputs[i]);
  comparison_ = compare_runs(made, expected_, {.tolerance = tolerance, .all_expected = true});
  for (const ComparedValue& value : comparison_->values) {
    const auto at = std::ranges::find(descriptions, value.name, &ValueDescription::name);
    if (at != descriptions.end())
      differences_.emplace_back(static_cast<size_t>(at - descriptions.begin()), value.difference);
  }
}

std::vector<Value> RunCommand::run_all(const Session& session,
                                       const std::vector<NamedValue>& given) {
  Progress progress("running " + loading.model);
  std::vector<Value> outputs;
  for (int i = 0; i < repeat; ++i) {
    if (repeat > 1) progress.set(fmt::format("running {}: {} of {}", loading.model, i + 1, repeat));
    outputs.clear();
    const double start = now_ms();
    outputs = inputs.explaining([&] { return session.run(given); });
    times_.push_back(now_ms() - start);
  }
  return outputs;
}

std::vector<std::string> RunCommand::write(const Session& session,
                                           const std::vector<Value>& outputs) const {
  if (output.empty()) return {};
  if (!output.ends_with(".npz")) return write_output_folder(output, outputs);
  write_output_npz(output, std::span(session.outputs()).first(outputs.size()), outputs);
  return {};
}

// The output that the labels are for: the first whose last dimension has one element for each.
int RunCommand::labelled_output(const Session& session, const std::vector<Value>& outputs) const {
  if (labels_.empty()) return -1;
  std::string seen;
  for (size_t i = 0; i < outputs.size(); ++i) {
    seen += fmt::format("{}'{}' is {}", seen.empty() ? "" : ", ", session.outputs()[i].name,
                        type_text(outputs[i]));
    if (!outputs[i].is_tensor() || outputs[i].tensor().rank() == 0) continue;
    const Tensor& tensor = outputs[i].tensor();
    if (is_floating(tensor.element_type()) &&
        tensor.shape().back() == static_cast<int64_t>(labels_.size())) {
      return static_cast<int>(i);
    }
  }
  fail_at(labels_file, ErrorCode::bad_input, "has {} labels, but no output has as many scores: {}",
          labels_.size(), seen);
}

int RunCommand::run() {
  inputs.parse();
  loading.seed = inputs.seed();
  labels_ = read_labels();
  const Loaded loaded = load_for_expected();
  check_output_form(loaded.session);
  const std::vector<NamedValue> given = inputs.values(loaded.model, loaded.session.inputs());
  read_expected(loaded);
  std::vector<Value> outputs = run_all(loaded.session, given);
  compare_with_expected(loaded, outputs);
  outputs.resize(std::min(outputs.size(), asked_outputs_));
  labelled_ = labelled_output(loaded.session, outputs);
  files_ = write(loaded.session, outputs);
  if (as_json) {
    print_json(loaded, outputs);
  } else {
    print_text(loaded, outputs);
  }
  return !comparison_ || comparison_->agree() ? ok : findings;
}

std::string RunCommand::answer_name(int64_t index) const {
  return labels_[static_cast<size_t>(index)];
}

void RunCommand::print_text(const Loaded& loaded, const std::vector<Value>& outputs) const {
  std::string text = fmt::format("{}: loaded in {}, ran in {}", printable(loading.model),
                                 milliseconds(loaded.milliseconds), milliseconds(median(times_)));
  if (repeat > 1)
    text += fmt::format(" (median of {}, best {})", repeat,
                        milliseconds(*std::min_element(times_.begin(), times_.end())));
  text += fmt::format(", {} {}\n", loaded.threads, loaded.threads == 1 ? "thread" : "threads");
  for (size_t i = 0; i < outputs.size(); ++i) {
    text += fmt::format("{}  {}  {}\n", printable(loaded.session.outputs()[i].name),
                        type_text(outputs[i]), preview(outputs[i], shown_elements));
    if (i < files_.size() && !files_[i].empty())
      text += fmt::format("    written to {}\n", printable(files_[i]));
    if (static_cast<int>(i) == labelled_) {
      const Ranking ranking = rank_answers(outputs[i].tensor(), top);
      if (!ranking.given) text += "    softmax of these:\n";
      for (size_t row = 0; row < ranking.rows.size(); ++row) {
        if (ranking.rows.size() > 1) text += fmt::format("    row {}\n", row);
        for (const Answer& answer : ranking.rows[row]) {
          text += fmt::format("    {:6.2f} %  {}\n", 100 * answer.probability,
                              printable(answer_name(answer.index)));
        }
      }
    }
    for (const auto& [index, difference] : differences_) {
      if (index != i) continue;
      text +=
          fmt::format("    {}: {}\n", difference.agree ? "as expected" : "NOT as expected",
                      difference.agree ? fmt::format("largest difference {:.3g}, {:.2g} of the RMS",
                                                     difference.largest, difference.share_of_rms)
                                       : difference.reason);
    }
  }
  if (output.ends_with(".npz")) text += fmt::format("written to {}\n", printable(output));
  if (comparison_ && (!comparison_->agree() || comparison_->values.size() > outputs.size()))
    text += "beside " + printable(expect) + ": " + comparison_text(*comparison_, shown_differences);
  emit(text);
}

void RunCommand::print_json(const Loaded& loaded, const std::vector<Value>& outputs) const {
  json report = {{"model", loading.model},
                 {"threads", loaded.threads},
                 {"load_ms", loaded.milliseconds},
                 {"run_ms", median(times_)},
                 {"runs_ms", times_}};
  report["outputs"] = json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    json one = {{"name", loaded.session.outputs()[i].name}, {"type", type_text(outputs[i])}};
    if (outputs[i].is_tensor()) {
      one["element_type"] = name_of(outputs[i].tensor().element_type());
      one["shape"] = outputs[i].tensor().shape();
    }
    if (element_count(outputs[i]) <= json_elements) one["value"] = json::parse(to_json(outputs[i]));
    if (i < files_.size() && !files_[i].empty()) one["file"] = files_[i];
    if (static_cast<int>(i) == labelled_) {
      one["answers"] = json::array();
      for (const auto& row : rank_answers(outputs[i].tensor(), top).rows) {
        json answers = json::array();
        for (const Answer& answer : row) {
          answers.push_back({{"label", answer_name(answer.index)},
                             {"index", answer.index},
                             {"probability", answer.probability}});
        }
        one["answers"].push_back(std::move(answers));
      }
    }
    for (const auto& [index, difference] : differences_) {
      if (index != i) continue;
      one["expected"] = {{"agree", difference.agree},
                         {"largest_difference", difference.largest},
                         {"share_of_rms", difference.share_of_rms},
                         {"differing", difference.differing}};
      if (!difference.agree) one["expected"]["reason"] = difference.reason;
    }
    report["outputs"].push_back(std::move(one));
  }
  if (output.ends_with(".npz")) report["file"] = output;
  if (comparison_) report["comparison"] = to_json(*comparison_);
  emit_json(report);
}

}  // namespace

void add_run(const Options& app, Action& action) {
  auto command = std::make_shared<RunCommand>();
  const Options run = app.add_command("run", "Run a model and print its outputs");
  add_loading_options(run, command->loading);
  command->inputs.add_options(run);
  run.add_option("-o,--output", command->output,
                 "Write the outputs: a folder (output_0.npy, …), or FILE.npz")
      .check(not_empty())
      .type_name("DIR|NPZ");
  const Option expect =
      run.add_option(
             "--expect", command->expect,
             "Compare with output_0.pb or .npy, … of a folder, or with the values of an .npz or "
             "a folder by their names; exit 1 where they differ")
          .check(not_empty())
          .type_name("DIR|NPZ");
  run.add_option("--rtol", command->tolerance.relative,
                 "Of --expect: allowed share of the expected value (1e-3; more for coarse types)")
      .needs(expect)
      .type_name("X");
  run.add_option("--atol", command->tolerance.absolute,
                 "Of --expect: allowed beside that (1e-4 of the expected RMS)")
      .needs(expect)
      .type_name("X");
  run.add_flag("--all-outputs", command->all_outputs,
               "Also return intermediate values, after the model's outputs; nothing is fused");
  run.add_option("-n,--repeat", command->repeat, "Run N times and report the median time (1)")
      .check(whole_number(1, 1000000000))
      .type_name("N");
  const Option labels = run.add_option("--labels", command->labels_file,
                                       "Names of classes, one a line: print the best answers")
                            .check(not_empty())
                            .type_name("FILE");
  run.add_option("--top", command->top, "How many answers (5)")
      .needs(labels)
      .check(whole_number(1, 1000000))
      .type_name("K");
  run.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  run.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
