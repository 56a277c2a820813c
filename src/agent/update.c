/* One gradient update of soft actor-critic (Haarnoja et al., ICML 2018; arXiv 1812.05905 for the
 * temperature) with the joint critic pass of CrossQ (Bhatt et al., ICLR 2024): s and a, s' and a'
 * go through a critic with batchnorm together, so that one set of batch statistics serves both.
 *
 *   1  a' ~ pi(.|s'), the actor in evaluation mode
 *   2  target critics in training mode on both halves; the half of (s', a') counts
 *   3  targets (target.c)
 *   4  critics in training mode on both halves, loss on the half of (s, a); Adam, projection
 *   5  Polyak average of the targets, in the same pass over the parameters
 *   6  actor in training mode on s: loss mean(T log pi - min_e Q_e(s, a)), the critics in
 *      evaluation mode; Adam, projection
 *   7  temperature: loss T (H - H*), H the mean of -log pi, in the parameter log T; Adam
 *      If there is an optimistic actor, it steps now (optimist.h).
 *
 * With KS_ACTOR_FIRST the order is 6, 7, 1, 2, 3, 4, 5, as in the published code of SimBa (Lee et
 * al., ICLR 2025): then a' and T are computed after the actor's step.
 *
 * 6 and 7 are done every policy_delay updates. In other updates only the actor's forward pass on s
 * is made, and only if it has a batchnorm, whose running statistics move. With the critics first
 * that pass runs in parallel with step 1. Without a batchnorm rows do not influence each other, so
 * 2 runs only on (s', a') and 4 only on (s, a). Critics are independent of each other and run one
 * per thread. */
#include "agent/agent.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "agent/actor.h"

/* The critics' input: (s, a) from row 0, (s', .) from row `batch` and, for a joint critic, (s, a)
 * again from row 2 batch. So the targets' input starts at row `batch`, and the half whose outputs
 * are needed, (s', a'), is its first. */
static void gather(struct KS(agent) *a, const struct ks_batch *b)
{
    size_t n = a->config.batch, obs = a->config.observations, act = a->config.actions;
    size_t d = KS(agent_width)(a);

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t i = 0; i < n; i++) {
        KS(widen)(obs, b->s + i * obs, a->s + i * obs);
        KS(widen)(obs, b->next_s + i * obs, a->next_s + i * obs);
        KS(widen)(obs, b->s + i * obs, a->input + i * d);
        KS(widen)(act, b->a + i * act, a->input + i * d + obs);
        KS(widen)(obs, b->next_s + i * obs, a->input + (n + i) * d);
    }
    if (a->critic_arch->joint)
        memcpy(a->input + 2 * n * d, a->input, n * d * sizeof *a->input);
}

/* Step 1 and the forward pass of step 6, which needs no results of the steps in between. That pass
 * moves a copy of the running statistics, because step 1 reads the old ones. */
static void act(struct KS(agent) *a, bool steps)
{
    size_t size = a->actor_arch->states * sizeof *a->actor.state;

    memcpy(a->next_state, a->actor.state, size);
    KS(noise_of_update)(a, KS_NEXT_ACTION, a->updates, a->next.noise);
    if (steps)
        KS(noise_of_update)(a, KS_POLICY_ACTION, a->updates, a->policy.noise);
#pragma omp parallel sections num_threads(a->config.threads)
    {
#pragma omp section
        KS(actor_forward_next)(a);
#pragma omp section
        if (steps || a->actor_arch->joint)
            KS(actor_forward)(a, a->next_state);
    }
    KS(actor_sample_next)(a);
    if (steps)
        KS(actor_sample)(a);
    memcpy(a->actor.state, a->next_state, size);
}

void KS(next_values)(struct KS(agent) *a) /* step 2 */
{
#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < a->config.ensemble; e++) {
        struct KS(trained) *c = &a->critic[e];

        KS(net_forward)
        (a->critic_train, c->target, KS(trained_state)(a->critic_arch, c), a->target_input,
         c->primal);
        a->outputs[e] = KS(net_output)(a->critic_train, c->primal);
    }
}

