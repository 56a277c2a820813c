/* Checks every example line of every layer kind, in training and evaluation mode: adjoint, tangent,
 * second order, symmetry, side effects, and the properties that the kind declares (uses, in_place,
 * recomputes_x_bar, takes_gate, gates, couples_rows, scale_free, sums, affine). Compiled in both
 * precisions; finite differences only in double. */
#include "layer.h"

enum { MAX_EXAMPLES = 192 };

/* <y_bar, J v> = <J' y_bar, v> */
static void check_adjoint(struct fixture *s)
{
    double left, right = 0, scale;

    second_order(s);
    left = dot(s->y.n, s->y.bar, s->y.dot);
    scale = norm(s->y.n, s->y.bar) * norm(s->y.n, s->y.dot);
    for (int k = 0; k < INPUTS; k++) {
        right += dot(s->in[k].n, s->in[k].bar, s->in[k].dot);
        scale += norm(s->in[k].n, s->in[k].bar) * norm(s->in[k].n, s->in[k].dot);
    }
    assert_close(left, right, 50 * KS_EPSILON * scale);
}

#ifndef KS_SINGLE
static const double STEP = 1e-5;

static void move(struct fixture *s, double h)
{
    for (int k = 0; k < INPUTS; k++)
        for (size_t i = 0; i < s->in[k].n; i++)
            s->in[k].value[i] += h * s->in[k].dot[i];
    for (size_t i = 0; i < s->y.n; i++)
        s->y.bar[i] += h * s->y.bar_dot[i];
}

/* found[i] against (plus[i] - minus[i]) / 2h */
static void compare(size_t n, const real *found, real *plus, real *minus)
{
    for (size_t i = 0; i < n; i++)
        assert_close(found[i], (plus[i] - minus[i]) / (2 * STEP), 1e-8 * (1 + norm(n, found)));
}

/* The tangents agree with central differences of forward and backward. */
static void check_differences(struct fixture *s)
{
    real *y[2], *bar[2][INPUTS];

    for (int side = 0; side < 2; side++) {
        move(s, side == 0 ? STEP : -2 * STEP);
        first_order(s);
        y[side] = keep(s->y.n, s->y.value);
        for (int k = 0; k < INPUTS; k++)
            bar[side][k] = keep(s->in[k].n, s->in[k].bar);
    }
    move(s, STEP);
    second_order(s);
    compare(s->y.n, s->y.dot, y[0], y[1]);
    for (int k = 0; k < INPUTS; k++)
        compare(s->in[k].n, s->in[k].bar_dot, bar[0][k], bar[1][k]);
}
#endif

/* For constant y_bar, the second derivative of <y_bar, y> is symmetric: <a, H b> = <b, H a>. */
static void check_symmetry(struct fixture *s)
{
    real *a[INPUTS], *b[INPUTS];
    double bha = 0, ahb = 0, scale = 0;

    clear(s->y.bar_dot, s->y.n);
    second_order(s);
    for (int k = 0; k < INPUTS; k++) {
        size_t n = s->in[k].n;

        a[k] = s->in[k].dot, b[k] = random_array(n);
        bha += dot(n, b[k], s->in[k].bar_dot);
        scale += norm(n, b[k]) * norm(n, s->in[k].bar_dot);
        s->in[k].dot = b[k];
    }
    second_order(s);
    for (int k = 0; k < INPUTS; k++) {
        ahb += dot(s->in[k].n, a[k], s->in[k].bar_dot);
        scale += norm(s->in[k].n, a[k]) * norm(s->in[k].n, s->in[k].bar_dot);
    }
    assert_close(bha, ahb, 200 * KS_EPSILON * scale);
}

/* The functions change none of their inputs, the tangent functions do not change the results of
 * forward, and a second call gives the same bits. */
