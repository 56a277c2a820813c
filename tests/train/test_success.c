/* The share of evaluation episodes that solve the task: how it is counted, and that it is a column
 * of progress.csv only for tasks that have a goal. */
#include "programs.h"
#include "runs.h"
#include "suites.h"

#include "io/csv.h"

static size_t goal_step, episodes; /* when a goal is reached; how many episodes came that far */

/* Reaches the goal in every other episode, after `goal_step` control steps. */
static bool every_other(const struct ks_env *env)
{
    return env->step == goal_step && ++episodes % 2 == 1;
}

/* The success of an evaluation with six episodes of two control steps per agent step. */
static double evaluate(struct ks_run *run, size_t step)
{
    goal_step = step;
    episodes = 0;
    assert_ok(ks_evaluate(&run->evaluation, &run->learner, 1));
    return run->evaluation.success;
}

TEST(test_share_of_episodes)
{
    const struct ks_env_task *task;
    struct ks_env_domain domain;
    struct ks_env_task with_goal;
    KS_OWNED_BY(ks_run_free) struct ks_run *run = NULL;

    assert_ok(ks_run_new(
        plan_run("pendulum-swingup", "dense+mse",
                 "hidden=4 depth=1 random_steps=9 eval_episodes=6 analysis_minibatches=1"),
        &run));
    assert_close(evaluate(run, 8), 0, 0); /* a task without a goal */
    task = run->evaluation.player.env->task;
    domain = *task->domain;
    with_goal = *task;
    domain.solved = every_other;
    with_goal.domain = &domain;
    run->evaluation.player.env->task = &with_goal;
    assert_close(evaluate(run, 8), 0.5, 0);
    assert_close(evaluate(run, 1000), 0.5, 0); /* the last step counts */
    assert_close(evaluate(run, 7), 0, 0);      /* in the middle of an agent step */
    run->evaluation.player.env->task = task;
}

#define SHORT                                                                                      \
    "--quiet --arch ln+mse --steps 200 --set hidden=8 --set actor_hidden=8 --set batch=4 "         \
    "--set random_steps=20 --set evaluations=2 --set eval_episodes=1 --set checkpoints=4 "         \
    "--set analysis_minibatches=1 "

TEST(test_no_goal)
{
    size_t column;

    assert_trains(SHORT "--env pendulum-swingup --out swing");
    assert_fails(ks_csv_column(read_csv("swing/progress.csv"), "success", &column), KS_FORMAT,
                 "success");
}

/* A number in [0, 1] where the row has a return, nan elsewhere: at checkpoints without an
 * evaluation. */
TEST(test_goal)
{
    const struct ks_csv *progress;
    size_t without = 0;

    if (!suite_is_there("myo-pen-twirl"))
        skip();
    assert_trains(SHORT "--env myo-pen-twirl --out pen");
    progress = read_csv("pen/progress.csv");
    for (size_t i = 0; i < progress->rows; i++) {
        double share = cell_number(progress, i, "success");

        assert_int_equal(isnan(share), isnan(cell_number(progress, i, "return_mean")));
        assert_true(isnan(share) || share == 0 || share == 1);
        without += isnan(share);
    }
    assert_true(without > 0 && without < progress->rows);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
