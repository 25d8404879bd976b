/* A program of ONNX Runtime's C interface: prints the version of the library that it is linked to. */
#include <stdint.h>
#include <stdio.h>

struct base {
  const void* (*table)(uint32_t version);
  const char* (*version)(void);
};
const struct base* OrtGetApiBase(void);

int main(void) {
  const struct base* const base = OrtGetApiBase();
  if (base->table(16) == NULL) return 1;
  printf("%s\n", base->version());
  return 0;
}
