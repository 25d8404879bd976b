// What arguments of several commands have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx::cli {

// The name of a model's file, which must be given; "-" is standard input.
void add_model_argument(CLI::App& command, const char* name, std::string& path, const char* what);
// The same for one or more of them.
void add_model_arguments(CLI::App& command, const char* name, std::vector<std::string>& paths,
                         const char* what);
// Takes the name of a file to write; "-" is standard output.
CLI::Validator output_file();

// Takes the name of a document of an operator set; of a number, which means a version elsewhere, it
// says what may have been meant.
CLI::Validator operator_set_file();

// Refuse all but whole numbers in a range, and empty texts, in words of ours.
CLI::Validator whole_number(int64_t least = std::numeric_limits<int64_t>::min(),
                            int64_t most = std::numeric_limits<int64_t>::max());
CLI::Validator not_empty();

// Says what there is to say of a file that was written: on standard error where the file itself is
// standard output.
void tell_written(std::string_view path, std::string_view text);

}  // namespace sardonyx::cli
