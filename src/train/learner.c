#include "train/learner.h"

#include <math.h>
#include <stdlib.h>

#include "agent/stream.h"
#include "core/memory.h"
#include "core/process.h"

/* The learning rates fall over all updates of the run, as if none of its steps were random. Each
 * optimizer counts its own steps, so with a policy delay the actor's rate falls less far. */
struct ks_agent_config ks_learner_config(const struct ks_plan *plan, const struct ks_env *env)
{
    const struct ks_settings *s = &plan->options->settings;
    const double updates = (double)s->utd * (double)plan->agent_steps;
    struct ks_agent_config c = s->agent;

    c.critic = plan->text[KS_CRITIC_TEXT];
    c.actor = plan->text[KS_ACTOR_TEXT];
    c.optimist = plan->text[KS_OPTIMIST_TEXT];
    if (plan->text[KS_ENCODER_TEXT])
        c.encoder = (const char *const *)&plan->text[KS_ENCODER_TEXT];
    c.name = plan->options->architecture;
    c.observations = ks_env_observations(env);
    c.actions = ks_env_actions(env);
    c.ensemble = s->critics;
    c.batch = s->batch;
    c.gamma = plan->gamma;
    c.critic_rate = (struct ks_rate){s->critic_lr, s->lr_end, updates};
    c.actor_rate = (struct ks_rate){s->actor_lr, s->lr_end, updates};
    c.encoder_rate = (struct ks_rate){s->encoder_lr, s->encoder_lr, updates};
    c.beta1 = KS_ADAM_BETA1;
    c.starts.gain = isnan(s->init_gain) ? 0 : s->init_gain;
    c.target_entropy = isnan(s->target_entropy) ? -(double)c.actions / 2 : s->target_entropy;
    c.products = ks_products_choose(s->products);
    c.seed = plan->options->seed;
    c.threads = (int)(s->threads < s->critics ? s->threads : s->critics);
    return c;
}

/* Replay never holds more transitions than the run makes. */
static ks_status new_replay(struct ks_learner *l)
{
    const size_t capacity = l->plan->options->settings.replay, steps = l->plan->agent_steps;

    return ks_replay_new(steps < capacity ? steps : capacity, ks_env_observations(l->player.env),
                         ks_env_actions(l->player.env), &l->replay);
}

static void lay_out_windows(struct ks_arena *arena, const struct ks_replay *r,
                            struct ks_unrolled *w)
{
    const size_t rows = w->steps * w->n;

    w->s = KS_TAKE(arena, (rows + w->n) * r->observations, float);
    w->a = KS_TAKE(arena, rows * r->actions, float);
    w->reward = KS_TAKE(arena, rows, float);
    w->mask = KS_TAKE(arena, rows, float);
    w->kept = KS_TAKE(arena, rows, float);
}

static void lay_out(struct ks_arena *arena, void *learner)
{
    struct ks_learner *l = learner;
    const struct ks_settings *s = &l->plan->options->settings;
    const size_t batch = s->batch, observations = l->replay->observations;

    l->rows.n = batch;
    l->rows.s = KS_TAKE(arena, batch * observations, float);
    l->rows.a = KS_TAKE(arena, batch * l->replay->actions, float);
    l->rows.next_s = KS_TAKE(arena, batch * observations, float);
    l->rows.mask = KS_TAKE(arena, batch, float);
    l->rows.reward = KS_TAKE(arena, batch, double);
    l->noise = KS_TAKE(arena, l->replay->actions, double);
    if (!l->agent->encoder)
        return;
    l->slots = KS_TAKE(arena, batch, size_t);
    l->other_slots = KS_TAKE(arena, batch, size_t);
    l->windows.n = batch;
    l->windows.steps = s->agent.horizon;
    lay_out_windows(arena, l->replay, &l->windows);
}

/* An agent with an encoder draws windows of `horizon` transitions, and by priorities. */
static ks_status new_priorities(struct ks_learner *l)
{
    const struct ks_settings *s = &l->plan->options->settings;
    const size_t horizon = s->agent.horizon, windows = horizon > s->n_step ? horizon : s->n_step;

    if (!l->agent->encoder)
        return s->replay_priority == 0
                   ? KS_OK
                   : ks_fail(KS_USAGE, "replay_priority: expected 0 without an encoder, found %g",
                             s->replay_priority);
    if (s->agent.target_period == 0)
        return ks_fail(KS_USAGE, "target_period: expected at least 1 with an encoder, found 0");
    return ks_priorities_new(l->replay, windows, s->replay_priority, &l->priorities);
}

