/* Reads the text in an image: a first network finds the lines, a second one reads each of them.
 *
 *   read_text_c DETECTOR RECOGNISER IMAGE
 *
 * Decoding, cutting out, resizing and the scale of the pixels are a model in front of each network;
 * what is left for C is what is between the networks. examples/text_recognition is the same in C++,
 * and its README says where the networks come from. */
#include <math.h>
#include <string.h>

#include "file_bytes.h"

enum { longest_side = 960, multiple = 32, line_height = 48, widest = 4800, max_lines = 1000 };
static const float is_text = 0.3f;  /* probability of a pixel */
static const float is_line = 0.5f;  /* mean probability of a box */
static const double grown_by = 1.6; /* the network marks the middle of lines: boxes grow by this */

/* Blue first, as in networks that were trained on what OpenCV reads. */
static const char decoder[] =
    "<ir_version: 10, opset_import: [\"\" : 20]>\n"
    "decode (uint8[bytes] file) => (uint8[height,width,channels] image) {\n"
    "  image = ImageDecoder <pixel_format = \"BGR\"> (file)\n"
    "}\n";

/* The part from `begin` to `end` (row, column) in another size, from -1 to 1. */
static const char preparation[] =
    "<ir_version: 10, opset_import: [\"\" : 20]>\n"
    "prepare (uint8[height,width,3] image, int64[2] begin, int64[2] end, int64[2] sizes)\n"
    "  => (float[1,3,new_height,new_width] prepared) {\n"
    "  rows_and_columns = Constant <value_ints = [0, 1]> ()\n"
    "  part = Slice (image, begin, end, rows_and_columns)\n"
    "  numbers = Cast <to = 1> (part)\n"
    "  planes = Transpose <perm = [2, 0, 1]> (numbers)\n"
    "  first = Constant <value_ints = [0]> ()\n"
    "  batch = Unsqueeze (planes, first)\n"
    "  resized = Resize <mode = \"linear\", antialias = 1, axes = [2, 3]> (batch, , , sizes)\n"
    "  half = Constant <value_float = 127.5> ()\n"
    "  one = Constant <value_float = 1.0> ()\n"
    "  scaled = Div (resized, half)\n"
    "  prepared = Sub (scaled, one)\n"
    "}\n";

typedef struct {
  int64_t top, left, bottom, right; /* up to, but without the last two */
} box;

static sardonyx_model* parsed(const char* text) {
  sardonyx_model* model;
  require(sardonyx_model_parse(text, strlen(text), NULL, &model));
  return model;
}

/* A session of the network with the preparation before its only input. */
static sardonyx_session* prepared_session(const sardonyx_model* network) {
  const char* const from[] = {"prepared"};
  const char* to[1];
  sardonyx_merge_options merging = SARDONYX_INIT(sardonyx_merge_options);
  sardonyx_value_info input = SARDONYX_INIT(sardonyx_value_info);
  sardonyx_model *text = parsed(preparation), *first, *second, *both;
  sardonyx_session* session;
  require(sardonyx_session_create(network, NULL, &session)); /* packs nothing before it runs */
  require(sardonyx_session_input(session, 0, &input));
  require(sardonyx_model_convert(text, 0, 0, &first)); /* both in the newest operator set */
  require(sardonyx_model_convert(network, 0, 0, &second));
  to[0] = input.name;
  merging.from = from, merging.to = to, merging.connection_count = 1;
  merging.first_prefix = "prepare/"; /* so that no names are the same */
  require(sardonyx_model_merge(first, second, &merging, &both));
  sardonyx_session_release(session);
  require(sardonyx_session_create(both, NULL, &session));
  sardonyx_model_release(text);
  sardonyx_model_release(first);
  sardonyx_model_release(second);
  sardonyx_model_release(both);
  return session;
}

static sardonyx_value* pair(const int64_t* two) {
  const int64_t dims[] = {2};
  sardonyx_value* value;
  require(sardonyx_tensor_wrap(SARDONYX_INT64, 1, dims, two, 2 * sizeof(int64_t), NULL, NULL,
                               &value));
  return value;
}

/* What the network makes of a part of the image, which it sees in the size that is given. */
static sardonyx_value* seen(const sardonyx_session* session, const sardonyx_value* image, box part,
                            int64_t height, int64_t width) {
  int64_t numbers[3][2];
  const sardonyx_value* inputs[4];
  sardonyx_value *pairs[3], *output = NULL;
  size_t i;
  numbers[0][0] = part.top, numbers[0][1] = part.left;
  numbers[1][0] = part.bottom, numbers[1][1] = part.right;
  numbers[2][0] = height, numbers[2][1] = width;
  inputs[0] = image;
  for (i = 0; i < 3; ++i) inputs[i + 1] = pairs[i] = pair(numbers[i]);
  require(sardonyx_session_run_in_order(session, NULL, inputs, 4, &output, 1));
  for (i = 0; i < 3; ++i) sardonyx_value_release(pairs[i]);
  return output;
}

