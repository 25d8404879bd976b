// How a decoder's inputs go on from one run to the next.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace driver {

// A sequence of steps, which then begins anew. What a step gives as `present.0.key` the next one
// takes for `past.0.key` or `past_key_values.0.key`; `attention_mask` gets a one more in each step,
// and `position_ids` go up by one.
class Steps {
 public:
  struct Carried {  // places among the inputs and among the outputs
    size_t input, output;
  };
  struct Counted {  // an input that is another tensor in each step
    size_t input;
    std::vector<sardonyx::Tensor> of_step;
  };

  Steps() = default;
  // `inputs` are those of the first step, in the order that places count. A model none of whose
  // outputs is carried has no steps: `carried` is empty.
  Steps(const std::vector<sardonyx::NamedValue>& inputs, const std::vector<std::string>& outputs,
        int count);

  const std::vector<Carried>& carried() const { return carried_; }
  const std::vector<Counted>& counted() const { return counted_; }
  // Of the run that comes now: 0 takes the inputs of the beginning.
  size_t next() {
    const size_t step = next_;
    next_ = step + 1 < count_ ? step + 1 : 0;
    return step;
  }
  void begin_anew() { next_ = 0; }

 private:
  std::vector<Carried> carried_;
  std::vector<Counted> counted_;
  size_t count_ = 0, next_ = 0;
};

}  // namespace driver
