#include "null_critics.h"

#include "spectra.h"

size_t critic_inputs = 5; /* columns of the input of `make` */

/* Relative to the largest eigenvalue: at most ZERO counts as zero, at least NOT_ZERO as nonzero. */
static const double ZERO = 1e-14, NOT_ZERO = 1e-11;

void draw(struct ks_rng *rng, struct ks_checkpoint *c)
{
    const struct KS(arch) *a = c->critic.arch;
    size_t k = a->loss.targets, n_target = c->minibatches * c->loss_rows * k;

    fill_normal(rng, ks_networks_parameters(&c->critic), c->critic.w);
    fill_normal(rng, c->critic.ensemble * a->frozen, c->critic.frozen);
    fill_normal(rng, c->minibatches * c->rows * a->in, c->input);
    fill_normal(rng, n_target, c->target);
    fill_normal(rng, c->critic.ensemble * a->states, c->critic.state);
    for (size_t i = 0; i < c->critic.ensemble * a->states; i++)
        c->critic.state[i] = fabs(c->critic.state[i]);
    if (a->loss.kind->distribution)
        KS(softmax)(n_target / k, k, c->target, c->target);
}

/* Makes biases small relative to the kernels, so that most units are active in some rows only. */
static void weaken_biases(struct ks_checkpoint *c)
{
    const struct KS(arch) *a = c->critic.arch;
    double *w = c->critic.w;

    for (size_t e = 0; e < c->critic.ensemble; e++)
        for (size_t i = 0; i < a->n_layers; i++)
            for (size_t k = 0; k < a->layer[i].n_params && a->layer[i].frozen == 0; k++) {
                const struct ks_array *array = &a->layer[i].param[k];

                for (size_t j = 0; j < KS(array_size)(array); j++, w++)
                    *w = array->orthogonal ? 0.5 * *w : array->start + 0.3 * *w;
            }
}

struct ks_checkpoint *null_critic(const char *text, size_t ensemble)
{
    struct ks_rng rng = ks_rng_start(41, 0);
    struct critic_sizes sizes = {ensemble, critic_inputs, MINIBATCHES, ROWS, LOSS_ROWS};
    struct ks_checkpoint *c = blank_critic(text, sizes);

    draw(&rng, c);
    weaken_biases(c);
    return keep_checkpoint(c);
}

size_t zeros(const char *text, size_t n, const double *value)
{
    double largest = 0;
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(value[i]));
    for (size_t i = 0; i < n; i++) {
        count += fabs(value[i]) <= ZERO * largest;
        if (fabs(value[i]) > ZERO * largest && fabs(value[i]) < NOT_ZERO * largest)
            fail_msg("%s: %g of the largest is neither zero nor not", text,
                     fabs(value[i]) / largest);
    }
    return count;
}

RELEASES(free_selection, ks_selection_free)

RELEASES(free_space, ks_null_space_free)

struct ks_null_space *predict(const struct ks_problem *q, const struct ks_operator_kind *kind)
{
    struct ks_selection *selection;
    struct ks_null_space *space;

    assert_ok(ks_selection_new(q, kind->moving, &selection));
    hold_object(selection, free_selection);
    assert_ok(ks_null_space_new(q, kind, selection, &space));
    return hold_object(space, free_space);
}

double *all_directions(const struct ks_null_space *s)
{
    size_t n = s->selection->of, at = 0;
    double *u = hold(calloc(s->dimension * n + 1, sizeof *u));

    for (struct ks_null_direction d = {NULL, 0, 0}; ks_null_space_next(s, &d); at++) {
        ks_null_space_add(s, &d, 1, u + at * n);
        cblas_dscal((int)n, 1 / cblas_dnrm2((int)n, u + at * n, 1), u + at * n, 1);
    }
    assert_int_equal(at, s->dimension);
    return u;
}

size_t study_dimension(const char *name, size_t d, size_t k)
{
    size_t norm = strncmp(name, "bn", 2) == 0   ? IN
                  : strncmp(name, "ln", 2) == 0 ? IN + 1 + (k - 1) * (d + 1)
                                                : 0;

    return norm + (strstr(name, "ce") ? d + 1 : 0);
}

char *study_text(const char *name, size_t width, size_t depth)
{
    struct ks_settings settings;
    char *text[KS_TEXTS];

    ks_settings_defaults(&settings);
    settings.hidden = width, settings.depth = depth, settings.atoms = 4;
    assert_ok(ks_architecture(name, &settings, 1, text));
    free(text[KS_ACTOR_TEXT]);
    return hold(text[KS_CRITIC_TEXT]);
}

struct ks_operator *build(const struct ks_problem *q, const struct ks_operator_kind *kind,
                          const struct ks_selection *selection, bool single)
{
    struct ks_operator *full, *a;

    assert_ok(prepared_kind(kind, single, q, &full));
    assert_ok(ks_block_new(full, selection, &a));
    return hold_operator(a);
}
