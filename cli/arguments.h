// What arguments of several commands have in common.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace sardonyx::cli {

// The name of a model's file, which must be given; "-" is standard input.
void add_model_argument(const Options& command, const char* name, std::string& path,
                        const char* what);
// The same for one or more of them.
void add_model_arguments(const Options& command, const char* name, std::vector<std::string>& paths,
                         const char* what);
// Models are mapped, some more than once: what comes through the pipe that the path names, if it
// names one, is gathered in memory, as a file that takes the pipe's place. Returns what failed;
// "" where nothing did.
std::string gather_pipe(const std::string& path);
// Takes the name of a file to write; "-" is standard output.
Check output_file();

// Takes the name of a document of an operator set; of a number, which means a version elsewhere, it
// says what may have been meant.
Check operator_set_file();

// Documents of operator sets that the model imports, as all commands take them that look at
// operators.
void add_operator_sets(const Options& command, std::vector<std::string>& files);

// A flag, and the name that it had before: works for one version more, is not listed, and warns.
void add_renamed_flag(const Options& command, const std::string& name, const std::string& old_name,
                      bool& flag, const std::string& help);
// What a use of an old name says.
void warn_of_old_name(std::string_view name, std::string_view old_name);

// Refuse all but whole numbers in a range, and empty texts, in words of ours.
Check whole_number(int64_t least = std::numeric_limits<int64_t>::min(),
                   int64_t most = std::numeric_limits<int64_t>::max());
Check not_empty();
// Refuses all but these words. The option's type says what there is: "{bash,zsh,fish}".
Check one_of(std::vector<std::string> words);

// The descriptor of this process that a path such as /dev/stdin or /dev/fd/3 names; nothing for
// all other paths.
std::optional<int> descriptor_named(std::string_view path);

// Says what there is to say of a file that was written: on standard error where the file itself is
// standard output.
void tell_written(std::string_view path, std::string_view text);

}  // namespace sardonyx::cli
