/* The program genai: main only. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

int main(int argc, char** argv) {
  int code = cli_main(argc, argv);
#ifdef GENAI_SANITIZED
  return code; /* leaks are looked for at exit */
#else
  _exit(code); /* the vendor's libraries are not known to survive their own destructors */
#endif
}
