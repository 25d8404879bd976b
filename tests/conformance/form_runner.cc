// Models from one form to another, many in one process, for tests beside the onnx package:
//
//   form_runner FORM < LIST
//
// Each line of LIST is a model file, in the form that its name's ending says. For each, in order, a
// line "ok SIZE" or "error SIZE" and so many bytes: the model in FORM (binary, text, bare, json,
// textproto), or the message. Bare text has no annotations.
#include <cstdio>
#include <iostream>
#include <string>

#include "sardonyx/error.h"
#include "session/reading.h"
#include "wire/named_forms.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace {

std::string in_form(const sardonyx::ir::Model& model, const std::string& form) {
  using namespace sardonyx;
  if (form == "binary") return wire::write_model(model);
  if (form == "json") return wire::named_text(model, wire::NamedForm::json);
  if (form == "textproto") return wire::named_text(model, wire::NamedForm::textproto);
  return wire::print(model, {.annotations = form != "bare"});
}

void answer(const char* kind, const std::string& content) {
  std::printf("%s %zu\n", kind, content.size());
  std::fwrite(content.data(), 1, content.size(), stdout);
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: form_runner binary|text|bare|json|textproto < LIST\n");
    return 2;
  }
  for (std::string path; std::getline(std::cin, path);) {
    try {
      answer("ok", in_form(sardonyx::read_model_file(path), words[1]));
    } catch (const sardonyx::Error& error) {
      answer("error", error.what());
    }
  }
  return 0;
}
