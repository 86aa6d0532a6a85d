/* SIGINT and SIGTERM. The first asks the run to stop; the second, or a run that does not come back within two seconds (a vendor call cannot be
 * interrupted), ends the program at once with exit code 130, after temporary files have been removed. */
#ifndef GENAI_CLI_SIGNALS_H
#define GENAI_CLI_SIGNALS_H

#include "genai/context.h"

genai_status* signals_begin(genai_cancel* cancel) GENAI_MUST_USE; /* installs handlers and starts the watching thread */
void signals_end(void);                                           /* the run is over: the watcher ends, handlers are the defaults again */

#endif
