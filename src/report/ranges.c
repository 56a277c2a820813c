/* Combines the intervals of a statistic over the runs of an architecture.
 *
 * An interval of the mean would need every end of every run, and one unresolved end would make it
 * infinite. So medians are used: if l_i <= x_i <= u_i for every run i, then
 * median(l) <= median(x) <= median(u), and the median stays finite while fewer than half of the
 * runs have an unresolved end. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/interval.h"
#include "core/number.h"
#include "report/plot_tables.h"

const enum ks_statistic_id ks_ranges[KS_RANGES] = {KS_STAT_DIRECTIONS_1E2, KS_STAT_KAPPA_Q99,
                                                   KS_STAT_KAPPA_GRADIENT_90};

size_t ks_results_last(const struct ks_results *r)
{
    size_t last = r->study->n_checkpoints - 1;

    while (last > 0 && !r->common_checkpoint[last])
        last--;
    return last;
}

void ks_range_find(const struct ks_range_place *place, size_t n, const struct ks_result *const *run,
                   struct ks_seed_range range[KS_RANGES])
{
    assert(n <= KS_STUDY_SEEDS);
    for (size_t k = 0; k < KS_RANGES; k++) {
        double lower[KS_STUDY_SEEDS], upper[KS_STUDY_SEEDS];
        size_t found = 0;

        for (size_t i = 0; i < n; i++) {
            const struct ks_spectrum *spectrum = ks_results_spectrum(
                place->results, run[i], place->analysis, place->checkpoint);
            const struct ks_interval in = spectrum ? ks_statistic_interval(spectrum, ks_ranges[k])
                                                   : (struct ks_interval){NAN, NAN};

            if (isnan(in.lower))
                continue;
            lower[found] = in.lower;
            upper[found++] = isnan(in.upper) ? INFINITY : in.upper; /* NaN: not resolved */
        }
        range[k] = (struct ks_seed_range){found, {NAN, NAN}, {NAN, NAN}};
        if (found == 0)
            continue;
        qsort(lower, found, sizeof *lower, ks_ascending);
        qsort(upper, found, sizeof *upper, ks_ascending);
        range[k] = (struct ks_seed_range){
            found,
            {ks_quantile(found, lower, 0.5), ks_quantile(found, upper, 0.5)},
            {lower[0], upper[found - 1]}};
    }
}

void ks_range_print_ends(const struct ks_seed_range range[KS_RANGES], FILE *out)
{
    for (size_t k = 0; k < KS_RANGES; k++) {
        const struct ks_interval *r = &range[k].median, *all = &range[k].all;

        ks_table_number(out, r->lower);
        ks_table_number(out, isinf(r->upper) && !isinf(r->lower) ? NAN : r->upper);
        ks_table_number(out, all->lower);
        ks_table_number(out, isinf(all->upper) && !isinf(r->lower) ? NAN : all->upper);
    }
    putc('\n', out);
}
