/* How these programs treat errors: they print the message and end. */
#ifndef EXAMPLE_REQUIRE_H
#define EXAMPLE_REQUIRE_H

#include <sardonyx/sardonyx.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the message and the number of a status that is none of success. */
static void require(sardonyx_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "error: %s\n", sardonyx_status_message(status));
  exit((int)sardonyx_status_code(status));
}

#endif
