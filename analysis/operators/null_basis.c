/* Groups the null directions by overlap (union-find) and orthonormalizes every group by a Cholesky
 * factorization of its Gram matrix, one row at a time. */
#include "operators/null_space.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* A direction is left out if less than this fraction of its squared norm is orthogonal to the
 * earlier ones of its group: to rounding it is a linear combination of them. */
static const double INDEPENDENT = 1e-10;

/* Directions as they come from the null space, before they are grouped. */
struct raw {
    size_t n;      /* directions                               */
    size_t *start; /* [n + 1]                                  */
    size_t *at;    /* selected coordinates                     */
    double *value;
    size_t *root;        /* [n]: the parent in the union-find tree of the group */
    size_t *order;       /* [n]: directions, group after group       */
    struct ks_pool pool; /* all of these                       */
};

/* (*of)[i] = the place of parameter i among the selected coordinates, SIZE_MAX if it is not
 * selected. *of is NULL if all are selected. */
static ks_status invert_selection(const struct ks_selection *s, size_t **of)
{
    *of = NULL;
    if (!s->index)
        return KS_OK;
    KS_TRY(ks_alloc(s->of, sizeof **of, of));
    for (size_t i = 0; i < s->of; i++)
        (*of)[i] = SIZE_MAX;
    for (size_t i = 0; i < s->n; i++)
        (*of)[s->index[i]] = i;
    return KS_OK;
}

static ks_status allocate_raw(const struct ks_null_space *space, struct raw *r)
{
    size_t directions = 0, entries = 0;

    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(space, &u); directions++)
        entries += ks_null_space_entries(space, &u, NULL, NULL);
    KS_TRY(ks_pool_alloc(&r->pool, directions + 1, sizeof *r->start, &r->start));
    KS_TRY(ks_pool_alloc(&r->pool, entries, sizeof *r->at, &r->at));
    KS_TRY(ks_pool_alloc(&r->pool, entries, sizeof *r->value, &r->value));
    KS_TRY(ks_pool_alloc(&r->pool, directions, sizeof *r->root, &r->root));
    return ks_pool_alloc(&r->pool, directions, sizeof *r->order, &r->order);
}

/* Turns the `n` entries that follow the last direction into one more direction: removes the dead
 * coordinates and scales the rest to norm 1. */
static void take_direction(struct raw *r, size_t n, const size_t *selected, const bool *dead)
{
    size_t first = r->start[r->n], end = first;
    double square = 0;

    for (size_t i = first; i < first + n; i++) {
        size_t at = selected ? selected[r->at[i]] : r->at[i];

        if (at == SIZE_MAX) /* an entry outside the block: not a null direction of the block */
            return;
        if (dead && dead[at])
            continue;
        r->at[end] = at;
        r->value[end] = r->value[i];
        square += r->value[end] * r->value[end];
        end++;
    }
    if (!(square > 0))
        return;
    for (size_t i = first; i < end; i++)
        r->value[i] /= sqrt(square);
    r->start[++r->n] = end;
}

static ks_status read_directions(const struct ks_null_space *space, const bool *dead, struct raw *r)
{
    size_t *selected = NULL;

    KS_TRY(allocate_raw(space, r));
    KS_TRY(invert_selection(space->selection, &selected));
    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(space, &u);) {
        size_t first = r->start[r->n];
        size_t n = ks_null_space_entries(space, &u, r->at + first, r->value + first);

        take_direction(r, n, selected, dead);
    }
    free(selected);
    return KS_OK;
}

/* The representative of a direction's group: union-find with path halving (Tarjan and van Leeuwen,
 * J. ACM 31, 1984). */
static size_t find_root(size_t *root, size_t k)
{
    while (root[k] != k) {
        root[k] = root[root[k]];
        k = root[k];
    }
    return k;
}

/* Directions that share a coordinate belong to one group. */
static ks_status find_groups(size_t n, struct raw *r)
{
    size_t *owner = NULL, *count = NULL, sum = 0;
    ks_status status = KS_OK;

    KS_GO(ks_alloc(n, sizeof *owner, &owner));
    KS_GO(ks_alloc(r->n + 1, sizeof *count, &count));
    for (size_t i = 0; i < n; i++)
        owner[i] = SIZE_MAX;
    for (size_t k = 0; k < r->n; k++) {
        r->root[k] = k;
        for (size_t i = r->start[k]; i < r->start[k + 1]; i++) {
            size_t *of = &owner[r->at[i]];

            if (*of == SIZE_MAX)
                *of = k;
            else
                r->root[find_root(r->root, k)] = find_root(r->root, *of);
        }
    }
    for (size_t k = 0; k < r->n; k++)
        count[find_root(r->root, k) + 1]++;
    for (size_t k = 0; k < r->n; k++)
        count[k] = sum += count[k];
    for (size_t k = 0; k < r->n; k++)
        r->order[count[find_root(r->root, k)]++] = k;
done:
    free(owner);
    free(count);
    return status;
}