static void check_side_effects(struct fixture *s)
{
    real *value[INPUTS], *in_dot[INPUTS], *y_bar = keep(s->y.n, s->y.bar);
    real *y_bar_dot = keep(s->y.n, s->y.bar_dot), *y, *cache;
    struct KS(pass) p = pass_of(s);

    for (int k = 0; k < INPUTS; k++) {
        value[k] = keep(s->in[k].n, s->in[k].value);
        in_dot[k] = keep(s->in[k].n, s->in[k].dot);
    }
    first_order(s);
    y = keep(s->y.n, s->y.value), cache = keep(s->nc, s->cache);
    tangents(s, &p);
    check_same(s->y.n, s->y.value, y), check_same(s->nc, s->cache, cache);
    struct products once = keep_products(s);
    second_order(s);
    check_products(s, once, check_same);
    for (int k = 0; k < INPUTS; k++) {
        check_same(s->in[k].n, s->in[k].value, value[k]);
        check_same(s->in[k].n, s->in[k].dot, in_dot[k]);
    }
    check_same(s->y.n, s->y.bar, y_bar), check_same(s->y.n, s->y.bar_dot, y_bar_dot);
}

/* Results are added to w_bar and w_bar_dot, not assigned. */
static void check_sums(struct fixture *s)
{
    struct variable *w = &s->in[W];
    struct KS(pass) p = pass_of(s);
    real *bar, *bar_dot;

    second_order(s);
    bar = keep(w->n, w->bar), bar_dot = keep(w->n, w->bar_dot);
    for (size_t i = 0; i < w->n; i++)
        bar[i] *= 2, bar_dot[i] *= 2;
    s->layer.kind->backward(&s->layer, &p);
    s->layer.kind->tangent_backward(&s->layer, &p);
    check_near(w->n, w->bar, bar), check_near(w->n, w->bar_dot, bar_dot);
}

/* If all outputs but one are NULL, that one has the same bits. */
static void check_wanted(struct fixture *s)
{
    second_order(s);
    for (int k = 0; k < INPUTS; k++) {
        struct variable *v = &s->in[k];
        real *bar = keep(v->n, v->bar), *bar_dot = keep(v->n, v->bar_dot);
        struct KS(pass) all = pass_of(s), p = all;

        p.x_bar = k == X ? all.x_bar : NULL, p.x_bar_dot = k == X ? all.x_bar_dot : NULL;
        p.w_bar = k == W ? all.w_bar : NULL, p.w_bar_dot = k == W ? all.w_bar_dot : NULL;
        p.skip_bar = k == SKIP ? all.skip_bar : NULL;
        p.skip_bar_dot = k == SKIP ? all.skip_bar_dot : NULL;
        clear(v->bar, v->n), clear(v->bar_dot, v->n);
        s->layer.kind->backward(&s->layer, &p);
        s->layer.kind->tangent_forward(&s->layer, &p);
        s->layer.kind->tangent_backward(&s->layer, &p);
        check_near(v->n, v->bar, bar), check_near(v->n, v->bar_dot, bar_dot);
    }
}

/* x_dot = NULL has the same effect as x_dot = 0, likewise skip_dot. */
static void check_constant_inputs(struct fixture *s)
{
    for (int k = X; k < INPUTS; k += SKIP - X) {
        struct KS(pass) p = pass_of(s);

        clear(s->in[k].dot, s->in[k].n); /* in the second round both are 0 */
        second_order(s);
        p.x_dot = NULL;
        if (k == SKIP)
            p.skip_dot = NULL;
        struct products zero = keep_products(s);
        for (size_t i = 0; i < s->y.n; i++)
            s->y.dot[i] = (real)NAN;
        for (size_t i = 0; i < s->nc; i++)
            s->cache_dot[i] = (real)NAN;
        tangents(s, &p);
        check_products(s, zero, check_near);
    }
}

/* The tangent functions get the arrays that a net gives them: no outputs of the first two
 * functions, no state, and otherwise only the arrays declared by `uses`. tangent_backward never
 * reads y_dot. */
