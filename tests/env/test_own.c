/* Tasks of the user's own: what configs/tasks/pole.task says is what an episode does; files that
 * are refused; training, resuming, studies. */
#include "same_checkpoint.h"

#include "core/memory.h"
#include "env/own.h"
#include "env/tolerance.h"
#include "io/checkpoint.h"
#include "net/arch.h"

static struct ks_env *env;

static int take_pole(void **state)
{
    return tree_make(state) || ks_env_new("configs/tasks/pole.task", NULL, &env) != KS_OK;
}

static int drop_pole(void **state)
{
    ks_env_free(env);
    env = NULL;
    return tree_remove(state);
}

/* --- an episode of the example --- */

static void force(double x, double angle, double *seen)
{
    const double qpos[] = {x, angle}, qvel[] = {0.5, -0.25};

    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos, .qvel = qvel}, seen));
}

static void test_example(void **state)
{
    double seen[6];

    (void)state;
    assert_string_equal(ks_env_name(env), "pole");
    assert_int_equal(ks_env_observations(env), 6);
    assert_int_equal(ks_env_actions(env), 1);
    assert_int_equal(ks_env_steps(env), 500);
    assert_non_null(strstr(ks_env_identity(env), "[reward]"));
    force(0.2, 0.3, seen); /* the cart, the pole's direction, two velocities */
    assert_close(seen[0], 0.2, 0);
    assert_close(seen[1], sin(0.3), 1e-12);
    assert_close(seen[3], cos(0.3), 1e-12);
    assert_close(seen[4], 0.5, 0);
    assert_close(seen[5], -0.25, 0);
}

/* Each factor of the reward by itself, and their product. */
static void test_reward(void **state)
{
    const struct ks_env_domain *domain = env->task->domain;
    double seen[6], upright, centred;

    (void)state;
    force(0, 0, seen);
    assert_close(domain->reward(env), 1, 0);
    force(0, mjPI / 2, seen); /* the direction's z is 0, 0.95 below the bound */
    upright = ks_at_least(0, 0.95, 1, KS_LINEAR, 0);
    assert_close(domain->reward(env), upright, 1e-12);
    assert_close(upright, 0.05, 1e-12);
    force(-1.25, 0, seen); /* 1 beyond the bound, half of the margin */
    centred = exp(log(0.1) / 4);
    assert_close(domain->reward(env), centred, 1e-12);
    env->data->ctrl[0] = -1;
    assert_close(domain->reward(env), centred / 2, 1e-12);
}

static void test_end(void **state)
{
    const struct ks_env_domain *domain = env->task->domain;
    double seen[6], action = 0, reward;
    enum ks_env_end end;

    (void)state;
    force(1.795, 0, seen);
    assert_false(domain->terminal(env));
    assert_ok(ks_env_step(env, &action, seen, &reward, &end));
    assert_int_equal(end, KS_ENV_TERMINATED);
    force(-1.81, 0, seen);
    assert_true(domain->terminal(env));
    force(0, 3, seen); /* lying down is not terminal */
    for (end = KS_ENV_GOES_ON; end == KS_ENV_GOES_ON;)
        assert_ok(ks_env_step(env, &action, seen, &reward, &end));
    assert_int_equal(env->step, end == KS_ENV_TRUNCATED ? 500 : env->step);
    assert_close(env->data->time, 0.02 * (double)env->step, 1e-9);
}

static void test_start(void **state)
{
    double seen[6], largest[4] = {0};

    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        struct ks_rng rng = ks_rng_start(2, k);
        assert_ok(ks_env_reset(env, &rng, seen));
        for (size_t i = 0; i < 4; i++) {
            double x = i < 2 ? env->data->qpos[i] : env->data->qvel[i - 2];
            largest[i] = fmax(largest[i], fabs(x));
        }
    }
    for (size_t i = 0; i < 4; i++) {
        double noise = i < 2 ? 0.1 : 0.05;
        assert_true(largest[i] <= noise && largest[i] > 0.9 * noise);
    }
}

