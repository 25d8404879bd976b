// The standard's messages in protobuf's two readable forms: JSON (its proto3 mapping: names in
// camel case, 64-bit integers as strings, bytes in base64) and text format (.textproto). Both hold
// all that the binary form holds but unknown fields and the way lists are packed.
#pragma once

#include <string>
#include <string_view>

#include "ir/model.h"
#include "ir/operator_set.h"
#include "wire/sink.h"

namespace sardonyx::wire {

enum class NamedForm { json, textproto };

// Writes as it goes: memory does not grow with the weights. Throws Error (unsupported) where JSON
// has no way to say a string because it is not UTF-8.
void write_named(const ir::Model& model, NamedForm form, Sink& sink);
void write_named(const ir::OperatorSet& set, NamedForm form, Sink& sink);
std::string named_text(const ir::Model& model, NamedForm form);
std::string named_text(const ir::OperatorSet& set, NamedForm form);

// Throws Error (invalid_model) with line, column and the line itself where the text is no such
// message. JSON names are taken in camel case and as the standard writes them.
ir::Model read_named_model(std::string_view text, NamedForm form);
ir::OperatorSet read_named_operator_set(std::string_view text, NamedForm form);

}  // namespace sardonyx::wire
