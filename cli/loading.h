// Loading a model and preparing it, as `run`, `explain`, `profile` and `bench` do.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "dim_option.h"
#include "options.h"
#include "sardonyx/session.h"

namespace sardonyx::cli {

struct LoadingOptions {
  std::string model;
  int threads = 0;
  std::string trusted_folder;
  std::vector<std::string> operator_sets;
  std::vector<std::string> libraries;
  bool reference = false;
  bool exact = false;
  bool assume_inference = false;
  bool flush_denormals = false;
  bool prepack = false;
  std::string packed, cache_folder;  // of packed weights; empty: none
  DimOption fixed_dims{"--fix-dim"};
  bool strict_model = false;
  uint64_t seed = 0;  // of random operators without one
};

void add_loading_options(const Options& command, LoadingOptions& options);
// --library, as all commands that look at operators take it.
void add_library_option(const Options& command, std::vector<std::string>& libraries);

struct Loaded {
  Model model;
  Session session;
  int threads;          // that runs use, the caller's included
  double milliseconds;  // reading and preparing
};

// Reads the model only; its warnings go to standard error.
Model load_model(const LoadingOptions& options);
// What decides how the model is planned.
SessionOptions planning_options(const LoadingOptions& options);
Loaded load(const LoadingOptions& options, bool all_outputs = false);

// Prints a model's warnings to standard error, the first few of them in full.
class WarningPrinter {
 public:
  // The file that the warnings are about.
  explicit WarningPrinter(std::string model) : model_(std::move(model)) {}
  ~WarningPrinter();
  WarningPrinter(const WarningPrinter&) = delete;
  WarningPrinter& operator=(const WarningPrinter&) = delete;
  void operator()(const Warning& warning);

 private:
  std::string model_;
  std::atomic<int> count_ = 0;
};

// Milliseconds since an arbitrary moment.
double now_ms();

// Tells which file to name where a mapping is lost (os::on_lost_mapping).
void name_mapped_file(const std::string& path);

}  // namespace sardonyx::cli
