/* One gradient update of DrQ-v2 (pixels.h), with any critics and actor; XQC's are those of
 * Palenicek et al. (ICLR 2026), who put them in this code. n ~ N(0, 1):
 *
 *   a' = clip(pi(e(s')) + clip(std n, -c, c), -1 + 1e-6, 1 - 1e-6)      pi = tanh(f)
 *   y = r + gamma m min_e Q'_e(h'(s'), a')           r, m: of several steps
 *   critics, trunk and image: the critics' loss of Q_e(h(s), a) and y
 *   actor: -mean(min_e Q_e(h(s), a)), a as a', but at e(s), which is a constant; the derivative of
 *          both clips counts as 1, as in the published code
 *
 * `std` falls while the run goes on; the caller sets it (agent.h, noise). The actor's loss sees
 * critics and trunk after their step, but e(s) before the image's. */
#include "agent/pixels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actor.h"
#include "core/memory.h"

static const char *const names[KS_PIXELS_PARTS] = {"image", "trunk"};
static const double LIMIT = 1 - 1e-6; /* of an action with noise */

enum { CHUNK = 4 }; /* rows at most of an image's pass */

/* --- memory --- */

/* The smallest number of equal parts of `rows` rows that have at most CHUNK. */
static size_t count_chunks(size_t rows)
{
    size_t n = (rows + CHUNK - 1) / CHUNK;

    while (rows % n != 0)
        n++;
    return n;
}

ks_status KS(pixels_new)(const struct KS(agent) *a, struct KS(pixels) **pixels)
{
    const size_t batch = a->config.batch;
    struct KS(pixels) *p;
    size_t in = a->config.observations, rows;

    KS_TRY(ks_alloc(1, sizeof *p, pixels));
    p = *pixels;
    for (size_t k = 0; k < KS_PIXELS_PARTS; k++) {
        KS_TRY(KS(module_parse)(a, a->config.pixels[k], names[k], in, k == KS_IMAGE, &p->arch[k]));
        in = p->arch[k]->out;
    }
    p->chunks = count_chunks(batch);
    rows = batch / p->chunks;
    KS_TRY(KS(net_new)(p->arch[KS_IMAGE], rows, rows, false, &p->image));
    KS_TRY(KS(net_new)(p->arch[KS_IMAGE], 1, 1, true, &p->one));
    KS_TRY(KS(net_new)(p->arch[KS_TRUNK], batch, batch, false, &p->trunk));
    return KS(net_new)(p->arch[KS_TRUNK], 2 * batch, 2 * batch, false, &p->both);
}

void KS(pixels_free)(struct KS(pixels) *p)
{
    if (!p)
        return;
    KS(net_free)(p->image);
    KS(net_free)(p->one);
    KS(net_free)(p->trunk);
    KS(net_free)(p->both);
    for (size_t k = 0; k < KS_PIXELS_PARTS; k++)
        KS(arch_free)(p->arch[k]);
    free(p);
}

void KS(pixels_lay_out)(struct ks_arena *arena, const struct KS(agent) *a)
{
    struct KS(pixels) *p = a->pixels;
    const size_t batch = a->config.batch;

    KS(trained_lay_out)(arena, p->image, p->one, p->one, &p->part[KS_IMAGE]);
    KS(trained_lay_out)(arena, p->both, p->trunk, p->trunk, &p->part[KS_TRUNK]);
    p->part[KS_TRUNK].target = KS_TAKE(arena, p->arch[KS_TRUNK]->parameters, real);
    p->primals = KS_TAKE(arena, p->chunks * p->image->primal, real);
    p->s = KS_TAKE(arena, batch * a->config.observations, real);
    p->actions = KS_TAKE(arena, batch * a->config.actions, real);
    p->e_bar = KS_TAKE(arena, 2 * batch * p->arch[KS_IMAGE]->out, real);
}

ks_status KS(pixels_init)(struct KS(agent) *a)
{
    struct KS(pixels) *p = a->pixels;

    p->adam = a->critic_adam;
    p->adam.rate = a->config.encoder_rate;
    for (size_t k = 0; k < KS_PIXELS_PARTS; k++) {
        struct ks_starts starts = a->config.starts;

        starts.gain = k == KS_IMAGE ? 0 : starts.gain;
        KS_TRY(KS(trained_init)(p->arch[k], &starts, ks_stream(a->config.seed, KS_INIT_ENCODER, k),
                                &p->part[k]));
    }
    return KS_OK;
}

/* --- the critics' input --- */

/* Copies h of the rows from `from` on, of the trunk's last pass, into the rows of a critics' input
 * from `to` on. */
