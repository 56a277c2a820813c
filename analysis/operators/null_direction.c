/* The entries of the null directions that null_space.c finds. */
#include "operators/null_space.h"

#include <assert.h>
#include <math.h>

/* The partner's entries come last. */
static size_t n_entries(const struct ks_null_family *f)
{
    return f->partner == KS_NO_PARTNER ? f->length : 2 * f->length;
}

/* Entry i of a direction, before it is scaled to norm 1; *at is its index in [E P]. */
static double entry(const struct ks_null_space *s, const struct ks_null_direction *u, size_t i,
                    size_t *at)
{
    const struct ks_null_family *f = u->family;
    bool second = i >= f->length;
    double value = second ? -1 : 1;

    *at = (s->first + u->critic) * s->parameters + (second ? f->partner : f->offset) +
          u->k * f->step + (second ? i - f->length : i) * f->stride;
    if (f->normal)
        value = s->checkpoint->critic.w[*at];
    return s->scaled ? value * sqrt(ks_preconditioner(s->checkpoint, *at)) : value;
}

/* The norm of a direction; 0 if D_i = 0 at one of its entries. */
static double norm_of(const struct ks_null_space *s, const struct ks_null_direction *u)
{
    double square = 0;
    size_t at;

    assert(u->critic < s->critics && u->k < u->family->count);
    for (size_t i = 0; i < n_entries(u->family); i++) {
        double value = entry(s, u, i, &at);

        if (value == 0 && s->scaled)
            return 0;
        square += value * value;
    }
    return sqrt(square);
}

bool ks_null_space_next(const struct ks_null_space *s, struct ks_null_direction *u)
{
    const struct ks_null_family *end = s->family + s->n_families;

    if (!u->family)
        u->family = s->family;
    else if (++u->k == u->family->count) {
        u->k = 0;
        if (++u->critic == s->critics) {
            u->critic = 0;
            u->family++;
        }
    }
    return u->family < end;
}

void ks_null_space_add(const struct ks_null_space *s, const struct ks_null_direction *u,
                       double factor, double *full)
{
    double norm = norm_of(s, u);
    size_t at;

    if (norm == 0)
        return;
    for (size_t i = 0; i < n_entries(u->family); i++) {
        double value = entry(s, u, i, &at);

        full[at] += factor * value / norm;
    }
}

double ks_null_space_dot(const struct ks_null_space *s, const struct ks_null_direction *u,
                         const double *full)
{
    double norm = norm_of(s, u), sum = 0;
    size_t at;

    for (size_t i = 0; i < n_entries(u->family); i++) {
        double value = entry(s, u, i, &at);

        sum += value * full[at];
    }
    return norm == 0 ? 0 : sum / norm;
}

bool ks_null_space_is_zero(const struct ks_null_space *s, const struct ks_null_direction *u,
                           const double *full)
{
    size_t at;

    for (size_t i = 0; i < n_entries(u->family); i++)
        if (entry(s, u, i, &at) != 0 && full[at] != 0)
            return false;
    return norm_of(s, u) > 0;
}

size_t ks_null_space_entries(const struct ks_null_space *s, const struct ks_null_direction *u,
                             size_t *at, double *value)
{
    double norm = norm_of(s, u);

    if (norm == 0)
        return 0;
    for (size_t i = 0; at && i < n_entries(u->family); i++)
        value[i] = entry(s, u, i, &at[i]) / norm;
    return n_entries(u->family);
}
