#include "program/stability.h"

#include <math.h>
#include <string.h>

#include "statistics/statistics.h"

double ks_stability_threshold(bool adam, double beta1, double learning_rate)
{
    return (adam ? 2 * (1 + beta1) / (1 - beta1) : 2) / learning_rate;
}

/* NaN if it is unknown. A rate of 0, at the end of a learning-rate schedule, is valid: no step
 * is unstable. */
static double learning_rate_of(const struct ks_options *o, const struct ks_checkpoint *c)
{
    double rate = isnan(o->learning_rate) ? ks_attribute_number(&c->attributes, "learning_rate")
                                          : o->learning_rate;

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

ks_status ks_stability_add(const struct ks_options *o, const struct ks_subject *subject,
                           struct ks_spectrum *s)
{
    const struct ks_checkpoint *c = subject->problem.checkpoint;
    bool adam = strcmp(o->kind->name, "preconditioned") == 0;
    double rate = learning_rate_of(o, c);

    KS_TRY(describe(adam ? &c->adam : NULL, rate, &s->attributes));
    if (o->compat || strcmp(o->kind->name, "residual") == 0)
        return KS_OK;
    return ks_attribute_add_number(&s->statistics, "sharpness_ratio",
                                   ks_statistic(s, "lambda_max") /
                                       ks_stability_threshold(adam, c->adam.beta1, rate));
}
