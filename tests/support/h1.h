/* HumanoidBench's tasks on small models in place of its own, for tests without that repository: a
 * robot with the sizes and names of its h1, but of spheres, and with one object of each kind at its
 * place in the originals. And on its own models if HUMANOID_BENCH_DIR is set. */
#ifndef KS_TEST_H1_H
#define KS_TEST_H1_H

#include "scratch.h"

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

/* Writes the model of a task; without a keyframe if that is NULL. */
void small_h1_write(const char *task, const char *objects, const char *keyframe);

/* Writes all of them to the scratch folder, which becomes that of HumanoidBench. */
int small_h1_install(void);

bool is_small(void);

/* The first keyframe, with one coordinate changed. */
void pose(size_t q, double position, double *qpos);

/* Forces the first keyframe with the pelvis at another place. */
void place(double x, double y, double z);

/* Runs all tests on the small models, and again on HumanoidBench's if they are there: then tests
 * that need the small ones are skipped. */
int run_h1_tests(void);
void need_small(void);

#endif
