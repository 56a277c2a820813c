/* What the analyzer was asked to do: its options, checked; the files it writes; the words that go
 * with a spectrum; what it says while it works. */
#ifndef KS_ANALYSIS_H
#define KS_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <popt.h>

#include "ks/checkpoint.h"
#include "ks/error.h"
#include "ks/lanczos.h"
#include "ks/operator.h"
#include "ks/program.h"
#include "ks/spectrum.h"

/* The operators: a table, ends in a row without a name. */
struct ks_operator_kind {
    const char *name;
    ks_status (*new_f32)(const struct ks_problem *problem, struct ks_operator **a);
    ks_status (*new_f64)(const struct ks_problem *problem, struct ks_operator **a);
};
extern const struct ks_operator_kind ks_operator_kinds[];

struct ks_analysis {
    const struct ks_operator_kind *kind;
    bool single;     /* float32 products                                      */
    bool evaluation; /* batchnorm by running statistics                       */
    bool exact;      /* all eigenvalues                                       */
    bool compat;     /* the published code's choices: float32, unweighted, 1/N once more */
    bool json, csv;  /* neither: a table                                      */
    size_t order, probes;
    size_t batches; /* 0: all of the checkpoint's                            */
    size_t memory;  /* bytes                                                 */
    uint64_t seed;
    double weight_decay, scale;
    const char *folder;         /* of the spectra; NULL: beside their checkpoints */
    const char *apply, *output; /* vectors in, products out; both or neither      */
    const char *gradient;       /* out                                            */
};

/* The options of the command line, and after it was read, what they say: KS_USAGE with the option's
 * name, what was expected and what was found. The strings belong to popt. */
extern const struct poptOption ks_analysis_options[];
ks_status ks_analysis_read(struct ks_analysis *analysis);

/* Bytes of memory that are free. */
size_t ks_analysis_free_memory(void);

/* The names of n spectra, "DIR/NAME.spectrum.h5" for "NAME.h5", in *outputs, which the caller frees
 * with ks_outputs_free. KS_USAGE where two are the same file, KS_IO where `folder` cannot be
 * written; it is made if it is missing but its parent is there. */
ks_status ks_outputs_new(size_t n, const char *const *checkpoints, const char *folder,
                         char ***outputs);
void ks_outputs_free(size_t n, char **outputs);
/* KS_IO where the file cannot be written, KS_USAGE where it is the file `input`; nothing is left
 * behind. */
ks_status ks_output_check(const char *output, const char *input);

/* The root attributes of a spectrum of this checkpoint: what was computed, of what, by what.
 * `problem` as the operator had it. */
ks_status ks_describe(const struct ks_analysis *analysis, const struct ks_problem *problem,
                      const char *path, size_t dimension, struct ks_spectrum *spectrum);

/* Progress of one checkpoint, and before a long run one line with its cost. */
struct ks_watch {
    const char *checkpoint;
    size_t dimension, products; /* of the operator; in all */
    size_t held, kept; /* bytes: basis or dense matrix; at most, of what depends on theta */
    size_t order;      /* steps of a probe */
    bool quiet;
    double started;
    double *work; /* [2 order]; owned */
    struct ks_progress progress;
};
/* Starts the clock, with the fields up to `quiet` set. */
ks_status ks_watch_start(struct ks_watch *watch);
void ks_watch_end(struct ks_watch *watch);
/* After a step, after a product: for ks_slq and ks_exact. */
void ks_watch_step(void *watch, const struct ks_lanczos *lanczos);
void ks_watch_product(void *watch, size_t products);

/* --apply: a times each vector of the file `in`, written to `out`. `watch` has been set up but for
 * the number of products. */
ks_status ks_apply_file(const struct ks_operator *a, const char *in, const char *out,
                        struct ks_watch *watch);
/* --gradient: loss and gradient, written to `out`. */
ks_status ks_gradient_file(const struct ks_problem *problem, const char *out);

#endif
