// What the tests of the public interface share.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sardonyx/error.h"
#include "sardonyx/model.h"
#include "scratch_folder.h"

namespace sardonyx::test {

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What `call` throws has this code, and says these words.
template <class Call>
void expect_error(ErrorCode code, const std::string& words, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

// y = Relu(x · w + b), with metadata, a function and a subgraph.
inline constexpr const char* example_text = R"(<
  ir_version: 9,
  opset_import: ["" : 17, "local" : 1],
  producer_name: "tests",
  producer_version: "3",
  domain: "org.example",
  model_version: 7,
  doc_string: "an example",
  metadata_props: ["license" : "MIT", "owner" : "nobody"]
>
main (float[batch, 3] x, bool choice) => (float[batch, 2] y)
<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {10, 20}>
{
  [product] xw = MatMul (x, w)
  sum = local.Add1 <scale: float = 1.5> (xw, b)
  [branch] y = If (choice) <
    then_branch = then_graph () => (float[batch, 2] t) { [relu] t = Relu (sum) },
    else_branch = else_graph () => (float[batch, 2] e) { e = Identity (sum) }
  >
}

<domain: "local", opset_import: ["" : 17]>
Add1 <scale> (a, c) => (r) {
  s = Constant <value_float: float = @scale> ()
  d = Mul (c, s)
  r = Add (a, d)
}
)";

inline Model example() { return Model::from_text(example_text); }

}  // namespace sardonyx::test
