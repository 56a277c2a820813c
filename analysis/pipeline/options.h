/* The analyzer's options: one table, used by kappascope-analyze and by [analyze] of a study. */
#ifndef KS_PIPELINE_OPTIONS_H
#define KS_PIPELINE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/keys.h"
#include "pipeline/pipeline.h"

/* The options as they are given, and after ks_options_finish as they are used. */
struct ks_analyze_options {
    struct ks_spectrum_options spectrum; /* `products` may be AUTO before */
    uint64_t given;        /* the keys that are given: ks_keys_is_given              */
    const char *tolerance; /* NULL: none                                             */
    bool layers;           /* a table of the diagonal blocks of all layers           */
    bool json, csv;        /* the form of the report; neither: a table               */
    const char *folder;    /* where spectra are written; NULL: beside their checkpoints */
    const char *name;      /* NAME in the spectra's file names; NULL: none           */
    const char *apply;     /* the file of factors; NULL: none                        */
    const char *output;    /* the file of products or eigenvectors; NULL: neither    */
    const char *gradient;  /* the file of the gradient; NULL: none                   */
};

/* What an option decides. A study decides itself which analyses write what, so only the others may
 * be set in [analyze]. */
enum ks_option_role {
    KS_OPTION_OUTPUT,  /* what is written and printed                                */
    KS_OPTION_METHOD,  /* how a spectrum is computed                                 */
    KS_OPTION_SPECTRUM /* the numbers of a spectrum: ks_spectrum_options_print has it */
};
/* All options, of struct ks_analyze_options, with their roles. */
extern const struct ks_key ks_analyze_keys[];
/* Which of them go together. */
extern const struct ks_key_rule ks_analyze_rules[];

/* The options of an analysis without any that is given. */
struct ks_analyze_options ks_options_start(void);
/* Checks what depends on several options, and derives what follows from those that are given. Fails
 * with KS_USAGE. Texts still belong to whom they belonged to before. */
ks_status ks_options_finish(struct ks_analyze_options *options);

/* The characters of an analysis's name (--name), and the most that it may have. */
extern const char ks_options_name_characters[];
enum { KS_OPTIONS_NAME = 32 };
/* The most random start vectors of an analysis with --tolerance and without --probes. */
#define KS_OPTIONS_MOST_PROBES 64
/* The most Lanczos steps for K eigenvectors without --order: KS_DEFAULT_ORDER + KS_OPTIONS_STEPS K.
 */
#define KS_OPTIONS_STEPS 10

#endif
