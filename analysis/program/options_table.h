/* The analyzer's options: popt's table, and the words that stand on a command line. */
#ifndef KS_PROGRAM_OPTIONS_TABLE_H
#define KS_PROGRAM_OPTIONS_TABLE_H

#include <popt.h>

#include "core/error.h"
#include "program/options.h"

/* The options as popt reads them: 0 and NULL if an option is absent. All values are strings, so
 * that every refusal has the same form. */
struct ks_options_given {
    int json, csv, exact, layers, no_certificates;
    char *folder, *name, *operator_name, *critic, *layer, *batchnorm, *order, *probes, *seed,
        *precision, *batches, *weight_decay, *scale, *memory, *compat, *tolerance, *rewards, *start,
        *learning_rate, *apply, *output, *gradient, *eigenvectors; /* owned */
};
enum { KS_OPTIONS_TABLE = 29 }; /* the length of the table, with its end */

/* Fills the table by which popt reads a command line into `given`, which is all zero before. Both
 * must outlive popt's context. The caller ends with ks_options_clear. */
void ks_options_table(struct ks_options_given *given, struct poptOption table[KS_OPTIONS_TABLE]);
void ks_options_clear(struct ks_options_given *given);

/* Checks the options and converts them. Fails with KS_USAGE and the option's name, what was
 * expected and what was found. The strings in `options` are those of `given`. */
ks_status ks_options_read(const struct ks_options_given *given, struct ks_options *options);

/* The characters of an analysis's name (--name), and the most that it may have. */
extern const char ks_options_name_characters[];
enum { KS_OPTIONS_NAME = 32 };
/* The Lanczos steps of an analysis without --order. */
#define KS_OPTIONS_ORDER 90
/* The most random start vectors of an analysis with --tolerance and without --probes. */
#define KS_OPTIONS_MOST_PROBES 64
/* The largest relative residual of eigenvectors without --tolerance, and the most Lanczos steps for
 * K of them without --order: KS_OPTIONS_ORDER + KS_OPTIONS_STEPS K. */
#define KS_OPTIONS_RESIDUAL 0.001
#define KS_OPTIONS_STEPS    10

#endif
