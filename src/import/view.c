#include "import/view.h"

#include <assert.h>

struct ks_view ks_view_of(const struct ks_stored *s)
{
    struct ks_view view = {.n_dims = s->n_dims};
    size_t stride = 1;

    for (size_t i = 0; i < s->n_dims; i++) {
        const size_t axis = s->first_fastest ? i : s->n_dims - 1 - i;

        view.dims[axis] = s->dims[axis];
        view.strides[axis] = stride;
        stride *= s->dims[axis];
    }
    return view;
}

void ks_view_fix(struct ks_view *view, size_t axis, size_t index)
{
    assert(axis < view->n_dims && index < view->dims[axis]);
    view->offset += index * view->strides[axis];
    for (size_t i = axis + 1; i < view->n_dims; i++) {
        view->dims[i - 1] = view->dims[i];
        view->strides[i - 1] = view->strides[i];
    }
    view->n_dims--;
}

void ks_view_squeeze(struct ks_view *view, size_t n_dims)
{
    for (size_t axis = 0; axis < view->n_dims && view->n_dims > n_dims;)
        if (view->dims[axis] == 1)
            ks_view_fix(view, axis, 0);
        else
            axis++;
}

void ks_view_swap(struct ks_view *view, size_t a, size_t b)
{
    const size_t dim = view->dims[a], stride = view->strides[a];

    assert(a < view->n_dims && b < view->n_dims);
    view->dims[a] = view->dims[b], view->strides[a] = view->strides[b];
    view->dims[b] = dim, view->strides[b] = stride;
}

void ks_view_copy(const struct ks_view *view, const double *values, double *out)
{
    size_t index[KS_STORED_DIMS] = {0}, n = 1, at = view->offset;

    for (size_t i = 0; i < view->n_dims; i++)
        n *= view->dims[i];
    for (size_t done = 0; done < n; done++) {
        *out++ = values[at];
        for (size_t i = view->n_dims; i-- > 0;) { /* the next index, the last axis first */
            at += view->strides[i];
            if (++index[i] < view->dims[i])
                break;
            at -= view->dims[i] * view->strides[i];
            index[i] = 0;
        }
    }
}
