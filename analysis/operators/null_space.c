/* Finds the null directions of an architecture by following the row and column sums of its adjoints
 * from the outputs to the input.
 *
 * The gradient of a bias is the vector of column sums of its layer's y_bar, that of a kernel is
 * X' y_bar. So if y_bar has, for every theta and batch,
 *
 *   rows that sum to zero      W_bar 1 = X' (y_bar 1) = 0    and    b_bar' 1 = 1' (y_bar 1) = 0
 *   columns that sum to zero   b_bar = y_bar' 1 = 0
 *
 * then there are directions of these parameters along which the loss is constant. The same holds
 * if the rows of X sum to zero: 1' W_bar = (X 1)' y_bar = 0. The sums are known from:
 *
 *   softmax                    rows of f_bar = S p - t sum to zero
 *   layernorm, groupnorm       rows of x_bar = r (u - <u> - z <u z>) sum to zero, in each group
 *   batchnorm in training mode the columns of x_bar do, in the same way
 *   linear layers              x_bar = y_bar A': columns that sum to zero stay so
 *   residual                   x_bar = y_bar + the body's x_bar, so the sums add up
 *
 * If the rows of y_bar sum to zero over each group of its columns, that holds for these columns of
 * W and entries of b.
 *
 * Value numbering: a sum has an id, equal ids mean equal sums, and id 0 is a sum of zero. If the
 * body of a residual adds zero to a sum, the sum has the same id at both ends of the residual: then
 * the bias before the residual and the bias at its end have the same gradient, and their difference
 * is a null direction. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "operators/null_space.h"

/* What is known about the sums of an adjoint array. */
struct sums {
    size_t groups;  /* of columns, consecutive and of equal size. 0: any number    */
    bool rows;      /* every row sums to zero over each group                      */
    size_t columns; /* id of the vector of column sums                             */
    size_t total;   /* id of the sums of all entries in each group; 0 if rows or columns sum to 0 */
};

struct finder {
    const struct ks_problem *problem;
    struct ks_null_space *space;
    bool spheres; /* projected columns have their normals as the only null directions */
    bool outputs; /* an equal shift of all logits is a change */
    bool lifted;  /* a weight decay makes all null directions but the normals positive */
    size_t ids;   /* used so far */
    size_t *of_columns, *of_total; /* [ids + 1] the first bias whose gradient has this id */
    size_t open;                   /* containers that enclose the current layer */
    struct sums *skip;             /* [open] the sums of the container's skip_bar */
    size_t *body;                  /* [open] the first layer of the container's body */
    bool *centred;                 /* [n_layers] each row of the layer's output sums to zero */
};

/* The most per layer. Ids: two each for x_bar, for a container's skip_bar and for their sum.
 * Families: of the kernel's rows, of its columns, of the bias. */
enum { MAX_IDS = 6, MAX_FAMILIES = 3 };

static struct sums unknown(struct finder *f)
{
    struct sums s = {.columns = ++f->ids};

    s.total = ++f->ids;
    return s;
}

static struct sums zero_rows(struct finder *f, size_t groups)
{
    return (struct sums){.groups = groups, .rows = true, .columns = ++f->ids};
}

static struct sums zero_columns(void)
{
    return (struct sums){.columns = 0};
}

static size_t add_ids(struct finder *f, size_t a, size_t b)
{
    return a == 0 ? b : b == 0 ? a : ++f->ids;
}

/* The greatest common divisor: if each of a groups and each of b groups sums to zero, so does each
 * of gcd(a, b) larger groups, which are unions of both. */
static size_t common(size_t a, size_t b)
{
    while (b > 0) {
        size_t rest = a % b;

        a = b, b = rest;
    }
    return a;
}

static struct sums add(struct finder *f, struct sums a, struct sums b)
{
    struct sums s = {.rows = a.rows && b.rows};

    s.groups = a.total > 0 && b.total > 0 ? 0 : common(a.groups, b.groups);
    s.columns = add_ids(f, a.columns, b.columns);
    s.total = add_ids(f, a.total, b.total);
    return s;
}

/* The sums of x_bar, from those of y_bar. */
static struct sums pass(struct finder *f, const struct KS(layer) *l, bool evaluation,
                        struct sums y_bar)
{
    switch (l->kind->sums) {
    case KS_SUMS_ROWS:
        return zero_rows(f, l->groups);
    case KS_SUMS_COLUMNS:
        if (!evaluation)
            return zero_columns();
        /* fall through */
    case KS_SUMS_LINEAR:
        return y_bar.columns == 0 ? zero_columns() : unknown(f);
    case KS_SUMS_COPIED:
        return y_bar;
    case KS_SUMS_ANY:
        break;
    }
    return unknown(f);
}

/* Rows that sum to zero: the output of a layernorm or groupnorm without parameters, and residual
 * sums of such outputs. */
static void find_centred(const struct KS(arch) *arch, bool *centred)
{
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];

        if (l->kind->sums == KS_SUMS_COPIED)
            centred[i] = centred[i - 1] && l->body > 0 && centred[l->body - 1];
        else
            centred[i] = l->n_params == 0 &&
                         (l->kind == &KS(layernorm) || l->kind == &KS(groupnorm));
    }
}

