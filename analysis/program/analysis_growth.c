/* How many minibatches: with a tolerance for lambda_max or lambda_min, an analysis begins with few
 * of them and takes more until their standard error over the minibatches is within the tolerance.
 *
 * More minibatches are another operator, with other Krylov spaces: its quadrature rules do not
 * follow from the old ones. So an analysis that needs more begins again, with about as many as the
 * error says, which falls with the square root of their number. Until their number is found, other
 * tolerances do not count: their probes would be run in vain. */
#include "program/stages.h"

#include <math.h>

#include "spectrum/adaptive.h"

static const double MARGIN = 1.25, LEAST = 1.5; /* the error is uncertain itself */

void ks_analysis_begin_minibatches(struct ks_analysis *a)
{
    const struct ks_tolerances *t = &a->options->tolerances;

    for (size_t i = 0; i < t->n; i++)
        if (ks_tolerance_end(&t->list[i]))
            a->ends.list[a->ends.n++] = t->list[i];
    if (a->ends.n == 0 || ks_team_size(a->world) > 1 || !a->options->certificates)
        return;
    a->most_minibatches = a->minibatches;
    a->minibatches = a->minibatches < KS_FIRST_MINIBATCHES ? a->minibatches : KS_FIRST_MINIBATCHES;
    a->analyzed.problem.minibatches = a->minibatches;
    a->pilot = a->ends.n < t->n && a->minibatches < a->most_minibatches;
}

size_t ks_analysis_fresh(const struct ks_analysis *a)
{
    size_t others = a->most_minibatches > 0 ? a->most_minibatches - a->minibatches : 0;

    return others < a->minibatches ? others : a->minibatches;
}

/* The largest error in units of its tolerance. */
static double find_excess(const struct ks_analysis *a)
{
    const struct ks_certificate *y = a->measurement.certificates.vector;
    double excess = 0, size = fmax(y[KS_Y_LARGEST].size, y[KS_Y_SMALLEST].size);

    for (size_t i = 0; i < a->ends.n && size > 0; i++) {
        const struct ks_tolerance *t = &a->ends.list[i];
        int which = ks_tolerance_end(t) > 0 ? KS_Y_LARGEST : KS_Y_SMALLEST;

        excess = fmax(excess, y[which].data_se / size / t->most);
    }
    return excess;
}

/* Back to the state before ks_analysis_pose. */
static void begin_again(struct ks_analysis *a)
{
    a->spent += ks_adaptive_spent(&a->measurement);
    ks_analysis_clear_block(a);
    ks_operator_free(a->full);
    a->full = NULL;
    a->analyzed.problem.minibatches = a->minibatches;
}

bool ks_analysis_add_minibatches(struct ks_analysis *a)
{
    const size_t most = a->most_minibatches;
    const double excess = a->minibatches < most ? find_excess(a) : 0;
    double wanted = ceil((double)a->minibatches * fmax(excess * excess * MARGIN, LEAST));

    if (!(excess > 1) && !a->pilot)
        return false;
    if (excess > 1)
        a->minibatches = wanted < (double)most ? (size_t)wanted : most;
    a->pilot = a->pilot && excess > 1 && a->minibatches < most;
    begin_again(a);
    return true;
}
