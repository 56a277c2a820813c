/* One gradient update of MR.Q (Fujimoto et al., "Towards General-Purpose Model-Free Reinforcement
 * Learning", ICLR 2025; code facebookresearch/MRQ, 8a44a7d, MRQ.py). z, x: the encoder's embeddings
 * of s and of (s, a) (encoder.h); ' marks target networks; n ~ N(0, 1):
 *
 *   a' = clip(pi'(z'(s')) + clip(0.2 n, -0.3, 0.3), -1, 1)
 *   y = r + gamma m c min_e Q'_e(x'(s', a'))     r, m: of several steps; c: value_scale
 *   critics: Huber loss of Q_e(x(s, a)) - y, their gradients clipped together to a norm
 *   actor: -mean(Q(x(s, pi(z(s))))) + 1e-5 mean(f^2), pi = tanh(f)
 *
 * The encoder does not change in these steps. The targets are copies of all networks, made by
 * agent_refresh; before its next updates the caller trains the encoder (encoder_step). */

#include <math.h>

#include "agent/actor.h"

/* The constants of the published code. */
static const struct ks_noise EXPLORATION = {0.2, INFINITY, 1}, TARGET_NOISE = {0.2, 0.3, 1};
static const double PENALTY = 1e-5;

static void act(struct KS(agent) *a, bool explores)
{
    const struct KS(encoder) *e = a->encoder;

    KS(act_deterministic)(a, e->one, &e->module[KS_STATE_MODULE], &EXPLORATION, explores);
}

static void gather(struct KS(agent) *a, const struct ks_batch *b)
{
    struct KS(encoder) *e = a->encoder;
    const size_t n = a->config.batch * a->config.observations;

    KS(widen)(n, b->s, e->s);
    KS(encode_states)(a, false, e->s, a->s);
    KS(widen)(n, b->next_s, e->s);
    KS(encode_states)(a, true, e->s, a->next_s);
    KS(widen)(a->config.batch * a->config.actions, b->a, e->a);
    KS(encode_pairs)(a, false, a->s, e->a, a->input);
}

static void look_ahead(struct KS(agent) *a)
{
    const size_t n = a->config.actions;
    const real *head = KS(net_output)(a->actor_eval, a->next_primal);
    real *actions = a->encoder->a;

    KS(net_forward)(a->actor_eval, a->actor.target, a->actor.state, a->next_s, a->next_primal);
    for (size_t i = 0; i < a->config.batch; i++)
        KS(policy_perturb)
    (&a->actor_arch->policy, head + i * n, &TARGET_NOISE, a->next.noise + i * n, actions + i * n);
    KS(encode_pairs)
    (a, true, a->next_s, actions, a->input + a->config.batch * KS(agent_width)(a));
    KS(next_values)(a);
}

static ks_status begin(struct KS(agent) *a, struct ks_update *u)
{
    (void)u;
    KS(noise_of_update)(a, KS_NEXT_ACTION, a->updates, a->next.noise);
    look_ahead(a);
    return KS_OK;
}

double KS(mrq_actor_gradient)(struct KS(agent) *a)
{
    const size_t n = a->config.batch * a->config.actions, rows = a->config.batch;
    const real *head = KS(net_output)(a->actor_train, a->actor.primal);
    real *bar = KS(net_output_bar)(a->actor_train, a->actor.adjoint);
    real *actions = a->encoder->a, *a_bar = a->encoder->action_bar;
    double loss = 0;

    KS(actor_forward)(a, a->actor.state);
    for (size_t i = 0; i < rows; i++)
        KS(policy_mean)
    (&a->actor_arch->policy, head + i * a->config.actions, actions + i * a->config.actions);
    KS(encode_pairs)(a, false, a->s, actions, a->policy_input);
    loss -= KS(policy_values)(a) / (double)rows;
    KS(encode_pairs_backward)(a, actions, a->action_bar, a_bar);
    for (size_t i = 0; i < n; i++) {
        loss += PENALTY * (double)head[i] * (double)head[i] / (double)n;
        bar[i] = (1 - actions[i] * actions[i]) * a_bar[i] +
                 (real)(2 * PENALTY / (double)n) * head[i];
    }
    KS(trained_backward)(a->actor_train, &a->actor, a->s, NULL, true);
    return loss;
}

static ks_status step_actor(struct KS(agent) *a, struct ks_update *u)
{
    return KS(step_deterministic)(a, KS(mrq_actor_gradient)(a), u);
}

const struct KS(agent_kind) KS(mrq) = {.act = act,
                                       .gather = gather,
                                       .look_ahead = look_ahead,
                                       .begin = begin,
                                       .step_actor = step_actor,
                                       .last_gradient = KS(mrq_actor_gradient)};
