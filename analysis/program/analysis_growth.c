/* How many minibatches: with a tolerance for lambda_max or lambda_min, an analysis begins with few
 * of them and takes more until their standard error over the minibatches is within the tolerance.
 *
 * More minibatches are another operator, with other Krylov spaces: its quadrature rules do not
 * follow from the old ones. So an analysis that needs more begins again, with about as many as the
 * error says, which falls with the square root of their number. The first probe looks at the error
 * as soon as the Ritz vector is roughly known (spectrum/data_error.h), so that little is lost. The
 * certificates measure it again; it may then be larger, so they may ask for more as well. */
#include "program/stages.h"

#include <math.h>

#include "core/memory.h"
#include "spectrum/adaptive.h"

static const double MARGIN = 1.25, LEAST = 1.5; /* the error is uncertain itself */

void ks_analysis_begin_minibatches(struct ks_analysis *a)
{
    if (ks_team_size(a->world) > 1)
        return;
    a->allocated_read = ks_alloc_total();
    a->most_minibatches = a->minibatches;
    a->minibatches = ks_first_minibatches(a->options, a->minibatches);
    a->analyzed.problem.minibatches = a->minibatches;
}

size_t ks_analysis_fresh(const struct ks_analysis *a)
{
    size_t others = a->most_minibatches > 0 ? a->most_minibatches - a->minibatches : 0;

    return others < a->minibatches ? others : a->minibatches;
}

/* The largest error in units of its tolerance. */
static double find_excess(const struct ks_analysis *a)
{
    const struct ks_tolerances *tolerances = &a->options->tolerances;
    const struct ks_certificate *y = a->measurement.certificates.vector;
    double excess = 0, size = fmax(y[KS_Y_LARGEST].size, y[KS_Y_SMALLEST].size);

    if (ks_measurement_is_short(&a->measurement))
        return a->measurement.look.excess;
    for (size_t i = 0; i < tolerances->n && size > 0; i++) {
        const struct ks_tolerance *t = &tolerances->list[i];
        int end = ks_tolerance_end(t), which = end > 0 ? KS_Y_LARGEST : KS_Y_SMALLEST;

        if (end != 0)
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
    ks_alloc_freed_since(a->allocated_read);
    a->analyzed.problem.minibatches = a->minibatches;
}

bool ks_analysis_add_minibatches(struct ks_analysis *a)
{
    const size_t most = a->most_minibatches;
    const double excess = a->minibatches < most ? find_excess(a) : 0;
    double wanted = ceil((double)a->minibatches * fmax(excess * excess * MARGIN, LEAST));

    if (!(excess > 1))
        return false;
    a->minibatches = wanted < (double)most ? (size_t)wanted : most;
    begin_again(a);
    return true;
}
