/* Finds speech in a stream of sound while it arrives: the state of the network goes from run to
 * run.
 *
 *   arecord -q -t raw -f S16_LE -r 16000 | detect_speech_c silero_vad.onnx
 *
 * Reads samples of 16 bits, least byte first, 16,000 a second, from standard input.
 * examples/voice_activity is the same in C++. */
#include <string.h>

#include "require.h"

enum { block = 512, before = 64, pause = 4 };

/* The next samples as floats in [-1, 1); 0 where there are not as many any more. */
static int read_block(float* samples) {
  unsigned char bytes[2 * block];
  int i;
  if (fread(bytes, 1, sizeof(bytes), stdin) != sizeof(bytes)) return 0;
  for (i = 0; i < block; ++i) {
    const int value = bytes[2 * i] | bytes[2 * i + 1] << 8;
    samples[i] = (float)(value < 32768 ? value : value - 65536) / 32768;
  }
  return 1;
}

static sardonyx_value* wrap(float* memory, size_t bytes, size_t rank, const int64_t* dims) {
  sardonyx_value* tensor;
  require(sardonyx_tensor_wrap_mutable(SARDONYX_FLOAT32, rank, dims, memory, bytes, NULL, NULL,
                                       &tensor));
  return tensor;
}

static void print(long begin, long end) {
  printf("speech from %.2f s to %.2f s\n", (double)begin * block / 16000,
         (double)end * block / 16000);
  fflush(stdout);
}

int main(int count, char** arguments) {
  static float samples[before + block]; /* zeros: before the beginning it was quiet */
  static float probability[1];
  const int64_t sample_dims[] = {1, before + block}, one[] = {1, 1}, state_dims[] = {2, 1, 128};
  const int64_t rate = 16000;
  sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
  sardonyx_session* session;
  sardonyx_binding* binding;
  sardonyx_value *input, *output, *sample_rate, *state;
  long now = 0, begin = -1, quiet = 0;
  if (count != 2) {
    fprintf(stderr, "usage: %s MODEL < samples\n", arguments[0]);
    return 2;
  }
  options.threads = 1;
  require(sardonyx_session_load(arguments[1], NULL, &options, &session));
  require(sardonyx_binding_create(session, &binding));
  sardonyx_session_release(session); /* the binding keeps what it needs */

  input = wrap(samples, sizeof(samples), 2, sample_dims);
  output = wrap(probability, sizeof(probability), 2, one);
  require(
      sardonyx_tensor_wrap(SARDONYX_INT64, 0, NULL, &rate, sizeof(rate), NULL, NULL, &sample_rate));
  require(sardonyx_tensor_create(SARDONYX_FLOAT32, 3, state_dims, &state)); /* zeros */
  require(sardonyx_binding_input(binding, "input", input));
  require(sardonyx_binding_input(binding, "sr", sample_rate));
  require(sardonyx_binding_input(binding, "state", state));
  require(sardonyx_binding_output(binding, "output", output));
  sardonyx_value_release(state);

  for (; read_block(samples + before); ++now) {
    require(sardonyx_binding_run(binding, NULL));
    require(sardonyx_binding_value(binding, "stateN", &state)); /* no copy: another handle */
    require(sardonyx_binding_input(binding, "state", state));
    sardonyx_value_release(state);
    memmove(samples, samples + block, before * sizeof(float));

    if (begin < 0 && probability[0] >= 0.5f) begin = now;
    quiet = probability[0] < 0.35f ? quiet + 1 : 0;
    if (begin >= 0 && quiet == pause) print(begin, now + 1 - pause);
    if (quiet >= pause) begin = -1;
  }
  if (begin >= 0) print(begin, now - quiet);

  sardonyx_binding_release(binding);
  sardonyx_value_release(sample_rate);
  sardonyx_value_release(output);
  sardonyx_value_release(input);
  return 0;
}
