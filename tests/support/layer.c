#include "layer.h"

static const double FAR_FROM_KINK = 0.05;

static struct ks_rng rng;

real *random_array(size_t n)
{
    real *a = hold(calloc(n, sizeof *a));

    for (size_t i = 0; i < n; i++) {
        double z = ks_rng_normal(&rng);

        a[i] = (real)(z + (z < 0 ? -FAR_FROM_KINK : FAR_FROM_KINK));
    }
    return a;
}

static struct variable random_variable(size_t n)
{
    return (struct variable){n, random_array(n), random_array(n), random_array(n), random_array(n)};
}

static size_t count(const struct ks_array *arrays, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (arrays[i].rows ? arrays[i].rows : 1) * arrays[i].columns;
    return sum;
}

void setup_width(struct fixture *s, const struct KS(layer_kind) *kind, const char *example,
                 size_t width)
{
    struct ks_line line;

    memset(s, 0, sizeof *s);
    rng = ks_rng_start(1, 0);
    assert_ok(ks_line_split(&line, "example", 1, example));
    s->layer.kind = kind;
    s->layer.in = s->layer.network_in = width;
    assert_int_equal(line.opens, kind->container);
    assert_ok(KS(layer_configure)(&s->layer, &line));
    hold(s->layer.settings);
    assert_ok(ks_line_end(&line));
    s->layer.parameters = count(s->layer.param, s->layer.n_params);
    s->layer.states = s->ns = count(s->layer.state, s->layer.n_states);
    s->nc = ROWS * s->layer.cache_row + s->layer.cache_fixed;
    s->in[X] = random_variable(ROWS * s->layer.in);
    s->in[W] = random_variable(s->layer.parameters);
    s->in[SKIP] = random_variable(kind->container ? ROWS * s->layer.in : 0);
    s->y = random_variable(ROWS * s->layer.out);
    s->state = random_array(s->ns);
    for (size_t i = 0; i < s->ns; i++)
        s->state[i] = (real)fabs((double)s->state[i]); /* variances are positive */
    s->input = random_array(ROWS * width);
    s->cache = random_array(s->nc), s->cache_dot = random_array(s->nc);
}

void setup(struct fixture *s, const struct KS(layer_kind) *kind, const char *example,
           bool evaluation)
{
    setup_width(s, kind, example, WIDTH);
    s->evaluation = evaluation;
}

struct KS(pass) pass_of(const struct fixture *s)
{
    const struct variable *x = &s->in[X], *w = &s->in[W], *skip = &s->in[SKIP], *y = &s->y;
    struct KS(pass) p = {.rows = ROWS,
                         .evaluation = s->evaluation,
                         .input = s->input,
                         .x = x->value,
                         .w = w->value,
                         .y = y->value,
                         .cache = s->cache,
                         .state = s->evaluation || s->layer.reads_state ? s->state : NULL,
                         .y_bar = y->bar,
                         .x_bar = x->bar,
                         .w_bar = w->bar,
                         .x_dot = x->dot,
                         .w_dot = w->dot,
                         .y_dot = y->dot,
                         .cache_dot = s->cache_dot,
                         .y_bar_dot = y->bar_dot,
                         .x_bar_dot = x->bar_dot,
                         .w_bar_dot = w->bar_dot};

    if (s->layer.kind->container) {
        p.skip = skip->value, p.skip_bar = skip->bar;
        p.skip_dot = skip->dot, p.skip_bar_dot = skip->bar_dot;
    }
    return p;
}

void clear(real *a, size_t n)
{
    memset(a, 0, n * sizeof *a);
}

void first_order(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);

    clear(s->in[W].bar, s->in[W].n);
    s->layer.kind->forward(&s->layer, &p);
    s->layer.kind->backward(&s->layer, &p);
}

void tangents(struct fixture *s, const struct KS(pass) *p)
{
    clear(s->in[W].bar_dot, s->in[W].n);
    s->layer.kind->tangent_forward(&s->layer, p);
    s->layer.kind->tangent_backward(&s->layer, p);
}

void second_order(struct fixture *s)
{
    struct KS(pass) p = pass_of(s);

    first_order(s);
    tangents(s, &p);
}

double norm(size_t n, const real *a)
{
    return sqrt(dot(n, a, a));
}

real *keep(size_t n, const real *a)
{
    real *copy = random_array(n);

    memcpy(copy, a, n * sizeof *a);
    return copy;
}

void check_same(size_t n, const real *a, real *kept)
{
    assert_memory_equal(a, kept, n * sizeof *a);
}

void check_near(size_t n, const real *a, real *kept)
{
    for (size_t i = 0; i < n; i++)
        assert_close(a[i], kept[i], 20 * KS_EPSILON * (1 + norm(n, kept)));
}

struct products keep_products(const struct fixture *s)
{
    struct products kept = {.y_dot = keep(s->y.n, s->y.dot)};

    for (int k = 0; k < INPUTS; k++)
        kept.bar_dot[k] = keep(s->in[k].n, s->in[k].bar_dot);
    return kept;
}

void check_products(const struct fixture *s, struct products kept,
                    void (*check)(size_t n, const real *a, real *kept))
{
    check(s->y.n, s->y.dot, kept.y_dot);
    for (int k = 0; k < INPUTS; k++)
        check(s->in[k].n, s->in[k].bar_dot, kept.bar_dot[k]);
}
