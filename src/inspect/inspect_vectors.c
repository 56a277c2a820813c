#include "inspect/inspect.h"

#include <math.h>
#include <stdlib.h>

#include "inspect/lines.h"
#include "inspect/read.h"
#include "io/checkpoint.h"
#include "io/h5.h"

enum { SHOWN = 20 }; /* vectors whose norms are printed */

/* The attributes that say what the vectors are. */
static ks_status print_attributes(const struct ks_h5 *h5, FILE *out)
{
    struct ks_attributes list = {.n = 0};
    ks_status status = ks_h5_read_attributes(h5, "/", &list);

    for (size_t i = 0; status == KS_OK && i < list.n; i++)
        ks_attribute_print(out, &list.list[i]);
    ks_attributes_clear(&list);
    return status;
}

/* eigenvalue [k]: NULL unless the vectors are eigenvectors. */
static void print_norms(size_t k, size_t n, const double *vectors, const double *eigenvalue,
                        FILE *out)
{
    ks_title_print(out, "Vectors");
    fprintf(out, "  %6s %12s %12s %10s%s\n", "number", "norm", "largest |x|", "zeros",
            eigenvalue ? "   eigenvalue" : "");
    for (size_t i = 0; i < k && i < SHOWN; i++) {
        double sum = 0, largest = 0;
        size_t zeros = 0;

        for (size_t j = 0; j < n; j++) {
            double x = vectors[i * n + j];

            sum += x * x;
            largest = fmax(largest, fabs(x));
            zeros += x == 0;
        }
        fprintf(out, "  %6zu %12.6g %12.6g %10zu", i, sqrt(sum), largest, zeros);
        if (eigenvalue)
            fprintf(out, " %12.6g", eigenvalue[i]);
        fputc('\n', out);
    }
    if (k > SHOWN)
        fprintf(out, "  and %zu more\n", k - SHOWN);
}

/* *eigenvalue [k], which the caller frees; NULL if the file has none. */
static ks_status read_eigenvalues(const struct ks_h5 *h5, size_t k, double **eigenvalue)
{
    const struct ks_h5_shape shape = {1, {k}};
    bool found;

    *eigenvalue = NULL;
    KS_TRY(ks_h5_has(h5, "/eigenvalue", &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_expect_reals(h5, "/eigenvalue", &shape));
    return ks_h5_read_new(h5, "/eigenvalue", &shape, eigenvalue);
}

ks_status ks_inspect_vectors(const char *path, FILE *out)
{
    ks_status status = KS_OK;
    struct ks_h5 *h5 = NULL;
    struct ks_h5_shape shape;
    double *vectors = NULL, *eigenvalue = NULL;
    size_t k;

    KS_TRY(ks_h5_open(path, "kappascope-vector", &h5));
    KS_GO(ks_h5_shape(h5, "/vector", &shape));
    if (shape.n_dims != 2) {
        status = ks_fail(KS_FORMAT, "%s: /vector: expected [k, n], found %zu dimensions", path,
                         shape.n_dims);
        goto done;
    }
    KS_GO(ks_inspect_expect_memory(path, "its vectors",
                                   sizeof(double) * (double)shape.dims[0] * (double)shape.dims[1]));
    KS_GO(ks_vectors_read(path, shape.dims[1], &k, &vectors));
    KS_GO(read_eigenvalues(h5, k, &eigenvalue));
    ks_line_print(out, "vector file", "%s", path);
    ks_line_print(out, "vectors", "%zu of %zu numbers", k, shape.dims[1]);
    KS_GO(print_attributes(h5, out));
    print_norms(k, shape.dims[1], vectors, eigenvalue, out);
done:
    free(vectors);
    free(eigenvalue);
    ks_h5_close(h5);
    return status;
}
