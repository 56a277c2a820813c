/* Where a checkpoint stands among the architectures of a study, by the study's tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/memory.h"
#include "core/round.h"
#include "io/text.h"
#include "report/page.h"
#include "statistics/statistics.h"

/* Steps within this factor of each other count as the same time in training: a judgement. */
static const double SAME_STEP = 1.25;

/* An architecture at one step, over its seeds. */
struct entry {
    const char *name;
    double step;
    size_t seeds;
    double bound_least, bound_most;     /* kappa_effective_bound            */
    struct ks_interval directions, q99; /* that enclose those of all seeds */
    bool comparable;
};

/* "ce" of "bn+wn+ce". */
static const char *loss_of(const char *architecture)
{
    const char *last = strrchr(architecture, '+');

    return last ? last + 1 : architecture;
}

static bool is_standard(const struct ks_csv *csv, size_t row)
{
    return strcmp(ks_page_cell(csv, row, "analysis"), "standard") == 0;
}

/* The step of the architecture that is nearest to `step`, by their ratio; its last one if `step` is
 * NaN. */
static double nearest_step(const struct ks_csv *csv, const char *name, double step)
{
    double best = NAN;

    for (size_t i = 0; i < csv->rows; i++) {
        double one = ks_page_number(csv, i, "env_step");

        if (!is_standard(csv, i) || strcmp(ks_page_cell(csv, i, "architecture"), name) != 0)
            continue;
        if (isnan(best) || (isnan(step) && one > best) ||
            fabs(log(one / step)) < fabs(log(best / step)))
            best = one;
    }
    return best;
}

/* Encloses one more interval; an end that is not resolved leaves that end open. */
static void widen(struct ks_interval *all, double lower, double upper, bool first)
{
    all->lower = first ? lower : isnan(lower) || isnan(all->lower) ? NAN : fmin(all->lower, lower);
    all->upper = first ? upper : isnan(upper) || isnan(all->upper) ? NAN : fmax(all->upper, upper);
}

static void take_row(const struct ks_csv *csv, size_t i, struct entry *e)
{
    double bound = ks_page_number(csv, i, "kappa_effective_bound");
    const bool first = e->seeds == 0;

    e->bound_least = first ? bound : fmin(e->bound_least, bound);
    e->bound_most = first ? bound : fmax(e->bound_most, bound);
    widen(&e->directions, ks_page_number(csv, i, "directions_1e2_lower"),
          ks_page_number(csv, i, "directions_1e2_upper"), first);
    widen(&e->q99, ks_page_number(csv, i, "kappa_q99_lower"),
          ks_page_number(csv, i, "kappa_q99_upper"), first);
    e->seeds++;
}

static struct entry entry_of(const struct ks_csv *csv, const char *name,
                             const struct ks_audit_facts *facts)
{
    struct entry e = {.name = name, .step = nearest_step(csv, name, facts->env_step)};

    for (size_t i = 0; i < csv->rows; i++)
        if (is_standard(csv, i) && strcmp(ks_page_cell(csv, i, "architecture"), name) == 0 &&
            ks_page_number(csv, i, "env_step") == e.step)
            take_row(csv, i, &e);
    e.comparable = strcmp(loss_of(name), facts->loss) == 0 &&
                   fabs(log(e.step / facts->env_step)) <= log(SAME_STEP);
    return e;
}

static void add_entry(const struct entry *e, struct ks_document *d)
{
    char directions[KS_INTERVAL_TEXT], q99[KS_INTERVAL_TEXT], bound[KS_INTERVAL_TEXT];
    char step[32] = "-";

    if (e->seeds == 1 || e->bound_least == e->bound_most)
        snprintf(bound, sizeof bound, "%.4g", ks_round_down(e->bound_least, 4));
    else
        snprintf(bound, sizeof bound, "%.3g to %.3g", ks_round_down(e->bound_least, 3),
                 ks_round_down(e->bound_most, 3));
    if (!isnan(e->step))
        snprintf(step, sizeof step, "%.0f", e->step);
    ks_document_add(
        d, e->comparable ? KS_BLOCK_ROW : KS_BLOCK_SHADED,
        "%s" KS_CELL "%s" KS_CELL "%s" KS_CELL "%zu" KS_CELL "%s" KS_CELL "%s" KS_CELL "%s",
        e->name, e->comparable ? "same loss and step" : "not comparable", step, e->seeds, bound,
        ks_interval_text(e->directions, directions), ks_interval_text(e->q99, q99));
}

