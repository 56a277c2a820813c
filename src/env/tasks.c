/* The table of tasks; and their suites: where their models are, and in which order they call
 * MuJoCo.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "env/domain.h"
#include "io/file.h"

/* Name, domain, length of an observation, goal (its meaning is in the domain's file). */
static const struct ks_env_task tasks[] = {
    {"Ant-v4", &ks_env_gym_ant, 27, 0},
    {"HalfCheetah-v4", &ks_env_gym_half_cheetah, 17, 0},
    {"Hopper-v4", &ks_env_gym_hopper, 11, 0},
    {"Humanoid-v4", &ks_env_gym_humanoid, 376, 0},
    {"HumanoidStandup-v4", &ks_env_gym_standup, 376, 0},
    {"Walker2d-v4", &ks_env_gym_walker2d, 17, 0},
    {"acrobot-swingup", &ks_env_acrobot, 6, 0},
    {"cartpole-balance", &ks_env_cartpole, 5, 0},
    {"cartpole-swingup", &ks_env_cartpole, 5, mjPI},
    {"cartpole-swingup_sparse", &ks_env_cartpole_sparse, 5, mjPI},
    {"cheetah-run", &ks_env_cheetah, 17, 10},
    {"dog-stand", &ks_env_dog, 223, 0},
    {"dog-walk", &ks_env_dog, 223, 1},
    {"dog-trot", &ks_env_dog, 223, 3},
    {"dog-run", &ks_env_dog, 223, 9},
    {"finger-spin", &ks_env_finger_spin, 9, 15},
    {"finger-turn_easy", &ks_env_finger_turn, 12, 0.07},
    {"finger-turn_hard", &ks_env_finger_turn, 12, 0.03},
    {"fish-swim", &ks_env_fish, 24, 0},
    {"hopper-stand", &ks_env_hopper, 15, 0},
    {"hopper-hop", &ks_env_hopper, 15, 2},
    {"humanoid-stand", &ks_env_humanoid, 67, 0},
    {"humanoid-walk", &ks_env_humanoid, 67, 1},
    {"humanoid-run", &ks_env_humanoid, 67, 10},
    {"pendulum-swingup", &ks_env_pendulum, 3, 0},
    {"quadruped-walk", &ks_env_quadruped, 78, 0.5},
    {"quadruped-run", &ks_env_quadruped, 78, 5},
    {"reacher-easy", &ks_env_reacher, 6, 0.05},
    {"reacher-hard", &ks_env_reacher, 6, 0.015},
    {"walker-stand", &ks_env_walker, 24, 0},
    {"walker-walk", &ks_env_walker, 24, 1},
    {"walker-run", &ks_env_walker, 24, 8},
    {"myo-key-turn", &ks_env_myo_key, 93, 0},
    {"myo-key-turn-hard", &ks_env_myo_key, 93, 1},
    {"myo-obj-hold", &ks_env_myo_hold, 91, 0},
    {"myo-obj-hold-hard", &ks_env_myo_hold, 91, 1},
    {"myo-pen-twirl", &ks_env_myo_pen, 83, 0},
    {"myo-pen-twirl-hard", &ks_env_myo_pen, 83, 1},
    {"myo-pose", &ks_env_myo_pose, 108, 0},
    {"myo-pose-hard", &ks_env_myo_pose, 108, 1},
    {"myo-reach", &ks_env_myo_reach, 115, 0},
    {"myo-reach-hard", &ks_env_myo_reach, 115, 1},
    {"h1-balance_hard-v0", &ks_env_h1_balance_hard, 77, 0},
    {"h1-balance_simple-v0", &ks_env_h1_balance_simple, 64, 0},
    {"h1-crawl-v0", &ks_env_h1_crawl, 51, 1},
    {"h1-hurdle-v0", &ks_env_h1_hurdle, 51, 5},
    {"h1-maze-v0", &ks_env_h1_maze, 51, 2},
    {"h1-pole-v0", &ks_env_h1_pole, 51, 0.5},
    {"h1-reach-v0", &ks_env_h1_reach, 57, 0},
    {"h1-run-v0", &ks_env_h1_run, 51, 5},
    {"h1-sit_hard-v0", &ks_env_h1_sit_hard, 64, 0},
    {"h1-sit_simple-v0", &ks_env_h1_sit_simple, 51, 0},
    {"h1-slide-v0", &ks_env_h1_slide, 51, 1},
    {"h1-stair-v0", &ks_env_h1_stair, 51, 1},
    {"h1-stand-v0", &ks_env_h1_stand, 51, 0},
    {"h1-walk-v0", &ks_env_h1_walk, 51, 1},
};
enum { TASKS = sizeof tasks / sizeof *tasks };

static const char PIXELS[] = "-pixels";

bool ks_env_is_pixels(const char *task)
{
    return ks_path_ends(task, PIXELS);
}

/* Whether `name` is this task, from states or from pixels. */
static bool is_named(const struct ks_env_task *task, const char *name)
{
    const size_t length = ks_path_stem(name, PIXELS);

    return strlen(task->name) == length && strncmp(task->name, name, length) == 0 &&
           (!ks_env_is_pixels(name) || task->domain->suite == &ks_env_dm_control);
}

bool ks_env_about(size_t i, struct ks_env_about *about)
{
    if (i >= TASKS)
        return false;
    *about = (struct ks_env_about){.name = tasks[i].name,
                                   .suite = tasks[i].domain->suite->package,
                                   .variable = tasks[i].domain->suite->variable,
                                   .source = tasks[i].domain->suite->source,
                                   .observations = tasks[i].observations,
                                   .actions = (size_t)tasks[i].domain->model.nu,
                                   .action_repeat = tasks[i].domain->suite->action_repeat,
                                   .control_step = tasks[i].domain->control_step};
    return true;
}

