/* Two critics, or two sets of minibatches: ratios of statistics, with the intervals that follow
 * from both; and one critic among the architectures of a study, by the study's tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/interval.h"
#include "core/memory.h"
#include "io/attribute.h"
#include "io/file.h"
#include "report/summary_table.h"
#include "statistics/catalogue.h"
#include "statistics/statistics.h"
#include "study/study_file.h"

/* A change by at most this factor counts as small: a judgement. */
static const double SMALL = 1.25;

enum { COMPARED = 1 + KS_RANGES };

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

/* Adds a row for each, with what `judge` says of the ratio; and kappa_effective_bound, which has
 * none. */
static void add_ratios(const struct ks_spectrum *first, const struct ks_spectrum *second,
                       const char *(*judge)(struct ks_interval ratio), struct ks_document *d)
{
    const enum ks_statistic_id bound = KS_STAT_KAPPA_EFFECTIVE_BOUND;

    for (size_t i = 0; i < COMPARED; i++) {
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
    add_ratios(all, half, judge_half, d);
    for (size_t i = 0; i < COMPARED; i++) {
        large += is_large(ratio_of(all, half, i));
        small += is_small(ratio_of(all, half, i));
    }
    ks_document_add(d, KS_BLOCK_TEXT,
                    "With the first %zu of the %zu minibatches, %zu of %d statistics change by "
                    "more than a factor of %g and %zu by less; for the others the intervals do "
                    "not decide. %s",
                    minibatches / 2, minibatches, large, COMPARED, SMALL, small,
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
    add_ratios(there, here, judge_other, d);
}

/* --- the architectures of a study --- */

/* Steps within this factor of each other count as the same time in training: a judgement. */
static const double SAME_STEP = 1.25 * (1 + 1e-9); /* 5000 and 4000 are within 1.25 */

/* An architecture at one step, over its seeds. */
struct entry {
    const char *name, *loss, *comparison; /* loss: NULL if the table does not say it */
    double step;
    size_t seeds;
    double bound_least, bound_most; /* kappa_effective_bound; NaN if not resolved, for one seed */
    struct ks_interval directions, q99; /* each encloses the intervals of all seeds */
    bool comparable;
};

/* By the column `loss`; where that is missing or empty, "ce" of "bn+wn+ce". NULL if neither says
 * it. */
static const char *loss_of(const struct ks_csv *csv, size_t row)
{
    const char *loss = ks_csv_text(csv, row, "loss");
    const char *architecture = ks_csv_text(csv, row, "architecture");

    return *loss && strcmp(loss, "-") != 0      ? loss
           : ks_path_ends(architecture, "+ce")  ? "ce"
           : ks_path_ends(architecture, "+mse") ? "mse"
                                                : NULL;
}

/* How far apart two steps are: |log(a / b)|. NaN if one is not known. */
static double distance(double a, double b)
{
    return a == b ? 0 : fabs(log(a) - log(b));
}

static bool is_row_of(const struct ks_csv *csv, size_t row, const char *architecture)
{
    return strcmp(ks_csv_text(csv, row, "analysis"), KS_STUDY_STANDARD) == 0 &&
           strcmp(ks_csv_text(csv, row, "architecture"), architecture) == 0;
}

static struct ks_interval interval_in(const struct ks_csv *csv, size_t row, enum ks_statistic_id id)
{
    const struct ks_interval ends = {ks_csv_value(csv, row, ks_catalogue[id].lower),
                                     ks_csv_value(csv, row, ks_catalogue[id].upper)};

    return ks_statistic_resolved(id, ends);
}

static struct ks_interval enclose(struct ks_interval a, struct ks_interval b)
{
    return (struct ks_interval){ks_min_known(a.lower, b.lower), ks_max_known(a.upper, b.upper)};
}

static void take_row(const struct ks_csv *csv, size_t i, struct entry *e)
{
    const double bound = ks_csv_value(csv, i, ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name);
    const struct ks_interval directions = interval_in(csv, i, KS_STAT_DIRECTIONS_1E2);
    const struct ks_interval q99 = interval_in(csv, i, KS_STAT_KAPPA_Q99);
    const bool first = e->seeds == 0;

    e->bound_least = first ? bound : ks_min_known(e->bound_least, bound);
    e->bound_most = first ? bound : fmax(e->bound_most, bound); /* of the seeds that have one */
    e->loss = loss_of(csv, i);
    e->directions = first ? directions : enclose(e->directions, directions);
    e->q99 = first ? q99 : enclose(e->q99, q99);
    e->seeds++;
}

/* The architecture at its step that is nearest to that of the checkpoint, by their ratio; at its
 * last one if the checkpoint's is not known. */
static struct entry entry_of(const struct ks_csv *csv, const char *name,
                             const struct ks_audit_summary *summary)
{
    const double step = summary->env_step;
    struct entry e = {.name = name, .step = NAN};
    bool same_loss, same_step;

    for (size_t i = 0; i < csv->rows; i++) {
        const double one = ks_csv_value(csv, i, "env_step");

        if (is_row_of(csv, i, name) && (isnan(e.step) || (isnan(step) && one > e.step) ||
                                        distance(one, step) < distance(e.step, step)))
            e.step = one;
    }
    for (size_t i = 0; i < csv->rows; i++)
        if (is_row_of(csv, i, name) && ks_csv_value(csv, i, "env_step") == e.step)
            take_row(csv, i, &e);
    same_loss = e.loss && strcmp(e.loss, summary->loss) == 0;
    same_step = distance(e.step, step) <= log(SAME_STEP);
    e.comparable = same_loss && same_step;
    e.comparison = e.comparable ? "same loss and step"
                   : !e.loss    ? "loss not known"
                   : same_step  ? "another loss"
                   : same_loss  ? "another step"
                                : "another loss and step";
    return e;
}

/* A lower bound of a condition number, rounded down. */
static const char *bound_text(double bound, char text[32])
{
    if (isinf(bound))
        snprintf(text, 32, "infinite");
    else if (bound > 1)
        snprintf(text, 32, "%.4g", ks_round_down(bound, 4));
    else
        snprintf(text, 32, "not resolved");
    return text;
}

static void add_entry(const struct entry *e, struct ks_document *d)
{
    char least[32], most[32], bound[80];
    const bool same = e->seeds == 1 || e->bound_least == e->bound_most;

    bound_text(e->bound_least, least);
    bound_text(e->bound_most, most);
    snprintf(bound, sizeof bound, "%s%s%s", least, same ? "" : " to ", same ? "" : most);
    ks_document_row(d, e->comparable ? KS_BLOCK_ROW : KS_BLOCK_SHADED,
                    KS_CELLS(ks_cell_name(e->name), ks_cell_text(e->comparison),
                             ks_cell_fixed(0, e->step), ks_cell_count(e->seeds),
                             ks_cell_printed(bound, e->bound_least),
                             ks_cell_interval(e->directions, KS_BRACKETS_WHOLE),
                             ks_cell_interval(e->q99, KS_BRACKETS_WHOLE)));
}

/* How many architectures are comparable; which of them have, beyond the intervals, fewer and more
 * directions than this checkpoint. */
struct counts {
    size_t comparable, fewer, more;
};

static void add_counts(const struct ks_audit *a, const struct counts *n, const char *env,
                       struct ks_document *d)
{
    const char *own = *a->summary.env ? a->summary.env : "not known";

    if (isnan(a->summary.env_step))
        ks_document_add(d, KS_BLOCK_TEXT,
                        "No architecture is comparable, because the file does not say at which "
                        "step it was written (attribute env_step).");
    else if (n->comparable == 0)
        ks_document_add(d, KS_BLOCK_TEXT,
                        "No architecture is comparable: none has the same loss and a checkpoint at "
                        "about the same step.");
    else
        ks_document_add(
            d, KS_BLOCK_TEXT,
            "Of %zu comparable architecture%s, %zu have fewer directions within a factor of 100 of "
            "the largest curvature than this checkpoint, and %zu have more. The intervals do not "
            "decide about the others.",
            n->comparable, n->comparable == 1 ? "" : "s", n->fewer, n->more);
    if (strcmp(own, env) != 0)
        ks_document_add(d, KS_BLOCK_TEXT,
                        "The task of the study is %s, that of this checkpoint is %s: differences "
                        "may come from the task.",
                        env, own);
    ks_document_add(
        d, KS_BLOCK_NOTE,
        "An interval encloses the intervals of all seeds. Rows in parentheses, or grey, "
        "must not be compared.");
}

static bool seen_before(const struct ks_csv *csv, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (is_row_of(csv, i, ks_csv_text(csv, row, "architecture")))
            return true;
    return false;
}

static void add_table(const struct ks_audit *a, const struct ks_csv *csv, struct ks_document *d)
{
    const struct ks_spectrum *s = a->spectrum[KS_AUDIT_HESSIAN];
    const double bound = ks_statistic_value(s, KS_STAT_KAPPA_EFFECTIVE_BOUND);
    const struct entry self = {.name = "this checkpoint",
                               .comparison = "-",
                               .step = a->summary.env_step,
                               .seeds = 1,
                               .directions = ks_audit_interval(s, KS_STAT_DIRECTIONS_1E2),
                               .q99 = ks_audit_interval(s, KS_STAT_KAPPA_Q99),
                               .bound_least = bound,
                               .bound_most = bound,
                               .comparable = true};
    struct counts counts = {0};

    ks_document_columns(d, "", "architecture<, comparison<, step, seeds, %s (at least), %s, %s",
                        ks_catalogue[KS_STAT_KAPPA_EFFECTIVE_BOUND].name,
                        ks_catalogue[KS_STAT_DIRECTIONS_1E2].name,
                        ks_catalogue[KS_STAT_KAPPA_Q99].name);
    add_entry(&self, d);
    for (size_t i = 0; i < csv->rows; i++) {
        const char *name = ks_csv_text(csv, i, "architecture");
        struct entry e;

        if (!is_row_of(csv, i, name) || seen_before(csv, i))
            continue;
        e = entry_of(csv, name, &a->summary);
        add_entry(&e, d);
        counts.comparable += e.comparable;
        counts.fewer += e.comparable && e.directions.upper < self.directions.lower;
        counts.more += e.comparable && e.directions.lower > self.directions.upper;
    }
    add_counts(a, &counts, csv->rows > 0 ? ks_csv_text(csv, 0, "env") : "not known", d);
}

ks_status ks_audit_place(const struct ks_audit *a, const struct ks_audit_study *study,
                         struct ks_document *d)
{
    struct ks_csv *csv = NULL;
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/checkpoints.csv", study->folder));
    status = ks_csv_read(path, false, &csv);
    if (status == KS_OK) {
        ks_document_add(d, KS_BLOCK_SECTION, "Among the architectures of %s", study->name);
        add_table(a, csv, d);
        status = d->status;
    }
    ks_csv_free(csv);
    free(path);
    return status;
}
