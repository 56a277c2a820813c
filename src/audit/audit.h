/* The audit of one checkpoint: the analyses that it needs, and what they show. */
#ifndef KS_AUDIT_AUDIT_H
#define KS_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/interval.h"
#include "document/document.h"
#include "io/csv.h"
#include "io/file.h"
#include "io/spectrum.h"
#include "io/table.h"
#include "pipeline/pipeline.h"
#include "statistics/catalogue.h"

struct ks_h5;

/* A number of steps that the plan decides, see plan.h. */
enum { KS_AUDIT_PLANNED = 10001 };

struct ks_audit_options {
    bool thorough;      /* all minibatches, and as many steps as `kappascope analyze` takes */
    size_t order;       /* Lanczos steps per probe of each spectrum                     */
    size_t layer_order; /* for the block of a layer; 0: layers are left out                */
    uint64_t seed;      /* of the start vectors                                            */
    size_t batches;     /* how many minibatches are used, from the first on; 0: see plan.h */
    double count_above; /* the size of directions_above; 0: it is not wanted               */
    bool quiet;
    const char *cache; /* the folder for spectra; NULL: beside the checkpoint              */
};

/* The spectra of an audit. HALF is the Hessian's on the first half of the minibatches. */
enum ks_audit_spectrum {
    KS_AUDIT_HESSIAN,
    KS_AUDIT_HALF,
    KS_AUDIT_GGN,
    KS_AUDIT_RESIDUAL,
    KS_AUDIT_PRECONDITIONED,
    KS_AUDIT_SPECTRA
};

/* The outputs of an activation function, over all critics. */
struct ks_audit_units {
    size_t number; /* the layer's */
    char kind[16];
    size_t units, dead;
};

/* What a critic may be built of: a set of bits. */
enum ks_audit_part {
    KS_PART_BATCH_NORM = 1,   /* a layer whose scale the data decide, over the rows        */
    KS_PART_LAYER_NORM = 2,   /* likewise, within each row                                 */
    KS_PART_WEIGHT_NORM = 4,  /* kernels that are projected, or a function of parameters   */
    KS_PART_SQUARED_ERROR = 8 /* the only loss                                          */
};

/* What the checkpoint's file says. */
struct ks_audit_summary {
    size_t critics, parameters; /* parameters of one critic                           */
    size_t stored, minibatches; /* minibatches in the file; how many are analyzed     */
    size_t rows, loss_rows;
    size_t blocks; /* layers with parameters                                            */
    enum { KS_MOMENTS_ABSENT, KS_MOMENTS_ZERO, KS_MOMENTS_PRESENT } moments; /* Adam's second */
    size_t references; /* how many of /batch/output, loss and gradient_norm exist           */
    unsigned parts;    /* enum ks_audit_part                                            */
    char loss[64];     /* "ce"; "mse+quantile" for two heads                            */
    char env[64];      /* "" if the file does not say                                   */
    double env_step;   /* NaN if the file does not say                                  */
    bool untrained;    /* it was written at the first update, as the file says          */
    char digest[KS_SHA256_TEXT];          /* of the file                              */
    unsigned char batch[KS_SHA256_BYTES]; /* of the analyzed inputs, targets, weights */
    size_t tried;                         /* minibatches tried for dead units         */
    size_t n_units;
    struct ks_audit_units *units; /* [n_units]; owned */
};

struct ks_audit {
    const char *path;
    struct ks_h5 *file; /* its checkpoint, open while it is analyzed; owned */
    const struct ks_audit_options *options;
    char *folder; /* of the spectra; owned */
    struct ks_audit_summary summary;
    struct ks_spectrum *spectrum[KS_AUDIT_SPECTRA]; /* NULL: not computed. Owned */
    size_t n_layers;
    struct ks_layer_row *layers; /* [n_layers] diagonal blocks, of which `steps` and standard errors
                                  * are not set; NULL: left out. Owned */
    struct ks_attributes kept;   /* in the folder, of these rows, whose kinds it has; owned */
};

/* *folder = where the spectra of a checkpoint are kept: CHECKPOINT.audit, beside it or in the
 * `cache`. The caller frees. */
