/* The analyzer's options. */
#ifndef KS_OPTIONS_H
#define KS_OPTIONS_H

#include <popt.h>

#include "ks/analysis.h"
#include "ks/error.h"

/* For popt, which keeps what the command line says in variables behind this table. */
extern const struct poptOption ks_analysis_options[];
/* What they say, once the command line was read. Fails with KS_USAGE and the option's name, what
 * was expected and what was found. The strings belong to popt. */
ks_status ks_analysis_read(struct ks_analysis *analysis);

/* The name of an analysis (--name) consists of these, and of at most that many. */
extern const char ks_analysis_name_characters[];
enum { KS_ANALYSIS_NAME = 32 };

#endif
