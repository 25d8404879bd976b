// Whatever can be read is printed as text that is read again: as the same model, that prints the
// same. Real models and random ones, changed in their fields and in the bytes of their messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "builder.h"
#include "normalised_model.h"
#include "random_model.h"
#include "wire/fields.h"
#include "wire/named_forms.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937;

// Walks over the fields of a model and changes the one whose turn it is.
class Mutator {
 public:
  Mutator(Random& random, size_t turn) : random_(random), turn_(turn) {}

  size_t seen() const { return seen_; }
  template <class M>
  void walk(M& message) {
    wire::fields(*this, message);
  }

  template <class T>
  void field(uint32_t, const char*, T& member) {
    if (its_turn()) return change(member);
    enter(member);
  }
  template <class T>
  void field(uint32_t, const char*, std::optional<T>& member) {
    if (!its_turn()) {
      if (member) enter(*member);
    } else if (member && below(2) == 0) {
      member.reset();
    } else {
      change(member.emplace());
    }
  }
  template <class T>
  void field(uint32_t, const char*, std::shared_ptr<const T>& member) {
    if (!its_turn()) return enter(member);
    if (member && below(2) == 0) return member.reset();
    member = std::make_shared<T>();
  }
  template <class T>
  void field(uint32_t, const char*, std::vector<T>& list) {
    if (!its_turn()) {
      for (T& item : list) enter(item);
      return;
    }
    const size_t what = below(5);
    const auto any = [&] { return list.begin() + static_cast<std::ptrdiff_t>(below(list.size())); };
    if (what == 0) {
      list.clear();
    } else if (what == 1 && !list.empty()) {
      list.erase(any());
    } else if (what == 2 && !list.empty()) {
      list.push_back(T(*any()));
    } else if (what == 3 && !list.empty()) {
      change(*any());
    } else {
      change(list.emplace_back());
    }
  }
  template <class T>
  void packed(uint32_t number, const char* name, std::vector<T>& list) {
    field(number, name, list);
  }
  void fixed(uint32_t, const char*, Bytes& bytes, size_t width) {
    if (its_turn()) bytes = some_bytes(bytes, width);
  }
  void raw(uint32_t, const char*, bool& present, Bytes& bytes) {
    if (!its_turn()) return;
    present = below(3) != 0;
    bytes = present ? some_bytes(bytes, 1) : Bytes();
  }
  template <class T>
  void flagged(uint32_t, const char*, bool& present, T& member) {
    if (!its_turn()) return;
    present = !present;
    change(member);
  }
  template <class A, class B>
  void either(uint32_t, const char*, std::optional<A>& a, uint32_t, const char*,
              std::optional<B>& b) {
    if (!its_turn()) return;
    a.reset();
    b.reset();
    const size_t what = below(3);
    if (what == 0) change(a.emplace());
    if (what == 1) change(b.emplace());
  }
  template <class Visit>
  void choice(uint32_t, const char*, ir::TypeProto& type, ir::TypeProto::Kind kind,
              const Visit& visit) {
    if (its_turn()) {
      type = {};
      type.kind = kind;
    } else if (type.kind == kind) {
      visit(*this);
    }
  }
  void unknown(ir::UnknownFields&) {}

 private:
  bool its_turn() { return seen_++ == turn_; }
  size_t below(size_t limit) { return random_() % limit; }

  template <class T>
  void enter(T& member) {
    if constexpr (requires { member.unknown; }) walk(member);
  }
  template <class T>
  void enter(std::shared_ptr<const T>& member) {
    if (!member) return;
    auto copy = std::make_shared<T>(*member);
    walk(*copy);
    member = std::move(copy);
  }

