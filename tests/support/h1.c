#include "h1.h"

#include "environments.h"

enum { SMALL_H1_JOINTS = 19, SMALL_H1_ROOM = 12000 };

/* Appends to the text of a model. */
static void small_h1_add(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list values;

    va_start(values, format);
    assert_true(vsnprintf(text + length, SMALL_H1_ROOM - length, format, values) <
                (int)(SMALL_H1_ROOM - length));
    va_end(values);
}

/* The robot: a pelvis on one leg, a torso, and 18 limbs without contacts. */
static void small_h1_robot(char *text)
{
    small_h1_add(text, "<mujoco><compiler autolimits='true'/><option timestep='0.002'/><worldbody>"
                       "<geom name='floor' type='plane' size='20 20 1'/>"
                       "<body name='pelvis' pos='0 0 2.7'><freejoint/>"
                       "<geom type='sphere' size='0.15'/>"
                       "<geom type='sphere' size='0.05' pos='0 0 -0.93'/>"
                       "<site name='left_foot' pos='0 0.1 -0.9'/>"
                       "<site name='right_foot' pos='0 -0.1 -0.9'/>"
                       "<body name='torso_link'><joint name='j0' axis='0 0 1' damping='1'/>"
                       "<geom type='sphere' size='0.15' pos='0 0 0.3'/>"
                       "<site name='head' pos='0 0 0.7'/><site name='imu' pos='0 0 0.28'/>"
                       "<site name='left_hand' pos='0.3 0.2 0.2'/></body>");
    for (int i = 1; i < SMALL_H1_JOINTS; i++)
        small_h1_add(text,
                     "<body><joint name='j%d' axis='0 1 0' damping='1'/><geom type='sphere' "
                     "size='0.05' pos='0 0.1 -0.1' contype='0' conaffinity='0'/></body>",
                     i);
    small_h1_add(text, "</body>");
}

void small_h1_write(const char *task, const char *objects, const char *keyframe)
{
    char text[SMALL_H1_ROOM] = "", name[100];

    small_h1_robot(text);
    small_h1_add(text, "%s</worldbody><actuator>", objects);
    for (int i = 0; i < SMALL_H1_JOINTS; i++)
        small_h1_add(text, "<position joint='j%d' kp='10' ctrlrange='-0.43 0.43'/>", i);
    small_h1_add(text, "</actuator><sensor><subtreelinvel name='pelvis_subtreelinvel' "
                       "body='pelvis'/></sensor>");
    if (keyframe)
        small_h1_add(text, "<keyframe><key qpos='%s'/></keyframe>", keyframe);
    small_h1_add(text, "</mujoco>");
    snprintf(name, sizeof name, "humanoid_bench/assets/envs/h1_pos_%s.xml", task);
    write_text(name, text);
}

static char own_folder[4096]; /* HUMANOID_BENCH_DIR as it was, "" if it was not set */

bool is_small(void)
{
    return strcmp(getenv("HUMANOID_BENCH_DIR"), own_folder) != 0;
}

void pose(size_t q, double position, double *qpos)
{
    memcpy(qpos, env->model->key_qpos, (size_t)env->model->nq * sizeof *qpos);
    qpos[q] = position;
}

void place(double x, double y, double z)
{
    double qpos[40];

    pose(0, x, qpos);
    qpos[1] = y;
    qpos[2] = z;
    assert_ok(ks_env_force(env, &(struct ks_env_start){.qpos = qpos}, seen));
}

int small_h1_install(void)
{
    for (size_t i = 0; i < SMALL_H1_MODELS; i++)
        small_h1_write(small_h1_models[i].task, small_h1_models[i].objects,
                       small_h1_models[i].keyframe);
    return setenv("HUMANOID_BENCH_DIR", scratch_folder, 1);
}

static int make_small(void **state)
{
    return scratch_make(state) || small_h1_install();
}

static int remove_small(void **state)
{
    return drop(state) || scratch_remove(state);
}

static int use_own(void **state)
{
    return setenv("HUMANOID_BENCH_DIR", own_folder, 1);
}

int run_h1_tests(void)
{
    const char *own = getenv("HUMANOID_BENCH_DIR");
    int failed;

    snprintf(own_folder, sizeof own_folder, "%s", own ? own : "");
    tests_setup = make_small, tests_teardown = remove_small;
    failed = run_all_tests();
    if (!*own_folder) {
        puts("skipped: HumanoidBench's own models, as HUMANOID_BENCH_DIR is not set");
        return failed;
    }
    tests_setup = use_own, tests_teardown = drop;
    return failed + run_all_tests();
}

void need_small(void)
{
    if (!is_small())
        skip();
}
