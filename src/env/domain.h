/* Internals shared by the files of src/env: the state of an environment, and the functions that a
 * domain supplies.
 *
 * To add a domain: write src/env/NAME.c with one struct ks_env_domain, declare it at the end of
 * this file, and add a row per task to the table in tasks.c. To add a suite: write a struct
 * ks_env_suite in tasks.c. */
#ifndef KS_ENV_DOMAIN_H
#define KS_ENV_DOMAIN_H

#include <stddef.h>

#include "env/env.h"
#include "env/physics.h"

struct ks_env_domain;
struct ks_env_shared;

/* What an engine's functions are called with. */
struct ks_env_call {
    struct ks_env *env;
    struct ks_rng *rng;               /* for a start; NULL if it is forced */
    const struct ks_env_start *start; /* for a forced start */
    const double *action;             /* for a step */
    const double *state;              /* to restore a saved one */
    bool warned;                      /* out: MuJoCo has warned */
    ks_status status;                 /* out: of the domain's reset, of a shared object's step */
};

/* What simulates: MuJoCo (simulation.c), or a shared object of the user (shared.c). `start`,
 * `step` and `restore` take a struct ks_env_call. */
struct ks_env_engine {
    /* Sets env->actions, env->steps and what the engine itself needs. */
    ks_status (*open)(struct ks_env *env, const struct ks_env_options *options);
    void (*start)(void *call);
    void (*step)(void *call);
    void (*restore)(void *call);
    /* The engine's part of a saved state, finite numbers, and the version that wrote it. */
    double (*version)(void);
    size_t (*state_size)(const struct ks_env *env);
    void (*state_get)(const struct ks_env *env, double *state);
};

/* Elements of a model as XML: <tag name="name"> and <tag file="name">, or all of the tag if `name`
 * is NULL. */
struct ks_env_removal {
    const char *tag, *name;
};

/* What the tasks of a suite have in common: where their models are, and in which order they call
 * MuJoCo. */
struct ks_env_suite {
    const struct ks_env_engine *engine;
    const char *package;  /* the Python package whose models are used, and its folder when
                           * installed                                                 */
    const char *variable; /* of the environment: names that folder                     */
    const char *built;    /* the folder that the build used; NULL: only `variable` names
                           * the folder, which the user gets from `source`              */
    const char *source;
    const char *models;   /* the folder of the models, within that folder              */
    const char *target;   /* of make: installs that folder                             */
    size_t action_repeat; /* control steps of an agent step, in published results      */
    size_t steps;         /* control steps of an episode                               */
    /* The sky is taken out of models that are not drawn; the last element has the tag NULL. NULL:
     * nothing. */
    const struct ks_env_removal *sky;
    /* Before the start state is set; after it; a control step of `substeps` physics steps; after
     * mj_setState, so that the next control step goes on with the same bits (NULL: nothing). */
    void (*reset)(mjModel *model, mjData *data);
    void (*forward)(mjModel *model, mjData *data);
    void (*step)(const mjModel *model, mjData *data, int substeps);
    void (*restore)(const mjModel *model, mjData *data);
    /* The control for an action in [-1, 1], of an actuator whose control has this range. */
    double (*control)(const mjtNum range[2], double action);
};

struct ks_env_task {
    const char *name;
    const struct ks_env_domain *domain;
    size_t observations;
    double goal; /* the parameter that distinguishes a domain's tasks: target speed, radius, ... */
};

/* Numbers in ks_env.episode that every saved state has; the largest number of coordinates of a
 * target; the largest number of elements of a model that a domain uses. */
enum { KS_ENV_EPISODE = 8, KS_ENV_TARGET = 24, KS_ENV_ELEMENTS = 16 };

/* Indices into a row-major rotation matrix: XZ is the x component of the frame's z axis. */
enum { KS_XX = 0, KS_XZ = 2, KS_ZX = 6, KS_ZZ = 8 };

struct ks_env {
    const struct ks_env_task *task;
    struct ks_env_shared *shared; /* what owns `task`, if it is a shared object of the user
                                   * (shared.c); owned */
    char *identity;               /* of that file: see ks_env_identity; owned */
    char *pixels;                 /* the name of a task from pixels; else NULL. Owned */
    mjModel *model;
    mjData *data;
    int ids[KS_ENV_ELEMENTS];      /* of the domain's elements; of a sensor the index in sensordata
                                    * of its first value */
    double episode[KS_ENV_TARGET]; /* set by the domain's `reset` and `remember`: state besides
                                    * qpos, qvel, act */
    double original[KS_ENV_EPISODE]; /* kept by `change`: what `apply` overwrites in the model */
    int substeps;                    /* physics steps of a control step */
    size_t actions;                  /* length of an action */
    size_t steps;                    /* control steps of an episode */
    size_t step;                     /* control steps of this episode so far */
    bool ended;
    double *last_finite; /* [observations]: the last observation without NaN and
                          * infinity */
    size_t divergences;
    char divergence[512], flags[64];
};