/* Step 3. Returns the fraction of clipped atoms. */
static double targets(struct KS(agent) *a, const struct ks_batch *b)
{
    const struct KS(loss) *loss = &a->critic_arch->loss;
    size_t clipped = 0;
    struct KS(next_values) bootstrap = {
        .ensemble = a->config.ensemble,
        .value = a->config.target_value,
        .f = a->outputs,
        .reward = b->reward,
        .mask = b->mask,
        .log_pi = a->next.log_pi,
        .gamma = a->config.gamma * a->value_scale,
        .temperature = KS(agent_temperature)(a),
    };

#pragma omp parallel for num_threads(a->config.threads) schedule(static) reduction(+ : clipped)
    for (size_t i = 0; i < a->config.batch; i++)
        clipped += KS(critic_target)(loss, &bootstrap, i,
                                     a->row + (size_t)omp_get_thread_num() * 2 * loss->outputs,
                                     a->target);
    return (double)clipped / (double)(a->config.batch * loss->outputs);
}

void KS(critic_gradient)(struct KS(agent) *a, size_t e)
{
    struct KS(trained) *c = &a->critic[e];
    const struct KS(loss) *loss = &a->critic_arch->loss;
    const struct KS(outputs) outputs = {a->config.batch, KS(net_output)(a->critic_train, c->primal),
                                        a->target};
    real *f_bar = KS(net_output_bar)(a->critic_train, c->adjoint);

    KS(net_forward)(a->critic_train, c->w, c->state, a->input, c->primal);
    a->critic_step[e].loss = loss->kind->gradient(loss, &outputs,
                                                  (real)(1 / (double)a->config.batch), f_bar);
    KS(trained_backward)
    (a->critic_train, c, a->input,
     a->kind->step_shared ? a->x_bar + e * KS(agent_rows)(a) * KS(agent_width)(a) : NULL, true);
}

/* The sum of Q over the batch after critic_gradient. For ce no exponential is needed: with p the
 * softmax and t the target,
 *
 *   f_bar = weight (p - t) / batch,  so  sum_k z_k p_k = sum_k z_k (t_k + f_bar_k batch / weight)
 */
static double sum_of_values(const struct KS(agent) *a, const struct KS(trained) *c)
{
    const struct KS(loss) *loss = &a->critic_arch->loss;
    const real *f = KS(net_output)(a->critic_train, c->primal);
    const real *f_bar = KS(net_output_bar)(a->critic_train, c->adjoint);
    double sum = 0, scale = (double)a->config.batch / loss->weight;
    size_t rows = a->config.batch, n = loss->outputs;

    for (size_t i = 0; i < rows * n && !loss->kind->distribution; i++)
        sum += (double)f[i] / (double)n;
    for (size_t i = 0; i < rows && loss->kind->distribution; i++)
        sum += KS(atoms_mean)(loss, a->target + i * n) +
               scale * KS(atoms_mean)(loss, f_bar + i * n);
    return sum;
}

/* max_e |Q_e - target|, of critics with one output. */
static void note_deviations(struct KS(agent) *a)
{
    for (size_t i = 0; i < a->config.batch; i++) {
        a->deviation[i] = 0;
        for (size_t e = 0; e < a->config.ensemble; e++) {
            const real f = KS(net_output)(a->critic_train, a->critic[e].primal)[i];

            a->deviation[i] = (real)fmax((double)a->deviation[i], fabs((double)(f - a->target[i])));
        }
    }
}

/* Scales the critics' gradients, as if they were one vector, to the norm gradient_norm if theirs is
 * larger; the divisor is PyTorch's, in clip_grad_norm_. */
static void clip_gradients(struct KS(agent) *a)
{
    const size_t n = a->critic_arch->parameters;
    double squares = 0, factor;

    for (size_t e = 0; e < a->config.ensemble; e++)
        for (size_t i = 0; i < n; i++)
            squares += (double)a->critic[e].g[i] * (double)a->critic[e].g[i];
    factor = a->config.gradient_norm / (sqrt(squares) + 1e-6);
    for (size_t e = 0; e < a->config.ensemble && factor < 1; e++)
        for (size_t i = 0; i < n; i++)
            a->critic[e].g[i] *= (real)factor;
}

