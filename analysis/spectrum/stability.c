#include "spectrum/stability.h"

#include <math.h>
#include <string.h>

#include "statistics/statistics.h"

double ks_stability_threshold(bool adam, double beta1, double learning_rate)
{
    return (adam ? 2 * (1 + beta1) / (1 - beta1) : 2) / learning_rate;
}

/* NaN if it is unknown. A rate of 0, at the end of a learning-rate schedule, is valid: no step
 * is unstable. */
static double choose_rate(double given, const struct ks_checkpoint *c)
{
    double rate = isnan(given) ? ks_attribute_number(&c->attributes, "learning_rate") : given;

    return rate >= 0 && isfinite(rate) ? rate : NAN;
}

static ks_status describe(const struct ks_adam_constants *adam, double rate,
                          struct ks_attributes *list)
{
    if (!isnan(rate))
        KS_TRY(ks_attribute_add_number(list, "sharpness_learning_rate", rate));
    if (!adam)
        return KS_OK;
    KS_TRY(ks_attribute_add_number(list, "adam_beta1", adam->beta1));
    KS_TRY(ks_attribute_add_number(list, "adam_beta2", adam->beta2));
    return ks_attribute_add_number(list, "adam_eps", adam->eps);
}

ks_status ks_stability_add(const struct ks_analyzed *analyzed, double learning_rate,
                           struct ks_spectrum *s)
{
    const struct ks_checkpoint *c = analyzed->problem.checkpoint;
    bool adam = strcmp(analyzed->kind->name, "preconditioned") == 0;
    double rate = choose_rate(learning_rate, c);

    KS_TRY(describe(adam ? &c->adam : NULL, rate, &s->attributes));
    if (analyzed->published || strcmp(analyzed->kind->name, "residual") == 0)
        return KS_OK;
    return ks_attribute_add_number(&s->statistics, "sharpness_ratio",
                                   ks_statistic(s, "lambda_max") /
                                       ks_stability_threshold(adam, c->adam.beta1, rate));
}