/* A named element of the compiled model. */
struct ks_env_element {
    const char *name;
    mjtObj type;
    int width; /* of a sensor: the number of its values */
};
#define KS_ELEMENT(type, name, width)                                                              \
    {                                                                                              \
        name, type, width                                                                          \
    }
#define KS_BODY(name)          KS_ELEMENT(mjOBJ_BODY, name, 0)
#define KS_GEOM(name)          KS_ELEMENT(mjOBJ_GEOM, name, 0)
#define KS_JOINT(name)         KS_ELEMENT(mjOBJ_JOINT, name, 0)
#define KS_SITE(name)          KS_ELEMENT(mjOBJ_SITE, name, 0)
#define KS_SENSOR(name, width) KS_ELEMENT(mjOBJ_SENSOR, name, width)

struct ks_env_domain {
    const struct ks_env_suite *suite;
    struct {
        const char *file;   /* "dog.xml"; a shared object: its path */
        int nq, nv, nu, na; /* sizes when compiled, which determine the observation's width */
    } model;
    /* What is taken out of the model before it is compiled; the last one has the tag NULL. NULL:
     * nothing. */
    const struct ks_env_removal *removed;
    /* Half the width of the floor in seconds at the speed `goal`, and its grid in m: dm_control
     * sets them in the model, which is only seen in pictures. 0: as in the file. */
    struct {
        double seconds, grid;
    } floor;
    int camera;          /* its number, that of agents from pixels */
    double control_step; /* seconds */
    size_t target; /* number of coordinates of the target that `reset` draws: the first numbers
                      of env->episode, at most KS_ENV_TARGET; else that has KS_ENV_EPISODE */
    /* The elements of the model that its functions use, at most KS_ENV_ELEMENTS; the last one has
     * the name NULL. NULL: none. */
    const struct ks_env_element *elements;

    /* Called once, after compilation: makes the changes to the model that hold for all episodes of
     * the task. NULL: none. */
    ks_status (*change)(struct ks_env *env);
    /* Sets an episode's start state, between the suite's `reset` and `forward`. Draws in the
     * suite's order. KS_NUMBER if no draw gives a valid start state. */
    ks_status (*reset)(struct ks_env *env, struct ks_rng *rng);
    /* Writes what of `episode` belongs to the model (a target's position); NULL: nothing. Called by
     * `reset` and when a saved state is restored. */
    void (*apply)(struct ks_env *env);
    /* Keeps in `episode` what the next reward compares with; NULL: nothing. Called at the start of
     * an episode and after each reward. */
    void (*remember)(struct ks_env *env);
    /* Writes the observation, for dm_control its components in alphabetical order of their names;
     * returns the end. */
    double *(*observe)(const struct ks_env *env, double *out);
    double (*reward)(const struct ks_env *env);
    /* Whether the state is terminal; NULL: no state is. */
    bool (*terminal)(const struct ks_env *env);
    /* Whether the task stops the episode in this state, which is not a terminal one; NULL: only
     * its time limit does. */
    bool (*truncated)(const struct ks_env *env);
    /* Whether the task is solved in this state; NULL: the task has no goal. */
    bool (*solved)(const struct ks_env *env);
};

/* A domain of dm_control: its model, with the sizes q, v and u, and its control step in seconds. */
#define KS_DM_CONTROL(xml, q, v, u, seconds)                                                       \
    .suite = &ks_env_dm_control, .model = {xml, .nq = q, .nv = v, .nu = u}, .control_step = seconds
/* What every domain has, under these names in its file. */
#define KS_ENV_FUNCTIONS .elements = elements, .reset = reset, .observe = observe, .reward = reward

/* tasks.c: the task of this name in the table; KS_USAGE if it is unknown. */
ks_status ks_env_task_find(const char *name, const struct ks_env_task **task);

/* shared.c: loads a task of the user's own in C, a shared object with the four functions of
 * kappascope_env.h. Sets env->task, env->shared and env->identity. Fails with KS_IO if the file
 * cannot be read, and with KS_FORMAT if it is no shared object, lacks a function, has another
 * version of the interface, or sizes out of range. */
ks_status ks_env_shared_read(const char *path, struct ks_env *env);
void ks_env_shared_free(struct ks_env_shared *shared);

/* model.c: reads the task's model from its suite's package, edits and compiles it. Only a model
 * that is `drawn` has a sky. The caller frees it with mj_deleteModel. KS_MISSING if a file is
 * missing. */
