// The tokens generated so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sardonyx::ops::generation {

// Rows of one length that grow by a token each at a time, up to `max_length`.
class Sequences {
 public:
  Sequences(int64_t rows, int64_t max_length)
      : max_length_(max_length),
        tokens_(static_cast<size_t>(rows * max_length)),
        before_(static_cast<size_t>(rows * max_length)) {}
  static int64_t bytes(int64_t rows, int64_t max_length) { return rows * max_length * 8; }

  int64_t length() const { return length_; }
  int64_t rows() const { return static_cast<int64_t>(tokens_.size()) / max_length_; }
  std::span<const int32_t> row(int64_t i) const {
    return std::span(tokens_).subspan(static_cast<size_t>(i * max_length_),
                                      static_cast<size_t>(length_));
  }
  // Every row begins as its row of `prompt`, of which there is one for `rows_each` rows.
  void start(std::span<const int32_t> prompt, int64_t length, int64_t rows_each) {
    length_ = length;
    for (int64_t i = 0; i < rows(); ++i)
      std::copy_n(prompt.begin() + i / rows_each * length, length,
                  tokens_.begin() + i * max_length_);
  }
  // Row i becomes row parents[i] (its own, where there are none) and tokens[i].
  void grow(std::span<const int32_t> parents, std::span<const int32_t> tokens) {
    if (!parents.empty()) {
      for (size_t i = 0; i < parents.size(); ++i)
        std::copy_n(tokens_.begin() + parents[i] * max_length_, length_,
                    before_.begin() + static_cast<int64_t>(i) * max_length_);
      tokens_.swap(before_);
    }
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens_[static_cast<size_t>(static_cast<int64_t>(i) * max_length_ + length_)] = tokens[i];
    ++length_;
  }

 private:
  int64_t max_length_, length_ = 0;
  std::vector<int32_t> tokens_, before_;
};

}  // namespace sardonyx::ops::generation
