/* Hessian products, or cycles of updates, of critics of width 16 in float32, for
 * tests/bench/instructions.sh, which counts their instructions. At this width, what surrounds the
 * matrix products is most of the work.
 *
 *   build/bench/instructions product|update TIMES
 *   build/bench/instructions versions              of what decides about instructions */
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

#include "core/blas.h"

#include "agents.h"

enum { WIDTH = 16, OBSERVATIONS = 17, ACTIONS = 6, MINIBATCHES = 2 };

static const struct agent_case AGENT = {.architecture = "bn+wn+ce",
                                        .width = WIDTH,
                                        .observations = OBSERVATIONS,
                                        .actions = ACTIONS,
                                        .threads = 1,
                                        .products = KS_PRODUCTS_BLAS};

static void multiply(unsigned long times)
{
    struct ks_settings settings;
    struct ks_checkpoint *c;
    struct ks_problem problem;
    struct ks_operator *hessian;
    double *v, *out;
    char *text[KS_TEXTS];

    ks_settings_defaults(&settings);
    settings.hidden = WIDTH;
    must(ks_architecture(AGENT.architecture, &settings, ACTIONS, text));
    c = make_critics(text[KS_CRITIC_TEXT], ENSEMBLE, OBSERVATIONS + ACTIONS, MINIBATCHES);
    problem = pose(c);
    must(ks_hessian_new_f32(&problem, &hessian));
    must(ks_operator_prepare(hessian, (size_t)1 << 30));
    v = normal(hessian->n, 1);
    must(ks_alloc(hessian->n, sizeof *out, &out));
    for (unsigned long i = 0; i < times; i++)
        must(ks_operator_apply(hessian, v, out));
    ks_operator_free(hessian);
    ks_checkpoint_free(c);
    ks_texts_free(text);
    free(v), free(out);
}

static void update(unsigned long times)
{
    struct KS(agent) *agent = make_agent(&AGENT);
    const struct ks_batch batch = make_transitions(&AGENT);
    struct ks_update results;

    for (unsigned long i = 0; i < CYCLE * times; i++)
        must(KS(agent_update)(agent, &batch, &results));
    KS(agent_free)(agent);
    free_transitions(&batch);
}

int main(int argc, char **argv)
{
    const unsigned long times = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

    ks_blas_start(argv);
    if (argc == 2 && strcmp(argv[1], "versions") == 0)
        printf("compiler %s, %s, glibc %s\n", __VERSION__, ks_blas_version(),
               gnu_get_libc_version());
    else if (times > 0 && strcmp(argv[1], "product") == 0)
        multiply(times);
    else if (times > 0 && strcmp(argv[1], "update") == 0)
        update(times);
    else {
        fprintf(stderr, "usage: instructions product|update TIMES, or versions\n");
        return 2;
    }
    return 0;
}
