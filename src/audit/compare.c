/* Two critics, or two sets of minibatches: ratios of statistics, with the intervals that follow
 * from both. */
#include <math.h>
#include <string.h>

#include "audit/audit.h"
#include "core/interval.h"
#include "io/attribute.h"
#include "report/summary_table.h"
#include "statistics/catalogue.h"

/* A change by at most this factor counts as small: a judgement. */
static const double SMALL = 1.25;

/* Of half of the minibatches without the noise of the gradient, which is about the distribution
 * that all of them come from. */
enum { COMPARED = 1 + KS_RANGES, HALVED = 1 + KS_RANGE_NOISE };

/* What is compared: the largest absolute eigenvalue, then the statistics that are ranges in the
 * tables of a study. */
static struct ks_interval compared(const struct ks_spectrum *s, size_t i)
{
    return i == 0 ? ks_audit_abs_max(s) : ks_audit_interval(s, ks_ranges[i - 1]);
}

/* second / first */
static struct ks_interval ratio_of(const struct ks_spectrum *first,
                                   const struct ks_spectrum *second, size_t i)
{
    return ks_interval_ratio(compared(second, i), compared(first, i));
}

/* Adds a row for each of the first n, with what `judge` says of the ratio; and
 * kappa_effective_bound, which has none. */
static void add_ratios(size_t n, const struct ks_spectrum *first, const struct ks_spectrum *second,
                       const char *(*judge)(struct ks_interval ratio), struct ks_document *d)
{
    const enum ks_statistic_id bound = KS_STAT_KAPPA_EFFECTIVE_BOUND;

    for (size_t i = 0; i < n; i++) {
        const struct ks_interval ratio = ratio_of(first, second, i);

        ks_document_cells(
            d, ks_cell_name(i == 0 ? "lambda_abs_max" : ks_catalogue[ks_ranges[i - 1]].name),
            ks_cell_text(judge(ratio)), ks_cell_interval(compared(first, i), KS_BRACKETS_WHOLE),
            ks_cell_interval(compared(second, i), KS_BRACKETS_WHOLE),
            ks_cell_interval(ratio, KS_BRACKETS_WHOLE));
    }
    ks_document_cells(d, ks_cell_name(ks_catalogue[bound].name), ks_cell_text("-"),
                      ks_statistic_cell(first, bound), ks_statistic_cell(second, bound),
                      ks_cell_text("-"));
    ks_document_add(d, KS_BLOCK_NOTE,
                    "The interval of a ratio follows from two 99%% intervals, so it holds with "
                    "98%%. The ratio of two lower bounds would bound nothing.");
}

/* --- the first half of the minibatches --- */

static bool is_small(struct ks_interval ratio)
{
    return ratio.lower >= 1 / SMALL && ratio.upper <= SMALL;
}

static bool is_large(struct ks_interval ratio)
{
    return ratio.lower > SMALL || ratio.upper < 1 / SMALL;
}

static const char *judge_half(struct ks_interval ratio)
{
    return is_large(ratio) ? "changes" : is_small(ratio) ? "similar" : "not resolved";
}

void ks_audit_halve(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *all = a->spectrum[KS_AUDIT_HESSIAN],
                             *half = a->spectrum[KS_AUDIT_HALF];
    const size_t minibatches = a->summary.minibatches;
    size_t large = 0, small = 0;

    if (!half || ks_audit_is_zero(all)) {
        ks_document_add(d, KS_BLOCK_TEXT, "Not known: %s.",
                        half ? "the Hessian is zero" : "the analysis used a single minibatch");
        return;
    }
    ks_document_columns(
        d, "", "statistic<, verdict<, all minibatches, the first %zu of %zu, their ratio to all",
        minibatches / 2, minibatches);
    add_ratios(HALVED, all, half, judge_half, d);
    for (size_t i = 0; i < HALVED; i++) {
        large += is_large(ratio_of(all, half, i));
        small += is_small(ratio_of(all, half, i));
    }
    ks_document_add(d, KS_BLOCK_TEXT,
                    "With the first %zu of the %zu minibatches, %zu of %d statistics change by "
                    "more than a factor of %g and %zu by less; for the others the intervals do "
                    "not decide. %s",
                    minibatches / 2, minibatches, large, HALVED, SMALL, small,
                    large > 0 ? "So the statistics depend on the choice of minibatches: analyze "
                                "more of them."
                              : "This does not show that more minibatches would change nothing.");
}

/* --- another checkpoint --- */

static const char *judge_other(struct ks_interval ratio)
{
    return ratio.lower > 1 ? "larger here" : ratio.upper < 1 ? "smaller here" : "not resolved";
}

void ks_audit_compare(const struct ks_audit *a, const struct ks_audit *b, struct ks_document *d)
{
    const struct ks_spectrum *here = a->spectrum[KS_AUDIT_HESSIAN],
                             *there = b->spectrum[KS_AUDIT_HESSIAN];

    ks_document_add(d, KS_BLOCK_SECTION, "Against %s", b->path);
    ks_document_add(d, KS_BLOCK_TEXT, "%s %s",
                    memcmp(a->summary.batch, b->summary.batch, sizeof a->summary.batch) == 0
                        ? "Both critics were analyzed on the same minibatches."
                        : "The minibatches differ, so the ratios compare critics and data "
                          "together.",
                    ks_attribute_number(&here->attributes, "dimension") ==
                            ks_attribute_number(&there->attributes, "dimension")
                        ? "The random start vectors are the same."
                        : "The random start vectors differ, because the numbers of parameters "
                          "do.");
    ks_document_columns(d, "", "statistic<, verdict<, there, here, here / there");
    add_ratios(COMPARED, there, here, judge_other, d);
}
