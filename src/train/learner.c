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
    const double updates = (double)s->utd * (double)plan->agent_steps / (double)s->update_every;
    struct ks_agent_config c = s->agent;

    c.critic = plan->text[KS_CRITIC_TEXT];
    c.actor = plan->text[KS_ACTOR_TEXT];
    c.optimist = plan->text[KS_OPTIMIST_TEXT];
    if (plan->text[KS_ENCODER_TEXT])
        c.encoder = (const char *const *)&plan->text[KS_ENCODER_TEXT];
    if (plan->text[KS_PIXELS_TEXT])
        c.pixels = (const char *const *)&plan->text[KS_PIXELS_TEXT];
    c.name = plan->options->architecture;
    c.observations = ks_env_seen(env);
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

static bool has_frames(const struct ks_learner *l)
{
    return l->player.frames != NULL;
}

/* The agent steps of an episode that does not end early. */
static size_t episode_steps(const struct ks_learner *l)
{
    const size_t repeat = l->plan->options->settings.action_repeat;

    return (ks_env_steps(l->player.env) + repeat - 1) / repeat;
}

size_t ks_learner_rows(const struct ks_learner *l, size_t steps)
{
    return has_frames(l) ? steps + steps / episode_steps(l) + 1 : steps;
}

/* The oldest rows of a full replay of frames that are not drawn: those that the steps until a
 * record may overwrite before they are read again, and those whose earlier frames may be gone. */
static size_t margin(const struct ks_settings *s)
{
    return 2 * s->update_every + KS_FRAMES - 1;
}

/* Replay never has room for more rows than the run makes and, with frames, than those that are not
 * drawn when it is full. */
static ks_status new_replay(struct ks_learner *l)
{
    const struct ks_settings *s = &l->plan->options->settings;
    const size_t asked = s->replay,
                 most = ks_learner_rows(l, l->plan->agent_steps) + (has_frames(l) ? margin(s) : 0);
    const struct ks_env *env = l->player.env;

    return ks_replay_new(asked < most ? asked : most, has_frames(l) ? 0 : ks_env_observations(env),
                         ks_env_actions(env), &l->replay);
}

static void lay_out_windows(struct ks_arena *arena, const struct ks_replay *r, struct ks_windows *w)
{
    const size_t rows = w->steps * w->batch;

    w->s = KS_TAKE(arena, (rows + w->batch) * r->observations, float);
    w->a = KS_TAKE(arena, rows * r->actions, float);
    w->reward = KS_TAKE(arena, rows, float);
    w->mask = KS_TAKE(arena, rows, float);
    w->kept = KS_TAKE(arena, rows, float);
}