bool ks_env_about_task(const char *name, struct ks_env_about *about)
{
    for (size_t i = 0; ks_env_about(i, about); i++)
        if (is_named(&tasks[i], name)) {
            about->name = name;
            if (ks_env_is_pixels(name))
                about->observations = KS_FRAMES * KS_FRAME;
            return true;
        }
    return false;
}

ks_status ks_env_task_find(const char *name, const struct ks_env_task **task)
{
    char known[1000] = "";

    for (size_t i = 0; i < TASKS; i++) {
        if (is_named(&tasks[i], name)) {
            *task = &tasks[i];
            return KS_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), " %s", tasks[i].name);
    }
    return ks_fail(
        KS_USAGE,
        "unknown task '%s' (known:%s, those of dm_control also as NAME-pixels, and files "
        "NAME.so)",
        name, known);
}

/* --- suites --- */

static void step_half(const mjModel *model, mjData *data)
{
    ks_mj.step1(model, data);
}

/* Gymnasium's RescaleAction. If the range is [-1, 1], this is exactly the identity, also in
 * rounding. */
static double rescale(const mjtNum range[2], double action)
{
    const double gain = (range[1] - range[0]) / 2;

    return gain * action + (gain + range[0]);
}

/* The stars of the sky take five times as long to compile as the rest of a small model. */
static const struct ks_env_removal sky[] = {
    {"include", "./common/skybox.xml"}, {"texture", "skybox"}, {NULL, NULL}};

const struct ks_env_suite ks_env_dm_control = {
    .engine = &ks_env_mujoco,
    .package = "dm_control",
    .variable = "DM_CONTROL_DIR",
    .built = KS_DM_CONTROL_DIR,
    .models = "suite",
    .target = "deps",
    .action_repeat = 2,
    .steps = 1000,
    .sky = sky,
    .reset = ks_physics_reset,
    .forward = ks_physics_forward,
    .step = ks_physics_step,
    .restore = step_half, /* what the next mj_step2 starts from */
    .control = rescale,
};

static void reset_data(mjModel *model, mjData *data)
{
    ks_mj.resetData(model, data);
}

static void forward(mjModel *model, mjData *data)
{
    ks_mj.forward(model, data);
}

/* Gymnasium 1.0.0, envs/mujoco/mujoco_env.py. After mj_step, positions of bodies and what is
 * computed from them stem from its last evaluation of the dynamics: before the last physics step
 * with the Euler integrator, near its end with RK4. mj_rnePostConstraint adds the contact forces of
 * that state. */
static void step_whole(const mjModel *model, mjData *data, int substeps)
{
    for (int i = 0; i < substeps; i++)
        ks_mj.step(model, data);
    ks_mj.rnePostConstraint(model, data);
}

const struct ks_env_suite ks_env_gymnasium = {
    .engine = &ks_env_mujoco,
    .package = "gymnasium",
    .variable = "GYMNASIUM_DIR",
    .built = KS_GYMNASIUM_DIR,
    .models = "envs/mujoco/assets",
    .target = "deps",
    .action_repeat = 1,
    .steps = 1000,
    .reset = reset_data,
    .forward = forward,
    .step = step_whole,
    .control = rescale,
};

/* HumanoidBench, humanoid_bench/env.py, reset_model: the forward pass after the keyframe leaves a
 * warm start for the solver. */
static void reset_to_keyframe(mjModel *model, mjData *data)
{
    ks_mj.resetDataKeyframe(model, data, 0);
    ks_mj.forward(model, data);
}

/* HumanoidBench, humanoid_bench/tasks.py, unnormalize_action, in the same order of operations, with
 * the ranges in single precision of Gymnasium's _set_action_space. */
static double rescale_from_low(const mjtNum range[2], double action)
{
    const float low = (float)range[0], width = (float)range[1] - low;

    return (action + 1) / 2 * (double)width + (double)low;
}

const struct ks_env_suite ks_env_humanoid_bench = {
    .engine = &ks_env_mujoco,
    .package = "humanoid-bench",
    .variable = "HUMANOID_BENCH_DIR",
    .source = "github.com/carlosferrazza/humanoid-bench, commit 791405f",
    .models = "humanoid_bench/assets/envs",
    .action_repeat = 2,
    .steps = 1000,
    .reset = reset_to_keyframe,
    .forward = forward,
    .step = step_whole,
    .control = rescale_from_low,
};

/* MyoSuite's start state is followed by two forward passes, and a control step by one: it copies
 * positions and velocities from the simulation to the observed simulation, which is the same, and
 * calls forward (robot.py, reset and sensor2sim). So everything is current when it is observed. */
static void forward_twice(mjModel *model, mjData *data)
{
    ks_mj.forward(model, data);
    ks_mj.forward(model, data);
}

static void step_and_forward(const mjModel *model, mjData *data, int substeps)
{
    ks_physics_step(model, data, substeps);
    ks_mj.forward(model, data);
}

/* The activation of a muscle, base_v0.py. */
static double activate(const mjtNum range[2], double action)
{
    (void)range;
    return 1 / (1 + exp(-5 * (action - 0.5)));
}

const struct ks_env_suite ks_env_myosuite = {
    .engine = &ks_env_mujoco,
    .package = "myosuite",
    .variable = "MYOSUITE_DIR",
    .built = KS_MYOSUITE_DIR,
    .models = "envs/myo/assets/hand",
    .target = "deps-myosuite",
    .action_repeat = 2,
    .steps = 100,
    .control = activate,
    .reset = ks_physics_reset,
    .forward = forward_twice,
    .step = step_and_forward,
    .restore = step_half,
};