  template <class T>
  void change(T& member) {
    if constexpr (std::is_same_v<T, std::string>) {
      static const std::string words[] = {"",           "a",         "float",
                                          "seq",        "optional",  "inf",
                                          "NaN",        "e",         "int",
                                          "e\"x",       "\"",        "\\",
                                          "two\nlines", "x\r\n#@ y", "#",
                                          "a.b",        "my-name",   "9lives",
                                          "\xff\xfe",   "undefined", "\t\x7f",
                                          "tensor",     "?",         "$9",
                                          "} {a: 1}",   "é",         std::string(2, '\0')};
      member = words[below(std::size(words))];
    } else if constexpr (std::is_enum_v<T>) {
      static constexpr std::array numbers = {0, 15, 99, -1};
      member = static_cast<T>(below(2) == 0 ? below(15) : numbers[below(numbers.size())]);
    } else if constexpr (std::is_floating_point_v<T>) {
      static constexpr std::array<T, 6> numbers = {0,        -0.0f,
                                                   T(1e-40), std::numeric_limits<T>::infinity(),
                                                   -1,       std::numeric_limits<T>::quiet_NaN()};
      member = numbers[below(numbers.size())];
    } else if constexpr (std::is_integral_v<T>) {
      static constexpr std::array<T, 6> numbers = {0,
                                                   1,
                                                   static_cast<T>(-1),
                                                   99,
                                                   std::numeric_limits<T>::min(),
                                                   std::numeric_limits<T>::max()};
      member = below(2) == 0 ? static_cast<T>(below(30)) : numbers[below(numbers.size())];
    } else {
      member = T();
    }
  }
  template <class T>
  void change(std::shared_ptr<const T>& member) {
    member = std::make_shared<T>();
  }

  Bytes some_bytes(const Bytes& bytes, size_t width) {
    std::string text(bytes.text());
    const size_t what = below(3);
    if (what == 0 && text.size() >= width) text.resize(text.size() - width);
    if (what == 1) text.clear();
    while (what == 2 && below(4) != 0) {
      for (size_t i = 0; i < width; ++i) text += static_cast<char>(random_());
    }
    return wire_test::bytes_of(text);
  }

  Random& random_;
  size_t turn_;
  size_t seen_ = 0;
};

ir::Model changed(ir::Model model, Random& random) {
  for (size_t count = 1 + random() % 3; count > 0; --count) {
    Mutator counter(random, static_cast<size_t>(-1));
    counter.walk(model);
    Mutator(random, random() % counter.seen()).walk(model);
  }
  return model;
}

std::string changed(std::string bytes, Random& random) {
  for (size_t count = 1 + random() % 3; count > 0 && !bytes.empty(); --count) {
    const size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 2: bytes.erase(at, 1); break;
      default: bytes.insert(at, 1, static_cast<char>(random() % 128)); break;
    }
  }
  return bytes;
}

std::optional<ir::Model> read(const std::string& bytes) {
  try {
    return wire::read_model(wire_test::bytes_of(bytes));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Empty where the text of the model is the model; else what is wrong.
std::string fault_of(const ir::Model& model) {
  const std::string text = wire::print(model);
  try {
    const ir::Model again = wire::parse_model(text);
    const std::string second = wire::print(again);
    if (second != text) return "it prints otherwise: " + text + "\n---- then\n" + second;
    if (wire_test::normalised_bytes(again) == wire_test::normalised_bytes(model)) return {};
    return "it is another model: " + text;
  } catch (const Error& error) {
    return std::string(error.what()) + "\n" + text;
  }
}

// The same of a text that leaves out annotations and cuts tensors: it prints the same when it is
// read, or is refused for what was cut.
std::string fault_of_short_text(const ir::Model& model) {
  wire::PrintOptions options;
  options.annotations = false;
  options.max_elements = 4;
  const std::string text = wire::print(model, options);
  try {
    const std::string second = wire::print(wire::parse_model(text), options);
    return second == text ? "" : "cut, it prints otherwise: " + text + "\n---- then\n" + second;
  } catch (const Error& error) {
    const bool is_cut = std::string(error.what()).find("'...' stands for") != std::string::npos;
    return is_cut ? "" : std::string(error.what()) + "\n" + text;
  }
}

struct Named {
  std::string name;
  std::string bytes;
};

// Some of the standard's cases, where they are installed: many are alike.
void add_standard_models(std::vector<Named>& models) {
  const fs::path folder = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(folder)) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx" && entry.file_size() < 20'000)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const size_t step = files.size() / 150 + 1;
  for (size_t i = 0; i < files.size(); i += step)
    models.push_back({files[i].string(), std::string(map_file(files[i].string()).text())});
}

// The checker's models, of all rules, cases of the standard, and random ones.
std::vector<Named> models() {
  std::vector<Named> models;
  const auto add = [&](std::string name, const ir::Model& model) {
    models.push_back({std::move(name), wire::write_model(model)});
  };
  for (const auto& entry : fs::directory_iterator(SARDONYX_SOURCE_DIR "/tests/check/models")) {
    const fs::path& path = entry.path();
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (path.extension() == ".txt") add(path.filename().string(), wire::parse_model(text));
    if (path.extension() == ".textproto")
      add(path.filename().string(), wire::read_named_model(text, wire::NamedForm::textproto));
  }
  std::sort(models.begin(), models.end(),
            [](const Named& a, const Named& b) { return a.name < b.name; });
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const auto content = seed % 2 == 0 ? wire_test::Content::sound : wire_test::Content::any;
    add("random " + std::to_string(seed), wire_test::random_model(seed, content));
  }
  add_standard_models(models);
  return models;
}

