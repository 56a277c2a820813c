#include "h1.h"

#include "environments.h"

enum { SMALL_H1_JOINTS = 19 };

/* The robot: a pelvis on one leg, a torso, and 18 limbs without contacts. */
static void small_h1_robot(FILE *model)
{
    fprintf(model, "<mujoco><compiler autolimits='true'/><option timestep='0.002'/><worldbody>"
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
        fprintf(model,
                "<body><joint name='j%d' axis='0 1 0' damping='1'/><geom type='sphere' "
                "size='0.05' pos='0 0.1 -0.1' contype='0' conaffinity='0'/></body>",
                i);
    fprintf(model, "</body>");
}

void small_h1_write(const char *task, const char *objects, const char *keyframe)
{
    char *text = NULL;
    size_t size;
    FILE *model = open_memstream(&text, &size);

    assert_non_null(model);
    small_h1_robot(model);
    fprintf(model, "%s</worldbody><actuator>", objects);
    for (int i = 0; i < SMALL_H1_JOINTS; i++)
        fprintf(model, "<position joint='j%d' kp='10' ctrlrange='-0.43 0.43'/>", i);
    fprintf(model, "</actuator><sensor><subtreelinvel name='pelvis_subtreelinvel' "
                   "body='pelvis'/></sensor>");
    if (keyframe)
        fprintf(model, "<keyframe><key qpos='%s'/></keyframe>", keyframe);
    fprintf(model, "</mujoco>");
    assert_int_equal(fclose(model), 0);
    write_text(text_of("humanoid_bench/assets/envs/h1_pos_%s.xml", task), text);
    free(text);
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
