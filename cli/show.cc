// sardonyx show
#include "os.h"
#include "sardonyx/model.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

constexpr uint64_t asked_bytes = 4'000'000;  // on a terminal: from here on nobody reads it

struct ShowCommand {
  std::string model, output;
  TextOptions options;
  std::optional<DrawingForm> drawing;  // instead of the text
  int64_t most = -1;
  bool bare = false, dot = false, svg = false, yes = false;

  int run() {
    name_mapped_file(model);
    if (most >= 0) options.max_elements = static_cast<size_t>(most);
    options.annotations = !bare;
    choose_form();
    const Model shown(model, {.load_external_data = false});
    if (!output.empty() && descriptor_named(output) != os::standard_output) {
      const Progress progress("drawing " + model);
      if (drawing) {
        shown.save_drawing(output, *drawing);
      } else {
        shown.save_text(output, options);
      }
      tell_written(output, fmt::format("wrote {}\n", printable(output)));
      return ok;
    }
    if (os::is_terminal(os::standard_output) && !yes && !is_wanted(shown)) return ok;
    write(shown, emit);
    return ok;
  }

 private:
  void write(const Model& shown, const TextSink& sink) const {
    if (drawing) {
      shown.draw(sink, *drawing);
    } else {
      shown.write_text(sink, options);
    }
  }

  void choose_form() {
    if (dot) drawing = DrawingForm::dot;
    if (svg) drawing = DrawingForm::svg;
    if (output.empty()) return;
    const std::optional<DrawingForm> named = drawing_form_of(output);
    if (drawing && named && *drawing != *named)
      throw UsageError(
          fmt::format("--output {}: the ending is not that of --{}", output, dot ? "dot" : "svg"));
    if (drawing) return;
    drawing = named;
    std::string lowered = output;
    for (char& c : lowered) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (drawing || lowered.ends_with(".onnxtxt") || lowered.ends_with(".txt") ||
        descriptor_named(output))
      return;
    throw UsageError(fmt::format(
        "--output {}: the ending says nothing that can be shown; known are .onnxtxt (.txt), .svg "
        "and .dot (.gv), or say --svg or --dot",
        output));
  }

  // Much text floods a terminal: the person there is asked first.
  bool is_wanted(const Model& shown) const {
    uint64_t bytes = 0;
    {
      const Progress progress("reading " + model);
      write(shown, [&](std::string_view piece) { bytes += piece.size(); });
    }
    if (bytes < asked_bytes) return true;
    const std::string size = bytes_text(static_cast<double>(bytes));
    if (!os::is_terminal(os::standard_input))
      throw UsageError(fmt::format(
          "these are {} of text for a terminal; --max-elements N cuts weights, --output FILE "
          "writes a file, --yes prints all",
          size));
    say(fmt::format(
        "These are {} of text (--max-elements N cuts weights, --output FILE writes a file). "
        "Print all? [y/N] ",
        size));
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
  }
};

}  // namespace

void add_show(const Options& app, Action& action) {
  auto command = std::make_shared<ShowCommand>();
  const Options show =
      app.add_command("show", "Print a model in ONNX's textual syntax, or draw it");
  add_model_argument(show, "MODEL", command->model, "The model; its external data is not needed");
  show.add_option("--max-elements", command->most,
                  "Cut tensors with more elements; what is cut can't be parsed again")
      .check(whole_number(0))
      .type_name("N");
  show.add_flag("--bare", command->bare,
                "Without the '#@' lines, which hold what the standard's syntax can't say");
  const Option dot = show.add_flag("--dot", command->dot, "Draw it, for Graphviz");
  show.add_flag("--svg", command->svg, "Draw it, as SVG").excludes(dot);
  show.add_option("-o,--output", command->output,
                  "Write it to this file; .svg and .dot make it a drawing")
      .transform(output_file())
      .type_name("FILE");
  show.add_flag("-y,--yes", command->yes, "Print much text on a terminal without asking");
  show.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
