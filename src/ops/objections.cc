#include "ops/objections.h"

#include <utility>

namespace sardonyx::ops {
namespace {

thread_local const ObjectionListener::Listener* listening = nullptr;

}  // namespace

ObjectionListener::ObjectionListener(Listener listener)
    : listener_(std::move(listener)), before_(std::exchange(listening, &listener_)) {}

ObjectionListener::~ObjectionListener() { listening = before_; }

bool wants_objections() { return listening != nullptr; }

void tell_objection(const ir::Node& node, const std::string& text) {
  if (listening != nullptr) (*listening)(node, text);
}

}  // namespace sardonyx::ops
