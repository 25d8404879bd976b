#include "session/show.h"

#include "session/reading.h"
#include "wire/sink.h"
#include "wire/text_print.h"

namespace sardonyx {

namespace {

class Pieces : public wire::Sink {
 public:
  explicit Pieces(const std::function<void(std::string_view)>& write) : write_(write) {}

  using Sink::put;
  void put(const void* data, size_t size) override {
    if (size > 0) write_({static_cast<const char*>(data), size});
  }

 private:
  const std::function<void(std::string_view)>& write_;
};

}  // namespace

void show_model(const std::string& path, const ShowOptions& options,
                const std::function<void(std::string_view)>& write) {
  if (options.drawing) return draw_model(path, *options.drawing, write);
  Pieces pieces(write);
  wire::print(read_model_file(path), pieces,
              {.max_elements = options.max_elements, .annotations = options.annotations});
}

uint64_t shown_bytes(const std::string& path, const ShowOptions& options) {
  uint64_t bytes = 0;
  show_model(path, options, [&](std::string_view piece) { bytes += piece.size(); });
  return bytes;
}

void show_model_in(const std::string& file, const std::string& path, const ShowOptions& options) {
  wire::write_file(file, [&](wire::Sink& sink) {
    show_model(path, options, [&](std::string_view piece) { sink.put(piece); });
  });
}

}  // namespace sardonyx