/* A restored state goes on with the same bits. */
static void test_restored(void **state)
{
    struct ks_rng rng = ks_rng_start(3, 0);
    double seen[6], again[6], action = 0.3, reward, *saved = NULL;
    size_t size = ks_env_state_size(env);
    enum ks_env_end end;

    (void)state;
    assert_ok(ks_alloc(size, sizeof *saved, &saved));
    assert_ok(ks_env_reset(env, &rng, seen));
    for (int k = 0; k < 20; k++) {
        assert_ok(ks_env_step(env, &action, seen, &reward, &end));
        if (k == 9)
            ks_env_state_get(env, saved);
    }
    assert_ok(ks_env_state_set(env, size, saved, false));
    for (int k = 0; k < 10; k++)
        assert_ok(ks_env_step(env, &action, again, &reward, &end));
    assert_memory_equal(seen, again, sizeof seen);
    free(saved);
}

/* --- other files --- */

#define MODEL                                                                                      \
    "<mujoco><worldbody><body pos='0 0 2'><freejoint/><geom size='0.1'/>"                          \
    "<body name='arm'><joint name='hinge' axis='0 1 0'/><geom size='0.1' pos='1 0 0'/></body>"     \
    "</body></worldbody><actuator><motor joint='hinge'/></actuator>"                               \
    "<sensor><framepos name='where' objtype='body' objname='arm'/></sensor>"                       \
    "<keyframe><key name='bent' qpos='0 0 3 1 0 0 0 0.5' qvel='0 0 0 0 0 0 "                       \
    "2'/></keyframe></mujoco>"
#define TASK        "[task]\ncontrol_step = 0.01\nepisode = 1\n"
#define OBSERVATION "[observation]\nall = qpos\n"
#define REWARD      "[reward]\nhigh = sensor:where[2] lower=2\n"

static ks_status read_task(const char *text, struct ks_env **out)
{
    tree_write("some.xml", MODEL);
    tree_write("some.task", text);
    return ks_env_new(tree_path("some.task"), NULL, out);
}

/* The model is NAME.xml if the file does not name one; ranges; a start pose; a free joint's
 * orientation gets no noise; without [terminal] only time ends an episode. */
static void test_another_task(void **state)
{
    struct ks_env *other = NULL;
    struct ks_rng rng = ks_rng_start(1, 1);
    double seen[8];

    (void)state;
    assert_ok(read_task(TASK
                        "start = bent\nposition_noise = 0.01\n"
                        "[observation]\nhigh = qpos[2:]\nspeed = qvel[6]\nnone = ctrl[:1]\n" REWARD,
                        &other));
    assert_int_equal(ks_env_observations(other), 8);
    assert_int_equal(ks_env_steps(other), 100);
    assert_ok(ks_env_reset(other, &rng, seen));
    assert_true(fabs(seen[0] - 3) <= 0.01 && seen[0] != 3);
    assert_close(seen[1], 1, 0);
    assert_true(fabs(seen[5] - 0.5) <= 0.01 && seen[5] != 0.5);
    assert_close(seen[6], 2, 0);
    assert_false(other->task->domain->terminal(other));
    ks_env_free(other);
    assert_ok(ks_env_new(tree_path("some.xml"), NULL, &other)); /* the same file */
    assert_string_equal(ks_env_name(other), "some");
    ks_env_free(other);
}

/* A line with several numbers counts with the mean of theirs, here 0, 0 and 1. */
static void test_mean(void **state)
{
    struct ks_env *other = NULL;
    double seen[8];

    (void)state;
    assert_ok(read_task(TASK OBSERVATION "[reward]\nhigh = qpos[0:3] lower=1\n", &other));
    assert_ok(ks_env_force(other, NULL, seen));
    assert_close(other->task->domain->reward(other), 1.0 / 3, 1e-15);
    ks_env_free(other);
}

