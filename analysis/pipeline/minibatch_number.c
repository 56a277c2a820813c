/* How many products an analysis takes, and of how many minibatches. */
#include "pipeline/pipeline.h"

#include <math.h>

#include "core/memory.h"

static const double MARGIN = 1.25,
                    LEAST_GROWTH = 1.5; /* the error over minibatches is uncertain itself */

static size_t count_minibatches(const struct ks_spectrum_options *o, size_t most)
{
    return o->batches > 0 && o->batches < most ? o->batches : most;
}

double ks_most_products(const struct ks_spectrum_options *o, size_t n, size_t minibatches)
{
    return (double)count_minibatches(o, minibatches) *
           (double)(o->exact ? n
                             : o->order * (o->probes + o->gradient_probe + o->complement +
                                           ks_pipeline_measures_rounding(o)));
}

/* --- how many minibatches --- */

/* The minibatches with which an analysis begins, of `most`: with tolerances for lambda_max or
 * lambda_min only a few, if there are many. */
static size_t first_minibatches(const struct ks_spectrum_options *o, size_t most)
{
    enum { FEW = 8 }; /* their standard error is known to a quarter (its chi-square) */
    const struct ks_tolerances *t = &o->tolerances;

    /* A first look at FEW of them costs more than it may save if there are hardly twice as many. */
    for (size_t i = 0; i < t->n && o->certificates && most >= 2 * FEW; i++)
        if (ks_tolerance_end(&t->list[i]))
            return FEW;
    return most;
}

double ks_fewest_products(const struct ks_spectrum_options *o, size_t n, size_t minibatches)
{
    struct ks_spectrum_options fewest = *o;

    if (o->tolerances.n == 0)
        return 0;
    fewest.order = o->order < KS_FIRST_STEPS ? o->order : KS_FIRST_STEPS;
    fewest.probes = 1;
    fewest.batches = first_minibatches(o, count_minibatches(o, minibatches));
    return ks_most_products(&fewest, n, minibatches);
}

void ks_minibatches_begin(struct ks_pipeline *p)
{
    p->allocated_read = ks_alloc_total();
    p->most_minibatches = p->minibatches;
    p->minibatches = first_minibatches(p->options, p->minibatches);
    p->problem.minibatches = p->minibatches;
}

/* The largest error in units of its tolerance. */
static double find_minibatch_excess(const struct ks_pipeline *p)
{
    const struct ks_tolerances *tolerances = &p->options->tolerances;
    const struct ks_certificate *y = p->certificates.vector;
    double excess = 0, size = fmax(y[KS_Y_LARGEST].size, y[KS_Y_SMALLEST].size);

    if (ks_pipeline_is_short(p))
        return p->early_error.excess;
    for (size_t i = 0; i < tolerances->n && size > 0; i++) {
        const struct ks_tolerance *t = &tolerances->list[i];
        int end = ks_tolerance_end(t), which = end > 0 ? KS_Y_LARGEST : KS_Y_SMALLEST;

        if (end != 0)
            excess = fmax(excess, y[which].data_se / size / t->most);
    }
    return excess;
}

/* With a tolerance for lambda_max or lambda_min, an analysis begins with few minibatches and takes
 * more until their standard error over the minibatches is within the tolerance.
 *
 * More minibatches are another operator, with other Krylov spaces: its quadrature rules do not
 * follow from the old ones. So an analysis that needs more begins again, with about as many as the
 * error says, which falls with the square root of their number. The first probe computes the error
 * as soon as the Ritz vector is roughly known, so that little is lost. The certificates measure it
 * again; it may then be larger, so they may ask for more as well. */
bool ks_minibatches_grow(struct ks_pipeline *p)
{
    const size_t most = p->most_minibatches;
    const double excess = p->minibatches < most ? find_minibatch_excess(p) : 0;
    const double wanted = ceil((double)p->minibatches *
                               fmax(excess * excess * MARGIN, LEAST_GROWTH));

    if (!(excess > 1))
        return false;
    p->minibatches = wanted < (double)most ? (size_t)wanted : most;
    return true;
}
