/* Prints vector files, and how far the leading eigenspaces of two of them agree. */
#include "inspect/inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <jansson.h>

#include "core/memory.h"
#include "io/h5.h"

struct vectors {
    const char *path;
    size_t k, n;
    double *values;     /* [k, n]                                 */
    double *eigenvalue; /* [k]; NULL: they are not eigenvectors   */
    struct ks_attributes attributes;
};

static void clear(struct vectors *v)
{
    free(v->values);
    free(v->eigenvalue);
    ks_attributes_clear(&v->attributes);
}

/* The caller clears, also after a failure. */
static ks_status read(const struct ks_h5 *h5, struct vectors *v)
{
    struct ks_h5_shape shape;

    KS_TRY(ks_h5_shape(h5, "/vector", &shape));
    if (shape.n_dims != 2)
        return ks_fail(KS_FORMAT, "%s: /vector: expected [k, n], found %zu dimensions", h5->path,
                       shape.n_dims);
    v->n = shape.dims[1];
    KS_TRY(ks_inspect_expect_memory(h5->path, "its vectors",
                                    sizeof(double) * (double)shape.dims[0] * (double)v->n));
    KS_TRY(ks_vectors_read_open(h5, v->n, &v->k, &v->values));
    KS_TRY(ks_vectors_read_eigenvalues(h5, v->k, &v->eigenvalue));
    return ks_h5_read_attributes(h5, "/", &v->attributes);
}

/* --- one file --- */

enum { SHOWN = 20 }; /* vectors whose norms are printed */

static void add_norms(const struct vectors *v, struct ks_document *d)
{
    const size_t k = v->k, n = v->n;
    const double *vectors = v->values, *eigenvalue = v->eigenvalue;

    ks_document_add(d, KS_BLOCK_SECTION, "Vectors");
    ks_document_columns(d, "", "number, norm, largest |x|, zeros%s",
                        eigenvalue ? ", eigenvalue" : "");
    for (size_t i = 0; i < k && i < SHOWN; i++) {
        double sum = 0, largest = 0;
        size_t zeros = 0;

        for (size_t j = 0; j < n; j++) {
            double x = vectors[i * n + j];

            sum += x * x;
            largest = fmax(largest, fabs(x));
            zeros += x == 0;
        }
        ks_document_cells(d, ks_cell_count(i), ks_cell_digits(6, sqrt(sum)),
                          ks_cell_digits(6, largest), ks_cell_count(zeros));
        if (eigenvalue)
            ks_document_cell(d, ks_cell_digits(6, eigenvalue[i]));
    }
    if (k > SHOWN)
        ks_document_add(d, KS_BLOCK_TEXT, "and %zu more", k - SHOWN);
}

ks_status ks_inspect_vectors(struct ks_h5 *h5, struct ks_document *d)
{
    KS_CLEARED_BY(clear) struct vectors v = {.path = h5->path};

    KS_TRY(read(h5, &v));
    ks_document_line(d, "vector file", "%s", h5->path);
    ks_document_line(d, "vectors", "%zu of %zu numbers", v.k, v.n);
    for (size_t i = 0; i < v.attributes.n; i++)
        ks_inspect_attribute(&v.attributes.list[i], d);
    add_norms(&v, d);
    return KS_OK;
}

/* --- two files --- */

/* A vector that is this close to the span of those before it gives no direction of its own. */
static const double INDEPENDENT = 1e-6;

static ks_status read_eigenvectors(const char *path, struct vectors *v)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    *v = (struct vectors){.path = path};
    KS_TRY(ks_h5_open(path, "kappascope-vector", &h5));
    KS_TRY(read(h5, v));
    return v->eigenvalue ? KS_OK
                         : ks_fail(KS_FORMAT,
                                   "%s: expected eigenvectors, as analyze --eigenvectors writes "
                                   "them, found vectors without /eigenvalue",
                                   path);
}

/* The names and shapes of the parameters; of older files the names of the layers. */
static ks_status check_same(const struct vectors *a, const struct vectors *b)
{
    static const char *const names[] = {"parameters", "layers"};

    if (a->n != b->n)
        return ks_fail(KS_FORMAT, "%s: expected vectors of %zu numbers, as %s has, found %zu",
                       b->path, a->n, a->path, b->n);
    for (size_t i = 0; i < 2; i++) {
        const char *one = ks_attribute_text(&a->attributes, names[i]),
                   *two = ks_attribute_text(&b->attributes, names[i]);

        if (one && two && strcmp(one, two) != 0)
            return ks_fail(KS_FORMAT,
                           "%s: expected eigenvectors of a critic with the same %s as %s has, "
                           "%.200s; found %.200s",
                           b->path, names[i], a->path, one, two);
    }
    return KS_OK;
}

/* Makes the first `count` vectors orthonormal, in their order, by Gram-Schmidt twice: the first k
 * span what they spanned. Vectors of analyze are orthonormal up to the rounding of its basis. */
