/* A finished study of the twelve architectures in memory, with the published code's analysis and
 * with statistics made by hand; only study.study and progress.csv are files. */
#ifndef KS_TEST_CLAIMED_H
#define KS_TEST_CLAIMED_H

#include "scratch.h"

#include "claims/claims.h"
#include "core/memory.h"
#include "report/tables.h"

enum {
    TIMES = 12,
    ROWS = TIMES,
    MOST_SEEDS = 6
}; /* checkpoints, and rows, after the first update */

enum { STANDARD, XQC }; /* analyses */

enum { PARAM_NORM, GRAD_NORM, EFFECTIVE_LR, METRICS };

#define BEST KS_BEST

#define LONE  KS_TWELVE_OF(KS_DENSE, 0, KS_MSE)
#define RIVAL KS_TWELVE_OF(KS_LN, 0, KS_CE)

extern struct ks_results *study_results;
extern size_t study_seeds;

/* In decades; claimed_new sets all to 0. */
extern double metric[KS_TWELVE][MOST_SEEDS][ROWS][METRICS];

static const char *const ALL_TWELVE = "all";
static const char *const XQC_ANALYSIS = "[analyze xqc]\ncompat = xqc\n";
bool is_of(size_t number, enum ks_claim_factor factor, size_t level);

/* All runs of the twelve: architecture k, seed i. */
#define FOR_RUNS(k, i)                                                                             \
    for (size_t k = 0; k < KS_TWELVE; k++)                                                         \
        for (size_t i = 0; i < study_seeds; i++)

/* The run of architecture `number` of the twelve. */
struct ks_result *run_of(size_t number, size_t seed);

/* A place in the study; `time` counts from the first checkpoint after the first update. */
struct spot {
    size_t analysis, number, seed, time;
};

/* The spectrum there; the first checkpoint is that of the first update. */
struct ks_spectrum **spectrum_at(struct spot at);

void lose_spectrum(struct spot at);

/* Sets a statistic of one spectrum. */
void put(struct spot at, const char *name, double value);

/* Sets an interval, in decades, of one run at all its checkpoints: kappa or lambda_max of the
 * published code's analysis, kappa_q99, directions_1e2 or lambda_max of the standard one. */
void put_paper(size_t number, size_t seed, const char *name, double decades);
void put_sound(size_t number, size_t seed, double low, double high);

/* The paper's and the sound statistics of a run have this level. */
void put_level(size_t number, size_t seed, double decades);

/* A study in which all runs are alike: every statistic is 1, every metric constant. `more`: of the
 * study's file, after [train]. */
void claimed_new(const char *architectures, size_t seeds, const char *more);
int claimed_end(void **state);

/* The last return of a run; the first is 10. */
void put_return(size_t number, size_t seed, double last);

/* A metric of one run grows by this many decades from its first to its last quarter. */
void put_growth(size_t number, size_t seed, size_t which, double decades);

/* Judges the study; the result is kept until the next call. */
const struct ks_claims *judge(size_t resamples);
const struct ks_paper_claim *claim_named(const char *name);
const struct ks_claim_row *row_of(const struct ks_claims *claims, const char *name,
                                  enum ks_claim_statistic statistic);

/* What a table of the study's report has of these results: claims, prediction or theorems. */
const char *table_text(const char *name, const struct ks_summary_table *results);

/* All runs whose architecture has this level of the factor. */
void put_levels(enum ks_claim_factor factor, size_t level, double decades);

/* BN is at 2 decades, LN and no normalization at 4. */
void put_paper_world(void);
int make_one(void **state);
int make_three(void **state);
#define TEST_ONE_SEED(name)    TEST_WITH(name, make_one, claimed_end)
#define TEST_THREE_SEEDS(name) TEST_WITH(name, make_three, claimed_end)
void assert_reason(const struct ks_claims *claims, const char *name,
                   enum ks_claim_statistic statistic, const char *expected);

#define assert_word(claims, name, statistic, expected)                                             \
    assert_string_equal(ks_verdict_names[row_of(claims, name, statistic)->verdict], expected)

#endif
