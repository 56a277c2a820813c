/* An example of a task in C: a point on a line is pushed towards the origin, as
 * include/kappascope_env.h describes it.
 *
 *   cc -std=c11 -O2 -shared -fPIC -Iinclude -o point.so configs/tasks/point.c
 *   kappascope train --env ./point.so --arch bn+wn+ce --out runs/point
 *
 * Start: x = U(-1, 1), v = 0. Step of 0.1 seconds: v += 0.1 (2 a - v), x += 0.1 v.
 * Reward: 1 / (1 + 4 x^2). States with |x| > 2 are terminal. */
#include "kappascope_env.h"

struct point {
    double x, v;
};

const struct kappascope_env_description *kappascope_env_describe(void)
{
    static const struct kappascope_env_description description = {.version = KAPPASCOPE_ENV_VERSION,
                                                                  .observations = 2,
                                                                  .actions = 1,
                                                                  .steps = 100,
                                                                  .state = sizeof(struct point)};

    return &description;
}

/* The seed's bits are uniform already. */
void kappascope_env_reset(void *state, uint64_t seed)
{
    struct point *p = state;

    p->x = (double)(seed >> 11) / (1LL << 52) - 1;
    p->v = 0;
}

int kappascope_env_step(void *state, const double *action, double *reward)
{
    struct point *p = state;

    p->v += 0.1 * (2 * action[0] - p->v);
    p->x += 0.1 * p->v;
    *reward = 1 / (1 + 4 * p->x * p->x);
    return p->x < -2 || p->x > 2 ? KAPPASCOPE_ENV_TERMINATED : KAPPASCOPE_ENV_GOES_ON;
}

void kappascope_env_observe(const void *state, double *observation)
{
    const struct point *p = state;

    observation[0] = p->x;
    observation[1] = p->v;
}
