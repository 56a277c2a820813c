/* The audit of one checkpoint: the analyses that it needs, and what they say. */
#ifndef KS_AUDIT_AUDIT_H
#define KS_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/document.h"
#include "core/error.h"
#include "io/sha256.h"
#include "io/spectrum.h"
#include "study/csv.h"

struct ks_audit_options {
    size_t order;       /* Lanczos steps per probe                                         */
    size_t layer_order; /* the same for the block of a layer; 0: layers are left out       */
    uint64_t seed;      /* of the start vectors                                            */
    size_t batches;     /* use the first so many minibatches; 0: all                       */
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

/* Units of an activation function, over all critics. */
struct ks_audit_units {
    size_t number; /* the layer's */
    char kind[16];
    size_t units, dead;
};

/* What the checkpoint's file says. */
struct ks_audit_facts {
    size_t critics, parameters, minibatches, rows, loss_rows;
    bool moments;  /* Adam's second moments are there                                   */
    size_t proofs; /* how many of the three proofs (/batch/output, ...) are there       */
    char loss[32]; /* "ce"                                                              */
    char env[64], architecture[64];       /* "" if the file does not say                       */
    double env_step;                      /* NaN if the file does not say                      */
    char digest[KS_SHA256_TEXT];          /* of the file                                       */
    unsigned char batch[KS_SHA256_BYTES]; /* of all inputs and targets                   */
    size_t tried;                         /* minibatches tried for dead units                  */
    size_t n_units;
    struct ks_audit_units *units; /* [n_units]; owned */
};

struct ks_audit {
    const char *path;
    char *folder; /* of the spectra; owned */
    struct ks_audit_facts facts;
    struct ks_spectrum *spectrum[KS_AUDIT_SPECTRA]; /* NULL: not computed. Owned */
    struct ks_csv *layers; /* rows of `analyze --layers --csv`; NULL: left out. Owned */
};

/* Reads the checkpoint and makes what is not in the folder of spectra yet. A spectrum there is used
 * if it is of the same bytes of the checkpoint, by the same version, with the same options. Fails
 * as the analyzer does. The caller ends with ks_audit_clear, also after a failure. */
ks_status ks_audit_run(const char *path, const struct ks_audit_options *options,
                       struct ks_audit *audit);
void ks_audit_clear(struct ks_audit *audit);

/* Reads what the file says. The caller ends with ks_audit_facts_clear. */
ks_status ks_audit_facts_read(const char *path, struct ks_audit_facts *facts);
void ks_audit_facts_clear(struct ks_audit_facts *facts);

/* A 99% interval of a positive number; an end that is not resolved is NaN. */
struct ks_interval {
    double lower, upper;
};
/* The interval of a statistic. "lambda_abs_max": of the largest absolute eigenvalue. */
struct ks_interval ks_audit_interval(const struct ks_spectrum *spectrum, const char *name);
/* a / b: it contains the ratio if both intervals contain their numbers. */
struct ks_interval ks_interval_ratio(struct ks_interval a, struct ks_interval b);
bool ks_intervals_overlap(struct ks_interval a, struct ks_interval b);
/* "[2, 3.1]", "at least 2", "not resolved". */
enum { KS_INTERVAL_TEXT = 48 };
const char *ks_interval_text(struct ks_interval range, char text[KS_INTERVAL_TEXT]);

/* The statistics that are compared with an interval; ends in NULL. */
extern const char *const ks_audit_compared[];

/* Adds what the audit says: claim, findings, tables. KS_MEMORY. */
ks_status ks_audit_describe(const struct ks_audit *audit, struct ks_document *document);
/* Adds the findings in plain words, with the number behind each. */
void ks_audit_findings(const struct ks_audit *audit, struct ks_document *document);
/* Draws the certified band of the spectrum, and adds the plot; a sentence if there is none. */
ks_status ks_audit_plot(const struct ks_audit *audit, struct ks_document *document);

/* --against FILE: adds ratios to another checkpoint's statistics. */
void ks_audit_compare(const struct ks_audit *audit, const struct ks_audit *other,
                      struct ks_document *document);
/* Adds where the checkpoint stands among the architectures of a study: those of `tables`, a folder
 * with checkpoints.csv. A row is shaded unless it has the same loss and a checkpoint at about the
 * same step. *found: whether the table exists. */
ks_status ks_audit_place(const struct ks_audit *audit, const char *tables, bool *found,
                         struct ks_document *document);

#endif