/* The rest of step 6, and step 7. */
static ks_status step_actor(struct KS(agent) *a, struct ks_update *u)
{
    double temperature = KS(agent_temperature)(a);

    u->actor_loss = KS(actor_loss)(a, &u->entropy);
    if (!KS(adam_step)(a->actor_arch, &a->actor_adam, &a->actor))
        return ks_fail(KS_NUMBER, "an actor parameter is no longer finite");
    /* d/d log T of T (H - H*) is the loss itself */
    a->temperature_adam.step = a->actor_adam.step;
    u->temperature_loss = temperature * (u->entropy - a->config.target_entropy);
    a->log_temperature = KS(adam_scalar)(&a->temperature_adam, u->temperature_loss,
                                         &a->temperature_m, &a->temperature_v, a->log_temperature);
    a->actor_adam.step++;
    u->actor_stepped = true;
    return a->optimist ? KS(optimist_step)(a) : KS_OK;
}

static ks_status step_critics(struct KS(agent) *a, struct ks_update *u) /* steps 4 and 5 */
{
    double rows = (double)a->config.batch, ensemble = (double)a->config.ensemble;

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < a->config.ensemble; e++) {
        KS(critic_gradient)(a, e);
        a->critic_step[e].q = sum_of_values(a, &a->critic[e]);
    }
    if (a->deviation)
        note_deviations(a);
    if (a->kind->step_shared)
        KS_TRY(a->kind->step_shared(a));
    if (a->config.gradient_norm > 0)
        clip_gradients(a);
#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < a->config.ensemble; e++)
        a->critic_step[e].finite = KS(adam_step)(a->critic_arch, &a->critic_adam, &a->critic[e]);
    a->critic_adam.step++;
    u->critic_loss = u->q_mean = 0;
    for (size_t e = 0; e < a->config.ensemble; e++) {
        u->critic_loss += a->critic_step[e].loss / rows;
        u->q_mean += a->critic_step[e].q / rows / ensemble;
        if (!a->critic_step[e].finite)
            return ks_fail(KS_NUMBER, "a parameter of critic %zu is no longer finite", e);
    }
    return KS_OK;
}

static ks_status check_losses(const struct KS(agent) *a, const struct ks_update *u)
{
    if (!isfinite(u->critic_loss))
        return ks_fail(KS_NUMBER, "the critic loss is %g", u->critic_loss);
    if (u->actor_stepped && !isfinite(u->actor_loss))
        return ks_fail(KS_NUMBER, "the actor loss is %g", u->actor_loss);
    if (!isfinite(KS(agent_temperature)(a)))
        return ks_fail(KS_NUMBER, "the temperature is %g", KS(agent_temperature)(a));
    return KS_OK;
}

bool KS(actor_steps)(const struct KS(agent) *a, int64_t update)
{
    return (uint64_t)update % a->config.policy_delay == 0;
}

/* Steps 1 and 2, with the noise in a->next. */
static void look_ahead(struct KS(agent) *a)
{
    KS(actor_forward_next)(a);
    KS(actor_sample_next)(a);
    KS(next_values)(a);
}

/* Steps 6, 7, 1 and 2. */
static ks_status begin_actor_first(struct KS(agent) *a, struct ks_update *u)
{
    const bool steps = KS(actor_steps)(a, a->updates);

    if (steps || a->actor_arch->joint)
        KS(actor_forward)(a, a->actor.state);
    if (steps) {
        KS(noise_of_update)(a, KS_POLICY_ACTION, a->updates, a->policy.noise);
        KS(actor_sample)(a);
        KS_TRY(step_actor(a, u));
    }
    KS(noise_of_update)(a, KS_NEXT_ACTION, a->updates, a->next.noise);
    look_ahead(a);
    return KS_OK;
}

/* With the critics first: steps 1 and 2, and the forward pass of 6. */
static ks_status begin(struct KS(agent) *a, struct ks_update *u)
{
    if (a->config.order == KS_ACTOR_FIRST)
        return begin_actor_first(a, u);
    act(a, KS(actor_steps)(a, a->updates));
    KS(next_values)(a);
    return KS_OK;
}

