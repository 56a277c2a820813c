#include "core/milestones.h"

#include <assert.h>
#include <stdio.h>

/* steps * k / count, rounded up to a multiple of `repeat`. */
static size_t evenly(size_t steps, size_t count, size_t k, size_t repeat)
{
    size_t unit = count * repeat;

    return (steps * k + unit - 1) / unit * repeat;
}

/* Inserts `step` into the ascending list of n steps unless present; returns the new length. */
static size_t insert(size_t *list, size_t n, size_t step)
{
    size_t i = n;

    while (i > 0 && list[i - 1] > step)
        i--;
    if (i > 0 && list[i - 1] == step)
        return n;
    for (size_t j = n; j > i; j--)
        list[j] = list[j - 1];
    list[i] = step;
    return n + 1;
}

size_t ks_milestones(size_t steps, size_t count, size_t also, size_t action_repeat,
                     size_t *env_steps)
{
    size_t n = 0;

    assert(action_repeat > 0);
    for (size_t k = 1; k <= count; k++)
        n = insert(env_steps, n, evenly(steps, count, k, action_repeat));
    return also <= evenly(steps, 1, 1, action_repeat) ? insert(env_steps, n, also) : n;
}

void ks_checkpoint_name(size_t env_step, char name[32])
{
    snprintf(name, 32, "step_%09zu.h5", env_step);
}
