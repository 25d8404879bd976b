#include "wire/named_forms.h"

#include "wire/json_form.h"
#include "wire/named_reader.h"
#include "wire/named_writer.h"
#include "wire/text_format.h"

namespace sardonyx::wire {
namespace {

template <class M>
void write_message(const M& message, NamedForm form, Sink& sink) {
  if (form == NamedForm::json) {
    JsonWriter writer(sink);
    writer.open();
    NamedWriter<JsonWriter>(writer).write(message);
    writer.close();
    writer.finish();
  } else {
    TextFormatWriter writer(sink);
    NamedWriter<TextFormatWriter>(writer).write(message);
    writer.finish();
  }
}

template <class M>
std::string text_of(const M& message, NamedForm form) {
  StringSink sink;
  write_message(message, form, sink);
  return sink.take();
}

template <class M>
M read_message(std::string_view text, NamedForm form) {
  M message;
  if (form == NamedForm::json) {
    JsonCursor cursor(text);
    cursor.open();
    NamedReader<JsonCursor>(cursor).read(message);
    cursor.finish();
  } else {
    TextFormatCursor cursor(text);
    NamedReader<TextFormatCursor>(cursor).read(message);
    cursor.finish();
  }
  return message;
}

}  // namespace

void write_named(const ir::Model& model, NamedForm form, Sink& sink) {
  write_message(model, form, sink);
}
void write_named(const ir::OperatorSet& set, NamedForm form, Sink& sink) {
  write_message(set, form, sink);
}
std::string named_text(const ir::Model& model, NamedForm form) { return text_of(model, form); }
std::string named_text(const ir::OperatorSet& set, NamedForm form) { return text_of(set, form); }

ir::Model read_named_model(std::string_view text, NamedForm form) {
  return read_message<ir::Model>(text, form);
}
ir::OperatorSet read_named_operator_set(std::string_view text, NamedForm form) {
  return read_message<ir::OperatorSet>(text, form);
}

}  // namespace sardonyx::wire