/* With the critics first, the critics, the actor and the temperature are still those that step 6
 * would have used: this is exactly the gradient that was skipped, but for the correction of a
 * batchrenorm in the actor, whose statistics have moved. */
static double last_gradient(struct KS(agent) *a)
{
    double entropy;

    KS(noise_of_update)(a, KS_POLICY_ACTION, a->updates - 1, a->policy.noise);
    KS(actor_sample)(a);
    return KS(actor_loss)(a, &entropy);
}

static void choose_action(struct KS(agent) *a, bool explores)
{
    struct KS(acting) *t = &a->acting;
    struct KS(policy_pass) pass = {.rows = 1,
                                   .stride = a->config.actions,
                                   .head = KS(net_output)(a->actor_one, t->primal),
                                   .noise = t->noise,
                                   .action = t->action,
                                   .log_pi = &t->log_pi};

    KS(net_forward)(a->actor_one, a->actor.w, a->actor.state, t->s, t->primal);
    if (explores && a->optimist)
        KS(optimist_act)(a, t->s, pass.head, t->noise, t->action);
    else if (explores)
        KS(policy_sample)(&a->actor_arch->policy, &pass, 0);
    else
        KS(policy_mean)(&a->actor_arch->policy, pass.head, t->action);
}

const struct KS(agent_kind) KS(soft_actor_critic) = {.act = choose_action,
                                                     .gather = gather,
                                                     .look_ahead = look_ahead,
                                                     .begin = begin,
                                                     .step_actor = step_actor,
                                                     .last_gradient = last_gradient};

/* --- what all kinds have in common --- */

ks_status KS(agent_begin)(struct KS(agent) *a, const struct ks_batch *b, struct ks_update *u)
{
    a->kind->gather(a, b);
    u->actor_stepped = false;
    return a->kind->begin(a, u);
}

ks_status KS(agent_finish)(struct KS(agent) *a, const struct ks_batch *b, struct ks_update *u)
{
    u->clipped_fraction = targets(a, b);
    KS_TRY(step_critics(a, u));
    if (a->config.order == KS_CRITICS_FIRST && KS(actor_steps)(a, a->updates))
        KS_TRY(a->kind->step_actor(a, u));
    a->updates++;
    return check_losses(a, u);
}

ks_status KS(agent_update)(struct KS(agent) *a, const struct ks_batch *b, struct ks_update *u)
{
    KS_TRY(KS(agent_begin)(a, b, u));
    return KS(agent_finish)(a, b, u);
}

void KS(agent_fill_checkpoint_batch)(struct KS(agent) *a, const struct ks_batch *b,
                                     struct ks_rng *rng, double *input)
{
    size_t rows = KS(agent_rows)(a);

    a->kind->gather(a, b);
    KS(noise_draw)(a, rng, a->next.noise);
    a->kind->look_ahead(a);
    for (size_t i = 0; i < rows * KS(agent_width)(a); i++)
        input[i] = (double)a->input[i];
}

void KS(agent_fill_checkpoint_target)(struct KS(agent) *a, const struct ks_batch *b, double *target)
{
    targets(a, b);
    for (size_t i = 0; i < a->config.batch * a->critic_arch->loss.targets; i++)
        target[i] = (double)a->target[i];
}

void KS(agent_recompute_last)(struct KS(agent) *a, const struct ks_batch *b, real *actor_g)
{
    const int64_t last = a->updates - 1;
    real *own = a->actor.g;

    a->kind->gather(a, b);
    KS(noise_of_update)(a, KS_NEXT_ACTION, last, a->next.noise);
    a->kind->look_ahead(a);
    KS(actor_forward)(a, KS(trained_state)(a->actor_arch, &a->actor));
    if (KS(actor_steps)(a, last)) {
        memcpy(actor_g, own, a->actor_arch->parameters * sizeof *own);
        return;
    }
    a->actor.g = actor_g;
    a->kind->last_gradient(a);
    a->actor.g = own;
}