static ks_status orthonormalize(struct vectors *v, size_t count)
{
    const int n = (int)v->n;

    for (size_t i = 0; i < count; i++) {
        double *y = v->values + i * v->n, before = cblas_dnrm2(n, y, 1), after;

        for (int pass = 0; pass < 2; pass++)
            for (size_t j = 0; j < i; j++)
                cblas_daxpy(n, -cblas_ddot(n, y, 1, v->values + j * v->n, 1), v->values + j * v->n,
                            1, y, 1);
        after = cblas_dnrm2(n, y, 1);
        if (!(after > INDEPENDENT * before))
            return ks_fail(KS_FORMAT,
                           "%s: expected linearly independent vectors, found vector %zu in the "
                           "span of those before it",
                           v->path, i);
        cblas_dscal(n, 1 / after, y, 1);
    }
    return KS_OK;
}

/* overlap[k - 1] = (1/k) sum_{i<k} |P_k v_i|^2 for k = 1..count, with the orthonormal vectors v_i
 * of `a` and the projection P_k onto the first k vectors u_j of `b`, that is (1/k) sum_{i,j<k}
 * (u_j' v_i)^2. Gur-Ari, Roberts, Dyer: Gradient descent happens in a tiny subspace, arXiv
 * 1812.04754, 2018; Schneider et al.: Identifying policy gradient subspaces, ICLR 2024. */
static void measure(const struct vectors *a, const struct vectors *b, size_t count, double *overlap)
{
    double sum = 0;

    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i <= k; i++) {
            const double *v = a->values, *u = b->values;
            double one = cblas_ddot((int)a->n, v + i * a->n, 1, u + k * a->n, 1);
            double two = cblas_ddot((int)a->n, v + k * a->n, 1, u + i * a->n, 1);

            sum += one * one + (i < k ? two * two : 0);
        }
        overlap[k] = fmin(sum / (double)(k + 1), 1); /* above 1 by rounding only */
    }
}

static void add_file(const char *name, const struct vectors *v, struct ks_document *d)
{
    const char *checkpoint = ks_attribute_text(&v->attributes, "checkpoint"),
               *operator_name = ks_attribute_text(&v->attributes, "operator"),
               *which = ks_attribute_text(&v->attributes, "which");

    ks_document_line(d, name, "%s", v->path);
    ks_document_line(d, "", "%zu vectors of %s%s, checkpoint %s", v->k,
                     operator_name ? operator_name : "an unknown operator",
                     which ? ", smallest eigenvalues" : "", checkpoint ? checkpoint : "unknown");
}

static ks_status print_overlaps(FILE *out, const struct vectors *a, const struct vectors *b,
                                size_t count, const double *overlap)
{
    KS_CLEARED_BY(ks_document_clear) struct ks_document d = {.n = 0};

    add_file("eigenvectors", a, &d);
    add_file("against", b, &d);
    ks_document_add(&d, KS_BLOCK_SECTION, "Overlap of the first k eigenvectors' spaces");
    ks_document_columns(&d, "", "k, overlap, eigenvalue, against");
    for (size_t k = 0; k < count; k++)
        ks_document_cells(&d, ks_cell_count(k + 1), ks_cell_fixed(6, overlap[k]),
                          ks_cell_digits(7, a->eigenvalue[k]), ks_cell_digits(7, b->eigenvalue[k]));
    ks_document_add(
        &d, KS_BLOCK_TEXT,
        "The mean squared norm of the projections of the first k eigenvectors onto the space "
        "of the other file's first k: 1 for the same space, 0 for orthogonal spaces, k/%zu on "
        "average for random ones (Gur-Ari et al. 2018; Schneider et al. 2024).",
        a->n);
    return ks_document_print(&d, KS_DOCUMENT_WIDTH, out);
}

static ks_status print_json(FILE *out, const struct vectors *a, const struct vectors *b,
                            size_t count, const double *overlap)
{
    json_t *list = json_array();
    json_auto_t *object = NULL;
    KS_OWNED char *line = NULL;

    for (size_t k = 0; k < count; k++)
        json_array_append_new(list, json_real(overlap[k]));
    object = json_pack("{s:s%, s:s%, s:I, s:o}", "file", a->path, strlen(a->path), "against",
                       b->path, strlen(b->path), "dimension", (json_int_t)a->n, "overlap", list);
    line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (!line)
        return ks_fail(KS_FORMAT, "--json: a path is not valid UTF-8, or memory is out");
    fprintf(out, "%s\n", line);
    return KS_OK;
}

ks_status ks_inspect_overlap(const char *path, const char *against, bool json, FILE *out)
{
    KS_CLEARED_BY(clear) struct vectors a = {.n = 0}, b = {.n = 0};
    KS_OWNED double *overlap = NULL;
    size_t count;

    KS_TRY(read_eigenvectors(path, &a));
    KS_TRY(read_eigenvectors(against, &b));
    KS_TRY(check_same(&a, &b));
    count = a.k < b.k ? a.k : b.k;
    KS_TRY(orthonormalize(&a, count));
    KS_TRY(orthonormalize(&b, count));
    KS_TRY(ks_alloc(count, sizeof *overlap, &overlap));
    measure(&a, &b, count, overlap);
    return (json ? print_json : print_overlaps)(out, &a, &b, count, overlap);
}