static ks_status allocate_basis(const struct raw *r, const bool *dead, struct ks_null_basis *b)
{
    size_t lower = 0, size = 0;

    for (size_t i = 0; i < r->n; i++) {
        bool same = i > 0 && find_root(r->root, r->order[i]) == find_root(r->root, r->order[i - 1]);

        size = same ? size + 1 : 1; /* row `size` of a triangle has `size` entries */
        lower += size;
    }
    for (size_t i = 0; dead && i < b->n; i++)
        b->n_dead += dead[i];
    KS_TRY(ks_pool_alloc(&b->pool, b->n_dead, sizeof *b->dead, &b->dead));
    for (size_t i = 0, k = 0; dead && i < b->n; i++)
        if (dead[i])
            b->dead[k++] = i;
    KS_TRY(ks_pool_alloc(&b->pool, r->n + 1, sizeof *b->start, &b->start));
    KS_TRY(ks_pool_alloc(&b->pool, r->start[r->n], sizeof *b->at, &b->at));
    KS_TRY(ks_pool_alloc(&b->pool, r->start[r->n], sizeof *b->value, &b->value));
    KS_TRY(ks_pool_alloc(&b->pool, r->n + 1, sizeof *b->group, &b->group));
    KS_TRY(ks_pool_alloc(&b->pool, r->n, sizeof *b->factor, &b->factor));
    return ks_pool_alloc(&b->pool, lower, sizeof *b->lower, &b->lower);
}

/* Row i of a packed lower triangle. */
static double *row_of(double *lower, size_t i)
{
    return lower + i * (i + 1) / 2;
}

static double dot_sparse(const struct ks_null_basis *b, size_t k, const double *dense)
{
    double sum = 0;

    for (size_t i = b->start[k]; i < b->start[k + 1]; i++)
        sum += b->value[i] * dense[b->at[i]];
    return sum;
}

/* Appends direction u to the last group. The Cholesky factor gets one more row: l = L^-1 U' u and
 * sqrt(1 - |l|^2). `dense` [n] is scratch, zero before and after. */
static void add_direction(const struct raw *r, size_t k, struct ks_null_basis *b, double *dense)
{
    size_t g = b->n_groups - 1, size = b->n_directions - b->group[g], next = b->n_directions;
    double *lower = b->lower + b->factor[g], *l = row_of(lower, size), left = 1;
    size_t first = r->start[k], n = r->start[k + 1] - first;

    for (size_t i = first; i < first + n; i++)
        dense[r->at[i]] = r->value[i];
    for (size_t i = 0; i < size; i++) {
        const double *row = row_of(lower, i);

        l[i] = dot_sparse(b, b->group[g] + i, dense);
        for (size_t j = 0; j < i; j++)
            l[i] -= row[j] * l[j];
        l[i] /= row[i];
        left -= l[i] * l[i];
    }
    for (size_t i = first; i < first + n; i++)
        dense[r->at[i]] = 0;
    if (!(left > INDEPENDENT))
        return;
    l[size] = sqrt(left);
    memcpy(b->at + b->start[next], r->at + first, n * sizeof *b->at);
    memcpy(b->value + b->start[next], r->value + first, n * sizeof *b->value);
    b->start[next + 1] = b->start[next] + n;
    b->n_directions++;
}

static ks_status orthonormalize(const struct raw *r, struct ks_null_basis *b)
{
    double *dense = NULL;
    size_t used = 0; /* numbers stored in `lower` so far */

    KS_TRY(ks_alloc(b->n, sizeof *dense, &dense));
    for (size_t i = 0; i < r->n; i++) {
        size_t root = find_root(r->root, r->order[i]), size;

        if (i == 0 || root != find_root(r->root, r->order[i - 1])) {
            b->group[b->n_groups] = b->n_directions;
            b->factor[b->n_groups++] = used;
        }
        add_direction(r, r->order[i], b, dense);
        size = b->n_directions - b->group[b->n_groups - 1];
        used = b->factor[b->n_groups - 1] + size * (size + 1) / 2;
    }
    b->group[b->n_groups] = b->n_directions;
    b->dimension = b->n_dead + b->n_directions;
    free(dense);
    return KS_OK;
}

/* The range of coordinates of a critic in which the directions of a family have entries. */
static size_t length_of(const struct ks_null_family *f)
{
    return f->count * f->step + f->length * f->stride;
}