ks_status ks_learner_init(const struct ks_plan *plan, struct ks_learner *l)
{
    const struct ks_agent_config config = ks_learner_config(plan, l->player.env);

    l->plan = plan;
    l->resets = ks_stream(plan->options->seed, KS_RESETS, 0);
    KS_TRY(KS(agent_new)(&config, &l->agent));
    KS_TRY(new_replay(l));
    KS_TRY(new_priorities(l));
    if (plan->options->settings.observation_normalization)
        KS_TRY(ks_normalizer_new(ks_env_observations(l->player.env), &l->normalizer));
    return ks_arena_make(&l->arena, lay_out, l);
}

void ks_learner_free(struct ks_learner *l)
{
    ks_player_free(&l->player);
    KS(agent_free)(l->agent);
    ks_replay_free(l->replay);
    ks_normalizer_free(l->normalizer);
    ks_priorities_free(l->priorities);
    ks_arena_free(&l->arena);
}

/* What replay draws: rows that span up to n_step transitions. */
static struct ks_window draw_window(const struct ks_learner *l)
{
    return (struct ks_window){l->plan->options->settings.n_step, l->plan->gamma,
                              .drops_last = l->priorities != NULL};
}

struct ks_rng ks_learner_minibatch_rng(const struct ks_learner *l)
{
    struct ks_rng rng = ks_stream(l->plan->options->seed, KS_REPLAY, 0);

    rng.drawn = (uint64_t)l->agent->updates * l->rows.n;
    return rng;
}

/* A view of the rows just drawn. */
static struct ks_batch view(const struct ks_learner *l)
{
    ks_normalizer_apply(l->normalizer, l->rows.n, l->rows.s);
    ks_normalizer_apply(l->normalizer, l->rows.n, l->rows.next_s);
    return (struct ks_batch){l->rows.s, l->rows.a, l->rows.next_s, l->rows.reward, l->rows.mask};
}

/* The rows that start at these slots. */
static struct ks_batch take(struct ks_learner *l, const size_t *slots)
{
    const struct ks_window window = draw_window(l);

    for (size_t i = 0; i < l->rows.n; i++)
        ks_replay_take(l->replay, &window, slots[i], &l->rows, i);
    return view(l);
}

/* `slots`: where to keep those drawn by priorities. */
static struct ks_batch draw(struct ks_learner *l, struct ks_rng *rng, size_t *slots)
{
    const struct ks_window window = draw_window(l);

    if (!l->priorities) {
        ks_replay_draw(l->replay, rng, &window, &l->rows);
        return view(l);
    }
    ks_priorities_draw(l->priorities, rng, l->rows.n, slots);
    return take(l, slots);
}

struct ks_batch ks_learner_batch(struct ks_learner *l, struct ks_rng *rng)
{
    return draw(l, rng, l->other_slots);
}

struct ks_batch ks_learner_next_batch(struct ks_learner *l)
{
    struct ks_rng rng = ks_learner_minibatch_rng(l);

    return draw(l, &rng, l->slots);
}

void ks_learner_set_priorities(struct ks_learner *l)
{
    if (l->priorities)
        ks_priorities_set(l->priorities, l->rows.n, l->slots, l->agent->deviation);
}

static bool is_refresh_due(const struct ks_learner *l)
{
    const size_t period = l->agent->config.target_period;

    return period > 0 && (uint64_t)l->agent->updates % period == 0;
}

bool ks_learner_batch_ahead(struct ks_learner *l, struct ks_batch *batch)
{
    const struct ks_window window = draw_window(l);
    struct ks_rng rng = ks_learner_minibatch_rng(l);

    if (l->priorities || is_refresh_due(l) ||
        !ks_replay_draw_ahead(l->replay, &rng, &window, &l->rows))
        return false;
    *batch = view(l);
    return true;
}

/* One step of the encoder on windows drawn by priorities. */
static ks_status train_encoder(struct ks_learner *l, struct ks_rng *rng)
{
    const struct ks_unrolled *w = &l->windows;
    const struct ks_windows windows = {
        w->steps, w->s, w->a, w->reward, w->mask, w->kept, l->priorities->terminates};

    ks_priorities_draw(l->priorities, rng, w->n, l->other_slots);
    for (size_t i = 0; i < w->n; i++)
        ks_replay_unroll(l->replay, l->other_slots[i], w, i);
    ks_normalizer_apply(l->normalizer, (w->steps + 1) * w->n, w->s);
    return KS(encoder_step)(l->agent, &windows);
}

