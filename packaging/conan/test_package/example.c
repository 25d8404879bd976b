/* The version that the library says of itself. */
#include <sardonyx/sardonyx.h>
#include <stdio.h>

int main(void) {
  printf("version %u of the C interface\n", (unsigned)sardonyx_api_version());
  return sardonyx_api_version() >= SARDONYX_API_VERSION ? 0 : 1;
}
