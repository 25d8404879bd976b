// `bench --serve`: holds a model for a program that times it against others.
#pragma once

namespace sardonyx::cli {

// Reads commands from standard input, one a line, and answers each with one line of JSON, until
// "quit" or the end of the input. Returns the exit code.
int serve_lines();

}  // namespace sardonyx::cli
