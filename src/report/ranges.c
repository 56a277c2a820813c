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

#include "core/number.h"
#include "core/round.h"
#include "report/plot_tables.h"

const char *const ks_range_names[KS_RANGES] = {"directions_1e2", "kappa_q99", "kappa_gradient_90"};

size_t ks_results_last(const struct ks_results *r)
{
    size_t last = r->study->n_checkpoints - 1;

    while (last > 0 && !r->common_checkpoint[last])
        last--;
    return last;
}

void ks_range_find(const struct ks_range_place *place, size_t n, const struct ks_result *const *run,
                   struct ks_range range[KS_RANGES])
{
    assert(n <= KS_STUDY_SEEDS);
    for (size_t k = 0; k < KS_RANGES; k++) {
        double lower[KS_STUDY_SEEDS], upper[KS_STUDY_SEEDS];
        char name_low[64], name_high[64];
        size_t found = 0;

        snprintf(name_low, sizeof name_low, "%s_lower", ks_range_names[k]);
        snprintf(name_high, sizeof name_high, "%s_upper", ks_range_names[k]);
        for (size_t i = 0; i < n; i++) {
            double low = ks_results_statistic(place->results, run[i], place->analysis,
                                              place->checkpoint, name_low);
            double high = ks_results_statistic(place->results, run[i], place->analysis,
                                               place->checkpoint, name_high);

            if (isnan(low))
                continue;
            lower[found] = low;
            upper[found++] = isnan(high) ? INFINITY : high; /* NaN: not resolved */
        }
        range[k] = (struct ks_range){found, NAN, NAN, NAN, NAN};
        if (found == 0)
            continue;
        qsort(lower, found, sizeof *lower, ks_ascending);
        qsort(upper, found, sizeof *upper, ks_ascending);
        range[k] = (struct ks_range){found, ks_quantile(found, lower, 0.5),
                                     ks_quantile(found, upper, 0.5), lower[0], upper[found - 1]};
    }
}

void ks_range_print_end(double value, enum ks_range_end end, char text[KS_RANGE_END])
{
    double rounded = end == KS_RANGE_LOWER ? ks_round_down(value, 3) : ks_round_up(value, 3);

    if (value == floor(value) && fabs(value) < 1e6)
        snprintf(text, KS_RANGE_END, "%.0f", value);
    else
        snprintf(text, KS_RANGE_END, fabs(rounded) < 0.01 || fabs(rounded) >= 1e5 ? "%.2e" : "%.4g",
                 rounded);
}

void ks_range_print(const struct ks_range *range, char text[KS_RANGE_TEXT])
{
    char lower[KS_RANGE_END], upper[KS_RANGE_END];

    if (range->n == 0) {
        snprintf(text, KS_RANGE_TEXT, "-");
        return;
    }
    if (isinf(range->lower)) {
        snprintf(text, KS_RANGE_TEXT, "infinite");
        return;
    }
    ks_range_print_end(range->lower, KS_RANGE_LOWER, lower);
    if (isinf(range->upper)) {
        snprintf(text, KS_RANGE_TEXT, "%s or more", lower);
        return;
    }
    ks_range_print_end(range->upper, KS_RANGE_UPPER, upper);
    if (range->lower == range->upper && range->lower == floor(range->lower))
        snprintf(text, KS_RANGE_TEXT, "%s", lower);
    else
        snprintf(text, KS_RANGE_TEXT, "%s to %s", lower, upper);
}

void ks_range_print_ends(const struct ks_range range[KS_RANGES], FILE *out)
{
    for (size_t k = 0; k < KS_RANGES; k++) {
        const struct ks_range *r = &range[k];

        ks_table_number(out, r->lower);
        ks_table_number(out, isinf(r->upper) && !isinf(r->lower) ? NAN : r->upper);
        ks_table_number(out, r->least);
        ks_table_number(out, isinf(r->most) && !isinf(r->lower) ? NAN : r->most);
    }
    putc('\n', out);
}
