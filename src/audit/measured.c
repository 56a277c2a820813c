/* The critics that were measured: read from a table with a row for each checkpoint, gathered into
 * one entry for each architecture of a study. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/measured.h"
#include "core/memory.h"
#include "io/file.h"
#include "statistics/catalogue.h"
#include "statistics/statistics.h"
#include "study/study_file.h"

const double ks_verdict_margin = 1.25;

static bool are_apart(struct ks_interval less, struct ks_interval more)
{
    return less.upper * ks_verdict_margin < more.lower; /* false if an end is NaN */
}

enum ks_verdict ks_verdict(const struct ks_conditioning *a, const struct ks_conditioning *b)
{
    const bool better = are_apart(b->directions, a->directions) || are_apart(a->q99, b->q99);
    const bool worse = are_apart(a->directions, b->directions) || are_apart(b->q99, a->q99);

    return better == worse ? KS_UNDECIDED : better ? KS_BETTER : KS_WORSE;
}

struct ks_conditioning ks_conditioning_of(const struct ks_spectrum *s)
{
    const struct ks_interval none = {NAN, NAN};

    if (ks_audit_is_zero(s))
        return (struct ks_conditioning){none, none};
    return (struct ks_conditioning){ks_audit_interval(s, KS_STAT_DIRECTIONS_1E2),
                                    ks_audit_interval(s, KS_STAT_KAPPA_Q99)};
}

double ks_step_distance(double a, double b)
{
    const double distance = fabs(log(a / b));

    return a == b ? 0 : isnan(distance) ? INFINITY : distance;
}

/* --- one architecture --- */

/* By the column `loss`; where that is missing or empty, "ce" of "bn+wn+ce". */
static const char *loss_of(const struct ks_csv *csv, size_t row)
{
    const char *loss = ks_csv_text(csv, row, "loss");
    const char *architecture = ks_csv_text(csv, row, "architecture");

    return *loss && strcmp(loss, "-") != 0      ? loss
           : ks_path_ends(architecture, "+ce")  ? "ce"
           : ks_path_ends(architecture, "+mse") ? "mse"
                                                : "-";
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

/* Adds a seed of the entry's architecture at its step. */
static void add_seed(const struct ks_csv *csv, size_t row, struct ks_measured_critic *c)
{
    const double mean = ks_csv_value(csv, row, "return_mean");
    const struct ks_conditioning one = {interval_in(csv, row, KS_STAT_DIRECTIONS_1E2),
                                        interval_in(csv, row, KS_STAT_KAPPA_Q99)};
    struct ks_conditioning *all = &c->conditioning;
    const bool first = c->seeds == 0;

    all->directions = first ? one.directions : enclose(all->directions, one.directions);
    all->q99 = first ? one.q99 : enclose(all->q99, one.q99);
    c->return_mean = first ? mean
                           : c->return_mean + (mean - c->return_mean) / (double)(c->seeds + 1);
    c->seeds++;
}

/* Whether a row is of the standard analysis, as all rows of the shipped table are, and of a critic
 * at its first update or not; a table may not tell. */
static bool is_standard(const struct ks_csv *csv, size_t row, bool untrained)
{
    const char *analysis = ks_csv_text(csv, row, "analysis");
    const double update = ks_csv_value(csv, row, "update");

    return (isnan(update) || (update == 0) == untrained) &&
           (strcmp(analysis, "-") == 0 || strcmp(analysis, KS_STUDY_STANDARD) == 0);
}

static bool is_of(const struct ks_csv *csv, size_t a, size_t b, bool untrained)
{
    return is_standard(csv, a, untrained) &&
           strcmp(ks_csv_text(csv, a, "architecture"), ks_csv_text(csv, b, "architecture")) == 0 &&
           strcmp(ks_csv_text(csv, a, "study"), ks_csv_text(csv, b, "study")) == 0;
}

/* The step, of those of this row's architecture, that is nearest to `step`, or the last one. */
static double nearest_step(const struct ks_csv *csv, size_t row, double step, bool untrained)
{
    double best = NAN;

    for (size_t i = row; i < csv->rows; i++) {
        const double one = ks_csv_value(csv, i, "env_step");

        if (is_of(csv, i, row, untrained) &&
            (isnan(best) || (isnan(step) && one > best) ||
             ks_step_distance(one, step) < ks_step_distance(best, step)))
            best = one;
    }
    return best;
}

static struct ks_measured_critic gather(const struct ks_csv *csv, size_t row, const char *study,
                                        double step, bool untrained)
{
    struct ks_measured_critic c = {.study = study ? study : ks_csv_text(csv, row, "study"),
                                   .env = ks_csv_text(csv, row, "env"),
                                   .name = ks_csv_text(csv, row, "architecture"),
                                   .loss = loss_of(csv, row),
                                   .minibatches = ks_csv_value(csv, row, "minibatches"),
                                   .step = nearest_step(csv, row, step, untrained)};

    for (size_t i = row; i < csv->rows; i++)
        if (is_of(csv, i, row, untrained) && ks_csv_value(csv, i, "env_step") == c.step)
            add_seed(csv, i, &c);
    return c;
}

static bool is_first(const struct ks_csv *csv, size_t row, bool untrained)
{
    for (size_t i = 0; i < row; i++)
        if (is_of(csv, i, row, untrained))
            return false;
    return is_standard(csv, row, untrained);
}

ks_status ks_measured_read(const char *path, const char *study, double step, bool untrained,
                           struct ks_measured *m)
{
    *m = (struct ks_measured){.n = 0};
    KS_TRY(ks_csv_read(path, false, &m->csv));
    KS_TRY(ks_alloc(m->csv->rows, sizeof *m->critic, &m->critic));
    for (int turn = 0; turn < 2 && m->n == 0; turn++, untrained = !untrained)
        for (size_t i = 0; i < m->csv->rows; i++)
            if (is_first(m->csv, i, untrained))
                m->critic[m->n++] = gather(m->csv, i, study, step, untrained);
    return m->n > 0
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: expected rows of the analysis standard, found none", path);
}

void ks_measured_clear(struct ks_measured *m)
{
    ks_csv_free(m->csv);
    free(m->critic);
    *m = (struct ks_measured){.n = 0};
}
