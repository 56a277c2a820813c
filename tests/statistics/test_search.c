/* A search for false statements: random small critics, many of them extreme. All statements about
 * their spectra are checked against all eigenvalues in float64.
 *
 *   test_search [CRITICS [FIRST]]
 *
 * tries CRITICS critics from number FIRST on, and prints each false statement */
#include <omp.h>

#include "critics.h"
#include "statements.h"

enum { SHORT = 200, TEXT = 2048 };

static size_t critics = SHORT, first, verbose;

/* The random numbers of one critic. */
static struct ks_rng rng;

static double uniform(void)
{
    return ks_rng_uniform(&rng, 0, 1);
}

static size_t below(size_t n)
{
    return ks_rng_index(&rng, n);
}

static bool chance(double p)
{
    return uniform() < p;
}

/* Mostly 1, otherwise between 1e-30 and 1e30. */
static double some_scale(double often)
{
    return chance(often) ? pow(10, 60 * uniform() - 30) : 1;
}

/* The random choices except the architecture. */
struct traits {
    size_t in, rows, loss_rows, minibatches, ensemble;
    double offset, input_scale, weight_scale, target_scale;
    bool dead, copied, constant, rank_one, huge_bias;
};

static void add_line(char *text, const char *line)
{
    assert_true(strlen(text) + strlen(line) + 2 < TEXT);
    strcat(strcat(text, line), "\n");
}

static void add_norm(char *text)
{
    static const char *const norms[] = {"batchnorm", "layernorm", "layernorm affine=no",
                                        "rmsnorm",   "l2norm",    "batchnorm eps=1e-6"};

    if (chance(0.6))
        add_line(text, norms[below(6)]);
}

static void add_activation(char *text)
{
    static const char *const activations[] = {"relu", "relu", "relu", "tanh",
                                              "silu", "elu",  "gelu"};

    if (chance(0.8))
        add_line(text, activations[below(7)]);
}

static void add_dense(char *text, size_t width, bool projects)
{
    add_line(text, text_of("dense %zu%s%s", width, chance(0.4) ? " bias=no" : "",
                           projects ? " project=unit-kernel" : ""));
}

static void describe(char *text, bool projects)
{
    static const char *const losses[] = {"ce min=-1 max=1", "ce min=-1 max=1", "mse", "mse",
                                         "huber",           "quantile"};
    size_t loss = below(6), blocks = below(3), width = 2 + below(5);
    char line[128];

    text[0] = '\0';
    if (chance(0.5))
        add_norm(text);
    for (size_t i = 0; i < blocks; i++) {
        add_dense(text, width, projects && chance(0.7));
        add_norm(text);
        add_activation(text);
        if (chance(0.2)) {
            add_line(text, chance(0.6) ? "residual {" : "lerp {");
            add_dense(text, width, false);
            if (chance(0.3))
                add_norm(text);
            add_activation(text);
            add_line(text, "}");
        }
    }
    snprintf(line, sizeof line, "dense %zu%s%s",
             loss < 2   ? 2 + below(3)
             : loss < 5 ? 1
                        : 3,
             chance(0.3) ? " bias=no" : "", projects ? " project=unit-kernel" : "");
    add_line(text, line);
    snprintf(line, sizeof line, "loss %s weight=%.3g", losses[loss],
             chance(0.1) ? pow(10, 24 * uniform() - 12) : 1);
    add_line(text, line);
}

static struct traits draw_traits(void)
{
    struct traits t = {.in = 1 + below(6),
                       .minibatches = chance(0.3) ? 1 : 1 + below(4),
                       .ensemble = chance(0.7) ? 1 : 2,
                       .offset = chance(0.3) ? pow(10, 6 * uniform()) : 0,
                       .input_scale = some_scale(0.1),
                       .weight_scale = some_scale(0.05),
                       .target_scale = some_scale(0.1),
                       .dead = chance(0.15),
                       .copied = chance(0.1),
                       .constant = chance(0.1),
                       .rank_one = chance(0.1),
                       .huge_bias = chance(0.1)};

    t.loss_rows = chance(0.1) ? 1 : 1 + below(24);
    t.rows = t.loss_rows + (chance(0.5) ? below(24) : 0);
    return t;
}

static void fill(size_t n, double scale, double *values)
{
    for (size_t i = 0; i < n; i++)
        values[i] = scale * ks_rng_normal(&rng);
}

