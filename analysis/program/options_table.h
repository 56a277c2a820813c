/* The analyzer's options. */
#ifndef KS_PROGRAM_OPTIONS_TABLE_H
#define KS_PROGRAM_OPTIONS_TABLE_H

#include <popt.h>

#include "core/error.h"
#include "program/options.h"

/* For popt, which keeps what the command line says in variables behind this table. */
extern const struct poptOption ks_options_table[];
/* What they say, once the command line was read. Fails with KS_USAGE and the option's name, what
 * was expected and what was found. The strings belong to popt. */
ks_status ks_options_read(struct ks_options *analysis);

/* The name of an analysis (--name) consists of these, and of at most that many. */
extern const char ks_options_name_characters[];
enum { KS_OPTIONS_NAME = 32 };

#endif
