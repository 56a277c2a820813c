/* One update: gradients of both losses against differences, for all twelve architectures and one
 * with every kind of layer; each step against the networks applied by hand; and the two precisions.
 * In double. */
#include "agents.h"

#include "agent/actor.h"

static void add(size_t n, double h, const double *v, double *w)
{
    for (size_t i = 0; i < n; i++)
        w[i] += h * v[i];
}

/* The loss of critic e, or with e = 2 of the actor; leaves its gradient. */
static double loss_of(struct KS(agent) *a, size_t e)
{
    double entropy;

    if (e == 2) {
        KS(actor_forward)(a, a->actor.state);
        KS(actor_sample)(a);
        return KS(actor_loss)(a, &entropy);
    }
    KS(critic_gradient)(a, e);
    return a->critic_step[e].loss / BATCH;
}

/* g'v against (L(w + h v) - L(w - h v)) / 2h along random directions. */
static void check_gradient(const char *name, struct KS(agent) *a, size_t e)
{
    enum { DIRECTIONS = 4 };
    size_t n = e == 2 ? a->actor_arch->parameters : a->critic_arch->parameters;
    double *w = e == 2 ? a->actor.w : a->critic[e].w, *v = hold(calloc(2 * n, sizeof *v)),
           *g = v + n;

    for (size_t d = 0; d < DIRECTIONS; d++) {
        struct ks_rng rng = ks_rng_start(10 + d, 6);
        double h, up, down;

        for (size_t i = 0; i < n; i++)
            v[i] = ks_rng_normal(&rng);
        h = 1e-6 / sqrt(dot(n, v, v)) * sqrt((double)n);
        loss_of(a, e);
        memcpy(g, e == 2 ? a->actor.g : a->critic[e].g, n * sizeof *g);
        add(n, h, v, w);
        up = loss_of(a, e);
        add(n, -2 * h, v, w);
        down = loss_of(a, e);
        add(n, h, v, w);
        if (!(fabs(dot(n, g, v) - (up - down) / (2 * h)) < 1e-7 * (1 + fabs(dot(n, g, v)))))
            fail_msg("%s, network %zu: %.12g, difference %.12g", name, e, dot(n, g, v),
                     (up - down) / (2 * h));
    }
}

static void check_gradients(const char *name, enum ks_value value)
{
    struct KS(agent) *a = make_agent(name);

    a->config.target_value = a->config.policy_value = value;
    update(a); /* fills inputs, targets, noise */
    shake_all(a);
    for (size_t e = 0; e < 3; e++)
        check_gradient(name, a, e);
}

TEST(test_gradients)
{
    check_gradients(EVERY_KIND, KS_SMALLEST);
    check_gradients(EVERY_KIND, KS_MEAN);
    check_gradients(SKIPS, KS_SMALLEST);
    check_gradients(QUANTILES, KS_MEAN);
    for (size_t i = 0; ks_architectures[i].name; i++)
        check_gradients(ks_architectures[i].name, KS_SMALLEST);
}

/* Actions of the policy with these outputs of the actor, WIDTH numbers apart. */
static void sample(const struct KS(agent) *a, const double *head, const double *noise,
                   double *action, double *log_pi)
{
    struct KS(policy_pass) pass = {.rows = BATCH,
                                   .stride = WIDTH,
                                   .head = head,
                                   .noise = noise,
                                   .action = action,
                                   .log_pi = log_pi};

    for (size_t i = 0; i < BATCH; i++)
        KS(policy_sample)(&a->actor_arch->policy, &pass, i);
}

/* Steps 1 to 3 by hand: a' from the actor in evaluation mode; the target critics, in training mode,
 * on [(s,a); (s',a')] in this order, second half. */