static void draw_inputs(const struct traits *t, struct ks_checkpoint *c)
{
    for (size_t i = 0; i < t->minibatches * t->rows; i++) {
        double *x = c->input + i * t->in, common = ks_rng_normal(&rng);

        for (size_t k = 0; k < t->in; k++) {
            x[k] = t->rank_one ? common * (double)(k + 1) : ks_rng_normal(&rng);
            if (t->constant && k == 0)
                x[k] = 1;
            if (t->copied && k == 1)
                x[k] = x[0];
            x[k] = t->input_scale * (x[k] + t->offset);
        }
    }
}

/* Large weights, units with biases that make them dead, projected columns of norm 1. */
static void draw_weights(const struct traits *t, struct ks_checkpoint *c)
{
    const struct KS(arch) *a = c->critic.arch;
    double *w = c->critic.w;

    for (size_t e = 0; e < t->ensemble; e++)
        for (size_t i = 0; i < a->n_layers; i++) {
            const struct KS(layer) *l = &a->layer[i];

            for (size_t k = 0; k < l->n_params; k++) {
                const struct ks_array *array = &l->param[k];
                size_t n = KS(array_size)(array);
                bool kernel = array->orthogonal;

                for (size_t j = 0; j < n; j++)
                    w[j] = kernel ? t->weight_scale * w[j] : array->start + 0.3 * w[j];
                if (!kernel && t->dead && chance(0.5))
                    w[below(n)] = -1e3;
                if (!kernel && t->huge_bias && chance(0.5))
                    w[below(n)] = pow(10, 8 * uniform());
                for (size_t j = 0; kernel && l->sphere_rows > 0 && j < array->columns; j++) {
                    double norm = cblas_dnrm2((int)array->rows, w + j, (int)array->columns);

                    cblas_dscal((int)array->rows, 1 / norm, w + j, (int)array->columns);
                }
                w += n;
            }
        }
}

static struct ks_checkpoint *draw_critic(const char *text, const struct traits *t)
{
    struct critic_sizes sizes = {t->ensemble, t->in, t->minibatches, t->rows, t->loss_rows};
    struct ks_checkpoint *c = blank_critic(text, sizes);
    const struct KS(arch) *a = c->critic.arch;
    size_t n = t->ensemble * a->parameters, k = a->loss.targets;
    size_t targets = t->minibatches * t->loss_rows * k;

    assert_ok(ks_alloc(n, sizeof(double), &c->adam_v));
    fill(n, 1, c->critic.w);
    draw_weights(t, c);
    draw_inputs(t, c);
    fill(targets, a->loss.kind->distribution ? 1 : t->target_scale, c->target);
    if (a->loss.kind->distribution)
        KS(softmax)(targets / k, k, c->target, c->target);
    for (size_t i = 0; i < t->ensemble * a->states; i++)
        c->critic.state[i] = fabs(ks_rng_normal(&rng)) + 0.1;
    for (size_t i = 0; i < n; i++)
        c->adam_v[i] = chance(0.1) ? 0 : pow(10, -8 * uniform());
    c->adam_step = 100;
    return c;
}

static int random_layer(const struct KS(arch) *a)
{
    int layer[64], n = 0;

    for (size_t i = 0; i < a->n_layers && n < 64; i++)
        if (a->layer[i].n_params > 0)
            layer[n++] = a->layer[i].number;
    return layer[below((size_t)n)];
}

/* Without projected columns any but `manifold`, in half of the cases the Hessian. */
static const struct ks_operator_kind *draw_kind(bool projects)
{
    static const char *const names[] = {"hessian", "ggn",       "residual", "preconditioned",
                                        "ntk",     "ntk-value", "fisher",   "manifold"};

    return ks_operator_kind_find(names[projects ? below(8) : chance(0.5) ? 0 : below(7)]);
}

static struct analysis draw_analysis(const struct ks_checkpoint *c, bool projects)
{
    struct analysis o = {.problem = {.checkpoint = c,
                                     .minibatches = c->minibatches,
                                     .scale = chance(0.1) ? pow(10, 20 * uniform() - 10) : 1,
                                     .critic = chance(0.2) ? 0 : -1,
                                     .layer = -1,
                                     .evaluation = chance(0.15),
                                     .weight_decay = chance(0.1) ? pow(10, -4 * uniform()) : 0},
                         .kind = draw_kind(projects),
                         .single = chance(0.6),
                         .exact = chance(0.1),
                         .gradient = chance(0.5),
                         .order = 3 + below(58),
                         .probes = chance(0.6) ? 1 : 1 + below(3),
                         .seed = below(1000)};

