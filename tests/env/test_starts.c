/* Start states of the tasks other than the dog's: their ranges, that bodies do not touch, and a
 * comparison with a recorded trajectory of dm_control, draw by draw. tests/peer/dm_control.sh
 * compares all tasks. */
#include "environments.h"

enum { STARTS = 50 };

static void draw(uint64_t stream)
{
    struct ks_rng rng = ks_rng_start(11, stream);

    assert_ok(ks_env_reset(env, &rng, seen));
}

TEST(test_drawn_joints)
{
    static const char *const tasks[] = {"humanoid-run", "finger-spin", "hopper-hop", "walker-run",
                                        "reacher-hard"};

    for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++) {
        const mjModel *m;
        take(tasks[t]);
        m = env->model;
        for (uint64_t k = 0; k < STARTS; k++) {
            draw(k);
            for (int j = 0; j < (int)m->njnt; j++) {
                double q = env->data->qpos[m->jnt_qposadr[j]], *range = m->jnt_range + 2 * j;
                if (m->jnt_limited[j])
                    assert_true(q >= range[0] && q <= range[1]);
                else if (m->jnt_type[j] == mjJNT_HINGE)
                    assert_true(fabs(q) <= mjPI && q != 0);
                else
                    assert_close(q, 0, 0); /* x of a free joint, or a slide */
            }
            for (int i = 0; i < (int)m->nv; i++)
                assert_close(env->data->qvel[i], 0, 0);
            if (t < 2)
                assert_int_equal(env->data->ncon, 0);
        }
    }
}

static void check_rotation(const double *q, double lowest)
{
    assert_close(ks_env_norm(4, q), 1, 1e-12);
    for (size_t i = 0; i < 4; i++)
        assert_true(q[i] >= lowest);
}

/* The humanoid's quaternion is drawn from four numbers in (0, 1); its height is fixed. */
TEST(test_humanoid_starts)
{
    take("humanoid-stand");
    for (uint64_t k = 0; k < STARTS; k++) {
        draw(k);
        check_rotation(env->data->qpos + 3, 0);
        assert_close(env->data->qpos[2], 1.5, 0);
    }
}

/* The lowest height without contacts, in steps of 1 cm. */
TEST(test_quadruped_starts)
{
    bool negative = false;

    take("quadruped-walk");
    for (uint64_t k = 0; k < 10; k++) {
        double qpos[23];
        draw(k);
        check_rotation(env->data->qpos + 3, -1);
        negative = negative || env->data->qpos[3] < 0;
        assert_int_equal(env->data->ncon, 0);
        memcpy(qpos, env->data->qpos, sizeof qpos);
        assert_close(fabs(qpos[0]) + fabs(qpos[1]), 0, 0);
        qpos[2] -= 0.01;
        assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos}, seen));
        assert_true(env->data->ncon > 0);
    }
    assert_true(negative);
}

TEST(test_cheetah_starts)
{
    take("cheetah-run");
    for (uint64_t k = 0; k < 5; k++) {
        draw(k);
        assert_close(env->data->time, 0, 0);
        assert_true(env->data->ncon > 0); /* it has fallen to the floor */
    }
}

TEST(test_cartpole_starts)
{
    double squares[4] = {0};

    take("cartpole-balance");
    for (uint64_t k = 0; k < STARTS; k++) {
        draw(k);
        assert_true(fabs(env->data->qpos[0]) <= 0.1 && fabs(env->data->qpos[1]) <= 0.034);
    }
    take("cartpole-swingup");
    for (uint64_t k = 0; k < STARTS; k++) {
        draw(k);
        squares[0] += pow(env->data->qpos[0], 2) / STARTS;
        squares[1] += pow(env->data->qpos[1] - mjPI, 2) / STARTS;
        squares[2] += pow(env->data->qvel[0], 2) / STARTS;
        squares[3] += pow(env->data->qvel[1], 2) / STARTS;
    }
    for (size_t i = 0; i < 4; i++)
        assert_close(sqrt(squares[i]), 0.01, 0.003); /* 50 draws: one sigma is 0.001 */
}

