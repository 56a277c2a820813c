/* Random and target scores of the 55 tasks of the XQC paper, for scores normalized as by Agarwal et
 * al., "Deep reinforcement learning at the edge of the statistical precipice", NeurIPS 2021.
 *
 *   DMC             0 and 1000: the smallest and the largest possible return
 *   MyoSuite        0 and 1: the score is the fraction of successful episodes
 *   HumanoidBench   a uniform random policy, and the benchmark's threshold of success
 *   MuJoCo          a uniform random policy, and TD3
 *
 * No random or target score is published for HumanoidStandup-v4. */
#include "results/score_ranges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct ks_score_range ks_score_ranges[KS_SCORE_RANGES] = {
    {"Ant-v4", KS_SCORES_MUJOCO, -70.288, 3942},
    {"HalfCheetah-v4", KS_SCORES_MUJOCO, -289.415, 10574},
    {"Hopper-v4", KS_SCORES_MUJOCO, 18.791, 3226},
    {"Humanoid-v4", KS_SCORES_MUJOCO, 120.423, 5165},
    {"HumanoidStandup-v4", KS_SCORES_MUJOCO, NAN, NAN},
    {"Walker2d-v4", KS_SCORES_MUJOCO, 2.791, 3946},
    {"acrobot-swingup", KS_SCORES_DMC_EASY, 0, 1000},
    {"cartpole-balance", KS_SCORES_DMC_EASY, 0, 1000},
    {"cartpole-swingup", KS_SCORES_DMC_EASY, 0, 1000},
    {"cheetah-run", KS_SCORES_DMC_EASY, 0, 1000},
    {"dog-run", KS_SCORES_DMC_HARD, 0, 1000},
    {"dog-stand", KS_SCORES_DMC_HARD, 0, 1000},
    {"dog-trot", KS_SCORES_DMC_HARD, 0, 1000},
    {"dog-walk", KS_SCORES_DMC_HARD, 0, 1000},
    {"finger-spin", KS_SCORES_DMC_EASY, 0, 1000},
    {"finger-turn_easy", KS_SCORES_DMC_EASY, 0, 1000},
    {"finger-turn_hard", KS_SCORES_DMC_EASY, 0, 1000},
    {"fish-swim", KS_SCORES_DMC_EASY, 0, 1000},
    {"h1-balance_hard-v0", KS_SCORES_HUMANOIDBENCH, 9.044, 800},
    {"h1-balance_simple-v0", KS_SCORES_HUMANOIDBENCH, 9.391, 800},
    {"h1-crawl-v0", KS_SCORES_HUMANOIDBENCH, 272.658, 700},
    {"h1-hurdle-v0", KS_SCORES_HUMANOIDBENCH, 2.214, 700},
    {"h1-maze-v0", KS_SCORES_HUMANOIDBENCH, 106.441, 1200},
    {"h1-pole-v0", KS_SCORES_HUMANOIDBENCH, 20.09, 700},
    {"h1-reach-v0", KS_SCORES_HUMANOIDBENCH, 260.302, 12000},
    {"h1-run-v0", KS_SCORES_HUMANOIDBENCH, 2.02, 700},
    {"h1-sit_hard-v0", KS_SCORES_HUMANOIDBENCH, 2.448, 750},
    {"h1-sit_simple-v0", KS_SCORES_HUMANOIDBENCH, 9.393, 750},
    {"h1-slide-v0", KS_SCORES_HUMANOIDBENCH, 3.191, 700},
    {"h1-stair-v0", KS_SCORES_HUMANOIDBENCH, 3.112, 700},
    {"h1-stand-v0", KS_SCORES_HUMANOIDBENCH, 10.545, 800},
    {"h1-walk-v0", KS_SCORES_HUMANOIDBENCH, 2.377, 700},
    {"hopper-hop", KS_SCORES_DMC_EASY, 0, 1000},
    {"hopper-stand", KS_SCORES_DMC_EASY, 0, 1000},
    {"humanoid-run", KS_SCORES_DMC_HARD, 0, 1000},
    {"humanoid-stand", KS_SCORES_DMC_HARD, 0, 1000},
    {"humanoid-walk", KS_SCORES_DMC_HARD, 0, 1000},
    {"myo-key-turn", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-key-turn-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-obj-hold", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-obj-hold-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pen-twirl", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pen-twirl-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pose", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-pose-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-reach", KS_SCORES_MYOSUITE, 0, 1},
    {"myo-reach-hard", KS_SCORES_MYOSUITE, 0, 1},
    {"pendulum-swingup", KS_SCORES_DMC_EASY, 0, 1000},
    {"quadruped-run", KS_SCORES_DMC_EASY, 0, 1000},
    {"quadruped-walk", KS_SCORES_DMC_EASY, 0, 1000},
    {"reacher-easy", KS_SCORES_DMC_EASY, 0, 1000},
    {"reacher-hard", KS_SCORES_DMC_EASY, 0, 1000},
    {"walker-run", KS_SCORES_DMC_EASY, 0, 1000},
    {"walker-stand", KS_SCORES_DMC_EASY, 0, 1000},
    {"walker-walk", KS_SCORES_DMC_EASY, 0, 1000},
};

static int compare(const void *task, const void *range)
{
    return strcmp(task, ((const struct ks_score_range *)range)->task);
}

ks_status ks_score_range_find(const char *task, const struct ks_score_range **range)
{
    *range = bsearch(task, ks_score_ranges, KS_SCORE_RANGES, sizeof **range, compare);
    if (!*range)
        return ks_fail(KS_FORMAT, "%s: unknown task: it has no random and no target score", task);
    return KS_OK;
}

ks_status ks_score_range_of_returns(const char *task, const struct ks_score_range **range)
{
    KS_TRY(ks_score_range_find(task, range));
    if ((*range)->group == KS_SCORES_MYOSUITE)
        return ks_fail(KS_FORMAT, "%s: its scores are shares of successful episodes, not returns",
                       task);
    return KS_OK;
}

ks_status ks_score_normalize(const struct ks_score_range *range, double score, double *normalized)
{
    if (!isfinite(range->random) || !isfinite(range->target))
        return ks_fail(KS_FORMAT, "%s: no random or no target score is known", range->task);
    if (range->random == range->target)
        return ks_fail(KS_FORMAT, "%s: random and target score are both %g", range->task,
                       range->target);
    *normalized = (score - range->random) / (range->target - range->random);
    return KS_OK;
}
