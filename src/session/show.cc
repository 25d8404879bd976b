#include "session/show.h"

#include "session/reading.h"
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
  Pieces pieces(write);
  wire::print(read_model_file(path), pieces,
              {.max_elements = options.max_elements, .annotations = options.annotations});
}

}  // namespace sardonyx