static void test_refused_files(void **state)
{
    static const struct {
        const char *text, *words;
    } files[] = {
        {OBSERVATION REWARD, "some.task: expected control_step in [task], found none"},
        {"[task]\ncontrol_step = 0.01\n" OBSERVATION REWARD, "expected episode in [task]"},
        {TASK REWARD, "expected a line in [observation]"},
        {TASK OBSERVATION, "expected a line in [reward]"},
        {TASK "gravity = 3\n", "[task] gravity: unknown option (known: model, start, "},
        {TASK "episode = 2\n", "[task] episode: given twice"},
        {"[task]\ncontrol_step = inf\n", "[task] control_step: expected a number from 1e-09 to"},
        {"[task]\nposition_noise = -1\n", "[task] position_noise: expected a number from 0 to"},
        {"[goal]\nx = 1\n", "[goal] x: expected [task], [observation], [reward] or [terminal]"},
        {TASK "[observation]\na = xpos\n", "[observation] a: expected qpos, qvel, act, ctrl or"},
        {TASK "[observation]\na = qpos[1\n", "expected a range as in [2], [1:3], [1:] or [:3]"},
        {TASK "[observation]\na = qpos[3:1]\n", "expected a range"},
        {TASK "[observation]\na = qpos[]\n", "expected a range"},
        {TASK "[observation]\na = qpos[1:2]x\n", "expected a range"},
        {TASK "[observation]\na = qpos qvel\n", "expected one quantity, found also 'qvel'"},
        {TASK "[observation]\na = sensor:\n", "sensor: expected a name of 1 to 63 characters"},
        {TASK OBSERVATION "all = qvel\n", "[observation] all: given twice"},
        {TASK "[reward]\nx = ctrl margin=-1\n", "margin: expected at least 0, found -1"},
        {TASK "[reward]\nx = ctrl lower=a\n", "lower: expected a number, found 'a'"},
        {TASK "[reward]\nx = ctrl lower=2 upper=1\n", "expected lower <= upper, found 2 and 1"},
        {TASK "[reward]\nx = ctrl value=0\n", "gaussian: above 0"},
        {TASK "[reward]\nx = ctrl value=1\n", "a value below 1"},
        {TASK "[reward]\nx = ctrl sigmoid=cosine\n", "sigmoid: expected gaussian, linear or"},
        {TASK "[reward]\nx = ctrl 3\n", "expected KEY=NUMBER, found '3'"},
        {TASK "[reward]\nx = ctrl weight=2\n",
         "unknown option 'weight' (known: lower, upper, margin"},
        {TASK "[terminal]\nx = qpos\n", "[terminal] x: expected lower=NUMBER or upper=NUMBER"},
        {TASK "[terminal]\nx = qpos lower=1 margin=1\n",
         "unknown option 'margin' (known: lower, upper)"},
        {TASK "nonsense\n", "some.task:4: expected a section, KEY = VALUE or a comment"},
        /* what only the model says */
        {TASK OBSERVATION REWARD "[terminal]\nx = sensor:here lower=1\n",
         "some.xml: no sensor named 'here'"},
        {TASK "[observation]\na = qpos[7:9]\n" REWARD,
         "[observation] a: values 7 to 8 are asked for, but "},
        {TASK "[observation]\na = act\n" REWARD, "has 0 of them"},
        {TASK "start = straight\n" OBSERVATION REWARD, "some.xml: no key named 'straight'"},
        {"[task]\ncontrol_step = 0.003\nepisode = 1\n" OBSERVATION REWARD,
         "control_step: expected a multiple of the model's timestep of 0.002 seconds, found 0.003"},
        {"[task]\ncontrol_step = 0.01\nepisode = 0.001\n" OBSERVATION REWARD,
         "episode: expected at least control_step, found 0.001"},
        {TASK "model = other.xml\n" OBSERVATION REWARD, "other.xml"},
    };
    struct ks_env *other = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ks_status status = read_task(files[i].text, &other);
        if (status == KS_OK || !strstr(ks_error_text(), files[i].words))
            fail_msg("%s: '%s' does not contain '%s'", files[i].text,
                     status == KS_OK ? "" : ks_error_text(), files[i].words);
        assert_null(other);
    }
    tree_write("dog-trot.task", TASK);
    assert_fails(ks_env_new(tree_path("dog-trot.task"), NULL, &other), KS_FORMAT,
                 "there is a task of this name already");
    assert_fails(ks_env_new(tree_path("none.task"), NULL, &other), KS_IO, "none.task");
}

