/* The runs that are compared; improvement.csv and profile.csv. */
#include "results/comparison_tables.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "results/comparisons.h"
#include "results/score_ranges.h"

static const char *name_of(const struct ks_comparison *c, size_t i)
{
    return c->results->study->architecture[c->architecture[i]].name;
}

static void print_number(FILE *out, double value)
{
    if (isnan(value))
        fputs(",-", out);
    else
        fprintf(out, ",%.10g", value);
}

static void print_estimate(FILE *out, struct ks_estimate e)
{
    print_number(out, e.value);
    print_number(out, e.in.lower);
    print_number(out, e.in.upper);
}

/* The index in c->last of the first run of architecture `i`. */
static size_t first_run(const struct ks_comparison *c, size_t i)
{
    size_t first = 0;

    while (i-- > 0)
        first += c->runs[i];
    return first;
}

static size_t last_evaluation(const struct ks_results *r)
{
    size_t k = r->study->n_evaluations - 1;

    while (k > 0 && !r->common_evaluation[k])
        k--;
    return k;
}

double ks_comparison_last(const struct ks_results *r, const struct ks_result *run)
{
    return run->returns[last_evaluation(r)];
}

ks_status ks_comparison_begin(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    size_t all = r->study->n_architectures;

    *c = (struct ks_comparison){.results = r, .resamples = resamples};
    KS_TRY(ks_alloc(all, sizeof *c->architecture, &c->architecture));
    KS_TRY(ks_alloc(all, sizeof *c->runs, &c->runs));
    KS_TRY(ks_alloc(r->n_runs, sizeof(const struct ks_result *), &c->run));
    return ks_alloc(r->n_runs, sizeof *c->last, &c->last);
}

void ks_comparison_add(struct ks_comparison *c, size_t architecture, size_t n,
                       const struct ks_result *const *run)
{
    size_t before = first_run(c, c->n);

    c->architecture[c->n] = architecture;
    c->runs[c->n++] = n;
    for (size_t k = 0; k < n; k++) {
        c->run[before + k] = run[k];
        c->last[before + k] = ks_comparison_last(c->results, run[k]);
    }
}

ks_status ks_comparison_new(const struct ks_results *r, size_t resamples, struct ks_comparison *c)
{
    size_t order[KS_STUDY_ARCHITECTURES], n = ks_results_order(r, order);

    KS_TRY(ks_comparison_begin(r, resamples, c));
    for (size_t i = 0; i < n; i++) {
        const struct ks_result *run[KS_STUDY_SEEDS];
        size_t runs = ks_results_runs(r, order[i], run);

        ks_comparison_add(c, order[i], runs, run);
    }
    return KS_OK;
}

void ks_comparison_free(struct ks_comparison *c)
{
    free(c->architecture);
    free(c->runs);
    free(c->run);
    free(c->last);
}

/* --- improvement.csv --- */

static ks_status compare(const struct ks_comparison *c, size_t i, size_t j,
                         struct ks_estimate *probability)
{
    const struct ks_sample x = {1, &c->runs[i], c->last + first_run(c, i)},
                           y = {1, &c->runs[j], c->last + first_run(c, j)};

    return ks_improvement(&x, &y, c->resamples, 0, probability);
}

/* P(y > x) = 1 - P(x > y), with the interval mirrored, so each pair is resampled only once, in the
 * order of the table. */
ks_status ks_comparison_write_improvement(const struct ks_comparison *c, FILE *out)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->n; j++) {
            struct ks_estimate p;

            if (i == j)
                continue;
            KS_TRY(compare(c, i < j ? i : j, i < j ? j : i, &p));
            if (i > j)
                p = (struct ks_estimate){1 - p.value, {1 - p.in.upper, 1 - p.in.lower}};
            fprintf(out, "%s,%s", name_of(c, i), name_of(c, j));
            print_estimate(out, p);
            putc('\n', out);
        }
    return KS_OK;
}

/* --- profile.csv --- */

enum { TAUS = 51 }; /* 0, 0.02, ..., 1 */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* score [seeds]: scratch. */
static ks_status write_one_profile(const struct ks_comparison *c, size_t i,
                                   const struct ks_score_range *range, double *score, FILE *out)
{
    double tau[TAUS];
    const struct ks_profile profile = {
        {1, &c->runs[i], score}, TAUS, tau, smaller(c->resamples, KS_PROFILE_RESAMPLES), 0};
    struct ks_estimate fraction[TAUS];

    for (size_t k = 0; k < c->runs[i]; k++)
        KS_TRY(ks_score_normalize(range, c->last[first_run(c, i) + k], &score[k]));
    for (size_t k = 0; k < TAUS; k++)
        tau[k] = (double)k / (TAUS - 1);
    KS_TRY(ks_profile(&profile, fraction, NULL));
    for (size_t k = 0; k < TAUS; k++) {
        fprintf(out, "%s,%.10g", name_of(c, i), tau[k]);
        print_estimate(out, fraction[k]);
        putc('\n', out);
    }
    return KS_OK;
}

ks_status ks_comparison_write_profile(const struct ks_comparison *c, FILE *out)
{
    const struct ks_score_range *range;
    double *score = NULL, any;
    ks_status status = KS_OK;

    if (ks_score_range_of_returns(c->results->study->env, &range) != KS_OK ||
        ks_score_normalize(range, 0, &any) != KS_OK)
        return KS_OK;
    KS_GO(ks_alloc(c->results->study->n_seeds, sizeof *score, &score));
    for (size_t i = 0; i < c->n; i++)
        KS_GO(write_one_profile(c, i, range, score, out));
done:
    free(score);
    return status;
}