    if (chance(0.15))
        o.problem.layer = random_layer(c->critic.arch);
    o.single_basis = o.single && chance(0.2);
    o.complement = o.probes == 1 && chance(0.4);
    return o;
}

struct totals {
    struct tally tally;
    size_t judged, refused, runs_missed;
};

static void try_analysis(size_t number, const struct traits *t, struct analysis *o,
                         struct totals *all)
{
    struct tally tally = {{0}, {0}, "", {NULL}};
    struct truth truth = {0};
    const struct ks_problem *q = &o->problem;
    size_t missed = 0;

    if (analysis_run(o) != KS_OK || truth_find(o, &truth) != KS_OK) {
        if (verbose > 1)
            printf("%zu: refused: %s\n", number, ks_error_text());
        all->refused++;
        analysis_clear(o);
        return;
    }
    if (verbose > 1 && o->single && truth.abs_max > 0)
        printf("%zu: ratio %.3g error %.3g eps, %s -%s dir %g product %.3g\n", number,
               truth.float32 / (ks_statistic(o->spectrum, "noise_floor") / 2),
               truth.float32 / truth.abs_max / FLT_EPSILON, o->kind->name, o->exact ? "exact" : "",
               o->null.product, ks_statistic(o->spectrum, "product_error") / FLT_EPSILON);
    judge_spectrum(o->spectrum, &truth, analysis_null(o), true, &tally);
    for (size_t k = 0; k < STATEMENTS; k++) {
        all->tally.made[k] += tally.made[k];
        all->tally.missed[k] += tally.missed[k];
        missed += tally.missed[k];
    }
    all->judged++;
    all->runs_missed += missed > 0;
    if (missed > 0 && verbose)
        printf(
            "%zu: %zu false:%s\n  %s %s%s%s%s n=%zu order=%zu probes=%zu seed=%llu "
            "critic=%d layer=%d eval=%d decay=%.2g scale=%.2g | abs_max %.6g h/abs_max %.2g error "
            "%.2g | in "
            "%zu rows %zu/%zu N %zu E %zu offset %.2g input %.2g weight %.2g target %.2g%s%s%s%s%s"
            "\n%s",
            number, missed, tally.miss, o->kind->name, o->single ? "f32" : "f64",
            o->single_basis ? " basis32" : "", o->exact ? " exact" : "",
            o->complement ? " complement" : "", truth.n, o->order, o->probes,
            (unsigned long long)o->seed, q->critic, q->layer, q->evaluation, q->weight_decay,
            q->scale, truth.abs_max, ks_statistic(o->spectrum, "noise_floor") / 2 / truth.abs_max,
            truth.float32 / truth.abs_max, t->in, t->loss_rows, t->rows, t->minibatches,
            t->ensemble, t->offset, t->input_scale, t->weight_scale, t->target_scale,
            t->dead ? " dead" : "", t->copied ? " copied" : "", t->constant ? " constant" : "",
            t->rank_one ? " rank1" : "", t->huge_bias ? " bias" : "", q->checkpoint->critic.text);
    truth_clear(&truth);
    analysis_clear(o);
}

TEST(test_search)
{
    struct totals all = {.judged = 0};
    size_t false_names = 0;

    for (size_t i = first; i < first + critics; i++) {
        char text[TEXT];
        struct traits t;
        struct ks_checkpoint *c;
        struct analysis o;
        bool projects;

        rng = ks_rng_start(0x736561726368, i);
        projects = chance(0.2);
        describe(text, projects);
        t = draw_traits();
        c = draw_critic(text, &t);
        o = draw_analysis(c, projects);
        try_analysis(i, &t, &o, &all);
        ks_checkpoint_free(c);
    }
    printf("%zu critics judged, %zu refused; %zu with a false statement\n", all.judged, all.refused,
           all.runs_missed);
    for (size_t k = 0; k < STATEMENTS; k++) {
        size_t made = all.tally.made[k], missed = all.tally.missed[k];

        printf("%-22s %7zu said %5zu false\n", statements[k].name, made, missed);
        if (missed > (statements[k].certain ? 0 : most_misses(made, 0.01)))
            false_names++;
    }
    assert_int_equal(false_names, 0);
}

int main(int argc, char **argv)
{
    verbose = argc > 1;
    critics = argc > 1 ? strtoul(argv[1], NULL, 10) : SHORT;
    first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    verbose += argc > 3;
    /* problems of microseconds: several threads would only wait for each other */
    omp_set_num_threads(1);
    return run_all_tests();
}