ks_status ks_env_load(const struct ks_env_task *task, bool drawn, mjModel **model);
/* Sets env->ids. KS_FORMAT if the compiled model lacks an element, or a sensor has another width.
 */
ks_status ks_env_find_elements(struct ks_env *env);

/* blocks.c: random start states that several domains share. `random_joints` draws every joint's
 * position; `random_joints_apart` repeats that until no bodies touch, KS_NUMBER if it never
 * succeeds. */
ks_status ks_env_random_joints(struct ks_env *env, struct ks_rng *rng);
ks_status ks_env_random_joints_apart(struct ks_env *env, struct ks_rng *rng);
/* A rotation from the uniform distribution. */
void ks_env_random_rotation(struct ks_rng *rng, double quaternion[4]);

/* Of the domain's element number `element`: the position of a body, geom or site; the rotation
 * matrix of a body or geom; the values of a sensor. */
const double *ks_env_position(const struct ks_env *env, size_t element);
const double *ks_env_frame(const struct ks_env *env, size_t element);
const double *ks_env_sensor(const struct ks_env *env, size_t element);
/* The vector from one element to another; returns its length. */
double ks_env_between(const struct ks_env *env, size_t from, size_t to, double out[3]);

/* Components of observations, and vectors. The append functions return the new end. */
double *ks_env_append(double *out, size_t n, const double *values);
/* Appends one value per hinge joint; address is jnt_qposadr or jnt_dofadr. */
double *ks_env_append_hinges(double *out, const mjModel *model, const int *address,
                             const double *values);
/* R' v: transforms a vector from world coordinates to the frame R. */
void ks_env_to_frame(const double R[9], const double v[3], double out[3]);
/* Whether no value is NaN or infinite, in float32, as training has it. */
bool ks_env_all_finite(size_t n, const double *values);
double ks_env_norm(size_t n, const double *v);
/* out = b - a; returns its norm. */
double ks_env_difference(size_t n, const double *a, const double *b, double *out);

extern const struct ks_env_engine ks_env_mujoco;
extern const struct ks_env_suite ks_env_dm_control, ks_env_gymnasium, ks_env_humanoid_bench,
    ks_env_myosuite;
extern const struct ks_env_domain ks_env_acrobot, ks_env_cartpole, ks_env_cartpole_sparse,
    ks_env_cheetah, ks_env_dog, ks_env_finger_spin, ks_env_finger_turn, ks_env_fish, ks_env_hopper,
    ks_env_humanoid, ks_env_pendulum, ks_env_quadruped, ks_env_reacher, ks_env_walker;
/* gymnasium.c */
extern const struct ks_env_domain ks_env_gym_ant, ks_env_gym_half_cheetah, ks_env_gym_hopper,
    ks_env_gym_humanoid, ks_env_gym_standup, ks_env_gym_walker2d;
/* myosuite_hand.c, myosuite_object.c */
extern const struct ks_env_domain ks_env_myo_reach, ks_env_myo_pose, ks_env_myo_hold,
    ks_env_myo_key, ks_env_myo_pen;
/* humanoid_bench.c */
extern const struct ks_env_domain ks_env_h1_crawl, ks_env_h1_run, ks_env_h1_slide, ks_env_h1_stair,
    ks_env_h1_stand, ks_env_h1_walk;
extern const struct ks_env_domain ks_env_h1_balance_hard, ks_env_h1_balance_simple,
    ks_env_h1_hurdle, ks_env_h1_maze, ks_env_h1_pole, ks_env_h1_reach, ks_env_h1_sit_hard,
    ks_env_h1_sit_simple;

/* dm_control's reward shaping: `tolerance` of utils/rewards.py, with the sigmoids that the tasks
 * use. */

enum ks_sigmoid { KS_GAUSSIAN, KS_LINEAR, KS_QUADRATIC };

struct ks_bounds {
    double lower, upper;
};

/* 1 if lower <= x <= upper. Outside, at a distance of d * margin from the nearer bound: f(d) in
 * [0, 1), where f is the sigmoid with f(1) = v; 0 if margin is 0. v is in (0, 1); the linear and
 * the quadratic sigmoid also allow v = 0. If x is NaN, the result is NaN or 0. */
double ks_tolerance(double x, struct ks_bounds bounds, double margin, enum ks_sigmoid kind,
                    double v);
/* ks_tolerance with the lower bound `bound` and no upper bound. */
double ks_at_least(double x, double bound, double margin, enum ks_sigmoid kind, double v);
/* A factor that rewards small controls: from 1 if all n controls are 0 to 4/5 if all are +-most. */
double ks_small_control(size_t n, const double *ctrl, double most);

#endif