static void lay_out_drawn(struct ks_arena *arena, size_t n, struct ks_drawn *drawn)
{
    drawn->slot = KS_TAKE(arena, n, size_t);
    drawn->shift = (uint8_t(*)[KS_SHIFTS])KS_TAKE(arena, n * KS_SHIFTS, uint8_t);
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
    if (l->agent->encoder || has_frames(l)) {
        lay_out_drawn(arena, batch, &l->drawn);
        lay_out_drawn(arena, batch, &l->other);
    }
    if (!l->agent->encoder)
        return;
    l->windows.batch = batch;
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

/* What a system that sees images, and its task, must be. */
static ks_status check_frames(const struct ks_learner *l)
{
    const struct ks_plan *plan = l->plan;
    const struct ks_settings *s = &plan->options->settings;
    const bool frames = has_frames(l);

    if (frames != (plan->text[KS_PIXELS_TEXT] != NULL))
        return ks_fail(KS_USAGE, "%s: %s: expected %s", plan->task, plan->name,
                       frames ? "a system with image and trunk, such as drqv2 or xqc-pixels"
                              : "a task from pixels, such as cheetah-run-pixels");
    if (!frames && s->update_every > 1)
        return ks_fail(KS_USAGE, "update_every: expected 1 without images, found %zu",
                       s->update_every);
    if (frames && s->observation_normalization)
        return ks_fail(KS_USAGE, "observation_normalization: expected 0 with images, found 1");
    if (frames && s->noise_end > s->noise)
        return ks_fail(KS_USAGE, "noise_end: expected at most noise, %g, found %g", s->noise,
                       s->noise_end);
    if (frames && 2 * s->n_step > episode_steps(l))
        return ks_fail(KS_USAGE,
                       "n_step: with images expected at most half of an episode's %zu agent steps, "
                       "found %zu",
                       episode_steps(l), s->n_step);
    if (frames && s->random_steps <= s->n_step)
        return ks_fail(KS_USAGE,
                       "random_steps: with images expected more than n_step, %zu, found %zu",
                       s->n_step, s->random_steps);
    if (frames && s->replay < 2 * (s->n_step + margin(s)))
        return ks_fail(KS_USAGE, "replay: with images expected at least %zu, found %zu",
                       2 * (s->n_step + margin(s)), s->replay);
    return KS_OK;
}

ks_status ks_learner_init(const struct ks_plan *plan, struct ks_learner *l)
{
    const struct ks_agent_config config = ks_learner_config(plan, l->player.env);

    l->plan = plan;
    l->resets = ks_stream(plan->options->seed, KS_RESETS, 0);
    KS_TRY(check_frames(l));
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

/* With frames the number of draws is not known before, so each update has a stream of its own. */
struct ks_rng ks_learner_minibatch_rng(const struct ks_learner *l)
{
    const uint64_t updates = (uint64_t)l->agent->updates;
    struct ks_rng rng = ks_stream(l->plan->options->seed, KS_REPLAY, has_frames(l) ? updates : 0);

    rng.drawn = has_frames(l) ? 0 : updates * l->rows.n;
    return rng;
}

/* A view of the rows just drawn. */
static struct ks_batch view(const struct ks_learner *l)
{
    ks_normalizer_apply(l->normalizer, l->rows.n, l->rows.s);
    ks_normalizer_apply(l->normalizer, l->rows.n, l->rows.next_s);
    return (struct ks_batch){l->rows.s, l->rows.a, l->rows.next_s, l->rows.reward, l->rows.mask};
}

/* These rows. */
static struct ks_batch take(struct ks_learner *l, const struct ks_drawn *drawn)
{
    const struct ks_window window = draw_window(l);
    const size_t seen = l->replay->observations;

    for (size_t i = 0; i < l->rows.n; i++) {
        const size_t slot = drawn->slot[i];
        const size_t last = ks_replay_take(l->replay, &window, slot, &l->rows, i);
        const uint8_t *shift = drawn->shift[i];

        if (!has_frames(l))
            continue;
        ks_replay_see(l->replay, slot, shift[0], shift[1], l->rows.s + i * seen);
        ks_replay_see(l->replay, (last + 1) % l->replay->capacity, shift[2], shift[3],
                      l->rows.next_s + i * seen);
    }
    return view(l);
}

/* `drawn`: where to keep what was drawn by priorities or with frames. */
static ks_status draw(struct ks_learner *l, struct ks_rng *rng, struct ks_drawn *drawn,
                      struct ks_batch *batch)
{
    const struct ks_window window = draw_window(l);

    if (has_frames(l)) {
        KS_TRY(ks_replay_draw_frames(l->replay, rng, window.n, margin(&l->plan->options->settings),
                                     l->rows.n, drawn));
    } else if (l->priorities) {
        ks_priorities_draw(l->priorities, rng, l->rows.n, drawn->slot);
    } else {
        ks_replay_draw(l->replay, rng, &window, &l->rows);
        *batch = view(l);
        return KS_OK;
    }
    *batch = take(l, drawn);
    return KS_OK;
}

ks_status ks_learner_batch(struct ks_learner *l, struct ks_rng *rng, struct ks_batch *batch)
{
    return draw(l, rng, &l->other, batch);
}

ks_status ks_learner_next_batch(struct ks_learner *l, struct ks_batch *batch)
{
    struct ks_rng rng = ks_learner_minibatch_rng(l);

    return draw(l, &rng, &l->drawn, batch);
}

void ks_learner_set_priorities(struct ks_learner *l)
{
    if (l->priorities)
        ks_priorities_set(l->priorities, l->rows.n, l->drawn.slot, l->agent->deviation);
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

    if (l->priorities || has_frames(l) || is_refresh_due(l) ||
        !ks_replay_draw_ahead(l->replay, &rng, &window, &l->rows))
        return false;
    *batch = view(l);
    return true;
}

/* One step of the encoder on windows drawn by priorities. */
static ks_status train_encoder(struct ks_learner *l, struct ks_rng *rng)
{
    struct ks_windows *w = &l->windows;

    w->terminates = l->priorities->terminates;
    ks_priorities_draw(l->priorities, rng, w->batch, l->other.slot);
    for (size_t i = 0; i < w->batch; i++)
        ks_replay_unroll(l->replay, l->other.slot[i], w, i);
    ks_normalizer_apply(l->normalizer, (w->steps + 1) * w->batch, w->s);
    return KS(encoder_step)(l->agent, w);
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

/* What was drawn with frames or by priorities was kept. Else replay has not changed since the last
 * update: that update was made after the step's transition was stored, or it drew what it would
 * have drawn then (ks_replay_draw_ahead). */
ks_status ks_learner_last_batch(struct ks_learner *l, struct ks_batch *batch)
{
    struct ks_rng rng = ks_learner_minibatch_rng(l);

    if (l->drawn.slot) {
        *batch = take(l, &l->drawn);
        return KS_OK;
    }
    rng.drawn -= l->rows.n;
    return ks_learner_batch(l, &rng, batch);
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
    KS_TRY(ks_player_start(p, rng));
    ks_player_report(p, l->env_step);
    while (end == KS_ENV_GOES_ON) {
        KS_TRY(ks_stop_check(l->env_step));
        KS(agent_act)(l->agent, ks_normalizer_see(l->normalizer, p->s), NULL, p->a);
        ks_player_set_action(p);
        for (size_t k = 0; k < repeat && end == KS_ENV_GOES_ON; k++) {
            double reward;

            KS_TRY(ks_env_step(p->env, p->action, p->observation, &reward, &end));
            *sum += reward;
        }
        *solved = *solved || ks_env_solved(p->env);
        ks_player_report(p, l->env_step);
        if (end == KS_ENV_GOES_ON)
            KS_TRY(ks_player_observe(p));
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