static size_t count_directions(const struct ks_null_space *s, const struct ks_null_family *f)
{
    size_t n = 0;

    if (!s->checkpoint->critic.w) /* only the shapes are known: at most */
        return s->critics * f->count;
    for (size_t e = 0; e < s->critics; e++)
        for (size_t k = 0; k < f->count; k++)
            n += ks_null_space_entries(s, &(struct ks_null_direction){f, e, k}, NULL, NULL) > 0;
    return n;
}

/* Appends a family. If it continues the last one (a kernel's rows and the bias), they are merged;
 * if it has no directions (a kernel of one column whose rows and columns both sum to zero, or D =
 * 0), it is left out. */
static void add_family(struct finder *f, struct ks_null_family family)
{
    struct ks_null_space *s = f->space;
    struct ks_null_family *last = s->n_families > 0 ? &s->family[s->n_families - 1] : NULL;
    size_t count = count_directions(s, &family);

    assert(s->family);
    if (count == 0)
        return;
    s->dimension += count;
    s->normals += family.normal ? count : 0;
    if (last && last->normal == family.normal && last->length == family.length &&
        last->partner == KS_NO_PARTNER && family.partner == KS_NO_PARTNER &&
        last->offset + last->count * last->step == family.offset)
        last->count += family.count;
    else
        s->family[s->n_families++] = family;
}

/* Whether the sum with this id is zero or the gradient of an earlier bias, whose offset is then
 * *partner. Otherwise the bias at `offset` is recorded as the first with this id. */
static bool find_partner(size_t *of, size_t id, size_t offset, size_t *partner)
{
    *partner = KS_NO_PARTNER;
    if (id == 0)
        return true;
    *partner = of[id];
    if (of[id] == KS_NO_PARTNER)
        of[id] = offset;
    return *partner != KS_NO_PARTNER;
}

static void find_in_bias(struct finder *f, size_t offset, size_t n, struct sums y_bar)
{
    size_t entries, all;
    bool each = find_partner(f->of_columns, y_bar.columns, offset, &entries);
    bool together = find_partner(f->of_total, y_bar.total, offset, &all);
    size_t groups = y_bar.groups > 0 ? y_bar.groups : 1;

    if (each)
        add_family(f, (struct ks_null_family){offset, 1, 1, n, 1, entries, false});
    else if (together)
        add_family(f,
                   (struct ks_null_family){offset, n / groups, 1, groups, n / groups, all, false});
}

/* A bias that has one number for each of n channels of an image, as conv2d has. It is not compared
 * with other biases. */
static void find_in_bias_of_channels(struct finder *f, size_t offset, size_t n, struct sums y_bar)
{
    size_t groups = y_bar.columns == 0 ? n : y_bar.rows ? common(n, y_bar.groups) : 0;

    if (groups > 0)
        add_family(f, (struct ks_null_family){offset, n / groups, 1, groups, n / groups,
                                              KS_NO_PARTNER, false});
}

/* A kernel [in, out] at `offset`. The sums over all inputs and a group of outputs belong to both
 * families and are counted once: one column is left out, or with several groups one row. */
static void find_in_kernel(struct finder *f, size_t offset, const struct ks_array *a, bool centred,
                           struct sums y_bar)
{
    size_t groups = y_bar.rows ? y_bar.groups : 0, rows = a->rows - (centred && groups > 1);

    if (centred)
        add_family(f, (struct ks_null_family){offset, a->rows, a->columns,
                                              a->columns - (groups == 1), 1, KS_NO_PARTNER, false});
    if (groups > 0)
        add_family(f, (struct ks_null_family){offset, a->columns / groups, 1, rows * groups,
                                              a->columns / groups, KS_NO_PARTNER, false});
}

/* Whether the block has all arrays whose columns a projection scales. */
static bool has_spheres(const struct finder *f, const struct KS(layer) *l)
{
    size_t rows = 0;
    bool all = true;

    for (size_t i = 0; i < l->n_params && rows < l->sphere_rows; i++) {
        all &= ks_selection_has(f->problem->layer, f->problem->arrays, l, i);
        rows += l->param[i].rows > 0 ? l->param[i].rows : 1;
    }
    return all;
}

/* In the arrays of the layer that belong to the problem's block. A direction is one of the block if
 * all its entries are. */
static void find_in_layer(struct finder *f, const struct KS(layer) *l, bool centred,
                          struct sums y_bar)
{
    size_t offset = l->offset, end = offset + (f->spheres ? l->sphere_rows * l->out : 0);