static void copy_features(struct KS(agent) *a, size_t from, size_t to, real *input)
{
    const struct KS(pixels) *p = a->pixels;
    const size_t batch = a->config.batch, n = p->arch[KS_TRUNK]->out, d = KS(agent_width)(a);
    const real *h = KS(net_output)(p->both, p->part[KS_TRUNK].primal);

    for (size_t i = 0; i < batch; i++)
        memcpy(input + (to + i) * d, h + (from + i) * n, n * sizeof *h);
}

/* actions [batch, A] into the rows of a critics' input from row `to` on. */
static void copy_actions(const struct KS(agent) *a, const real *actions, size_t to, real *input)
{
    const size_t n = a->config.actions, d = KS(agent_width)(a);

    for (size_t i = 0; i < a->config.batch; i++)
        memcpy(input + (to + i) * d + d - n, actions + i * n, n * sizeof *actions);
}

/* e [batch, F] of s; `stays`: the passes are kept for the gradient. */
static void see(struct KS(agent) *a, const float *s, bool stays, real *e)
{
    struct KS(pixels) *p = a->pixels;
    const size_t seen = p->image->rows * a->config.observations;
    const size_t found = p->image->rows * p->arch[KS_IMAGE]->out;

    KS(widen)(a->config.batch * a->config.observations, s, p->s);
    for (size_t k = 0; k < p->chunks; k++) {
        real *primal = stays ? p->primals + k * p->image->primal : p->part[KS_IMAGE].primal;

        KS(net_forward)(p->image, p->part[KS_IMAGE].w, NULL, p->s + k * seen, primal);
        memcpy(e + k * found, KS(net_output)(p->image, primal), found * sizeof *e);
    }
}

/* The target's input has (s', a') first, of which alone outputs are wanted. The passes that stay in
 * the blocks are those on s, of the image, and of the trunk's own parameters, for the gradient. */
static void gather(struct KS(agent) *a, const struct ks_batch *b)
{
    struct KS(pixels) *p = a->pixels;
    struct KS(trained) *trunk = &p->part[KS_TRUNK];
    const size_t batch = a->config.batch;

    see(a, b->next_s, false, a->next_s);
    see(a, b->s, true, a->s);
    KS(net_forward)(p->both, trunk->target, NULL, a->s, trunk->primal);
    copy_features(a, batch, 0, a->target_input);
    copy_features(a, 0, batch, a->target_input);
    KS(net_forward)(p->both, trunk->w, NULL, a->s, trunk->primal);
    copy_features(a, 0, 0, a->input);
    copy_features(a, batch, batch, a->input);
    KS(widen)(batch * a->config.actions, b->a, p->actions);
    copy_actions(a, p->actions, 0, a->input);
    copy_actions(a, p->actions, batch, a->target_input);
}

/* --- actions --- */

/* The actions of a pass of the actor, with noise [batch, A], into p->actions. */
static void sample(struct KS(agent) *a, const real *head, const real *noise)
{
    const struct ks_noise level = {a->noise, a->config.noise_clip, LIMIT};
    const struct KS(pixels) *p = a->pixels;
    const size_t n = a->config.actions;

    for (size_t i = 0; i < a->config.batch; i++)
        KS(policy_perturb)
    (&a->actor_arch->policy, head + i * n, &level, noise + i * n, p->actions + i * n);
}

static void act(struct KS(agent) *a, bool explores)
{
    const struct ks_noise level = {a->noise, INFINITY, LIMIT};

    KS(act_deterministic)(a, a->pixels->one, &a->pixels->part[KS_IMAGE], &level, explores);
}

static void look_ahead(struct KS(agent) *a)
{
    const real *actions = a->pixels->actions;

    KS(actor_forward_next)(a);
    sample(a, KS(net_output)(a->actor_eval, a->next_primal), a->next.noise);
    copy_actions(a, actions, a->config.batch, a->input);
    copy_actions(a, actions, 0, a->target_input);
    KS(next_values)(a);
}

static ks_status begin(struct KS(agent) *a, struct ks_update *u)
{
    (void)u;
    KS(noise_of_update)(a, KS_NEXT_ACTION, a->updates, a->next.noise);
    look_ahead(a);
    if (KS(actor_steps)(a, a->updates) || a->actor_arch->joint)
        KS(actor_forward)(a, a->actor.state);
    return KS_OK;
}

/* --- gradients --- */

