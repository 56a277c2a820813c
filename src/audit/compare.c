/* Two critics, or two sets of minibatches: ratios of statistics, with the intervals that follow
 * from both. */
#include <math.h>
#include <string.h>

#include "audit/audit.h"
#include "io/attribute.h"
#include "report/tables.h"
#include "statistics/statistic_text.h"

/* A change by at most this factor counts as small: a judgement. */
static const double SMALL = 1.25;

enum { COMPARED = 1 + KS_RANGES };

/* A statistic of two spectra, and what their intervals say about the ratio second / first. */
struct pair {
    const char *name, *verdict;
    struct ks_interval first, second, ratio;
};

/* The largest absolute eigenvalue, then the statistics that are ranges in the tables of a study. */
static struct pair pair_of(size_t i, const struct ks_spectrum *a, const struct ks_spectrum *b)
{
    struct pair p = {.name = "lambda_abs_max"};

    if (i > 0) {
        const enum ks_statistic_id id = ks_ranges[i - 1];

        p.name = ks_catalogue[id].name;
        p.first = ks_audit_interval(a, id);
        p.second = ks_audit_interval(b, id);
    } else {
        p.first = ks_audit_abs_max(a);
        p.second = ks_audit_abs_max(b);
    }
    p.ratio = ks_interval_ratio(p.second, p.first);
    return p;
}

static void add_pair(const struct pair *p, struct ks_document *d)
{
    char first[KS_INTERVAL_TEXT], second[KS_INTERVAL_TEXT], ratio[KS_INTERVAL_TEXT];

    ks_document_add(d, KS_BLOCK_ROW, "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s",
                    p->name, p->verdict, ks_interval_text(p->first, KS_BRACKETS_WHOLE, first),
                    ks_interval_text(p->second, KS_BRACKETS_WHOLE, second),
                    ks_interval_text(p->ratio, KS_BRACKETS_WHOLE, ratio));
}

/* kappa_effective_bound is printed beside the ratios but has none. */
static void add_bounds(const struct ks_spectrum *a, const struct ks_spectrum *b,
                       struct ks_document *d)
{
    char first[KS_STATISTIC_TEXT], second[KS_STATISTIC_TEXT];

    ks_statistic_text(a, KS_STAT_KAPPA_EFFECTIVE_BOUND, first);
    ks_statistic_text(b, KS_STAT_KAPPA_EFFECTIVE_BOUND, second);
    ks_document_add(d, KS_BLOCK_ROW, "%s" KS_CELL "-" KS_CELL "%s" KS_CELL "%s" KS_CELL "-",
                    ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name, first, second);
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

static void add_conclusion(size_t large, size_t small, const struct ks_audit *a,
                           struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_TEXT,
                    "With the first %zu of the %zu minibatches, %zu of %d statistics change by "
                    "more than a factor of %g and %zu by less; for the others the intervals do "
                    "not decide. %s",
                    a->facts.minibatches / 2, a->facts.minibatches, large, COMPARED, SMALL, small,
                    large > 0 ? "So the statistics depend on the choice of minibatches: analyze "
                                "more of them."
                              : "This does not show that more minibatches would change nothing.");
}

void ks_audit_halve(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *all = a->spectrum[KS_AUDIT_HESSIAN],
                             *half = a->spectrum[KS_AUDIT_HALF];
    size_t large = 0, small = 0;

    if (!half || ks_audit_is_zero(all)) {
        ks_document_add(d, KS_BLOCK_TEXT, "Not known: %s.",
                        half ? "the Hessian is zero" : "the analysis used a single minibatch");
        return;
    }
    ks_document_add(d, KS_BLOCK_TABLE,
                    "statistic" KS_CELL "verdict" KS_CELL "all minibatches" KS_CELL
                    "the first %zu of %zu" KS_CELL "their ratio to all",
                    a->facts.minibatches / 2, a->facts.minibatches);
    for (size_t i = 0; i < COMPARED; i++) {
        struct pair p = pair_of(i, all, half);

        p.verdict = is_large(p.ratio) ? "changes" : is_small(p.ratio) ? "similar" : "not resolved";
        large += is_large(p.ratio);
        small += is_small(p.ratio);
        add_pair(&p, d);
    }
    add_bounds(all, half, d);
    add_conclusion(large, small, a, d);
}

/* --- another checkpoint --- */

static void add_conditions(const struct ks_audit *a, const struct ks_audit *b,
                           struct ks_document *d)
{
    const bool batches = memcmp(a->facts.batch, b->facts.batch, sizeof a->facts.batch) == 0;
    const double n = ks_attribute_number(&a->spectrum[KS_AUDIT_HESSIAN]->attributes, "dimension");
    const double m = ks_attribute_number(&b->spectrum[KS_AUDIT_HESSIAN]->attributes, "dimension");

    ks_document_add(d, KS_BLOCK_TEXT, "%s %s",
                    batches ? "Both critics were analyzed on the same minibatches."
                            : "The minibatches differ, so the ratios compare critics and data "
                              "together.",
                    n == m ? "The random start vectors are the same."
                           : "The random start vectors differ, because the numbers of parameters "
                             "do.");
}

void ks_audit_compare(const struct ks_audit *a, const struct ks_audit *b, struct ks_document *d)
{
    const struct ks_spectrum *here = a->spectrum[KS_AUDIT_HESSIAN],
                             *there = b->spectrum[KS_AUDIT_HESSIAN];

    ks_document_add(d, KS_BLOCK_SECTION, "Against %s", b->path);
    add_conditions(a, b, d);
    ks_document_add(d, KS_BLOCK_TABLE,
                    "statistic" KS_CELL "verdict" KS_CELL "there" KS_CELL "here" KS_CELL
                    "here / there");
    for (size_t i = 0; i < COMPARED; i++) {
        struct pair p = pair_of(i, there, here);

        p.verdict = p.ratio.lower > 1   ? "larger here"
                    : p.ratio.upper < 1 ? "smaller here"
                                        : "not resolved";
        add_pair(&p, d);
    }
    add_bounds(there, here, d);
}
