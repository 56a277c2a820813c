#include "import/critic.h"

#include <stdlib.h>

#include "core/memory.h"
#include "import/view.h"

/* The view of one critic's array in the file's own layout, without the axes of `axes`. */
static struct ks_view cut(const struct ks_stored *s, const struct ks_axes *axes, size_t critic)
{
    struct ks_view view = ks_view_of(s);
    const bool slice_first = axes->has_slice && axes->has_ensemble && axes->slice < axes->ensemble;

    if (axes->has_slice)
        ks_view_fix(&view, axes->slice, axes->index);
    if (axes->has_ensemble)
        ks_view_fix(&view, axes->ensemble - (slice_first ? 1 : 0), critic);
    return view;
}

/* The same with as many axes as the object has, if the others have length 1: ensembles of linear
 * layers often store biases [E, 1, out] beside kernels [E, in, out]. */
static struct ks_view view_of(const struct ks_object *o, const struct ks_stored *s,
                              const struct ks_axes *axes, size_t critic)
{
    struct ks_view view = cut(s, axes, critic);

    ks_view_squeeze(&view, o->n_dims);
    return view;
}

static bool same_dims(const struct ks_view *view, size_t n, const size_t *dims)
{
    bool same = view->n_dims == n;

    for (size_t i = 0; i < n && same; i++)
        same = view->dims[i] == dims[i];
    return same;
}

static ks_status check_axes(const struct ks_match *m, const struct ks_stored *s,
                            const struct ks_axes *axes)
{
    char words[KS_STORED_SHAPE];

    ks_stored_describe(s, words);
    if (axes->has_slice && (axes->slice >= s->n_dims || axes->index >= s->dims[axes->slice]))
        return ks_fail(KS_FORMAT, "%s: %s: expected an index %zu in axis %zu (--slice), found %s",
                       m->weights->path, s->name, axes->index, axes->slice, words);
    if (axes->has_ensemble && (axes->ensemble >= s->n_dims || s->dims[axes->ensemble] == 0))
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected critics in axis %zu (--ensemble-axis), found "
                       "%s",
                       m->weights->path, s->name, axes->ensemble, words);
    return KS_OK;
}

/* Fails unless the source has the object's shape, or for a matrix in PyTorch's layout the
 * transposed shape. */
static ks_status check_shape(const struct ks_match *m, const struct ks_object *o,
                             const struct ks_stored *s, const struct ks_axes *axes)
{
    const bool matrix = o->n_dims == 2;
    const size_t swapped[2] = {o->dims[1], o->dims[0]};
    const size_t *expected = matrix && m->map->torch ? swapped : o->dims;
    const size_t *other = expected == swapped ? o->dims : swapped;
    const struct ks_view view = view_of(o, s, axes, 0), whole = cut(s, axes, 0);
    char want[KS_STORED_SHAPE], got[KS_STORED_SHAPE];

    if (same_dims(&view, o->n_dims, expected))
        return KS_OK;
    return ks_fail(KS_FORMAT, "%s: %s: expected shape %s for %s with layout = %s, found %s%s",
                   m->weights->path, s->name, ks_shape_print(o->n_dims, expected, want), o->name,
                   m->map->torch ? "torch" : "flax", ks_shape_print(whole.n_dims, whole.dims, got),
                   matrix && same_dims(&view, 2, other) ? ", as the other layout has it" : "");
}

static ks_status check_source(const struct ks_match *m, const struct ks_found *f, size_t i,
                              const struct ks_axes *axes)
{
    const struct ks_stored *s = f->list[i].stored;

    if (s->real == KS_NOT_REAL)
        return ks_fail(KS_FORMAT, "%s: %s: expected real numbers for %s, found %s",
                       m->weights->path, s->name, f->object->name, s->type);
    KS_TRY(check_axes(m, s, axes));
    return check_shape(m, f->object, s, axes);
}

ks_status ks_critic_count(const struct ks_match *m, const struct ks_axes *axes, size_t *critics)
{
    *critics = 0;
    for (size_t k = 0; k < m->n; k++) {
        const struct ks_found *f = &m->found[k];
        size_t n = f->n;

        if (axes->has_ensemble && f->n != 1)
            return ks_fail(KS_FORMAT,
                           "%s:%zu: '%s': expected one array, whose axis has the "
                           "critics (--ensemble-axis), found %zu",
                           m->map->path, f->line->number, f->line->glob, f->n);
        for (size_t i = 0; i < f->n; i++)
            KS_TRY(check_source(m, f, i, axes));
        if (axes->has_ensemble)
            n = f->list[0].stored->dims[axes->ensemble];
        if (k > 0 && n != *critics)
            return ks_fail(KS_FORMAT, "%s: %s: expected %zu critics, as %s has, found %zu",
                           m->weights->path, f->list[0].stored->name, *critics,
                           m->found[0].list[0].stored->name, n);
        *critics = n;
    }
    return KS_OK;
}

static ks_status check_variances(const struct ks_weights *w, const struct ks_stored *s,
                                 const double *values)
{
    for (size_t i = 0; i < ks_stored_count(s); i++)
        if (values[i] < 0)
            return ks_fail(KS_FORMAT, "%s: %s: expected variances, found %g at element %zu",
                           w->path, s->name, values[i], i);
    return KS_OK;
}

/* Where one critic's array starts. */
static double *place(const struct ks_networks *networks, const struct ks_object *o, size_t critic)
{
    const struct KS(arch) *arch = networks->arch;

    if (o->state)
        return networks->state + critic * arch->states + o->offset;
    if (o->offset >= arch->parameters) /* of a layer with trainable=no */
        return networks->frozen + critic * arch->frozen + (o->offset - arch->parameters);
    return networks->w + critic * arch->parameters + o->offset;
}

/* Copies the critics of one source to networks `first`, first + 1, ... */
static ks_status take(const struct ks_match *m, const struct ks_found *f, const struct ks_stored *s,
                      const struct ks_axes *axes, size_t first, struct ks_networks *networks)
{
    const size_t critics = axes->has_ensemble ? s->dims[axes->ensemble] : 1;
    ks_status status = KS_OK;
    double *values;

    KS_TRY(ks_weights_read(m->weights, s, &values));
    if (f->object->variance)
        KS_GO(check_variances(m->weights, s, values));
    for (size_t e = 0; e < critics; e++) {
        struct ks_view view = view_of(f->object, s, axes, e);

        if (f->object->n_dims == 2 && m->map->torch)
            ks_view_swap(&view, 0, 1);
        ks_view_copy(&view, values, place(networks, f->object, first + e));
    }
done:
    free(values);
    return status;
}

ks_status ks_critic_take(const struct ks_match *m, const struct ks_axes *axes, size_t first,
                         struct ks_networks *networks, bool *wide)
{
    for (size_t k = 0; k < m->n; k++)
        for (size_t i = 0; i < m->found[k].n; i++) {
            const struct ks_stored *s = m->found[k].list[i].stored;

            KS_TRY(take(m, &m->found[k], s, axes, first + i, networks));
            *wide = *wide || s->real == KS_FLOAT64;
        }
    return KS_OK;
}
