// Every rule has a model that keeps it and one that breaks it: tests/check/models/<rule>-good.txt
// and <rule>-bad.txt, or .textproto for what the textual syntax cannot say. A broken one says in
// its first lines what the checker has to find:
//   # finds: <part of the diagnostic's text>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "check/check.h"
#include "sardonyx/error.h"
#include "wire/named_forms.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;
using check::Diagnostic;
using check::Profile;

const fs::path models = fs::path(SARDONYX_SOURCE_DIR) / "tests/check/models";

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string listing(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += "  " + diagnostic.to_string() + "\n";
  return text.empty() ? "  nothing" : text;
}

fs::path model_path(std::string_view id, std::string_view kind) {
  const fs::path text = models / fmt::format("{}-{}.txt", id, kind);
  return fs::exists(text) ? text : models / fmt::format("{}-{}.textproto", id, kind);
}

std::vector<Diagnostic> findings(const fs::path& path, Profile profile) {
  check::Options options;
  options.profile = profile;
  const std::string text = read(path);
  return check::check(path.extension() == ".txt"
                          ? wire::parse_model(text)
                          : wire::read_named_model(text, wire::NamedForm::textproto),
                      options);
}

const Diagnostic* find(const std::vector<Diagnostic>& diagnostics, std::string_view rule,
                       std::string_view part = "") {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.rule == rule && diagnostic.to_string().find(part) != std::string::npos) {
      return &diagnostic;
    }
  }
  return nullptr;
}

std::vector<std::string> expectations(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  constexpr std::string_view mark = "# finds: ";
  for (std::string line; std::getline(lines, line) && line.starts_with(mark);) {
    found.push_back(line.substr(mark.size()));
  }
  return found;
}

class RuleModel : public testing::TestWithParam<check::Rule> {};

TEST_P(RuleModel, IsKept) {
  const std::string_view id = GetParam().id;
  const fs::path path = model_path(id, "good");
  ASSERT_TRUE(fs::exists(path)) << path;
  for (const Profile profile : {Profile::runnable, Profile::standard, Profile::strict}) {
    const std::vector<Diagnostic> diagnostics = findings(path, profile);
    EXPECT_EQ(find(diagnostics, id), nullptr) << path << "\n" << listing(diagnostics);
    if (profile != Profile::strict) {
      EXPECT_FALSE(check::has_errors(diagnostics)) << path << "\n" << listing(diagnostics);
    }
  }
}

TEST_P(RuleModel, IsBroken) {
  const check::Rule& rule = GetParam();
  const fs::path path = model_path(rule.id, "bad");
  ASSERT_TRUE(fs::exists(path)) << path;
  const std::string text = read(path);
  const std::vector<std::string> expected = expectations(text);
  ASSERT_FALSE(expected.empty()) << path;
  const std::vector<Diagnostic> diagnostics = findings(path, Profile::standard);
  for (const std::string& part : expected) {
    EXPECT_NE(find(diagnostics, rule.id, part), nullptr) << path << ": " << part << "\n"
                                                         << listing(diagnostics);
  }
  const bool refused = check::has_errors(findings(path, Profile::runnable));
  if (rule.runnable != check::Level::error) {
    EXPECT_FALSE(refused) << path << "\n" << listing(findings(path, Profile::runnable));
  } else {
    EXPECT_TRUE(refused) << path;
  }
}

// Limits whose models are too large for a file: broken_models_test.cc builds them.
const std::set<std::string_view> not_in_text = {"L-01", "L-02", "L-03", "F-28"};

std::vector<check::Rule> rules_in_text() {
  std::vector<check::Rule> rules;
  for (const check::Rule& rule : check::rules()) {
    if (!not_in_text.contains(rule.id)) rules.push_back(rule);
  }
  return rules;
}

INSTANTIATE_TEST_SUITE_P(Check, RuleModel, testing::ValuesIn(rules_in_text()),
                         [](const auto& info) {
                           std::string name(info.param.id);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Rules, AreDistinctAndDescribed) {
  std::set<std::string_view> ids;
  for (const check::Rule& rule : check::rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.title.empty()) << rule.id;
    EXPECT_NE(rule.standard, check::Level::off) << rule.id;
    EXPECT_GE(rule.strict, rule.standard) << rule.id;
    EXPECT_LE(rule.runnable, rule.standard) << rule.id;
  }
}

}  // namespace
}  // namespace sardonyx