    if (offset < end && has_spheres(f, l))
        add_family(f, (struct ks_null_family){offset, l->sphere_rows, l->out, l->out, 1,
                                              KS_NO_PARTNER, true});
    for (size_t i = 0; i < l->n_params; i++) {
        const struct ks_array *a = &l->param[i];
        bool on_sphere = offset < end;

        if (!ks_selection_has(f->problem->layer, f->problem->arrays, l, i)) {
            offset += KS(array_size)(a);
            continue;
        }
        /* Not a kernel in groups: each group maps its own columns of X to its own columns of Y. Not
         * what a norm makes the kernel of: there the directions depend on theta. The sum of a
         * centred input says nothing about a patch of a conv2d, which may see a part of it. */
        if (!on_sphere && !f->lifted && !l->normed && strcmp(a->name, "kernel") == 0 &&
            a->rows == l->in && a->columns == l->out)
            find_in_kernel(f, offset, a, centred && l->kind == &KS(dense), y_bar);
        if (!on_sphere && !f->lifted && strcmp(a->name, "bias") == 0 && a->columns == l->out)
            find_in_bias(f, offset, a->columns, y_bar);
        else if (!on_sphere && !f->lifted && strcmp(a->name, "bias") == 0)
            find_in_bias_of_channels(f, offset, a->columns, y_bar);
        offset += KS(array_size)(a);
    }
}

/* The sums of the adjoint of the outputs that a loss reads. */
static struct sums of_outputs(struct finder *f, const struct KS(loss) *loss)
{
    return loss->kind->shift_invariant && !f->outputs ? zero_rows(f, 1) : unknown(f);
}

/* Visits the layers from the output to the input, in the order of net_backward. */
static void walk(struct finder *f)
{
    const struct ks_problem *q = f->problem;
    const struct KS(arch) *arch = q->checkpoint->critic.arch;
    struct sums bar = of_outputs(f, &arch->loss);

    for (size_t i = arch->n_layers; i-- > 0;) {
        const struct KS(layer) *l = &arch->layer[i];

        if (l->frozen == 0)
            find_in_layer(f, l, i > 0 && f->centred[i - 1], bar);
        bar = l->head > 0 ? of_outputs(f, &arch->loss.head[l->head - 1])
                          : pass(f, l, q->evaluation, bar);
        if (l->kind->container) {
            f->body[f->open] = l->body;
            f->skip[f->open++] = l->kind->sums == KS_SUMS_COPIED ? bar : unknown(f);
        }
        while (f->open > 0 && f->body[f->open - 1] == i) {
            f->open--;
            bar = add(f, bar, f->skip[f->open]);
        }
    }
}

/* A weight decay that adds mu2 I maps u to mu2 u. With D on both sides it does not, and on a
 * manifold the factor differs from that of the normals: these operators have no directions from the
 * architecture then. */
static ks_status find(const struct ks_problem *q, const struct ks_operator_kind *kind,
                      struct ks_null_space *space)
{
    const struct KS(arch) *arch = q->checkpoint->critic.arch;
    KS_CLEARED_BY(ks_pool_free) struct ks_pool pool = {.n = 0};
    size_t ids = MAX_IDS * (arch->n_layers + 1);
    struct finder f = {.problem = q,
                       .space = space,
                       .spheres = kind->spheres,
                       .outputs = kind->outputs,
                       .lifted = q->weight_decay != 0 && (kind->moving || kind->spheres)};

    KS_TRY(ks_pool_alloc(&pool, ids, sizeof *f.of_columns, &f.of_columns));
    KS_TRY(ks_pool_alloc(&pool, ids, sizeof *f.of_total, &f.of_total));
    KS_TRY(ks_pool_alloc(&pool, arch->n_layers, sizeof *f.skip, &f.skip));
    KS_TRY(ks_pool_alloc(&pool, arch->n_layers, sizeof *f.body, &f.body));
    KS_TRY(ks_pool_alloc(&pool, arch->n_layers, sizeof *f.centred, &f.centred));
    KS_TRY(ks_alloc(MAX_FAMILIES * arch->n_layers, sizeof *space->family, &space->family));
    for (size_t i = 0; i < ids; i++)
        f.of_columns[i] = f.of_total[i] = KS_NO_PARTNER;
    find_centred(arch, f.centred);
    walk(&f);
    assert(f.ids < ids && f.open == 0);
    return KS_OK;
}

ks_status ks_null_space_new(const struct ks_problem *problem, const struct ks_operator_kind *kind,
                            const struct ks_selection *selection, struct ks_null_space **space)
{
    const struct ks_networks *critics = &problem->checkpoint->critic;
    KS_OWNED_BY(ks_null_space_free) struct ks_null_space *s = NULL;

    *space = NULL;
    KS_TRY(ks_alloc(1, sizeof *s, &s));
    s->checkpoint = problem->checkpoint;
    s->selection = selection;
    s->first = problem->critic < 0 ? 0 : (size_t)problem->critic;
    s->critics = problem->critic < 0 ? critics->ensemble : 1;
    s->parameters = critics->arch->parameters;
    s->shift = kind->decays ? problem->scale * problem->weight_decay : 0;
    s->scaled = kind->moving && problem->checkpoint->adam_v;
    KS_TRY(find(problem, kind, s));
    *space = s, s = NULL;
    return KS_OK;
}

void ks_null_space_free(struct ks_null_space *space)
{
    if (!space)
        return;
    free(space->family);
    free(space);
}