static void check_uses(struct fixture *s)
{
    size_t n = s->in[X].n + s->y.n;
    unsigned uses = s->layer.uses;
    struct KS(pass) p = pass_of(s);
    real *nothing = random_array(n), *y_dot;

    for (size_t i = 0; i < n; i++)
        nothing[i] = (real)NAN;
    second_order(s);
    struct products full = keep_products(s);
    p.state = p.x_bar = p.w_bar = p.skip_bar = NULL;
    p.input = NULL;
    p.x = uses & KS_USES_X ? p.x : nothing;
    p.y = uses & KS_USES_Y ? p.y : nothing;
    p.y_bar = uses & KS_USES_Y_BAR ? p.y_bar : nothing;
    p.skip = uses & KS_USES_SKIP ? p.skip : nothing;
    clear(s->in[W].bar_dot, s->in[W].n);
    s->layer.kind->tangent_forward(&s->layer, &p);
    y_dot = keep(s->y.n, s->y.dot);
    memcpy(s->y.dot, nothing, s->y.n * sizeof(real));
    s->layer.kind->tangent_backward(&s->layer, &p);
    memcpy(s->y.dot, y_dot, s->y.n * sizeof(real));
    check_products(s, full, check_same);
}

/* The results have the same bits if y aliases x (unless later passes read x) and x_bar aliases
 * y_bar. */
static void check_first_order_in_place(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);
    real *forward = keep(s->y.n, s->in[X].value), *backward = keep(s->y.n, s->y.bar);
    real *y, *x_bar;

    first_order(s);
    y = keep(s->y.n, s->y.value), x_bar = keep(s->y.n, s->in[X].bar);
    if (!(s->layer.uses & KS_USES_X))
        p.x = p.y = forward;
    s->layer.kind->forward(&s->layer, &p);
    check_same(s->y.n, p.y, y);
    if (!(s->layer.uses & KS_USES_Y_BAR))
        p.y_bar = p.x_bar = backward;
    s->layer.kind->backward(&s->layer, &p);
    check_same(s->y.n, p.x_bar, x_bar);
}

/* The results do not change if y_dot aliases x_dot and x_bar_dot aliases y_bar_dot. */
static void check_in_place(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);
    real *forward, *backward;

    if (!s->layer.kind->in_place)
        return;
    assert_int_equal(s->layer.in, s->layer.out);
    check_first_order_in_place(s);
    second_order(s);
    struct products apart = keep_products(s);
    forward = keep(s->y.n, s->in[X].dot), backward = keep(s->y.n, s->y.bar_dot);
    p.x_dot = p.y_dot = forward;
    p.y_bar_dot = p.x_bar_dot = backward;
    tangents(s, &p);
    memcpy(s->y.dot, forward, s->y.n * sizeof(real));
    memcpy(s->in[X].bar_dot, backward, s->y.n * sizeof(real));
    check_products(s, apart, check_same);
}

/* tangent_backward recomputes x_bar. */
static void check_recomputes_x_bar(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);
    real *x_bar;

    if (!s->layer.kind->recomputes_x_bar)
        return;
    first_order(s);
    x_bar = keep(s->in[X].n, s->in[X].bar);
    for (size_t i = 0; i < s->in[X].n; i++)
        s->in[X].bar[i] = (real)NAN;
    p.w_bar = NULL;
    tangents(s, &p);
    check_near(s->in[X].n, s->in[X].bar, x_bar);
}

/* The tangent functions of a kind with takes_gate do the work of a gate behind the layer: y_dot is
 * zero and y_bar_dot counts as zero where the gate is not positive. */
static void check_takes_gate(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);
    real *gate = random_array(s->y.n), *y_bar_dot = keep(s->y.n, s->y.bar_dot);

    if (s->layer.kind->takes_gate) {
        gate[0] = 0;
        for (size_t i = 0; i < s->y.n; i++)
            if (!(gate[i] > 0))
                s->y.bar_dot[i] = 0;
        second_order(s);
        for (size_t i = 0; i < s->y.n; i++)
            if (!(gate[i] > 0))
                s->y.dot[i] = 0;
        struct products explicit = keep_products(s);
        memcpy(s->y.bar_dot, y_bar_dot, s->y.n * sizeof(real));
        p.gate = gate;
        tangents(s, &p);
        check_products(s, explicit, check_near);
    }
}