/* Every allocation fails once; AddressSanitizer checks for leaks. */
static void test_memory_runs_out(void **state)
{
    struct ks_env *other = NULL;
    ks_status status = KS_MEMORY;
    size_t n = 0;

    (void)state;
    while (status == KS_MEMORY && n < 500) {
        ks_alloc_fail_at(++n);
        status = ks_env_new("configs/tasks/pole.task", NULL, &other);
    }
    ks_alloc_fail_at(0);
    assert_int_equal(status, KS_OK);
    assert_true(n > 18);
    ks_env_free(other);
}

/* --- programs --- */

#define SMALL                                                                                      \
    " --arch ln+mse --steps 400 --quiet --set hidden=8 --set actor_hidden=8 --set batch=8 "        \
    "--set random_steps=50 --set eval_episodes=1 --set evaluations=1 --set checkpoints=1 "         \
    "--set analysis_minibatches=2 --set threads=1 "

static int train(const char *task, const char *out, const char *more)
{
    char arguments[2048];

    snprintf(arguments, sizeof arguments, SMALL "--env %s --out %s %s", tree_path(task),
             tree_path(out), more);
    return run("kappascope-train", arguments);
}

/* A run that was stopped goes on with the same bits; with another task or model it is refused. */
static void test_training(void **state)
{
    static const char task[] = TASK OBSERVATION REWARD;

    (void)state;
    tree_write("some.xml", MODEL);
    tree_write("some.task", task);
    assert_int_equal(train("some.task", "whole", ""), 0);
    assert_int_equal(train("some.xml", "parts", "--stop-at 200"), 0);
    tree_write("some.task", TASK OBSERVATION "[reward]\nhigh = sensor:where[2] lower=3\n");
    assert_int_equal(train("some.task", "parts", "--resume"), 2);
    assert_said("the folder holds another run: expected task high = sensor:where[2] lower=3", 1);
    tree_write("some.task", task);
    tree_write("some.xml", MODEL " ");
    assert_int_equal(train("some.task", "parts", "--resume=any"), 2);
    assert_said("expected task ; SHA-256 of the model: ", 1);
    tree_write("some.xml", MODEL);
    assert_int_equal(train("some.task", "parts", "--resume"), 0);
    assert_same("whole/step_000000400.h5", "parts/step_000000400.h5");
}

/* The file is named relative to the study's; runs are named after it. */
static void test_study(void **state)
{
    char arguments[512];

    (void)state;
    tree_write("tasks/some.xml", MODEL);
    tree_write("tasks/some.task", TASK OBSERVATION REWARD);
    tree_write("mine.study", "[study]\nenv = tasks/some.task\narchitectures = bn+ce\nseeds = 0\n"
                             "steps = 400\n[train]\nhidden = 8\nactor_hidden = 8\n"
                             "random_steps = 50\ncheckpoints = 1\nanalysis_minibatches = 2\n");
    snprintf(arguments, sizeof arguments, "--dry-run --out %s %s", tree_path("out"),
             tree_path("mine.study"));
    assert_int_equal(run("kappascope-study", arguments), 0);
    assert_said("mkdir -p runs/some/bn+ce/seed0", 0);
    assert_said("/tasks/some.task --arch=bn+ce", 0);
    tree_write("mine.study", "[study]\nenv = none.task\narchitectures = bn+ce\nseeds = 0\n"
                             "steps = 400\n");
    assert_int_equal(run("kappascope-study", arguments), 2);
    assert_said("mine.study:2: env: none.task: does not exist", 1);
}

int main(void)
{
#define WITH_POLE(test) cmocka_unit_test_setup_teardown(test, take_pole, drop_pole)
#define IN_TREE(test)   cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        WITH_POLE(test_example), WITH_POLE(test_reward),      WITH_POLE(test_end),
        WITH_POLE(test_start),   WITH_POLE(test_restored),    IN_TREE(test_another_task),
        IN_TREE(test_mean),      IN_TREE(test_refused_files), IN_TREE(test_memory_runs_out),
        IN_TREE(test_training),  IN_TREE(test_study),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
