/* Vector files: k vectors, each with one number for each parameter, in the canonical order. */
#include "io/checkpoint.h"

#include "io/h5.h"

static const char OBJECT[] = "/vector";

/* The attributes of products, gradients and eigenvectors. They say where vectors come from.
 * Products do not depend on them, because a vector of one operator may be multiplied by another. */
static const char *const known[] = {
    "format",
    "version",
    "checkpoint",
    "checkpoint_sha256",
    "parameters",
    "which",
    "array",
    "rewards",
    "batchnorm",
    "weight_decay",
    "scale",
    "batches",
    "batch",
    "loss",
    "operator",
    "precision",
    "dimension",
    "critic",
    "layer",
    "compat",
    "steps",
    "tolerance",
    "probe_seed",
    "start_at",
    "shortfall",
    "layers",
    "threads",
    "processes",
    "analyzer_version",
    "blas_version",
    "blas_kernel",
    "products",
    NULL,
};

/* Reads the dataset's shape, which must be [k, n] with k > 0. Refuses unknown attributes. */
static ks_status find_shape(const struct ks_h5 *h5, size_t n, struct ks_h5_shape *shape)
{
    char text[KS_H5_SHAPE_TEXT];

    KS_TRY(ks_h5_expect_known(h5, "/", true, known, ""));
    KS_TRY(ks_h5_shape(h5, OBJECT, shape));
    ks_h5_print_shape(shape, text);
    if (shape->n_dims != 2 || shape->dims[0] == 0)
        return ks_fail(KS_FORMAT, "%s: %s: expected k > 0 vectors, [k, %zu], found %s", h5->path,
                       OBJECT, n, text);
    return ks_h5_expect_reals(h5, OBJECT,
                              &(struct ks_h5_shape){.n_dims = 2, .dims = {shape->dims[0], n}});
}

ks_status ks_vectors_read_open(const struct ks_h5 *h5, size_t n, size_t *k, double **vectors)
{
    struct ks_h5_shape shape;

    *k = 0;
    KS_TRY(find_shape(h5, n, &shape));
    *k = shape.dims[0];
    return vectors ? ks_h5_read_finite(h5, OBJECT, &shape, vectors) : KS_OK;
}

ks_status ks_vectors_read_eigenvalues(const struct ks_h5 *h5, size_t k, double **eigenvalues)
{
    static const char object[] = "/eigenvalue";
    const struct ks_h5_shape shape = {.n_dims = 1, .dims = {k}};
    bool found;

    KS_TRY(ks_h5_has(h5, object, &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_expect_reals(h5, object, &shape));
    return ks_h5_read_new(h5, object, &shape, eigenvalues);
}

ks_status ks_vectors_write(const char *path, const struct ks_vectors *v)
{
    const struct ks_h5_shape shape = {.n_dims = 2, .dims = {v->k, v->n}};
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    KS_TRY(ks_h5_create(path, "kappascope-vector", KS_H5_VERSION, &h5));
    if (v->attributes)
        ks_h5_write_attributes(h5, "/", v->attributes);
    ks_h5_write_finite(h5, OBJECT, KS_H5_F64, &shape, v->values);
    for (const struct ks_vectors_table *t = v->tables; t && t->name; t++) {
        const struct ks_h5_shape own = {.n_dims = t->columns > 0 ? 2 : 1,
                                        .dims = {v->k, t->columns}};

        ks_h5_write_finite(h5, t->name, KS_H5_F64, &own, t->values);
    }
    return ks_h5_commit(h5);
}