/* The tangent functions of a kind with `gates` only set entries to zero, where y is not positive.
 */
static void check_gates(struct fixture *s)
{
    if (!s->layer.kind->gates || !(s->layer.uses & KS_USES_SIGN))
        return;
    second_order(s);
    for (size_t i = 0; i < s->y.n; i++) {
        bool open = s->y.value[i] > 0;

        assert_true(s->y.dot[i] == (open ? s->in[X].dot[i] : 0));
        assert_true(s->in[X].bar_dot[i] == (open ? s->y.bar_dot[i] : 0));
    }
}

/* Changing the first row of x changes other rows of y exactly if couples_rows, in training mode. */
static void check_couples_rows(struct fixture *s)
{
    size_t width = s->layer.out, others = s->y.n - width;
    real *y;
    bool changed;

    first_order(s);
    y = keep(s->y.n, s->y.value);
    for (size_t j = 0; j < s->layer.in; j++)
        s->in[X].value[j] += (real)0.5;
    first_order(s);
    changed = memcmp(y + width, s->y.value + width, others * sizeof *y) != 0;
    assert_int_equal(changed, s->layer.kind->couples_rows && !s->evaluation);
}

/* Doubling x leaves y as it is exactly if scale_free, where x is so large that no epsilon counts.
 * For other kinds x is not enlarged first: activations and softmaxes would saturate. */
static void check_scale_free(struct fixture *s)
{
    const struct KS(layer_kind) *kind = s->layer.kind;
    bool declared = kind->scale_free && !(kind->couples_rows && s->evaluation);
    double change = 0;
    real *y;

    for (size_t j = 0; j < s->in[X].n; j++)
        s->in[X].value[j] *= declared ? 1 << 14 : 1;
    first_order(s);
    y = keep(s->y.n, s->y.value);
    for (size_t j = 0; j < s->in[X].n; j++)
        s->in[X].value[j] *= 2;
    first_order(s);
    for (size_t i = 0; i < s->y.n; i++)
        change = fmax(change, fabs((double)(s->y.value[i] - y[i])));
    if (declared)
        assert_close(change, 0, 20 * KS_EPSILON * norm(s->y.n, y) + 1e-7);
    else if (!s->layer.reads_state)
        assert_true(change > 0.02 * norm(s->y.n, y));
}

/* The largest |sum| over sets of n entries: a set's entries are `stride` apart, its start is `step`
 * after the previous one's. */
static double largest_sum(const real *a, size_t sets, size_t step, size_t n, size_t stride)
{
    double largest = 0;

    for (size_t k = 0; k < sets; k++) {
        double sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += (double)a[k * step + i * stride];
        largest = fmax(largest, fabs(sum));
    }
    return largest;
}

/* x_bar has the structure that `sums` declares. A linear map keeps columns that sum to zero so. */
static void check_sums_of_x_bar(struct fixture *s)
{
    enum ks_sums sums = s->layer.kind->sums;
    size_t in = s->layer.in, out = s->layer.out;
    real *last = s->y.bar + (ROWS - 1) * out;
    const real *x_bar = s->in[X].bar;
    double bound;

    if (sums == KS_SUMS_COLUMNS && s->evaluation)
        sums = KS_SUMS_LINEAR;
    clear(last, sums == KS_SUMS_LINEAR ? out : 0);
    for (size_t i = 0; i < (ROWS - 1) * out && sums == KS_SUMS_LINEAR; i++)
        last[i % out] -= s->y.bar[i];
    first_order(s);
    bound = 50 * KS_EPSILON * norm(s->in[X].n, x_bar);
    if (sums == KS_SUMS_ROWS) {
        size_t groups = s->layer.groups, d = in / groups;

        assert_true(groups > 0 && d * groups == in);
        assert_close(largest_sum(x_bar, ROWS * groups, d, d, 1), 0, bound);
    }
    if (sums == KS_SUMS_COLUMNS || sums == KS_SUMS_LINEAR)
        assert_close(largest_sum(x_bar, in, 1, ROWS, in), 0, bound);
    if (sums == KS_SUMS_COPIED) {
        assert_memory_equal(x_bar, s->y.bar, s->y.n * sizeof *x_bar);
        assert_memory_equal(s->in[SKIP].bar, s->y.bar, s->y.n * sizeof *x_bar);
    }
}

