#include "saving.h"

#include <fmt/format.h>

#include <charconv>

#include "arguments.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {

void add_saving_options(const Options& command, SavingOptions& options) {
  SaveOptions& save = options.save;
  command
      .add_option("OUTPUT", options.output,
                  "The file to write; its ending says how: .onnx, .onnxtxt, .json, .textproto, or "
                  ".svg and .dot for a drawing; - is binary on standard output")
      .required()
      .transform(output_file());
  const auto data = command
                        .add_option("--external-data", save.external_data,
                                    "Put the larger weights into this file beside the output")
                        .check(not_empty())
                        .type_name("FILE");
  command
      .add_option(
          "--threshold", options.threshold,
          "Weights of at least so many bytes go there (1024); 4K, 1M, 1G mean what they say")
      .needs(data)
      .type_name("SIZE");
  command
      .add_option("--align", save.alignment,
                  "Where each of them begins: a multiple of N bytes (4096)")
      .needs(data)
      .check(whole_number(1, 1 << 20))
      .type_name("N");
  command.add_flag("--checksum", save.checksum, "State the SHA-1 digest of that file in the model")
      .needs(data);
  command.add_flag("--embed", save.embed, "Put all external data into the model file")
      .excludes(data);
  command.add_flag("--verify-checksums", save.verify_checksums,
                   "Compare external data that is read with the digests the model states");
  command
      .add_option("--trust-folder", save.trusted_folder,
                  "A folder that links of external data may lead into; links are refused otherwise")
      .check(not_empty())
      .type_name("DIR");
}

Model load_file(const std::string& path, const SaveOptions& options) {
  return Model(path, {.trusted_folder = options.trusted_folder, .load_external_data = false});
}

SaveOptions save_options(const SavingOptions& options) {
  SaveOptions save = options.save;
  uint64_t number = 0;
  const char* end = options.threshold.data() + options.threshold.size();
  const auto [stop, problem] = std::from_chars(options.threshold.data(), end, number);
  std::string_view unit(stop, static_cast<size_t>(end - stop));
  int shift = 0;
  if (unit == "K" || unit == "k") shift = 10;
  if (unit == "M") shift = 20;
  if (unit == "G") shift = 30;
  if (problem != std::errc() || (shift == 0 && !unit.empty()) || number >> (63 - shift) != 0)
    throw UsageError(fmt::format("--threshold: '{}' is no size in bytes", options.threshold));
  save.threshold = number << shift;
  return save;
}

void require_known_ending(const std::string& output, const std::string& model) {
  const std::string problem = ending_problem(output, model);
  if (!problem.empty()) throw UsageError(fmt::format("{}: {}", output, problem));
}

void report_saved(const SavingOptions& options, const Saved& saved) {
  std::string text = fmt::format("wrote {}, {}", printable(options.output),
                                 bytes_text(static_cast<double>(saved.model_bytes)));
  if (!options.save.external_data.empty())
    text += fmt::format(", and {}, {}", printable(options.save.external_data),
                        bytes_text(static_cast<double>(saved.data_bytes)));
  tell_written(options.output, text + "\n");
  for (const std::string& note : saved.notes) say(fmt::format("sardonyx: note: {}\n", note));
}

std::pair<std::string, std::string> split_pair(const std::string& text, std::string_view option,
                                               std::string_view form) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    throw UsageError(fmt::format("{}: '{}' must be of the form {}", option, text, form));
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace sardonyx::cli
