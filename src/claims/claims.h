/* A study judged against the claims of the XQC paper, by the rules of configs/claims.md. */
#ifndef KS_CLAIMS_CLAIMS_H
#define KS_CLAIMS_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "claims/claim_findings.h"
#include "claims/paper_claims.h"
#include "core/error.h"
#include "results/results.h"

enum ks_verdict {
    KS_SUPPORTED, /* the first three: with KS_CLAIM_SEEDS seeds or more */
    KS_NOT_SUPPORTED,
    KS_NOT_DECIDED,
    KS_SAME_DIRECTION,
    KS_OPPOSITE_DIRECTION,
    KS_NOT_RESOLVED,
    KS_RESULTS_KNOWN, /* of the revised statistic: there are only runs whose results were known when
                       * its rule was written. The numbers are of these runs */
    KS_VERDICTS
};
extern const char *const ks_verdict_names[KS_VERDICTS]; /* "supported", "not supported", ... */

/* What the paper's statistic of spectra says from each start vector of Lanczos, that is in the
 * analyses which differ in the seed alone: how often each verdict comes, and the smallest and the
 * largest effect. */
struct ks_claim_starts {
    size_t n; /* 0: the claim is not judged by such a statistic */
    size_t verdicts[KS_VERDICTS];
    double effect_least, effect_most; /* NaN: none */
};

/* A claim by one statistic. */
struct ks_claim_row {
    const struct ks_paper_claim *claim;
    enum ks_claim_statistic statistic;
    struct ks_finding found;
    size_t values; /* over training: the most that any run has */
    double p_holm; /* the adjusted p; NaN without a p         */
    enum ks_verdict verdict;
    struct ks_claim_starts starts;
};

struct ks_claims {
    const struct ks_results *results; /* what is judged */
    size_t n;
    struct ks_claim_row
        row[KS_CLAIMS * KS_CLAIM_STATISTICS]; /* [n] in the order of ks_paper_claims */
    bool lacks[KS_JUDGED];   /* architectures that the study does not have                   */
    bool apart[KS_JUDGED];   /* those whose spectra are not comparable with group 1          */
    bool skipped[KS_CLAIMS]; /* claims without rows, because they need one of these         */
};

/* Judges the study; `resamples`: of the bootstrap of correlations' intervals. */
ks_status ks_claims_judge(const struct ks_results *results, size_t resamples,
                          struct ks_claims *claims);
/* The row of a claim by a statistic; NULL if there is none. */
const struct ks_claim_row *ks_claims_row(const struct ks_claims *claims,
                                         const struct ks_paper_claim *claim,
                                         enum ks_claim_statistic statistic);

/* Whether a claim holds by sound statistics: "survives" if it is supported by the paper's statistic
 * and by the sound one, "does not survive" if supported by the paper's and not supported by the
 * sound one, else "open". */
const char *ks_claims_survival(const struct ks_claims *claims, const struct ks_paper_claim *claim);

/* "5 start vectors: 3 not decided and 2 supported; -0.839 to -0.727", or "one start vector"; "" if
 * the row does not depend on start vectors. */
enum { KS_CLAIM_STARTS_TEXT = 192 };
void ks_claims_starts(const struct ks_claim_row *row, char text[KS_CLAIM_STARTS_TEXT]);

/* Why a row is not resolved or not decided, in about four words: what is missing or open; "" for
 * other verdicts, and where several rules are not met. */
enum { KS_CLAIM_REASON = 64 };
void ks_claims_reason(const struct ks_claims *claims, const struct ks_claim_row *row,
                      char text[KS_CLAIM_REASON]);

/* "Figure 3 and spectra": where to see it, in the paper and in our plots. */
void ks_claims_plot(const struct ks_paper_claim *claim, char text[KS_CLAIM_REASON]);

/* Prints a line per claim: the words by the three statistics and whether it survives; then what the
 * study lacks. */
void ks_claims_print(const struct ks_claims *claims, FILE *out);

/* --- theorems: how near critics come to what the paper proves. There are the unbounded gradients
 * of a squared error, the gradients of a cross-entropy and their bounds, and the weight decay above
 * which the condition number with cross-entropy is bounded. --- */

/* What is measured at a checkpoint: the columns of theorems.csv, in their order. */
enum ks_theorem_number {
    KS_PROPOSITION_1_LARGEST, /* |f - y| of a squared error                                  */
    KS_PROPOSITION_1_MEDIAN,
    KS_PROPOSITION_2_LARGEST, /* |p - t| / sqrt 2                                            */
    KS_PROPOSITION_2_MEDIAN,
    KS_LEMMA_1,                /* the largest |g| / (sqrt 2 L_f), at most this                */
    KS_LEMMA_1_MEDIAN,         /* the same with the median over rows in place of L_f          */
    KS_THEOREM_ROWS,           /* by which L_f and L_h were bounded from below                */
    KS_THEOREM_1,              /* the largest |g_h| / (sqrt 2 L_h), at most this              */
    KS_HIDDEN_NORM,            /* |theta_h|                                                   */
    KS_HIDDEN_RADIAL,          /* the largest cosine of theta_h and g_h                       */
    KS_EFFECTIVE_UPDATE,       /* |g_h| / |theta_h|                                           */
    KS_EFFECTIVE_UPDATE_BOUND, /* sqrt 2 L_h / |theta_h|                                     */
    KS_WEIGHT_DECAY,           /* mu^2 of the loss                                            */
    KS_WEIGHT_DECAY_NEEDED,    /* at most 2 lambda_m^f, which mu^2 has to exceed              */
    KS_THEOREM_NUMBERS
};

/* A spectrum of the standard analysis that has such statistics. */
struct ks_theorem_row {
    size_t architecture, seed, checkpoint;
    double value[KS_THEOREM_NUMBERS]; /* NaN: not measured */
};

struct ks_theorems {
    size_t n, room;
    struct ks_theorem_row *row; /* [n] in the order of runs and checkpoints; owned */
};

/* Appends to *theorems, which starts as {0}; the caller frees theorems->row, also after a failure.
 * KS_MEMORY. */
ks_status ks_theorems_find(const struct ks_results *results, struct ks_theorems *theorems);
/* The largest value over the rows of an architecture (KS_ALL_ARCHITECTURES: of all
 * rows); NaN if none has it. */
double ks_theorems_largest(const struct ks_theorems *theorems, size_t architecture,
                           enum ks_theorem_number number);
enum { KS_ALL_ARCHITECTURES = KS_STUDY_ARCHITECTURES };

/* Prints the largest numbers, a line for each proposition or theorem, one on whether |theta_h| is
 * fixed as Theorem 1 assumes, one on the weight decay if the study analyzes residuals, and what
 * exceeds a bound that is proved, which is an error of the measurement. Prints nothing without
 * rows. */
void ks_theorems_print(const struct ks_study *study, const struct ks_theorems *theorems, FILE *out);

#endif