/* The simulation has the targets at the positions drawn. */
TEST(test_targets)
{
    take("finger-turn_hard");
    for (uint64_t k = 0; k < STARTS; k++) {
        draw(k);
        assert_close(hypot(seen[5], seen[6]), 0.13, 1e-9);
    }
    take("fish-swim");
    for (uint64_t k = 0; k < STARTS; k++) {
        const double *position = env->episode;
        draw(k);
        assert_true(fabs(position[0]) <= 0.4 && fabs(position[1]) <= 0.4);
        assert_true(position[2] >= 0.1 && position[2] <= 0.3);
        for (size_t i = 0; i < 7; i++)
            assert_true(fabs(seen[i]) <= 0.2 && seen[i] != 0);
    }
    take("reacher-easy");
    for (uint64_t k = 0; k < STARTS; k++) {
        double angle, x, y;
        draw(k);
        angle = seen[0] + seen[1];
        x = seen[2] + 0.12 * (cos(seen[0]) + cos(angle));
        y = seen[3] + 0.12 * (sin(seen[0]) + sin(angle));
        assert_close(x, env->episode[0], 1e-9);
        assert_close(y, env->episode[1], 1e-9);
        assert_true(hypot(x, y) >= 0.05 && hypot(x, y) <= 0.2);
    }
}

/* With a contact margin of 10 m the finger's parts always touch. */
TEST(test_no_start_state)
{
    struct ks_rng rng = ks_rng_start(0, 0);

    take("finger-spin");
    for (int i = 0; i < (int)env->model->ngeom; i++)
        env->model->geom_margin[i] = 10;
    assert_fails(ks_env_reset(env, &rng, seen), KS_NUMBER, "finger-spin: reset: bodies touch");
}

/* --- against dm_control --- */

/* The fish has neither contacts nor constraints, so all versions of MuJoCo agree: the deviation of
 * a step was 4e-15 with 3.3.7 and 3.17.0.
 *
 * tests/peer/dm_control_record.py tests/data 1 3 30 fish-swim */
TEST(test_recorded_trajectory)
{
    const struct trajectory t = read_record("tests/data/fish-swim.trajectory");

    take(t.task);
    assert_replays(replay_episodes, env, &t);
    assert_replays(replay_starts, env, &t);
}

/* --- start states that are rejected --- */

static const struct ks_env_domain *original;
static size_t bad_starts; /* number of start states still to spoil */

static ks_status bad_reset(struct ks_env *broken, struct ks_rng *rng)
{
    KS_TRY(original->reset(broken, rng));
    if (bad_starts > 0) {
        bad_starts--;
        broken->data->qvel[2] = NAN;
    }
    return KS_OK;
}

/* They are counted as divergences, and the next start state of the stream is used. */
TEST(test_bad_draws)
{
    struct ks_rng rng = ks_rng_start(3, 9), again = rng;
    struct ks_env_domain domain;
    struct ks_env_task broken;
    double third[WIDEST];

    take("walker-run");
    for (int i = 0; i < 3; i++)
        assert_ok(ks_env_reset(env, &rng, third));
    original = env->task->domain;
    domain = *original, broken = *env->task;
    domain.reset = bad_reset;
    broken.domain = &domain;
    env->task = &broken;
    bad_starts = 2;
    assert_ok(ks_env_reset(env, &again, seen));
    assert_memory_equal(seen, third, ks_env_observations(env) * sizeof *third);
    assert_int_equal(again.drawn, rng.drawn);
    assert_int_equal(ks_env_divergences(env), 2);
    assert_contains(ks_env_divergence(env), "walker-run: reset: ");
    bad_starts = 1000;
    assert_fails(ks_env_reset(env, &again, seen), KS_NUMBER, "walker-run: reset: ");
    assert_int_equal(bad_starts, 900);
    drop(state);
}

CMFixtureFunction tests_teardown = drop;
