/* Groups the null directions by overlap (union-find) and orthonormalizes every group by a Cholesky
 * factorization of its Gram matrix, one row at a time. */
#include "operators/null_space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A direction is left out if less than this fraction of its squared norm is orthogonal to the
 * earlier ones of its group: to rounding it is a linear combination of them. */
static const double INDEPENDENT = 1e-10;

/* Directions as they come from the null space, before they are grouped, and what is needed until
 * the basis has been made. */
struct raw {
    size_t most, entries;  /* all directions and their entries, before any are left out */
    size_t of, dimensions; /* parameters, 0 if all are selected; selected ones      */
    size_t n;              /* directions                                            */
    size_t *selected;      /* [of]: the place of a parameter among the selected ones, or SIZE_MAX */
    size_t *start;         /* [most + 1]                                            */
    size_t *at;            /* [entries]: selected coordinates                       */
    double *value;         /* [entries]                                             */
    size_t *root;          /* [most]: the parent in the union-find tree of the group */
    size_t *order;         /* [most]: directions, group after group                 */
    size_t *count;         /* [most + 1]: of directions in groups                   */
    size_t *owner;         /* [dimensions]: a direction with this coordinate        */
    double *dense;         /* [dimensions]: zeros, or a direction                   */
    struct ks_arena arena; /* all of these. Owned                                   */
};

static void lay_out_raw(struct ks_arena *arena, void *object)
{
    struct raw *r = object;

    r->selected = r->of > 0 ? KS_TAKE(arena, r->of, size_t) : NULL;
    r->start = KS_TAKE(arena, r->most + 1, size_t);
    r->at = KS_TAKE(arena, r->entries, size_t);
    r->value = KS_TAKE(arena, r->entries, double);
    r->root = KS_TAKE(arena, r->most, size_t);
    r->order = KS_TAKE(arena, r->most, size_t);
    r->count = KS_TAKE(arena, r->most + 1, size_t);
    r->owner = KS_TAKE(arena, r->dimensions, size_t);
    r->dense = KS_TAKE(arena, r->dimensions, double);
}

static void invert_selection(const struct ks_selection *s, struct raw *r)
{
    for (size_t i = 0; i < r->of; i++)
        r->selected[i] = SIZE_MAX;
    for (size_t i = 0; s->index && r->selected && i < s->n; i++)
        r->selected[s->index[i]] = i;
}

/* Turns the `n` entries that follow the last direction into one more direction: removes the dead
 * coordinates and scales the rest to norm 1. */
