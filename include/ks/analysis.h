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
#include "ks/progress.h"
#include "ks/selection.h"
#include "ks/sha256.h"
#include "ks/spectrum.h"

/* The operators: a table, ends in a row without a name. */
struct ks_operator_kind {
    const char *name;
    ks_status (*new_f32)(const struct ks_problem *problem, struct ks_operator **a);
    ks_status (*new_f64)(const struct ks_problem *problem, struct ks_operator **a);
    bool wide;   /* float64 products where --precision says nothing               */
    bool decays; /* a weight decay adds mu2 I                                     */
    /* D^-1/2 on both sides: coordinates without a second moment are left out (selection.h). */
    bool moving;
    bool spheres; /* curvature along the spheres of projected columns */
};
extern const struct ks_operator_kind ks_operator_kinds[];

struct ks_analysis {
    const struct ks_operator_kind *kind;
    bool single;     /* float32 products                                      */
    bool evaluation; /* batchnorm by running statistics                       */
    bool exact;      /* all eigenvalues                                       */
    bool compat;     /* the published code's choices: float32, unweighted, products by 1/N */
    bool keep_basis; /* the Lanczos steps stay on disk                        */
    bool json, csv;  /* neither: a table                                      */
    size_t order, probes;
    size_t batches; /* 0: all of the checkpoint's                            */
    size_t memory;  /* bytes of a process; 0: half of what is free           */
    uint64_t seed;
    int critic, layer; /* -1: all */
    double weight_decay, scale;
    const char *folder;         /* of the spectra; NULL: beside their checkpoints */
    const char *apply, *output; /* vectors in, products out; both or neither      */
    const char *gradient;       /* out                                            */
};

/* The options of the command line, and after it was read, what they say: KS_USAGE with the option's
 * name, what was expected and what was found. The strings belong to popt. */
extern const struct poptOption ks_analysis_options[];
ks_status ks_analysis_read(struct ks_analysis *analysis);

/* The names of n spectra, "DIR/NAME.spectrum.h5" for "NAME.h5", in *outputs, which the caller frees
 * with ks_outputs_free. KS_USAGE where two are the same file or one is a checkpoint, KS_IO where
 * `folder` cannot be written; it is made if it is missing but its parent is there. */
ks_status ks_outputs_new(size_t n, const char *const *checkpoints, const char *folder,
                         char ***outputs);
void ks_outputs_free(size_t n, char **outputs);
/* KS_IO where the file cannot be written, KS_USAGE where it is the file `input`, by whatever path
 * or link, or would be if that were there; nothing is left behind. */
ks_status ks_output_check(const char *output, const char *input);

/* Whether two outputs are one: the same name in the same folder, however the folder is spelt. */
bool ks_output_same(const char *a, const char *b);

/* The name of a spectrum without its ending, which other files beside it share; the caller frees.
 */
ks_status ks_output_stem(const char *output, char **stem);

/* How the memory is spent, in bytes. */
struct ks_budget {
    size_t fixed;      /* checkpoint, and the operator with nothing kept           */
    size_t held;       /* the Lanczos vectors, the dense matrix, or those of --apply */
    size_t kept;       /* of what depends on theta alone: at most, or once it is there */
    bool single_basis; /* the Lanczos basis is in float32                          */
};

/* What is analyzed. */
struct ks_subject {
    const char *path;            /* of the checkpoint      */
    char digest[KS_SHA256_TEXT]; /* of that file           */
    struct ks_problem problem;   /* as the operator has it */
    size_t dimension;            /* of the operator        */
    size_t vectors;              /* that it is applied to  */
    int processes;               /* that share a product   */
    const struct ks_budget *budget;
};

/* What a process may take in all, of which it has `fixed` already. */
double ks_budget_room(const struct ks_analysis *analysis, const struct ks_team *world,
                      size_t fixed);
/* With `fixed` given, divides what --memory (or the machine) leaves beside it: first the vectors of
 * this process of `team`, in float64 if they fit, and else in float32, on all processes of the
 * world; then what is kept. KS_MEMORY where that is too little, with the sizes; on all processes
 * alike. */
ks_status ks_budget_divide(const struct ks_analysis *analysis, const struct ks_team *world,
                           const struct ks_team *team, const struct ks_subject *subject,
                           struct ks_budget *budget);

/* The root attributes of its spectrum, which has its figures: what was computed, of what, by what,
 * and what can be claimed. */
ks_status ks_describe(const struct ks_analysis *analysis, const struct ks_subject *subject,
                      struct ks_spectrum *spectrum);
/* Likewise of vectors: products, or where there is a loss its gradient. The caller
 * clears them, also after a failure. */
ks_status ks_describe_vectors(const struct ks_analysis *analysis, const struct ks_subject *subject,
                              const double *loss, struct ks_attributes *list);
/* Of these what a Lanczos step depends on, a "NAME VALUE" a line; the caller frees. */
ks_status ks_describe_key(const struct ks_analysis *analysis, const struct ks_subject *subject,
                          char **key);

/* Progress of one checkpoint, and before a long run one line with its cost. */
struct ks_watch {
    const char *checkpoint;
    size_t dimension, products; /* of the operator; in all */
    size_t order, groups;       /* steps of a probe; groups of processes that take probes in turn */
    const struct ks_budget *budget;
    bool quiet;
    double started;
    bool told, announced; /* what the run takes; its time */
    size_t skipped;       /* products whose steps were on disk */
    double *work;         /* [KS_JACOBI_WORK order]; owned     */
    struct ks_progress progress;
};
/* Starts the clock, with the fields up to `quiet` set. */
ks_status ks_watch_start(struct ks_watch *watch);
void ks_watch_end(struct ks_watch *watch);
/* Steps that were on disk; after a step, after a product: for ks_slq and ks_exact. */
void ks_watch_resumed(void *watch, const struct ks_lanczos *lanczos);
void ks_watch_step(void *watch, const struct ks_lanczos *lanczos);
void ks_watch_product(void *watch, size_t products);

/* --apply, before there is an operator: subject->vectors, of the team. */
ks_status ks_apply_count(const struct ks_analysis *analysis, const struct ks_team *team,
                         struct ks_subject *subject);
/* --apply: a, the operator of the selected coordinates, times each vector of a file, written to
 * --output; vectors have their whole length, and what is not selected is ignored and zero. `watch`
 * has been set up but for the number of products. */
ks_status ks_apply_file(const struct ks_analysis *analysis, const struct ks_subject *subject,
                        const struct ks_operator *a, const struct ks_selection *selection,
                        struct ks_watch *watch);
/* --gradient: loss and gradient, written. In a team both are for all processes. `start`:
 * ks_alloc_total() before the checkpoint was read. KS_MEMORY where --memory is too little. */
ks_status ks_gradient_file(const struct ks_analysis *analysis, const struct ks_subject *subject,
                           const struct ks_team *world, const struct ks_team *team, size_t start);

#endif