/* Whether directions of two families may share coordinates of a critic. */
static bool may_overlap(const struct ks_null_family *a, const struct ks_null_family *b)
{
    const size_t starts[2][2] = {{a->offset, a->partner}, {b->offset, b->partner}};

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            const size_t x = starts[0][i], y = starts[1][j];

            if (x != KS_NO_PARTNER && y != KS_NO_PARTNER && x <= y + length_of(b) &&
                y <= x + length_of(a))
                return true;
        }
    return false;
}

/* The largest group that can result: of the families that overlap, also by way of others. */
double ks_null_basis_bytes(const struct ks_null_space *space, double n)
{
    const double critics = (double)space->critics;
    double directions = 0, entries = 0, lower = 0;

    for (size_t i = 0; i < space->n_families; i++) {
        const struct ks_null_family *f = &space->family[i];
        double group = 0; /* directions of families that overlap with it */

        for (size_t j = 0; j < space->n_families; j++)
            group += i != j && may_overlap(f, &space->family[j]) ? (double)space->family[j].count
                                                                 : 0;
        directions += critics * (double)f->count;
        entries += critics * (double)f->count *
                   (double)(f->length * (1 + (f->partner != KS_NO_PARTNER)));
        lower += critics * (double)f->count * (group > 0 ? group + (double)f->count : 1);
    }
    return sizeof(double) * (4 * entries + 8 * directions + lower + 4 * n);
}

ks_status ks_null_basis_new(const struct ks_null_space *space, const bool *dead,
                            struct ks_null_basis **basis)
{
    struct raw raw = {.n = 0};
    struct ks_null_basis *b = NULL;
    ks_status status = KS_OK;

    *basis = NULL;
    KS_GO(ks_alloc(1, sizeof *b, &b));
    b->n = space->selection->n;
    KS_GO(read_directions(space, dead, &raw));
    KS_GO(find_groups(b->n, &raw));
    KS_GO(allocate_basis(&raw, dead, b));
    KS_GO(orthonormalize(&raw, b));
    *basis = b, b = NULL;
done:
    ks_pool_free(&raw.pool);
    ks_null_basis_free(b);
    return status;
}

ks_status ks_null_basis_update(const struct ks_null_space *space, struct ks_null *null,
                               struct ks_null_basis **basis)
{
    size_t more = 0;

    ks_null_basis_free(*basis);
    KS_TRY(ks_null_basis_new(space, null->is_dead, basis));
    if ((*basis)->dimension > null->dimension)
        more = (*basis)->dimension - null->dimension;
    null->dead = null->dead < more ? null->dead : more;
    if (space->shift != 0) {
        ks_null_basis_free(*basis);
        *basis = NULL;
    }
    return KS_OK;
}

void ks_null_basis_free(struct ks_null_basis *b)
{
    if (!b)
        return;
    ks_pool_free(&b->pool);
    free(b);
}

void ks_null_basis_multiply(const struct ks_null_basis *b, const double *v, double *product)
{
#pragma omp parallel for schedule(static)
    for (size_t k = 0; k < b->n_directions; k++) {
        product[k] = 0;
        for (size_t i = b->start[k]; i < b->start[k + 1]; i++)
            /* not left to the compiler, since the bits depend on it */
            product[k] = fma(b->value[i], v[b->at[i]], product[k]);
    }
}

void ks_null_basis_solve(const struct ks_null_basis *b, double *product)
{
    for (size_t g = 0; g < b->n_groups; g++) {
        double *c = product + b->group[g];
        size_t size = b->group[g + 1] - b->group[g];

        for (size_t i = 0; i < size; i++) {
            const double *row = row_of(b->lower + b->factor[g], i);

            for (size_t j = 0; j < i; j++)
                c[i] -= row[j] * c[j];
            c[i] /= row[i];
        }
    }
}

/* c <- L^-T c for every group: from the coefficients in Z to those in U. */
static void solve_transposed(const struct ks_null_basis *b, double *coefficient)
{
    for (size_t g = 0; g < b->n_groups; g++) {
        double *c = coefficient + b->group[g];

        for (size_t i = b->group[g + 1] - b->group[g]; i-- > 0;) {
            const double *row = row_of(b->lower + b->factor[g], i);

            c[i] /= row[i];
            for (size_t j = 0; j < i; j++)
                c[j] -= row[j] * c[i];
        }
    }
}

void ks_null_basis_remove(const struct ks_null_basis *b, double *coefficient, double *v)
{
    solve_transposed(b, coefficient);
    for (size_t k = 0; k < b->n_directions; k++)
        for (size_t i = b->start[k]; i < b->start[k + 1]; i++)
            v[b->at[i]] -= b->value[i] * coefficient[k];
    for (size_t k = 0; k < b->n_dead; k++)
        v[b->dead[k]] = 0;
}