/* The audited checkpoint as the first row. */
static void add_self(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *s = a->spectrum[KS_AUDIT_HESSIAN];
    const double bound = ks_statistic(s, "kappa_effective_bound");
    struct entry self = {.name = "this checkpoint",
                         .step = a->facts.env_step,
                         .seeds = 1,
                         .directions = ks_audit_interval(s, "directions_1e2"),
                         .q99 = ks_audit_interval(s, "kappa_q99"),
                         .bound_least = bound,
                         .bound_most = bound,
                         .comparable = true};

    add_entry(&self, d);
}

struct sums {
    size_t comparable, more, fewer;
};

/* Where this checkpoint stands by directions_1e2, as far as intervals decide it. */
static void add_sums(const struct ks_audit *a, const struct sums *sums, const char *env,
                     struct ks_document *d)
{
    if (sums->comparable == 0)
        ks_document_add(d, KS_BLOCK_TEXT,
                        "None of these architectures is comparable: they have another loss, or no "
                        "checkpoint at about this step.%s",
                        isnan(a->facts.env_step) ? " The file has no attribute env_step." : "");
    else
        ks_document_add(
            d, KS_BLOCK_TEXT,
            "Of %zu comparable architectures, %zu have fewer directions within a factor "
            "of 100 of the largest curvature and %zu have more; for the others the "
            "intervals overlap.",
            sums->comparable, sums->more, sums->fewer);
    ks_document_add(d, KS_BLOCK_NOTE,
                    "The task of the table is %s; this checkpoint's is %s. Intervals enclose those "
                    "of all seeds. Rows in brackets or grey must not be compared.",
                    env, *a->facts.env ? a->facts.env : "not known");
}

static bool seen_before(const struct ks_csv *csv, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (is_standard(csv, i) && strcmp(ks_page_cell(csv, i, "architecture"),
                                          ks_page_cell(csv, row, "architecture")) == 0)
            return true;
    return false;
}

static void add_table(const struct ks_audit *a, const struct ks_csv *csv, struct ks_document *d)
{
    const struct ks_interval self = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN],
                                                      "directions_1e2");
    struct sums sums = {0};

    ks_document_add(d, KS_BLOCK_TABLE,
                    "architecture" KS_CELL "comparison" KS_CELL "step" KS_CELL "seeds" KS_CELL
                    "kappa_effective_bound (at least)" KS_CELL "directions_1e2" KS_CELL
                    "kappa_q99");
    add_self(a, d);
    for (size_t i = 0; i < csv->rows; i++) {
        struct entry e;

        if (!is_standard(csv, i) || seen_before(csv, i))
            continue;
        e = entry_of(csv, ks_page_cell(csv, i, "architecture"), &a->facts);
        add_entry(&e, d);
        sums.comparable += e.comparable;
        sums.more += e.comparable && self.lower > e.directions.upper;
        sums.fewer += e.comparable && self.upper < e.directions.lower;
    }
    add_sums(a, &sums, csv->rows > 0 ? ks_page_cell(csv, 0, "env") : "not known", d);
}

ks_status ks_audit_place(const struct ks_audit *a, const char *tables, bool *found,
                         struct ks_document *d)
{
    struct ks_csv *csv = NULL;
    char *path = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_print_string(&path, "%s/checkpoints.csv", tables));
    *found = ks_path_exists(path);
    if (*found)
        KS_GO(ks_csv_read(path, false, &csv));
    if (*found) {
        ks_document_add(d, KS_BLOCK_SECTION, "Among the architectures of %s", tables);
        add_table(a, csv, d);
        status = d->status;
    }
done:
    ks_csv_free(csv);
    free(path);
    return status;
}
