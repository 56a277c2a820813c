/* Vector files: k vectors in the canonical order. */
#include "ks/checkpoint.h"

#include <stdlib.h>

#include "ks/blas.h"
#include "ks/h5.h"

static const char FORMAT[] = "kappascope-vector";
static const char OBJECT[] = "/vector";

ks_status ks_vectors_read(const char *path, size_t n, size_t *k, double **vectors)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;
    struct ks_h5_shape shape, expected = {.rank = 2};
    double *values = NULL;

    *k = 0;
    *vectors = NULL;
    KS_TRY(ks_h5_open(path, FORMAT, &h5));
    KS_GO(ks_h5_shape(h5, OBJECT, &shape));
    if (shape.rank != 2 || shape.dims[0] == 0) {
        status = ks_fail(KS_FORMAT, "%s: %s: expected k > 0 vectors, [k, %zu], found %s", path,
                         OBJECT, n, shape.rank == 2 ? "none" : "another number of dimensions");
        goto done;
    }
    expected.dims[0] = shape.dims[0];
    expected.dims[1] = n;
    KS_GO(ks_h5_read_new(h5, OBJECT, &expected, &values));
    KS_GO(ks_h5_expect_finite(h5, OBJECT, expected.dims[0] * n, values));
    *k = expected.dims[0];
    *vectors = values, values = NULL;
done:
    free(values);
    ks_h5_close(h5);
    return status;
}

ks_status ks_vectors_write(const char *path, size_t k, size_t n, const double *vectors,
                           const struct ks_attributes *attributes)
{
    const struct ks_h5_shape shape = {2, {k, n}};
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;

    KS_GO(ks_h5_create(path, FORMAT, &h5));
    if (attributes)
        KS_GO(ks_h5_write_attributes(h5, "/", attributes));
    KS_GO(ks_h5_write_finite(h5, OBJECT, KS_H5_F64, &shape, vectors));
    KS_GO(ks_h5_commit(h5));
done:
    ks_h5_close(h5);
    return status;
}