/* The elements of a tensor of float32 with that rank, and its sizes. They live as long as it does. */
static const float* floats_of(const sardonyx_value* tensor, size_t rank, const int64_t** dims,
                              const char* complaint) {
  sardonyx_element_type type;
  size_t found_rank;
  const void* data;
  require(sardonyx_tensor_type(tensor, &type, &found_rank, dims, NULL));
  if (type != SARDONYX_FLOAT32 || found_rank != rank) {
    fprintf(stderr, "error: %s\n", complaint);
    exit(1);
  }
  require(sardonyx_tensor_data(tensor, &data, NULL));
  return (const float*)data;
}

static void* allocated(size_t count, size_t size) {
  void* memory = calloc(count + 1, size);
  if (memory == NULL) exit(SARDONYX_OUT_OF_MEMORY);
  return memory;
}

static int64_t clamped(double at, int64_t size) {
  return at <= 0 ? 0 : at >= (double)size ? size : (int64_t)floor(at + 0.5);
}

/* --- the detector: boxes around what stands out in its map of probabilities ------------------- */

/* The smallest box around the pixels of text that hang together with `start`; it erases them.
 * `open` has room for every pixel: recursion would depend on the image. */
static box box_from(float* map, int64_t height, int64_t width, int64_t start, int64_t* open,
                    float* score) {
  box found = {height, width, 0, 0};
  double sum = 0;
  int64_t count = 0, pixels = 0, steps[4], i;
  open[count++] = start;
  sum += (double)map[start], map[start] = 0;
  while (count > 0) {
    const int64_t place = open[--count], y = place / width, x = place % width;
    if (y < found.top) found.top = y;
    if (x < found.left) found.left = x;
    if (y >= found.bottom) found.bottom = y + 1;
    if (x >= found.right) found.right = x + 1;
    ++pixels;
    steps[0] = x > 0 ? place - 1 : place;
    steps[1] = x + 1 < width ? place + 1 : place;
    steps[2] = y > 0 ? place - width : place;
    steps[3] = y + 1 < height ? place + width : place;
    for (i = 0; i < 4; ++i) {
      if (map[steps[i]] <= is_text) continue;
      sum += (double)map[steps[i]], map[steps[i]] = 0;
      open[count++] = steps[i];
    }
  }
  *score = (float)(sum / (double)pixels);
  return found;
}

/* The box larger by what the network left out, in the image's own pixels. */
static box grown(box from, double y_scale, double x_scale, int64_t height, int64_t width) {
  const double h = (double)(from.bottom - from.top), w = (double)(from.right - from.left);
  const double more = h * w * grown_by / (2 * (h + w));
  box large;
  large.top = clamped(((double)from.top - more) * y_scale, height);
  large.left = clamped(((double)from.left - more) * x_scale, width);
  large.bottom = clamped(((double)from.bottom + more) * y_scale, height);
  large.right = clamped(((double)from.right + more) * x_scale, width);
  return large;
}

static int by_place(const void* a, const void* b) {
  const box *first = (const box*)a, *second = (const box*)b;
  if (first->top != second->top) return first->top < second->top ? -1 : 1;
  return (first->left > second->left) - (first->left < second->left);
}

static int64_t detector_side(int64_t side, double scale) {
  const int64_t count = (int64_t)floor((double)side * scale / multiple + 0.5);
  return (count > 1 ? count : 1) * multiple;
}

/* Boxes from top to bottom; how many there are. */
static size_t detect(const sardonyx_session* detector, const sardonyx_value* image, int64_t height,
                     int64_t width, box* lines) {
  const int64_t longest = height > width ? height : width;
  const double scale = longest > longest_side ? (double)longest_side / (double)longest : 1.0;
  const int64_t h = detector_side(height, scale), w = detector_side(width, scale);
  const box whole = {0, 0, height, width};
  sardonyx_value* output = seen(detector, image, whole, h, w);
  const char* const complaint = "the detector must give a probability for each pixel";
  const int64_t* dims;
  const float* probabilities = floats_of(output, 4, &dims, complaint);
  const size_t pixels = (size_t)(h * w);
  float *map = (float*)allocated(pixels, sizeof(float)), score;
  int64_t *open = (int64_t*)allocated(pixels, sizeof(int64_t)), place;
  size_t count = 0;
  if (dims[0] != 1 || dims[1] != 1 || dims[2] != h || dims[3] != w) {
    fprintf(stderr, "error: %s\n", complaint);
    exit(1);
  }
  memcpy(map, probabilities, pixels * sizeof(float));
  for (place = 0; place < h * w && count < max_lines; ++place) {
    box found;
    if (map[place] <= is_text) continue;
    found = box_from(map, h, w, place, open, &score);
    if (score < is_line || found.bottom - found.top < 3 || found.right - found.left < 3) continue;
    found = grown(found, (double)height / (double)h, (double)width / (double)w, height, width);
    if (found.bottom > found.top && found.right > found.left) lines[count++] = found;
  }
  qsort(lines, count, sizeof(box), by_place);
  free(open);
  free(map);
  sardonyx_value_release(output);
  return count;
}

