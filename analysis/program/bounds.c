#include "program/bounds.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/sort.h"
#include "program/stages.h"

static bool is_wanted(const struct ks_analysis *a)
{
    return !a->options->compat && a->layer < 0 && ks_gradient_bounds_exist(&a->subject.problem);
}

static ks_status measure(struct ks_analysis *a)
{
    return ks_gradient_bounds_measure(&a->subject.problem, (size_t)ks_team_rank(&a->team),
                                      (size_t)ks_team_size(&a->team), &a->bounds);
}

/* Completes the arrays, each of which a rank has filled in for its minibatches. */
static ks_status sum(struct ks_analysis *a)
{
    struct ks_gradient_bounds *b = &a->bounds;
    double *room = NULL;
    ks_status status = ks_alloc(ks_team_room(&a->team, b->rows), sizeof *room, &room);

    KS_GO(ks_team_agree(a->world, ks_name_checkpoint(a, status)));
    ks_team_sum_vector(&a->team, b->rows, room, b->logit);
    ks_team_sum(&a->team, b->pairs, b->gradient);
    ks_team_sum(&a->team, KS_JACOBIAN_ROWS, b->jacobian);
done:
    free(room);
    return status;
}

ks_status ks_bounds_measure(struct ks_analysis *a)
{
    if (!is_wanted(a))
        return KS_OK;
    KS_TRY(ks_on_all(a, measure));
    return sum(a);
}

static double median(size_t n, const double *sorted)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* NAME_largest and NAME_median of x [n], which is sorted. */
static ks_status add(const char *name, size_t n, double *x, struct ks_attributes *summary)
{
    char text[KS_ATTRIBUTE_NAME];

    qsort(x, n, sizeof *x, ks_ascending);
    snprintf(text, sizeof text, "%s_largest", name);
    KS_TRY(ks_attribute_add_number(summary, text, x[n - 1]));
    snprintf(text, sizeof text, "%s_median", name);
    return ks_attribute_add_number(summary, text, median(n, x));
}

ks_status ks_bounds_add(struct ks_gradient_bounds *b, struct ks_spectrum *s)
{
    if (b->rows == 0)
        return KS_OK;
    KS_TRY(add("logit_gradient", b->rows, b->logit, &s->summary));
    KS_TRY(add("minibatch_gradient", b->pairs, b->gradient, &s->summary));
    KS_TRY(add("logit_jacobian", KS_JACOBIAN_ROWS, b->jacobian, &s->summary));
    return ks_attribute_add_number(&s->summary, "logit_jacobian_rows", KS_JACOBIAN_ROWS);
}