/* With y_bar = 0, which gauss_newton may skip, tangent_backward is the adjoint of tangent_forward.
 */
static void check_gauss_newton(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);

    clear(s->y.bar, s->y.n);
    second_order(s);
    struct products read = keep_products(s);
    p.gauss_newton = true;
    tangents(s, &p);
    check_products(s, read, check_near);
}

/* y = scale z(x) + bias, where z is y for scale 1 and bias 0. */
static void check_affine(struct fixture *s)
{
    size_t d = s->layer.out, n = s->layer.n_params;
    struct variable *w = &s->in[W];
    real *random = keep(w->n, w->value), *y;

    if (!s->layer.kind->affine) {
        return;
    }
    assert_true(n <= 2 && w->n == n * d && d == s->layer.in);
    first_order(s);
    y = keep(s->y.n, s->y.value);
    for (size_t i = 0; i < w->n; i++)
        w->value[i] = i < d;
    first_order(s);
    for (size_t i = 0; i < s->y.n && n > 0; i++)
        s->y.value[i] = random[i % d] * s->y.value[i] + (n > 1 ? random[d + i % d] : 0);
    check_near(s->y.n, s->y.value, y);
}

/* Inputs of magnitude 1e4 and inputs of 0 give finite numbers. */
static void check_finite(struct fixture *s)
{
    static const double sizes[] = {1e4, 0};

    for (size_t i = 0; i < 2; i++) {
        double sum = 0;

        for (int k = X; k < INPUTS; k += SKIP - X)
            for (size_t j = 0; j < s->in[k].n; j++)
                s->in[k].value[j] *= (real)sizes[i];
        second_order(s);
        for (int k = 0; k < INPUTS; k++)
            sum += norm(s->in[k].n, s->in[k].bar) + norm(s->in[k].n, s->in[k].bar_dot);
        assert_true(isfinite(sum + norm(s->y.n, s->y.value) + norm(s->y.n, s->y.dot)));
    }
}

struct example {
    const struct KS(layer_kind) *kind;
    const char *line;
    bool evaluation;
};

static void test_example(void **state)
{
    static void (*const checks[])(struct fixture *) = {
#ifndef KS_SINGLE
        check_differences,
#endif
        check_adjoint,          check_symmetry,        check_side_effects, check_sums,
        check_wanted,           check_constant_inputs, check_uses,         check_in_place,
        check_recomputes_x_bar, check_takes_gate,      check_gates,        check_couples_rows,
        check_scale_free,       check_sums_of_x_bar,   check_gauss_newton, check_affine,
        check_finite,
    };
    const struct example *e = *state;

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct fixture s;

        setup(&s, e->kind, e->line, e->evaluation);
        checks[i](&s);
    }
}

int main(void)
{
    static struct example examples[MAX_EXAMPLES];
    static char names[MAX_EXAMPLES][96];
    struct CMUnitTest tests[MAX_EXAMPLES];
    size_t n = 0;

    for (size_t k = 0; KS(layer_kinds)[k]; k++)
        for (size_t i = 0; KS(layer_kinds)[k]->examples[i]; i++)
            for (int evaluation = 0; evaluation < 2; evaluation++) {
                const char *line = KS(layer_kinds)[k]->examples[i];

                if (n == MAX_EXAMPLES)
                    return 1;
                examples[n] = (struct example){KS(layer_kinds)[k], line, evaluation};
                snprintf(names[n], sizeof names[n], "%s%s", line,
                         evaluation ? " (evaluation)" : "");
                tests[n] = (struct CMUnitTest){names[n], test_example, NULL, NULL, &examples[n]};
                n++;
            }
    return _cmocka_run_group_tests("layers " KS_PRECISION, tests, n, NULL, NULL);
}
