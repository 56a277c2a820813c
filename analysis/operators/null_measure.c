/* The entries of the null directions that null_space.c finds; and products of the operator with
 * them and with a random vector: how far rounding takes what must be zero from zero, and which
 * coordinates are dead. */
#include "operators/null_space.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <cblas.h>

#include "core/rng.h"

/* --- the directions --- */

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

/* u' full. */
static double dot(const struct ks_null_space *s, const struct ks_null_direction *u,
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

/* Whether u is not 0 and `full` is zero at all nonzero entries of u. */
static bool is_zero(const struct ks_null_space *s, const struct ks_null_direction *u,
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

/* --- their measurement --- */

static const uint64_t SEED = 0x6e756c6c; /* stream k: the combination of family k */

/* One measurement: its vectors, and the callback after each product. */
struct trial {
    size_t of, n; /* all parameters; the selected ones */
    const struct ks_null_space *space;
    const struct ks_operator *a;
    double *full;      /* [of]  */
    double *worst;     /* [of]: the largest image of a combination */
    double *u, *image; /* [n]   */
    size_t products;
    ks_status (*on_product)(void *context, size_t products);
    void *context;
};

/* t->image = A u - shift u for the selected coordinates u of t->full; *ratio = |image| / |u|,
 * computed without overflow or underflow. */
static ks_status try_vector(struct trial *t, double *ratio)
{
    int n = (int)t->a->n;

    ks_selection_gather(t->space->selection, t->full, t->u);
    KS_TRY(ks_operator_apply(t->a, t->u, t->image));
    if (t->on_product)
        KS_TRY(t->on_product(t->context, ++t->products));
    for (size_t i = 0; i < t->a->n; i++)
        t->image[i] -= t->space->shift * t->u[i];
    *ratio = cblas_dnrm2(n, t->image, 1) / cblas_dnrm2(n, t->u, 1);
    if (!isfinite(*ratio))
        return ks_fail(
            KS_NUMBER,
            "a product with a null direction or a random vector holds a NaN or an infinity");
    return KS_OK;
}

static void combine(const struct ks_null_space *s, size_t family, double *full)
{
    struct ks_rng rng = ks_rng_start(SEED, family);

    for (size_t i = 0; i < s->selection->of; i++)
        full[i] = 0;
    for (size_t e = 0; e < s->critics; e++)
        for (size_t k = 0; k < s->family[family].count; k++)
            ks_null_space_add(s, &(struct ks_null_direction){&s->family[family], e, k},
                              ks_rng_normal(&rng), full);
}

/* Multiplies the projection of t->worst onto the null space, as if all directions were orthogonal.
 * `worst` > 0 is the ratio of that image. */
static ks_status try_worst(struct trial *t, double worst, double *ratio)
{
    const struct ks_null_space *s = t->space;
    bool any = false;

    *ratio = 0;
    for (size_t i = 0; i < s->selection->of; i++)
        t->full[i] = 0;
    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(s, &u);) {
        double share = dot(s, &u, t->worst) / worst;

        ks_null_space_add(s, &u, share, t->full);
        any |= share != 0;
    }
    return any ? try_vector(t, ratio) : KS_OK;
}

static ks_status try_directions(struct trial *t, double *product)
{
    double ratio;

    for (size_t i = 0; i < t->space->n_families; i++) {
        combine(t->space, i, t->full);
        KS_TRY(try_vector(t, &ratio));
        if (i == 0 || ratio > *product) {
            *product = ratio;
            ks_selection_scatter(t->space->selection, t->image, t->worst);
        }
    }
    if (!(*product > 0))
        return KS_OK;
    KS_TRY(try_worst(t, *product, &ratio));
    *product = fmax(*product, ratio);
    return KS_OK;
}

/* Counts the coordinates where the image of a random vector is zero, minus the null directions
 * whose entries are all among them; and measures the leak of that image. */
static ks_status try_random(struct trial *t, struct ks_null *null)
{
    const struct ks_null_space *s = t->space;
    struct ks_rng rng = ks_rng_start(SEED, s->n_families);
    double ratio, leak = 0;

    for (size_t i = 0; i < s->selection->of; i++)
        t->full[i] = ks_rng_normal(&rng);
    KS_TRY(try_vector(t, &ratio));
    for (size_t i = 0; i < t->a->n; i++) {
        if (fabs(t->image[i]) <= 2 * DBL_EPSILON * fabs(s->shift * t->u[i]))
            t->image[i] = 0;
        null->is_dead[i] = t->image[i] == 0;
        null->dead += null->is_dead[i];
    }
    ks_selection_scatter(s->selection, t->image, t->full);
    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(s, &u);) {
        null->dead -= is_zero(s, &u, t->full);
        leak = hypot(leak, dot(s, &u, t->full));
    }
    if (s->n_families > 0)
        null->leak = leak > 0 ? leak / cblas_dnrm2((int)t->a->n, t->image, 1) : 0;
    return KS_OK;
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct trial *t = object;

    t->full = KS_TAKE(arena, t->of, double);
    t->worst = KS_TAKE(arena, t->of, double);
    t->u = KS_TAKE(arena, t->n, double);
    t->image = KS_TAKE(arena, t->n, double);
}

static void lay_out_null(struct ks_arena *arena, void *object)
{
    struct ks_null *null = object;

    null->is_dead = KS_TAKE(arena, null->n, bool);
}

size_t ks_null_products(const struct ks_null_space *space)
{
    return space->n_families + 2;
}

ks_status ks_null_measure(const struct ks_null_space *space, const struct ks_operator *a,
                          ks_status (*on_product)(void *context, size_t products), void *context,
                          struct ks_null *null)
{
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    struct trial t = {.of = space->selection->of,
                      .n = a->n,
                      .space = space,
                      .a = a,
                      .on_product = on_product,
                      .context = context};

    *null = (struct ks_null){.dimension = space->dimension, .product = NAN, .leak = NAN, .n = a->n};
    KS_TRY(ks_arena_make(&null->arena, lay_out_null, null));
    KS_TRY(ks_arena_make(&arena, lay_out, &t));
    if (ks_counting())
        return KS_OK;
    KS_TRY(try_directions(&t, &null->product));
    KS_TRY(try_random(&t, null));
    return KS_OK;
}

void ks_null_take_dead(struct ks_null *null, struct ks_null *other)
{
    ks_null_clear(null);
    null->dead = other->dead;
    null->is_dead = other->is_dead;
    null->arena = other->arena;
    other->is_dead = NULL;
    other->arena = (struct ks_arena){.bytes = 0};
}

void ks_null_clear(struct ks_null *null)
{
    ks_arena_free(&null->arena);
    null->is_dead = NULL;
}
