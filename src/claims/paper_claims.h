/* The claims of the XQC paper that a study is judged against, and how each is judged: the table of
 * configs/claims.md, which defines every word used here. */
#ifndef KS_CLAIMS_PAPER_CLAIMS_H
#define KS_CLAIMS_PAPER_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

#include "study/study_file.h"

/* The statistic by which a claim is judged: the paper's, the sound one, the second sound one; a
 * control, the sound one with batch normalization over the rows of the loss, which the other
 * networks see; and the revised one, the paper's by the rule of a later date, which was written
 * with results known: kappa as the mean of its logarithms over all start vectors, growth from where
 * a run has learned. */
enum ks_claim_statistic {
    KS_CLAIM_PAPER,
    KS_CLAIM_SOUND,
    KS_CLAIM_SECOND,
    KS_CLAIM_CONTROL,
    KS_CLAIM_REVISED,
    KS_CLAIM_STATISTICS
};
extern const char *const ks_claim_statistic_names[KS_CLAIM_STATISTICS]; /* "paper", ... */

/* What a claim is about: statistics of spectra, then numbers, which are not intervals. */
enum ks_claim_quantity {
    KS_CLAIM_KAPPA,
    KS_CLAIM_LAMBDA_MAX,
    KS_CLAIM_KURTOSIS,
    KS_CLAIM_NEGATIVE, /* 1 at a checkpoint whose smallest eigenvalue is certainly negative, else 0
                        */
    KS_CLAIM_PARAM_NORM, /* of progress.csv, as the next two */
    KS_CLAIM_GRAD_NORM,
    KS_CLAIM_EFFECTIVE_LR,
    KS_CLAIM_RETURN, /* -log10 of the last return: larger is worse, like the others */
    KS_CLAIM_QUANTITIES
};

/* How the values over a run become one: typical height, movement, change from the first to the last
 * quarter, or mean. */
enum ks_claim_summary { KS_CLAIM_LEVEL, KS_CLAIM_RANGE, KS_CLAIM_GROWTH, KS_CLAIM_MEAN };

enum ks_claim_kind {
    KS_CLAIM_PAIRS,       /* matched pairs and a sign-flip test                        */
    KS_CLAIM_LOWEST,      /* the rank of bn+wn+ce among the twelve                     */
    KS_CLAIM_CORRELATION, /* rank correlation with the return                          */
    KS_CLAIM_CONSTANT,    /* bn+wn+ce stays within a band around its start             */
    KS_CLAIM_FAR_BELOW,   /* bn+wn+ce is far below the median without BN               */
    KS_CLAIM_NEAR,        /* SimBa-V2 is not far above bn+wn+ce                        */
    KS_CLAIM_EXISTS       /* the quantity is above 0 somewhere                         */
};

/* The effect of a matched pair: the larger run's value minus the smaller run's, or less than that.
 */
enum ks_claim_effect {
    KS_DIFFERENCE,
    KS_AND_LARGER,    /* the smaller of the difference and the larger run's value       */
    KS_AND_FALL,      /* the smaller of the difference and minus the smaller run's value */
    KS_MINUS_ABSOLUTE /* minus the absolute value of the larger run                     */
};

/* The twelve architectures are numbered (2 normalization + weight normalization) * 2 + loss. */
enum { KS_BN, KS_LN, KS_DENSE };
enum { KS_CE, KS_MSE };
enum { KS_TWELVE = 12, KS_SIMBA_V2 = KS_TWELVE, KS_JUDGED }; /* and SimBa-V2 */
#define KS_TWELVE_OF(normalization, weight_normalization, loss)                                    \
    ((2 * (normalization) + (weight_normalization)) * 2 + (loss))
enum { KS_BEST = KS_TWELVE_OF(KS_BN, 1, KS_CE) }; /* the paper's XQC */
enum ks_claim_factor { KS_FACTOR_NORMALIZATION, KS_FACTOR_WEIGHT_NORMALIZATION, KS_FACTOR_LOSS };

/* The claims of a family are adjusted together by Holm's method; their rules have this date. */
enum ks_claim_family { KS_CLAIMS_FIRST, KS_CLAIMS_FURTHER, KS_CLAIM_FAMILIES };
extern const char *const ks_claim_family_dates[KS_CLAIM_FAMILIES];
/* The date of the rules of the revised statistic; and from when on runs have to begin to be judged
 * by them: results of earlier runs were known. */
extern const char ks_claim_revised_date[], ks_claim_revised_from[];

struct ks_paper_claim {
    const char *name, *sentence;
    enum ks_claim_kind kind;
    enum ks_claim_quantity quantity;
    enum ks_claim_summary summary;
    /* Of matched pairs: the factor in which a pair differs, and the levels of the run whose value
     * the claim says is larger, and of the other run. */
    enum ks_claim_factor factor;
    size_t larger, smaller;
    enum ks_claim_effect effect;
    bool has_cell; /* the cell of the larger run `cell` must show the effect, too    */
    size_t cell;
    double theta[KS_CLAIM_CONTROL]; /* thresholds in decades; of a correlation: -0.5 */
    size_t figure;                  /* of the paper                                  */
    enum ks_claim_family family;
};

enum { KS_CLAIMS = 28 };
extern const struct ks_paper_claim ks_paper_claims[KS_CLAIMS];

/* Whether there is such a statistic of the claim's quantity: only the condition number has a second
 * sound one, but numbers count for all three. There is a control where normalizations are compared
 * by spectra, and a revised statistic of kappa and of the growth of numbers. */
bool ks_paper_claim_has(const struct ks_paper_claim *claim, enum ks_claim_statistic statistic);
/* The statistic whose thresholds and criteria a statistic has: the control's are the sound one's,
 * the revised one's are the paper's, and each of the others has its own. */
enum ks_claim_statistic ks_claim_statistic_base(enum ks_claim_statistic statistic);
/* Our plot of what the figure shows. */
const char *ks_paper_claim_plot(const struct ks_paper_claim *claim);
bool ks_claim_is_number(enum ks_claim_quantity quantity);

/* Finds the twelve architectures in a study, and SimBa-V2, whose name begins with "simba-v2":
 * architecture [KS_JUDGED], the index in the study, or n_architectures where the study has none.
 * Returns how many of the twelve there are. */
size_t ks_twelve_find(const struct ks_study *study, size_t architecture[KS_JUDGED]);
/* "bn+wn+ce" into text[16]; "simba-v2". */
void ks_twelve_name(size_t number, char text[16]);

/* The cells of a claim on matched pairs: the numbers of the larger and of the smaller run's
 * architecture into larger, smaller [at most 6]; returns how many there are. */
enum { KS_CLAIM_CELLS = 6 };
size_t ks_paper_claim_cells(const struct ks_paper_claim *claim, size_t larger[KS_CLAIM_CELLS],
                            size_t smaller[KS_CLAIM_CELLS]);
/* needed [KS_JUDGED]: the architectures without which the claim cannot be judged. */
void ks_paper_claim_needs(const struct ks_paper_claim *claim, bool needed[KS_JUDGED]);

#endif