/* --- the recogniser: the probability of each character at some places from left to right ------ */

typedef struct {
  char* text;        /* all of them */
  const char** each; /* where they begin in it */
  size_t count;
} characters;

/* The characters that the recogniser's metadata lists, a line each. */
static characters characters_of(const sardonyx_model* model) {
  sardonyx_model_info info = SARDONYX_INIT(sardonyx_model_info);
  const char *key, *value, *list = NULL, *at;
  characters found = {NULL, NULL, 0};
  size_t i, lines = 1;
  char *line, *end;
  require(sardonyx_model_describe(model, &info));
  for (i = 0; i < info.metadata_count; ++i) {
    require(sardonyx_model_metadata(model, i, &key, &value));
    if (strcmp(key, "character") == 0) list = value;
  }
  if (list == NULL) {
    fprintf(stderr, "error: the recogniser's metadata must list its characters\n");
    exit(1);
  }
  for (at = list; *at != '\0'; ++at) lines += *at == '\n';
  found.each = (const char**)allocated(lines + 1, sizeof(const char*));
  found.text = (char*)allocated(strlen(list), 1);
  strcpy(found.text, list);
  for (line = found.text; *line != '\0'; line = end) {
    found.each[found.count++] = line;
    end = line + strcspn(line, "\n");
    if (*end != '\0') *end++ = '\0';
  }
  found.each[found.count++] = " "; /* which the list leaves out */
  return found;
}

/* Connectionist temporal classification: the best character of each place; one that is the same as
 * at the place before belongs to it, unless class 0 ("none") lies between. */
static void print_text(const sardonyx_value* output, const characters* all) {
  const int64_t* dims;
  const char* const complaint = "the recogniser must give a probability for each of its characters";
  const float* place = floats_of(output, 3, &dims, complaint);
  const size_t classes = all->count + 1;
  size_t *text, length = 0, last = 0, i;
  double confidence = 0;
  int64_t step;
  if (dims[0] != 1 || (size_t)dims[2] != classes) {
    fprintf(stderr, "error: %s\n", complaint);
    exit(1);
  }
  text = (size_t*)allocated((size_t)dims[1], sizeof(size_t));
  for (step = 0; step < dims[1]; ++step, place += classes) {
    size_t best = 0;
    for (i = 1; i < classes; ++i)
      if (place[i] > place[best]) best = i;
    if (best != 0 && best != last) {
      text[length++] = best;
      confidence += (double)place[best];
    }
    last = best;
  }
  printf(" %.2f ", length > 0 ? confidence / (double)length : 0.0);
  for (i = 0; i < length; ++i) fputs(all->each[text[i] - 1], stdout);
  printf("\n");
  free(text);
}

int main(int count, char** arguments) {
  static box lines[max_lines];
  sardonyx_model *decoding = parsed(decoder), *network;
  sardonyx_session *decode, *detector, *recogniser;
  sardonyx_value *file, *image = NULL;
  characters all;
  const int64_t* dims;
  size_t line_count, i;
  if (count != 4) {
    fprintf(stderr, "usage: %s DETECTOR RECOGNISER IMAGE\n", arguments[0]);
    return 2;
  }
  require(sardonyx_session_create(decoding, NULL, &decode));
  sardonyx_model_release(decoding);
  require(sardonyx_model_load(arguments[1], NULL, &network));
  detector = prepared_session(network);
  sardonyx_model_release(network);
  require(sardonyx_model_load(arguments[2], NULL, &network));
  all = characters_of(network);
  recogniser = prepared_session(network);
  sardonyx_model_release(network);

  file = file_bytes(arguments[3]);
  {
    const sardonyx_value* const inputs[] = {file};
    require(sardonyx_session_run_in_order(decode, NULL, inputs, 1, &image, 1));
  }
  require(sardonyx_tensor_type(image, NULL, NULL, &dims, NULL));
  line_count = detect(detector, image, dims[0], dims[1], lines);
  for (i = 0; i < line_count; ++i) {
    const box line = lines[i];
    const int64_t height = line.bottom - line.top, width = line.right - line.left;
    int64_t wide = line_height * width / height;
    sardonyx_value* output;
    wide = wide < line_height ? line_height : wide > widest ? widest : wide;
    output = seen(recogniser, image, line, line_height, wide);
    printf("%ld %ld %ld %ld", (long)line.left, (long)line.top, (long)width, (long)height);
    print_text(output, &all);
    sardonyx_value_release(output);
  }
  free((void*)all.each);
  free(all.text);
  sardonyx_value_release(image);
  sardonyx_value_release(file);
  sardonyx_session_release(recogniser);
  sardonyx_session_release(detector);
  sardonyx_session_release(decode);
  return 0;
}
