/* Says what images show. What has to happen to an image before the network sees it is a model too:
 * it decodes the file, resizes the pixels and brings them between 0 and 1. Put in front of the
 * network, the two are one model, from the bytes of a file to probabilities.
 *
 *   classify_image_c MODEL LABELS IMAGE...
 *
 * MODEL takes float[N, channels, height, width] with 1 or 3 channels; LABELS has one label a line.
 */
#include <string.h>

#include "file_bytes.h"

enum { max_labels = 10000, max_label = 128, top = 5 };

/* The standard's textual syntax; the places are channels, height, width and the pixel format. */
static const char* const preparation =
    "<ir_version: 10, opset_import: [\"\" : 20]>\n"
    "prepare (uint8[bytes] file) => (float[1,%d,%d,%d] prepared) {\n"
    "  pixels = ImageDecoder <pixel_format = \"%s\"> (file)\n"
    "  numbers = Cast <to = 1> (pixels)\n"
    "  planes = Transpose <perm = [2, 0, 1]> (numbers)\n"
    "  first = Constant <value_ints = [0]> ()\n"
    "  batch = Unsqueeze (planes, first)\n"
    "  sizes = Constant <value_ints = [%d, %d]> ()\n"
    "  small = Resize <mode = \"linear\", antialias = 1, axes = [2, 3]> (batch, , , sizes)\n"
    "  largest = Constant <value_float = 255.0> ()\n"
    "  prepared = Div (small, largest)\n"
    "}\n";

/* The network with the preparation that its input wants before it. */
static sardonyx_model* with_preparation(const sardonyx_model* network) {
  const char* const from[] = {"prepared"};
  const char* to[1];
  sardonyx_session* session;
  sardonyx_value_info input = SARDONYX_INIT(sardonyx_value_info);
  sardonyx_merge_options merging = SARDONYX_INIT(sardonyx_merge_options);
  sardonyx_model *first, *second, *both;
  char text[2048];
  int channels, height, width;

  require(sardonyx_session_create(network, NULL, &session)); /* packs nothing before it runs */
  require(sardonyx_session_input(session, 0, &input));
  if (!input.has_rank || input.rank != 4 || input.element_type != SARDONYX_FLOAT32 ||
      (input.dims[1] != 1 && input.dims[1] != 3) || input.dims[2] < 1 || input.dims[2] > 4096 ||
      input.dims[3] < 1 || input.dims[3] > 4096) {
    fprintf(stderr, "error: the model must take images of one size, not %s\n", input.type);
    exit(1);
  }
  channels = (int)input.dims[1], height = (int)input.dims[2], width = (int)input.dims[3];
  snprintf(text, sizeof(text), preparation, channels, height, width,
           channels == 1 ? "Grayscale" : "RGB", height, width);

  require(sardonyx_model_parse(text, strlen(text), NULL, &first));
  require(sardonyx_model_convert(first, 0, 0, &both)); /* both in the newest operator set */
  sardonyx_model_release(first);
  first = both;
  require(sardonyx_model_convert(network, 0, 0, &second));
  to[0] = input.name;
  merging.from = from;
  merging.to = to;
  merging.connection_count = 1;
  merging.first_prefix = "prepare/"; /* so that no names are the same */
  require(sardonyx_model_merge(first, second, &merging, &both));
  sardonyx_model_release(first);
  sardonyx_model_release(second);
  sardonyx_session_release(session);
  return both;
}

static size_t read_labels(const char* path, char labels[][max_label]) {
  FILE* file = fopen(path, "r");
  size_t count = 0;
  if (file == NULL) {
    fprintf(stderr, "error: %s can't be read\n", path);
    exit(SARDONYX_UNREADABLE);
  }
  while (count < max_labels && fgets(labels[count], max_label, file) != NULL) {
    labels[count][strcspn(labels[count], "\r\n")] = '\0';
    ++count;
  }
  fclose(file);
  return count;
}

/* The likeliest classes, best first. */
static void print(const char* image, const sardonyx_value* output, char labels[][max_label],
                  size_t label_count) {
  float* probabilities;
  int64_t elements;
  size_t count, i, place;
  require(sardonyx_tensor_type(output, NULL, NULL, NULL, &elements));
  count = (size_t)elements;
  probabilities = (float*)malloc((count + 1) * sizeof(float));
  if (probabilities == NULL) exit(SARDONYX_OUT_OF_MEMORY);
  require(sardonyx_tensor_read_floats(output, probabilities, count));
  printf("%s:", image);
  for (place = 0; place < top && place < count; ++place) {
    size_t best = 0;
    for (i = 1; i < count; ++i)
      if (probabilities[i] > probabilities[best]) best = i;
    printf("%s %s %.3f", place > 0 ? "," : "", best < label_count ? labels[best] : "?",
           (double)probabilities[best]);
    probabilities[best] = -1;
  }
  printf("\n");
  free(probabilities);
}

int main(int count, char** arguments) {
  static char labels[max_labels][max_label];
  sardonyx_model *network, *model;
  sardonyx_session* session;
  size_t label_count;
  int i;
  if (count < 4) {
    fprintf(stderr, "usage: %s MODEL LABELS IMAGE...\n", arguments[0]);
    return 2;
  }
  require(sardonyx_model_load(arguments[1], NULL, &network));
  model = with_preparation(network);
  sardonyx_model_release(network);
  require(sardonyx_session_create(model, NULL, &session));
  sardonyx_model_release(model); /* the session keeps what it needs */
  label_count = read_labels(arguments[2], labels);
  for (i = 3; i < count; ++i) {
    sardonyx_value* file = file_bytes(arguments[i]);
    const sardonyx_value* const inputs[] = {file};
    sardonyx_value* outputs[] = {NULL};
    require(sardonyx_session_run_in_order(session, NULL, inputs, 1, outputs, 1));
    print(arguments[i], outputs[0], labels, label_count);
    sardonyx_value_release(outputs[0]);
    sardonyx_value_release(file);
  }
  sardonyx_session_release(session);
  return 0;
}
