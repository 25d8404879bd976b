// Low-rank products become part of the weights beside which they stand.
#pragma once

#include "ir/model.h"

namespace sardonyx::train {

// Adds what the products that add_lora has put into the main graph make of each weight to it, and
// removes them. Weights that other nodes read as well stay, and the product gets one of its own.
// Training information that names what is removed must have gone. Returns how many there were.
size_t merge_lora(ir::Model& model);

// Leaves training information out, and the functions that it alone calls (training_session.cc).
void drop_training(ir::Model& model);

}  // namespace sardonyx::train