static void check_targets(const struct KS(agent) *a, const struct before *b,
                          const struct ks_batch *t, const double *noise, double temperature)
{
    size_t rows = 2 * BATCH, k = a->critic_arch->out;
    double x[2 * BATCH * WIDTH], next_s[BATCH * OBSERVATIONS], log_pi[BATCH], target[BATCH * 11];
    double scratch[22], *head, *f[2];
    const double *second[2];

    for (size_t i = 0; i < BATCH * OBSERVATIONS; i++)
        next_s[i] = t->next_s[i];
    for (size_t i = 0; i < BATCH; i++) {
        for (size_t j = 0; j < OBSERVATIONS; j++) {
            x[i * WIDTH + j] = t->s[i * OBSERVATIONS + j];
            x[(BATCH + i) * WIDTH + j] = t->next_s[i * OBSERVATIONS + j];
        }
        for (size_t j = 0; j < ACTIONS; j++)
            x[i * WIDTH + OBSERVATIONS + j] = t->a[i * ACTIONS + j];
    }
    head = forward(&(struct network){a->actor_arch, b->actor, b->actor_state, .evaluation = true},
                   BATCH, next_s);
    sample(a, head, noise, x + BATCH * WIDTH + OBSERVATIONS, log_pi);
    for (size_t e = 0; e < 2; e++) {
        f[e] = forward(&(struct network){a->critic_arch, b->target[e], b->critic_state[e],
                                         .evaluation = false},
                       rows, x);
        second[e] = f[e] + BATCH * k;
    }
    for (size_t i = 0; i < BATCH; i++)
        KS(critic_target)
    (&a->critic_arch->loss,
     &(struct KS(next_values)){.ensemble = 2,
                               .value = a->config.target_value,
                               .f = second,
                               .reward = t->reward,
                               .mask = t->mask,
                               .log_pi = log_pi,
                               .gamma = 0.9,
                               .temperature = temperature},
     i, scratch, target);
    for (size_t i = 0; i < BATCH * k; i++)
        assert_close(a->target[i], target[i], 1e-12);
}

/* Step 5: theta' moves towards theta as step 4 left it, projected. */
static void check_average(const struct KS(agent) *a, const struct before *b)
{
    for (size_t e = 0; e < 2; e++)
        for (size_t i = 0; i < a->critic_arch->parameters; i++)
            assert_close(a->critic[e].target[i], 0.9 * b->target[e][i] + 0.1 * a->critic[e].w[i],
                         1e-15);
}

/* Step 4: the running mean of the input's batchnorm, from all 2B rows. */
static void check_statistics(const struct KS(agent) *a, const double *before)
{
    for (size_t j = 0; j < WIDTH && a->critic_arch->joint; j++) {
        double mean = 0;

        for (size_t i = 0; i < 2 * BATCH; i++)
            mean += a->input[i * WIDTH + j] / (2 * BATCH);
        assert_close(a->critic[0].state[j], 0.99 * before[j] + 0.01 * mean, 1e-12);
    }
}

/* Steps 6 and 7: the old actor in training mode; the stepped critics in evaluation mode; the noise
 * that the step has left. */
static void check_actor_loss(const struct KS(agent) *a, const struct before *b,
                             const struct ks_batch *t, double temperature,
                             const struct ks_update *u)
{
    double s[BATCH * OBSERVATIONS], x[BATCH * WIDTH], log_pi[BATCH], p[11], *head, *f[2];
    double loss = 0, entropy = 0;
    size_t k = a->critic_arch->out;

    for (size_t i = 0; i < BATCH * OBSERVATIONS; i++) {
        s[i] = t->s[i];
        x[i / OBSERVATIONS * WIDTH + i % OBSERVATIONS] = t->s[i];
    }
    head = forward(&(struct network){a->actor_arch, b->actor, b->actor_state, .evaluation = false},
                   BATCH, s);
    sample(a, head, a->policy.noise, x + OBSERVATIONS, log_pi);
    for (size_t e = 0; e < 2; e++)
        f[e] = forward(&(struct network){a->critic_arch, a->critic[e].w, a->critic[e].state,
                                         .evaluation = true},
                       BATCH, x);
    for (size_t i = 0; i < BATCH; i++) {
        double q = KS(critic_value)(&a->critic_arch->loss, f[0] + i * k, p);
        double other = KS(critic_value)(&a->critic_arch->loss, f[1] + i * k, p);

        q = a->config.policy_value == KS_MEAN ? (q + other) / 2 : fmin(q, other);
        loss += (temperature * log_pi[i] - q) / BATCH;
        entropy -= log_pi[i] / BATCH;
    }
    assert_close(u->actor_loss, loss, 1e-12);
    assert_close(u->entropy, entropy, 1e-12);
    assert_close(u->temperature_loss, temperature * (entropy + 1.5), 1e-12);
}

/* The noise of a' in update 0, drawn again, because a later step has overwritten it. */
static void draw_next_noise(double *noise)
{
    struct ks_rng rng = ks_stream(SEED, KS_NEXT_ACTION, 0);

    for (size_t i = 0; i < BATCH * ACTIONS; i++)
        noise[i] = ks_rng_normal(&rng);
}

