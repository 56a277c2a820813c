/* --against FILE: ratios of statistics, with the intervals that follow from both. */
#include <string.h>

#include "audit/audit.h"
#include "io/attribute.h"
#include "statistics/statistic_text.h"

static void add_bounds(const struct ks_audit *a, const struct ks_audit *b, struct ks_document *d)
{
    char here[KS_STATISTIC_TEXT], there[KS_STATISTIC_TEXT];

    ks_statistic_text(a->spectrum[KS_AUDIT_HESSIAN], "kappa_effective_bound", here);
    ks_statistic_text(b->spectrum[KS_AUDIT_HESSIAN], "kappa_effective_bound", there);
    ks_document_add(d, KS_BLOCK_TEXT,
                    "kappa_effective_bound is %s here and %s there. Both are lower bounds: their "
                    "ratio bounds nothing.",
                    here, there);
}

static void add_conditions(const struct ks_audit *a, const struct ks_audit *b,
                           struct ks_document *d)
{
    const bool batches = memcmp(a->facts.batch, b->facts.batch, sizeof a->facts.batch) == 0;
    const double n = ks_attribute_number(&a->spectrum[KS_AUDIT_HESSIAN]->attributes, "dimension");
    const double m = ks_attribute_number(&b->spectrum[KS_AUDIT_HESSIAN]->attributes, "dimension");

    ks_document_add(d, KS_BLOCK_NOTE, "%s; %s.",
                    batches ? "Both have the same minibatches"
                            : "The minibatches differ, so the ratios are of critics and data "
                              "together",
                    n == m ? "the start vectors are the same"
                           : "the start vectors differ, as the numbers of parameters do");
}

void ks_audit_compare(const struct ks_audit *a, const struct ks_audit *b, struct ks_document *d)
{
    char one[KS_INTERVAL_TEXT], other[KS_INTERVAL_TEXT], ratio[KS_INTERVAL_TEXT];

    ks_document_add(d, KS_BLOCK_SECTION, "Against %s", b->path);
    ks_document_add(d, KS_BLOCK_TABLE,
                    "statistic" KS_CELL "verdict" KS_CELL "here" KS_CELL "there" KS_CELL "ratio");
    for (const char *const *name = ks_audit_compared; *name; name++) {
        struct ks_interval x = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN], *name);
        struct ks_interval y = ks_audit_interval(b->spectrum[KS_AUDIT_HESSIAN], *name);
        struct ks_interval r = ks_interval_ratio(x, y);

        ks_document_add(
            d, KS_BLOCK_ROW, "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s", *name,
            r.lower > 1   ? "larger here"
            : r.upper < 1 ? "smaller here"
                          : "not resolved",
            ks_interval_text(x, one), ks_interval_text(y, other), ks_interval_text(r, ratio));
    }
    add_conditions(a, b, d);
    ks_document_add(d, KS_BLOCK_NOTE,
                    "A ratio's interval follows from two 99%% intervals, so it holds with 98%%.");
    add_bounds(a, b, d);
}