ks_status ks_learner_refresh(struct ks_learner *l)
{
    const size_t period = l->agent->config.target_period;
    const double temperature = KS(agent_temperature)(l->agent);
    const double before = ks_learner_reward_scale(l, temperature);
    struct ks_rng rng = ks_stream(l->plan->options->seed, KS_ENCODER_REPLAY, 0);

    if (!is_refresh_due(l))
        return KS_OK;
    ks_returns_refresh(&l->returns, l->replay);
    KS(agent_refresh)(l->agent, before / ks_learner_reward_scale(l, temperature));
    rng.drawn = (uint64_t)l->agent->updates * l->rows.n;
    for (size_t k = 0; k < period && l->priorities; k++)
        KS_TRY(train_encoder(l, &rng));
    return KS_OK;
}

/* Replay has not changed since the last update: that update was made after the step's transition
 * was stored, or it drew what it would have drawn then (ks_replay_draw_ahead). With priorities,
 * those have changed, but the slots are kept. */
struct ks_batch ks_learner_last_batch(struct ks_learner *l)
{
    struct ks_rng rng = ks_learner_minibatch_rng(l);

    if (l->priorities)
        return take(l, l->slots);
    rng.drawn -= l->rows.n;
    return ks_learner_batch(l, &rng);
}

double ks_learner_reward_scale(const struct ks_learner *l, double temperature)
{
    const struct ks_settings *s = &l->plan->options->settings;
    const double bonus = temperature * l->agent->config.target_entropy / (1 - l->plan->gamma);

    return s->reward_normalization ? ks_returns_divisor(&l->returns, s->reward_scaling, bonus) : 1;
}

void ks_learner_scale_rewards(struct ks_learner *l, double temperature)
{
    const double scale = ks_learner_reward_scale(l, temperature);

    for (size_t i = 0; i < l->rows.n; i++)
        l->rows.reward[i] /= scale;
}

/* --- evaluation --- */

ks_status ks_evaluation_init(const struct ks_plan *plan, struct ks_evaluation *v)
{
    v->plan = plan;
    v->return_mean = NAN;
    KS_TRY(ks_alloc(plan->options->settings.eval_episodes, sizeof *v->episode_returns,
                    &v->episode_returns));
    return ks_player_init(plan->options, " (evaluation)", &v->player);
}

void ks_evaluation_free(struct ks_evaluation *v)
{
    ks_player_free(&v->player);
    free(v->episode_returns);
}

/* An episode is a success if an agent step, not only one of its environment steps, ends
 * in a state that solves the task: so do XQC's authors count (xqc/envs/envs.py, evaluate). */
static ks_status episode(struct ks_evaluation *v, const struct ks_learner *l, struct ks_rng *rng,
                         double *sum, bool *solved)
{
    const size_t repeat = v->plan->options->settings.action_repeat;
    struct ks_player *p = &v->player;
    enum ks_env_end end = KS_ENV_GOES_ON;

    *sum = 0;
    *solved = false;
    KS_TRY(ks_env_reset(p->env, rng, p->observation));
    ks_player_report(p, l->env_step);
    while (end == KS_ENV_GOES_ON) {
        KS_TRY(ks_stop_check(l->env_step));
        ks_player_observe(p);
        KS(agent_act)(l->agent, ks_normalizer_see(l->normalizer, p->s), NULL, p->a);
        ks_player_set_action(p);
        for (size_t k = 0; k < repeat && end == KS_ENV_GOES_ON; k++) {
            double reward;

            KS_TRY(ks_env_step(p->env, p->action, p->observation, &reward, &end));
            *sum += reward;
        }
        *solved = *solved || ks_env_solved(p->env);
        ks_player_report(p, l->env_step);
    }
    return KS_OK;
}

ks_status ks_evaluate(struct ks_evaluation *v, const struct ks_learner *l, size_t number)
{
    size_t n = v->plan->options->settings.eval_episodes, before = v->player.divergences;
    struct ks_rng rng = ks_stream(v->plan->options->seed, KS_EVALUATION, number);
    ks_status status = KS_OK;
    size_t successes = 0;
    double sum = 0;

    for (size_t i = 0; i < n && status == KS_OK; i++) {
        bool solved;

        status = episode(v, l, &rng, &v->episode_returns[i], &solved);
        sum += v->episode_returns[i];
        successes += status == KS_OK && solved;
    }
    if (status == KS_OK) {
        v->return_mean = sum / (double)n;
        v->success = (double)successes / (double)n;
    } else { /* a resumed run repeats the entire evaluation and counts its divergences again */
        ks_env_divergences_set(v->player.env, before);
        v->player.divergences = before;
    }
    return status;
}