static void check_steps(const char *name, enum ks_value value)
{
    struct KS(agent) *a = make_agent(name);
    double noise[BATCH * ACTIONS];
    struct before b;
    struct ks_update u;

    a->config.target_value = a->config.policy_value = value;
    draw_next_noise(noise);
    shake_all(a);
    b = remember(a);
    u = update_with(a, 2);
    check_targets(a, &b, &last, noise, 0.2);
    check_average(a, &b);
    check_statistics(a, b.critic_state[0]);
    check_actor_loss(a, &b, &last, 0.2, &u);
}

TEST(test_steps)
{
    check_steps(EVERY_KIND, KS_SMALLEST);
    check_steps(EVERY_KIND, KS_MEAN);
    check_steps(SKIPS, KS_SMALLEST);
    check_steps(RENORM, KS_MEAN);
    check_steps(QUANTILES, KS_MEAN);
    for (size_t i = 0; ks_architectures[i].name; i++)
        check_steps(ks_architectures[i].name, KS_SMALLEST);
}

/* q_mean, which is computed without exponentials, is the mean of the critics' values at (s, a). */
TEST(test_q_mean)
{
    static const char *const names[] = {"ln+wn+ce", "dense+mse", QUANTILES};

    for (size_t i = 0; i < 3; i++) {
        struct KS(agent) *a = make_agent(names[i]);
        struct before b;
        struct ks_update u;
        double sum = 0, p[11];

        shake_all(a);
        b = remember(a);
        u = update_with(a, 5);
        for (size_t e = 0; e < 2; e++) {
            double *f = forward(
                &(struct network){a->critic_arch, b.critic[e], NULL, .evaluation = false}, BATCH,
                a->input);

            for (size_t r = 0; r < BATCH; r++)
                sum += KS(critic_value)(&a->critic_arch->loss, f + r * a->critic_arch->out, p);
        }
        assert_close(u.q_mean, sum / (2 * BATCH), 1e-12);
    }
}

struct ks_agent_f32;
/* The functions of the float library: only those without `real` in their arguments. */
ks_status ks_agent_new_f32(const struct ks_agent_config *config, struct ks_agent_f32 **agent);
ks_status ks_agent_update_f32(struct ks_agent_f32 *agent, const struct ks_batch *batch,
                              struct ks_update *update);
ks_status ks_agent_export_f32(const struct ks_agent_f32 *agent, struct ks_checkpoint *checkpoint);
void ks_agent_free_f32(struct ks_agent_f32 *agent);

/* Learning rates are 0: Adam's first step is rate * sign(g), and where g is 0 up to rounding, its
 * sign would separate the two precisions. test_optim tests Adam in both. */
static void compare_precisions(const char *name)
{
    struct ks_agent_config config = named_config(name);
    struct ks_agent_f32 *one;
    struct KS(agent) *two;
    struct ks_checkpoint *single, *exact;
    struct ks_batch batch = draw_transitions(4);
    struct ks_update u, v;
    size_t n;

    config.critic_rate = config.actor_rate = (struct ks_rate){0, 0, 1};
    assert_ok(ks_agent_new_f32(&config, &one));
    two = agent_of(&config);
    assert_ok(ks_agent_update_f32(one, &batch, &u));
    assert_ok(KS(agent_update)(two, &batch, &v));
    assert_ok(ks_alloc(1, sizeof *single, &single));
    assert_ok(ks_alloc(1, sizeof *exact, &exact));
    assert_ok(ks_agent_export_f32(one, single));
    assert_ok(KS(agent_export)(two, exact));
    n = 2 * exact->critic.arch->parameters;
    assert_close(relative_error(n, single->adam_m, exact->adam_m), 0, 3e-5); /* the gradient */
    assert_close(u.critic_loss, v.critic_loss, 1e-5 * fabs(v.critic_loss));
    assert_close(u.actor_loss, v.actor_loss, 1e-5 * (1 + fabs(v.actor_loss)));
    assert_close(u.entropy, v.entropy, 1e-5 * fabs(v.entropy));
    assert_close(u.q_mean, v.q_mean, 1e-5);
    assert_close(relative_error(n, single->critic.w, exact->critic.w), 0, 1e-6);
    if (exact->critic.state)
        assert_close(relative_error(2 * exact->critic.arch->states, single->critic.state,
                                    exact->critic.state),
                     0, 1e-6);
    ks_checkpoint_free(single), ks_checkpoint_free(exact);
    ks_agent_free_f32(one);
}

TEST(test_precisions)
{
    compare_precisions(SKIPS);
    for (size_t i = 0; ks_architectures[i].name; i++)
        compare_precisions(ks_architectures[i].name);
}
