/* A folder of small models in place of HumanoidBench's, for tests without that repository: a robot
 * with the sizes and names of its h1, but of spheres, and with one object of each kind at its place
 * in the originals. */
#ifndef KS_SMALL_H1_H
#define KS_SMALL_H1_H

#include "tree.h"

#include <stdarg.h>

enum { SMALL_H1_JOINTS = 19, SMALL_H1_ROOM = 12000 };

#define SMALL_H1_POSE "0 0 0.98 1 0 0 0 0 0 -0.4 0.8 -0.4 0 0 -0.4 0.8 -0.4 0 0 0 0 0 0 0 0 0"
#define SMALL_H1_HIGH "-0.1 0 1.38 1 0 0 0 0 0 -0.4 0.8 -0.4 0 0 -0.4 0.8 -0.4 0 0 0 0 0 0 0 0 0"
#define SMALL_H1_BOX(name, pos, size)                                                              \
    "<geom name='" name "' type='box' pos='" pos "' size='" size "'/>"
#define SMALL_H1_BARRIERS                                                                          \
    SMALL_H1_BOX("left_barrier_collision", "35 -4.725 1", "35.5 0.275 1")                          \
    SMALL_H1_BOX("right_barrier_collision", "35 4.725 1", "35.5 0.275 1")                          \
    SMALL_H1_BOX("behind_barrier_collision", "-0.525 0 1", "0.05 5 1")
#define SMALL_H1_BOARD                                                                             \
    "<body pos='0 0 0.37'><freejoint/>" SMALL_H1_BOX("stand_board_collision", "0 0 0",             \
                                                     "0.15 0.55 0.03") "</body>"
#define SMALL_H1_SPHERE "<geom name='pivot_sphere_collision' type='sphere' size='0.17'/></body>"

static const struct {
    const char *task, *objects, *keyframe;
} small_h1_models[] = {
    {"balance_hard", SMALL_H1_BOARD "<body pos='0 0 0.17'><freejoint/>" SMALL_H1_SPHERE,
     SMALL_H1_HIGH " 0 0 0.37 1 0 0 0 0 0 0.17 1 0 0 0"},
    {"balance_simple", SMALL_H1_BOARD "<body pos='0 0 0.17'>" SMALL_H1_SPHERE,
     SMALL_H1_HIGH " 0 0 0.37 1 0 0 0"},
    {"crawl", "", SMALL_H1_POSE},
    {"hurdle", "<body>" SMALL_H1_BARRIERS "</body>", SMALL_H1_POSE},
    {"maze", "<body>" SMALL_H1_BOX("block_collision_00", "-1.5 7.5 0.6", "0.75 0.75 0.6") "</body>",
     SMALL_H1_POSE},
    {"pole", "<body><geom name='pole_r1_c2' type='cylinder' pos='1 0.75 1' size='0.05 1'/></body>",
     SMALL_H1_POSE},
    {"reach", "", SMALL_H1_POSE},
    {"run", "", SMALL_H1_POSE},
    {"sit_hard",
     "<body name='chair' pos='-0.25 0 0'><freejoint/>" SMALL_H1_BOX("seat", "0 0 0.2375",
                                                                    "0.21 0.21 0.2375") "</body>",
     SMALL_H1_POSE " -0.25 0 0 1 0 0 0"},
    {"sit_simple",
     "<body name='chair' pos='-0.25 0 0'>" SMALL_H1_BOX("seat", "0 0 0.2375",
                                                        "0.21 0.21 0.2375") "</body>",
     SMALL_H1_POSE},
    {"slide", "", SMALL_H1_POSE},
    {"stair", "", SMALL_H1_POSE},
    {"stand", "", SMALL_H1_POSE},
    {"walk", "", SMALL_H1_POSE},
};
enum { SMALL_H1_MODELS = sizeof small_h1_models / sizeof *small_h1_models };

/* Appends to the text of a model. */
static inline void small_h1_add(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list values;

    va_start(values, format);
    assert_true(vsnprintf(text + length, SMALL_H1_ROOM - length, format, values) <
                (int)(SMALL_H1_ROOM - length));
    va_end(values);
}

/* The robot: a pelvis on one leg, a torso, and 18 limbs without contacts. */
static inline void small_h1_robot(char *text)
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

/* Writes the model of a task; without a keyframe if that is NULL. */
static inline void small_h1_write(const char *task, const char *objects, const char *keyframe)
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
    tree_write(name, text);
}

static inline int small_h1_make(void **state)
{
    if (tree_make(state) != 0)
        return -1;
    for (size_t i = 0; i < SMALL_H1_MODELS; i++)
        small_h1_write(small_h1_models[i].task, small_h1_models[i].objects,
                       small_h1_models[i].keyframe);
    return 0;
}

#endif
