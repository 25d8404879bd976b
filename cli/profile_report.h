// What a profile says of a model: times of its steps and operators beside the machine's limits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sardonyx/machine.h"
#include "sardonyx/profile.h"

namespace sardonyx::cli {

// Times are of one run on average, over the middle half of the runs.
struct ProfileRow {
  std::string name;       // of a step's node, or of an operator
  int step = -1;          // of operators: -1
  double calls = 0;       // a run
  double ms = 0;          // the steps of its bodies included
  double self_ms = 0;     // without them
  double share = 0;       // of self_ms in the run
  double threads = 0;     // that worked for it, on average
  double operations = 0;  // floating-point operations a run
  double bytes = 0;       // read and written a run
  double gflops = 0, gbps = 0;
  // What bounds it: "compute", or the memory its bytes fit in; empty where it does neither.
  std::string bound;
  double share_of_bound = 0;  // the least time that bound allows, as a share of self_ms
};

struct ProfileReport {
  const Profile* profile = nullptr;
  MachineLimits limits;
  std::string model;
  std::vector<std::string> guards;  // what the plan takes for granted of the inputs' sizes
  int threads = 0;
  double load_ms = 0, first_ms = 0;
  double median_ms = 0;  // of a run
  double run_ms = 0;     // on average over the middle half of the runs: what the rows add up to
  double rest_ms = 0;    // of it, outside all steps
  int chosen_run = 0;    // the one of median time: what images show
  std::vector<ProfileRow> steps;      // one for each of the profile's
  std::vector<ProfileRow> operators;  // the dearest first
};

// `profile` has a run at least, and outlives the report.
ProfileReport make_report(const Profile& profile, MachineLimits limits);

nlohmann::ordered_json report_json(const ProfileReport& report);
std::string report_text(const ProfileReport& report);
// One page that needs nothing else: tables, the chosen run on a line of time, the roofline.
std::string report_html(const ProfileReport& report);
// All runs as Chrome's and Perfetto's trace events.
std::string report_trace(const ProfileReport& report);

}  // namespace sardonyx::cli
