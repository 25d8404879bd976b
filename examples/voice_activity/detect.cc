// Finds speech in a stream of sound while it arrives, and prints from when to when somebody speaks.
//
//   detect_speech [--probabilities] silero_vad.onnx speech.wav
//   arecord -q -t wav -f S16_LE -r 16000 | detect_speech silero_vad.onnx -
//
// The network hears 32 ms at a time and remembers what it heard in a state, which each run takes
// and gives back. Inputs and outputs are bound once; the runs of the loop allocate nothing for
// them.
#include <sardonyx/binding.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "wave.h"

namespace {

using namespace sardonyx;

constexpr int64_t rate = 16000;    // samples a second
constexpr size_t block = 512;      // new samples for each run
constexpr size_t before = 64;      // of the last block, which the network hears once more
constexpr float begins_at = 0.5f;  // probability of speech from which on somebody speaks
constexpr float ends_below = 0.35f;
constexpr int64_t pause = 4;  // blocks in a row below it that end what is said

class VoiceDetector {
 public:
  explicit VoiceDetector(const std::string& model)
      : session_(model, {.threads = 1}), binding_(session_) {
    binding_.bind_input("input", TensorRef::of<float>(samples_, {1, before + block}));
    binding_.bind_input("sr", Tensor::scalar(rate));
    binding_.bind_output("output", MutableTensorRef::of<float>(probability_, {1, 1}));
    // At the beginning nothing has been heard.
    binding_.bind_input("state", Tensor::of<float>(std::vector<float>(2 * 128), {2, 1, 128}));
  }

  // Where the next block of samples goes.
  std::span<float> next_block() { return std::span(samples_).subspan(before); }

  // How likely it is that the block holds speech.
  float hear() {
    binding_.run();
    // What the run remembers goes into the next one. Who holds such a value keeps it: the binding
    // makes a new one for the next run, and the two take turns from then on.
    binding_.bind_input("state", binding_.output("stateN"));
    std::copy(samples_.end() - before, samples_.end(), samples_.begin());
    return probability_[0];
  }

 private:
  Session session_;
  Binding binding_;
  std::array<float, before + block> samples_{};
  std::array<float, 1> probability_{};
};

double seconds(int64_t blocks) {
  return static_cast<double>(blocks) * static_cast<double>(block) / static_cast<double>(rate);
}

void listen(VoiceDetector& detector, example::WaveReader& sound, bool show_probabilities) {
  int64_t now = 0, begin = -1, quiet = 0;  // in blocks; begin < 0: nobody speaks
  for (; sound.read(detector.next_block()); ++now) {
    const float probability = detector.hear();
    if (show_probabilities) std::printf("%.6f\n", static_cast<double>(probability));
    if (begin < 0 && probability >= begins_at) begin = now;
    quiet = probability < ends_below ? quiet + 1 : 0;
    if (begin >= 0 && quiet == pause && !show_probabilities) {
      std::printf("speech from %.2f s to %.2f s\n", seconds(begin), seconds(now + 1 - pause));
      std::fflush(stdout);  // who reads a pipe hears of it at once
    }
    if (quiet >= pause) begin = -1;
  }
  if (begin >= 0 && !show_probabilities)
    std::printf("speech from %.2f s to %.2f s\n", seconds(begin), seconds(now - quiet));
}

}  // namespace

int main(int count, char** words) try {
  std::vector<std::string> arguments(words + 1, words + count);
  const bool show = std::erase(arguments, "--probabilities") > 0;
  if (arguments.size() != 2)
    return std::cerr << "usage: detect_speech [--probabilities] MODEL FILE.wav|-\n", 2;
  std::ifstream file;
  if (arguments[1] != "-") {
    file.open(arguments[1], std::ios::binary);
    if (!file) throw Error(ErrorCode::unreadable, "the file can't be read", arguments[1]);
  }
  example::WaveReader sound(arguments[1] == "-" ? std::cin : file, rate);
  VoiceDetector detector(arguments[0]);
  listen(detector, sound, show);
} catch (const sardonyx::Error& error) {
  return std::cerr << "error: " << error.what() << '\n', 1;
}
