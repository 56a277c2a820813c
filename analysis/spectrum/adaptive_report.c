/* What an analysis with tolerances wanted, reached and spent. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/round.h"
#include "operators/null_space.h"
#include "spectrum/adaptive.h"

static ks_status add_number(struct ks_attributes *list, const char *name, const char *suffix,
                            double value)
{
    char full[KS_ATTRIBUTE_NAME];

    snprintf(full, sizeof full, "%s%s", name, suffix);
    return ks_attribute_add_number(list, full, value);
}

/* Products with all minibatches: of the test of null directions, of the look at the minibatches, of
 * Lanczos steps, of certificates. */
static size_t count_products(const struct ks_measurement *m)
{
    const struct ks_null_space *space = m->analyzed->space;
    const struct ks_certificates *c = &m->certificates;
    size_t products = (space ? ks_null_products(space) : 0) + m->look.products;

    if (ks_measurement_is_short(m)) /* no spectrum */
        return products + m->look.steps;
    for (size_t i = 0; i < m->spectrum->probes; i++)
        products += (size_t)m->spectrum->steps[i];
    if (!c->certified)
        return products;
    for (size_t i = 0; i < KS_CERTIFICATES; i++)
        products += c->vector[i].formed;
    return products + (c->basis != NULL) + (m->gradient != NULL);
}

size_t ks_adaptive_spent(const struct ks_measurement *m)
{
    const struct ks_certificates *c = &m->certificates;
    size_t spent = (count_products(m) + m->trace.rounds) *
                   ks_problem_minibatches(&m->analyzed->problem);

    for (size_t i = 0; c->certified && i <= KS_Y_SMALLEST; i++)
        spent += c->vector[i].formed ? c->fresh : 0;
    return spent;
}

/* "; its standard error over 8 minibatches is 0.004, within the tolerance" */
static void describe_data_error(const struct ks_measurement *m, const struct ks_tolerance *t,
                                char text[128])
{
    double error = ks_tolerance_data_error(t, m->spectrum);

    text[0] = '\0';
    if (!isnan(error))
        snprintf(text, 128, ", standard error over %zu minibatches %.2g, %s the tolerance",
                 ks_problem_minibatches(&m->analyzed->problem), ks_round_up(error, 2),
                 error <= t->most ? "within" : "beyond");
}

/* "lambda_max: 0.0032, tolerance 0.01 reached". Where fewer probes were run than allowed, more were
 * not expected to be enough. */
static ks_status describe(const struct ks_measurement *m, const struct ks_tolerance *t, char **text)
{
    const double width = ks_tolerance_width(t, m->spectrum);
    const bool limit = ks_spectrum_random(m->spectrum) == m->probes;
    char *before = *text, found[64] = "not resolved", missed[96], data[128];
    ks_status status;

    if (!isnan(width))
        snprintf(found, sizeof found, "%.2g", ks_round_up(width, 2));
    snprintf(missed, sizeof missed, "not reached: the limit is %zu probe%s of %zu steps%s",
             m->probes, m->probes == 1 ? "" : "s", m->order,
             limit ? "" : ", expected not to be enough");
    if (strcmp(ks_tolerance_name(t), "trace") == 0 && m->trace.rounds > 0)
        snprintf(missed, sizeof missed, "not reached: the limit is %zu vectors for each minibatch",
                 m->trace.rounds);
    describe_data_error(m, t, data);
    status = ks_print_string(text, "%s%s%s: %s, tolerance %g %s%s", before ? before : "",
                             before ? "; " : "", ks_tolerance_name(t), found, t->most,
                             width <= t->most ? "reached" : missed, data);
    free(before);
    return status;
}

/* "Widths of intervals: ... . Spent: ..." */
static ks_status add_sentence(const struct ks_measurement *m, size_t spent)
{
    const size_t probes = m->spectrum->probes, products = count_products(m);
    char *text = NULL, *sentence = NULL, trace[64] = "";
    ks_status status = KS_OK;

    for (size_t i = 0; i < m->tolerances->n; i++)
        KS_GO(describe(m, &m->tolerances->list[i], &text));
    if (m->trace.rounds > 0)
        snprintf(trace, sizeof trace, "; for the trace %zu vectors for each minibatch",
                 m->trace.rounds);
    KS_GO(ks_print_string(&sentence,
                          "Widths of intervals: %s. Spent: %zu probe%s of at most %zu steps, %zu "
                          "products%s; with single minibatches %zu products in all",
                          text, probes, probes == 1 ? "" : "s", m->spectrum->order, products, trace,
                          spent));
    KS_GO(ks_attribute_add_string(&m->spectrum->attributes, "tolerance", sentence));
done:
    free(text);
    free(sentence);
    return status;
}

ks_status ks_adaptive_report(const struct ks_measurement *m)
{
    const size_t spent = m->spent + ks_adaptive_spent(m);
    struct ks_spectrum *s = m->spectrum;

    for (size_t i = 0; i < m->tolerances->n; i++) {
        const struct ks_tolerance *t = &m->tolerances->list[i];

        KS_TRY(add_number(&s->statistics, ks_tolerance_name(t), "_tolerance", t->most));
        KS_TRY(
            add_number(&s->statistics, ks_tolerance_name(t), "_width", ks_tolerance_width(t, s)));
    }
    KS_TRY(ks_attribute_add_integer(&s->attributes, "minibatch_products", (int64_t)spent));
    return add_sentence(m, spent);
}