/* dL/dh: the sum over the critics, and zero where a critic has no row. */
static void sum_feature_bars(struct KS(agent) *a, real *h_bar)
{
    const size_t n = a->pixels->arch[KS_TRUNK]->out, d = KS(agent_width)(a);
    const size_t rows = KS(agent_rows)(a);

    memset(h_bar, 0, 2 * a->config.batch * n * sizeof *h_bar);
    for (size_t e = 0; e < a->config.ensemble; e++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < n; j++)
                h_bar[i * n + j] += a->x_bar[(e * rows + i) * d + j];
}

/* The image's gradient from e_bar of s. */
static void image_gradient(struct KS(agent) *a)
{
    struct KS(pixels) *p = a->pixels;
    struct KS(trained) *image = &p->part[KS_IMAGE];
    const size_t seen = p->image->rows * a->config.observations;
    const size_t found = p->image->rows * p->arch[KS_IMAGE]->out;

    memset(image->g, 0, p->arch[KS_IMAGE]->parameters * sizeof *image->g);
    for (size_t k = 0; k < p->chunks; k++) {
        memcpy(KS(net_output_bar)(p->image, image->adjoint), p->e_bar + k * found,
               found * sizeof *p->e_bar);
        KS(net_backward)
        (p->image, &(struct KS(net_backward)){.w = image->w,
                                              .x = p->s + k * seen,
                                              .primal = p->primals + k * p->image->primal,
                                              .adjoint = image->adjoint,
                                              .w_bar = image->g});
    }
}

void KS(pixels_gradient)(struct KS(agent) *a)
{
    struct KS(pixels) *p = a->pixels;
    struct KS(trained) *trunk = &p->part[KS_TRUNK];

    sum_feature_bars(a, KS(net_output_bar)(p->both, trunk->adjoint));
    KS(trained_backward)(p->both, trunk, a->s, p->e_bar, true);
    image_gradient(a);
}

static ks_status step_shared(struct KS(agent) *a)
{
    struct KS(pixels) *p = a->pixels;
    bool finite;

    KS(pixels_gradient)(a);
    finite = KS(adam_step)(p->arch[KS_TRUNK], &a->critic_adam, &p->part[KS_TRUNK]);
    finite &= KS(adam_step)(p->arch[KS_IMAGE], &p->adam, &p->part[KS_IMAGE]);
    p->adam.step++;
    return finite ? KS_OK : ks_fail(KS_NUMBER, "a parameter of image or trunk is no longer finite");
}

double KS(pixels_actor_gradient)(struct KS(agent) *a)
{
    struct KS(pixels) *p = a->pixels;
    struct KS(trained) *trunk = &p->part[KS_TRUNK];
    const size_t n = a->config.actions, d = KS(agent_width)(a), rows = a->config.batch;
    const size_t features = d - n;
    const real *head = KS(net_output)(a->actor_train, a->actor.primal), *h;
    real *bar = KS(net_output_bar)(a->actor_train, a->actor.adjoint);
    double loss;

    KS(net_forward)(p->trunk, trunk->w, NULL, a->s, trunk->primal);
    h = KS(net_output)(p->trunk, trunk->primal);
    for (size_t i = 0; i < rows; i++)
        memcpy(a->policy_input + i * d, h + i * features, features * sizeof *h);
    sample(a, head, a->policy.noise);
    copy_actions(a, p->actions, 0, a->policy_input);
    loss = -KS(policy_values)(a) / (double)rows;
    for (size_t i = 0; i < rows; i++) {
        KS(policy_mean)(&a->actor_arch->policy, head + i * n, p->actions);
        for (size_t j = 0; j < n; j++)
            bar[i * n + j] = (1 - p->actions[j] * p->actions[j]) *
                             a->action_bar[i * d + features + j];
    }
    KS(trained_backward)(a->actor_train, &a->actor, a->s, NULL, true);
    return loss;
}

static ks_status step_actor(struct KS(agent) *a, struct ks_update *u)
{
    KS(noise_of_update)(a, KS_POLICY_ACTION, a->updates, a->policy.noise);
    return KS(step_deterministic)(a, KS(pixels_actor_gradient)(a), u);
}

/* Apart from the image's step after that update. */
static double last_gradient(struct KS(agent) *a)
{
    KS(noise_of_update)(a, KS_POLICY_ACTION, a->updates - 1, a->policy.noise);
    return KS(pixels_actor_gradient)(a);
}

const struct KS(agent_kind) KS(drq) = {.act = act,
                                       .gather = gather,
                                       .look_ahead = look_ahead,
                                       .begin = begin,
                                       .step_shared = step_shared,
                                       .step_actor = step_actor,
                                       .last_gradient = last_gradient};