TEST(TextMutants, WhatIsReadIsPrintedAndReadAgain) {
  size_t told = 0, read_again = 0;
  uint32_t seed = 0;
  for (const Named& named : models()) {
    const auto check = [&](const std::string& bytes, const char* how) {
      const std::optional<ir::Model> mutant = read(bytes);
      if (!mutant) return;
      ++read_again;
      std::string fault = fault_of(*mutant);
      if (fault.empty()) fault = fault_of_short_text(*mutant);
      if (!fault.empty() && ++told <= 12)
        ADD_FAILURE() << named.name << ", " << how << ", seed " << seed << ": "
                      << fault.substr(0, 1500);
    };
    check(named.bytes, "unchanged");
    const std::optional<ir::Model> model = read(named.bytes);
    for (int i = 0; i < 24; ++i) {
      Random random(++seed);
      if (model) check(wire::write_model(changed(*model, random)), "fields changed");
      check(changed(named.bytes, random), "bytes changed");
    }
  }
  EXPECT_EQ(told, 0u) << "of " << read_again;
  EXPECT_GT(read_again, 9000u);
}

TEST(TextMutants, NodesWithoutOutputsNeedNoEquals) {
  const ir::Graph graph =
      wire::parse_graph("g () => () { Unique (x) a.b.Op:o <k = 1> () = Plain (y) \"odd op\" (z) }");
  ASSERT_EQ(graph.nodes.size(), 4u);
  for (const ir::Node& node : graph.nodes) EXPECT_TRUE(node.outputs.empty());
  EXPECT_EQ(graph.nodes[0].op_type, "Unique");
  EXPECT_EQ(graph.nodes[1].domain, "a.b");
  EXPECT_EQ(graph.nodes[1].overload, "o");
  EXPECT_EQ(graph.nodes[3].op_type, "odd op");
  const std::string text = wire::print(graph);
  EXPECT_EQ(wire::print(wire::parse_graph(text)), text);
}

TEST(TextMutants, TensorsOfOtherContentThanTheirTypeSays) {
  ir::TensorProto tensor;
  tensor.data_type = 0;
  tensor.dims = {2};
  tensor.has_raw_data = true;
  tensor.raw_data = wire_test::bytes_of("\x01\xff");
  EXPECT_EQ(wire::print(tensor), "$0[2] {}\n#@ {raw_data: e\"\\x01\\xff\"}\n");
  const ir::TensorProto again = wire::parse_tensor(wire::print(tensor));
  EXPECT_EQ(again.raw_data.text(), tensor.raw_data.text());
  // Without the annotation it would be read as a tensor without elements.
  wire::PrintOptions options;
  options.annotations = false;
  const std::string cut = wire::print(tensor, options);
  EXPECT_EQ(cut, "$0[2] {...}");
  EXPECT_THROW(wire::parse_tensor(cut), Error);
}

TEST(TextMutants, CutElementsAreRefused) {
  wire::PrintOptions options;
  options.max_elements = 3;
  const std::string cut = wire::print(wire::parse_tensor("int64[5] {1, 2, 3, 4, 5}"), options);
  const Error error = wire_test::error_of([&] { wire::parse_tensor(cut); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_model);
  EXPECT_NE(std::string(error.what()).find("print the model whole"), std::string::npos);
}

}  // namespace
}  // namespace sardonyx
