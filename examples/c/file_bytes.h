/* Files as inputs of a model that decodes them itself. */
#ifndef EXAMPLE_FILE_BYTES_H
#define EXAMPLE_FILE_BYTES_H

#include "require.h"

/* The bytes of a file, as a tensor that frees them when nothing uses it any more. */
static sardonyx_value* file_bytes(const char* path) {
  FILE* file = fopen(path, "rb");
  sardonyx_value* tensor;
  unsigned char* bytes = NULL;
  long size = -1;
  int64_t dims[1];
  if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 &&
      fseek(file, 0, SEEK_SET) == 0)
    bytes = (unsigned char*)malloc((size_t)size);
  if (bytes == NULL || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    fprintf(stderr, "error: %s can't be read\n", path);
    exit(SARDONYX_UNREADABLE);
  }
  fclose(file);
  dims[0] = size;
  require(sardonyx_tensor_wrap(SARDONYX_UINT8, 1, dims, bytes, (size_t)size, free, bytes, &tensor));
  return tensor;
}

#endif
