#include "results/p_values.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"

struct entry {
    double p; /* sorted by it: the first member */
    size_t index;
};

ks_status ks_holm(size_t n, const double *p, double *adjusted)
{
    struct entry *sorted = NULL;
    size_t tests = 0;
    double largest = 0;

    KS_TRY(ks_alloc(n, sizeof *sorted, &sorted));
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (struct entry){p[i], i};
        adjusted[i] = NAN;
        tests += !isnan(p[i]);
    }
    qsort(sorted, n, sizeof *sorted, ks_ascending); /* NaN last */
    for (size_t i = 0; i < tests; i++) {
        largest = fmax(largest, fmin(1, (double)(tests - i) * sorted[i].p));
        adjusted[sorted[i].index] = largest;
    }
    free(sorted);
    return KS_OK;
}

enum { MOST_RANKS = 12 };

/* share[s]: the probability that the ranks so far sum to s. */
double ks_rank_sum_p(size_t n, size_t ranks, size_t sum)
{
    double share[MOST_RANKS * KS_RANK_SUM_TERMS + 1] = {1}, total = 0;

    assert(n >= 1 && n <= KS_RANK_SUM_TERMS && ranks >= 1 && ranks <= MOST_RANKS);
    for (size_t i = 1; i <= n; i++)
        for (size_t s = i * ranks + 1; s-- > 0;) { /* downwards: smaller sums are still of i - 1 */
            double of_s = 0;

            for (size_t r = 1; r <= ranks && r <= s; r++)
                of_s += share[s - r] / (double)ranks;
            share[s] = of_s;
        }
    for (size_t s = 0; s <= sum && s <= n * ranks; s++)
        total += share[s];
    return fmin(total, 1);
}
