/* The analyzer's options: popt's table, and what the words on a command line mean. */
#ifndef KS_PIPELINE_OPTIONS_H
#define KS_PIPELINE_OPTIONS_H

#include <stdbool.h>

#include <popt.h>

#include "core/error.h"
#include "pipeline/pipeline.h"

struct ks_analyze_options {
    struct ks_spectrum_options spectrum;
    bool layers;          /* a table of the diagonal blocks of all layers          */
    bool json, csv;       /* the form of the report; neither: a table              */
    const char *folder;   /* where spectra are written; NULL: beside their checkpoints */
    const char *name;     /* NAME in the spectra's file names; NULL: none          */
    const char *apply;    /* the file of factors; NULL: none                       */
    const char *output;   /* the file of products or eigenvectors; NULL: neither   */
    const char *gradient; /* the file of the gradient; NULL: none                  */
};

/* The words as popt reads them, by the rows of the table of options: NULL and 0 if an option is
 * absent. All values are strings, so that every refusal has the same form. */
enum { KS_WORDS = 33 };
struct ks_words {
    char *text[KS_WORDS]; /* owned */
    int flag[KS_WORDS];
    struct poptOption table[KS_WORDS + 1]; /* points into this struct, which must not be moved */
};

/* No word is given yet. The caller ends with ks_words_clear. */
void ks_words_start(struct ks_words *words);
void ks_words_clear(struct ks_words *words);

/* Checks the words and converts them. Fails with KS_USAGE and the option's name, what was expected
 * and what was found. Strings in `options` belong to `words`. */
ks_status ks_options_read(const struct ks_words *words, struct ks_analyze_options *options);

/* --count-above X, which an audit has as well; *size is unchanged if `text` is NULL. KS_USAGE. */
ks_status ks_option_count_above(const char *text, double *size);

/* The characters of an analysis's name (--name), and the most that it may have. */
extern const char ks_options_name_characters[];
enum { KS_OPTIONS_NAME = 32 };
/* The most random start vectors of an analysis with --tolerance and without --probes. */
#define KS_OPTIONS_MOST_PROBES 64
/* The most Lanczos steps for K eigenvectors without --order: KS_DEFAULT_ORDER + KS_OPTIONS_STEPS K.
 */
#define KS_OPTIONS_STEPS 10

#endif