ks_status ks_audit_folder(const char *path, const struct ks_audit_options *options, char **folder);
/* Reads the checkpoint and computes the spectra, and the table of layers, that its folder does not
 * have yet. What is kept is used if it belongs to the same bytes of the checkpoint, the same
 * version of the program and the same options. Fails as the analyzer does. `path` and `options`
 * must outlive the audit. The caller ends with ks_audit_clear, also after a failure. */
ks_status ks_audit_run(const char *path, const struct ks_audit_options *options,
                       struct ks_audit *audit);
void ks_audit_clear(struct ks_audit *audit);

/* The 99% interval of a statistic, of a number that is not negative; an end that is not resolved is
 * NaN. If it is a ratio that is only known to be at least 1, both ends are NaN. */
struct ks_interval ks_audit_interval(const struct ks_spectrum *spectrum, enum ks_statistic_id id);
/* The interval of the largest absolute eigenvalue. */
struct ks_interval ks_audit_abs_max(const struct ks_spectrum *spectrum);
/* a / b: it contains the ratio if both intervals contain their numbers. */
struct ks_interval ks_interval_ratio(struct ks_interval a, struct ks_interval b);

/* Whether every product with the matrix was zero. */
bool ks_audit_is_zero(const struct ks_spectrum *spectrum);

/* Adds the sections of the document: statement, findings, tables, plot. KS_IO, KS_FULL, KS_MEMORY.
 */
ks_status ks_audit_describe(const struct ks_audit *audit, struct ks_document *document);
/* Writes the table to FOLDER/tables/NAME.csv, draws plots/NAME.gp from it, and adds the figure with
 * its caption; without gnuplot adds the reason. Frees the cells of the table. */
void ks_audit_figure(const struct ks_audit *audit, const char *name, struct ks_table *table,
                     const char *caption, struct ks_document *document);
/* Writes one self-contained HTML page, plots/audit.html, with n documents. KS_MISSING without the
 * template; fails as ks_document_html does; KS_IO, KS_FULL if the page cannot be written. */
ks_status ks_audit_page(const char *path, size_t n, const struct ks_document *documents);
/* Adds the findings in plain words, with the number behind each. */
void ks_audit_findings(const struct ks_audit *audit, struct ks_document *document);
/* Whether the layers have shares of the trace: no block's trace is negative. */
bool ks_audit_has_shares(const struct ks_audit *audit);
/* Adds the table of layers, and the table of dead units. */
void ks_audit_layers(const struct ks_audit *audit, struct ks_document *document);
/* Adds a paragraph: which layer has the largest trace. */
void ks_audit_find_layer(const struct ks_audit *audit, struct ks_document *document);
/* Adds a comparison with the Hessian on the first half of the minibatches. */
void ks_audit_halve(const struct ks_audit *audit, struct ks_document *document);
/* --against FILE: adds ratios to another checkpoint's statistics. */
void ks_audit_compare(const struct ks_audit *audit, const struct ks_audit *other,
                      struct ks_document *document);

/* --fail-if: a limit on a statistic, for continuous integration. */
struct ks_limit {
    char name[KS_ATTRIBUTE_NAME];
    bool above, equal; /* > or >=, else < or <=; equality is included */
    double value;
    bool upper; /* the statistic bounds its number from above, else from below */
};

/* Parses "NAME OP NUMBER", OP one of > >= < <=, with or without blanks. KS_USAGE if it is
 * malformed, if NAME is not a bound, as a point estimate depends on the start vector, or if it
 * needs a size and count_above is 0. */
ks_status ks_limit_read(const char *expression, double count_above, struct ks_limit *limit);

/* *met: whether the limit is met. Adds a sentence that says what that shows. An upper bound that is
 * not resolved counts as infinite, a lower bound as minus infinity. KS_USAGE, with `path` in the
 * message, if the spectrum does not have the statistic or lacks the learning rate for it. */
ks_status ks_limit_judge(const struct ks_limit *limit, const char *path,
                         const struct ks_spectrum *spectrum, bool *met,
                         struct ks_document *document);

#endif