static void take_direction(struct raw *r, size_t n, const bool *dead)
{
    size_t first = r->start[r->n], end = first;
    double square = 0;

    for (size_t i = first; i < first + n; i++) {
        size_t at = r->selected ? r->selected[r->at[i]] : r->at[i];

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
    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(space, &u); r->most++)
        r->entries += ks_null_space_entries(space, &u, NULL, NULL);
    KS_TRY(ks_arena_make(&r->arena, lay_out_raw, r));
    invert_selection(space->selection, r);
    for (struct ks_null_direction u = {NULL, 0, 0}; ks_null_space_next(space, &u);) {
        size_t first = r->start[r->n];
        size_t n = ks_null_space_entries(space, &u, r->at + first, r->value + first);

        take_direction(r, n, dead);
    }
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
static void find_groups(struct raw *r)
{
    size_t sum = 0;

    for (size_t i = 0; i < r->dimensions; i++)
        r->owner[i] = SIZE_MAX;
    for (size_t k = 0; k < r->n; k++) {
        r->root[k] = k;
        for (size_t i = r->start[k]; i < r->start[k + 1]; i++) {
            size_t *of = &r->owner[r->at[i]];

            if (*of == SIZE_MAX)
                *of = k;
            else
                r->root[find_root(r->root, k)] = find_root(r->root, *of);
        }
    }
    for (size_t k = 0; k < r->n; k++)
        r->count[find_root(r->root, k) + 1]++;
    for (size_t k = 0; k < r->n; k++)
        r->count[k] = sum += r->count[k];
    for (size_t k = 0; k < r->n; k++)
        r->order[r->count[find_root(r->root, k)]++] = k;
}

/* A basis and the sizes of its arrays. */
struct sized {
    struct ks_null_basis *b;
    size_t directions, entries, lower; /* lower: numbers in all triangles L_g */
};

static void lay_out_basis(struct ks_arena *arena, void *object)
{
    const struct sized *s = object;
    struct ks_null_basis *b = s->b;

    b->dead = KS_TAKE(arena, b->n_dead, size_t);
    b->start = KS_TAKE(arena, s->directions + 1, size_t);
    b->at = KS_TAKE(arena, s->entries, size_t);
    b->value = KS_TAKE(arena, s->entries, double);
    b->group = KS_TAKE(arena, s->directions + 1, size_t);
    b->factor = KS_TAKE(arena, s->directions, size_t);
    b->lower = KS_TAKE(arena, s->lower, double);
}

static ks_status allocate_basis(const struct raw *r, const bool *dead, struct ks_null_basis *b)
{
    struct sized s = {.b = b, .directions = r->n, .entries = r->start[r->n]};
    size_t size = 0;

    for (size_t i = 0; i < r->n; i++) {
        bool same = i > 0 && find_root(r->root, r->order[i]) == find_root(r->root, r->order[i - 1]);

        size = same ? size + 1 : 1; /* row `size` of a triangle has `size` entries */
        s.lower += size;
    }
    for (size_t i = 0; dead && i < b->n; i++)
        b->n_dead += dead[i];
    KS_TRY(ks_arena_make(&b->arena, lay_out_basis, &s));
    for (size_t i = 0, k = 0; dead && i < b->n; i++)
        if (dead[i])
            b->dead[k++] = i;
    return KS_OK;
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
 * sqrt(1 - |l|^2). */
static void add_direction(const struct raw *r, size_t k, struct ks_null_basis *b)
{
    size_t g = b->n_groups - 1, size = b->n_directions - b->group[g], next = b->n_directions;
    double *lower = b->lower + b->factor[g], *l = row_of(lower, size), left = 1;
    size_t first = r->start[k], n = r->start[k + 1] - first;

    for (size_t i = first; i < first + n; i++)
        r->dense[r->at[i]] = r->value[i];
    for (size_t i = 0; i < size; i++) {
        const double *row = row_of(lower, i);

        l[i] = dot_sparse(b, b->group[g] + i, r->dense);
        for (size_t j = 0; j < i; j++)
            l[i] -= row[j] * l[j];
        l[i] /= row[i];
        left -= l[i] * l[i];
    }
    for (size_t i = first; i < first + n; i++)
        r->dense[r->at[i]] = 0;
    if (!(left > INDEPENDENT))
        return;
    l[size] = sqrt(left);
    memcpy(b->at + b->start[next], r->at + first, n * sizeof *b->at);
    memcpy(b->value + b->start[next], r->value + first, n * sizeof *b->value);
    b->start[next + 1] = b->start[next] + n;
    b->n_directions++;
}

static void orthonormalize(const struct raw *r, struct ks_null_basis *b)
{
    size_t used = 0; /* numbers stored in `lower` so far */

    for (size_t i = 0; i < r->n; i++) {
        size_t root = find_root(r->root, r->order[i]), size;

        if (i == 0 || root != find_root(r->root, r->order[i - 1])) {
            b->group[b->n_groups] = b->n_directions;
            b->factor[b->n_groups++] = used;
        }
        add_direction(r, r->order[i], b);
        size = b->n_directions - b->group[b->n_groups - 1];
        used = b->factor[b->n_groups - 1] + size * (size + 1) / 2;
    }
    b->group[b->n_groups] = b->n_directions;
    b->dimension = b->n_dead + b->n_directions;
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

/* The most that the basis may hold, if there are no numbers: at most all directions of families
 * that overlap, also by way of others, form a group. */
static ks_status count_basis(const struct ks_null_space *space, struct ks_null_basis *b)
{
    struct sized s = {.b = b};
    struct raw r = {.of = space->critics * space->parameters, .dimensions = b->n};

    for (size_t i = 0; i < space->n_families; i++) {
        const struct ks_null_family *f = &space->family[i];
        const size_t directions = space->critics * f->count;
        size_t group = 0; /* directions of families that overlap with it */

        for (size_t j = 0; j < space->n_families; j++)
            group += i != j && may_overlap(f, &space->family[j]) ? space->family[j].count : 0;
        s.directions += directions;
        s.entries += directions * f->length * (1 + (f->partner != KS_NO_PARTNER));
        s.lower += directions * (group > 0 ? group + f->count : 1);
    }
    b->n_dead = b->n;
    b->n_directions = r.most = s.directions;
    b->dimension = b->n_dead + b->n_directions;
    r.entries = s.entries;
    KS_TRY(ks_arena_make(&b->arena, lay_out_basis, &s));
    KS_TRY(ks_arena_make(&r.arena, lay_out_raw, &r));
    ks_arena_free(&r.arena);
    return KS_OK;
}

static ks_status build_basis(const struct ks_null_space *space, const bool *dead,
                             struct ks_null_basis *b)
{
    const struct ks_selection *selection = space->selection;
    struct raw raw = {.of = selection->index ? selection->of : 0, .dimensions = selection->n};
    ks_status status = KS_OK;

    KS_GO(read_directions(space, dead, &raw));
    find_groups(&raw);
    KS_GO(allocate_basis(&raw, dead, b));
    orthonormalize(&raw, b);
done:
    ks_arena_free(&raw.arena);
    return status;
}

ks_status ks_null_basis_new(const struct ks_null_space *space, const bool *dead,
                            struct ks_null_basis **basis)
{
    KS_OWNED_BY(ks_null_basis_free) struct ks_null_basis *b = NULL;

    *basis = NULL;
    KS_TRY(ks_alloc(1, sizeof *b, &b));
    b->n = space->selection->n;
    KS_TRY(ks_counting() ? count_basis(space, b) : build_basis(space, dead, b));
    *basis = b, b = NULL;
    return KS_OK;
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
    ks_arena_free(&b->arena);
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
