#include "study/disk.h"

#include <stdlib.h>

#include "net/arch.h"
#include "study/study_keys.h"
#include "train/architecture.h"

enum { SINGLE = 4, DOUBLE = 8 }; /* bytes of a number */

/* The descriptions of one architecture's networks. */
struct networks {
    struct ks_arch *critic, *actor; /* owned */
    size_t encoder;                 /* parameters; 0: it has none */
};

static void networks_clear(struct networks *n)
{
    KS(arch_free)(n->critic);
    KS(arch_free)(n->actor);
}

static ks_status networks_read(const struct ks_study_architecture *a, size_t observations,
                               size_t actions, struct networks *n)
{
    char *critic = NULL, *actor = NULL;
    struct ks_widths widths;
    ks_status status;

    *n = (struct networks){NULL, NULL, 0};
    KS_GO(ks_architecture(a->argument, &a->settings, actions, &critic, &actor));
    KS_GO(ks_architecture_widths(a->argument, observations, actions, &widths));
    KS_GO(KS(arch_parse)(critic, a->name, widths.critic, &n->critic));
    KS_GO(KS(arch_parse)(actor, a->name, widths.actor, &n->actor));
    n->encoder = widths.encoder;
done:
    free(critic);
    free(actor);
    return status;
}

/* Critics, target critics, both of Adam's moments; actor; minibatches with two kinds of targets. */
static double checkpoint_bytes(const struct ks_settings *s, const struct networks *n)
{
    double critics = (double)(s->critics * n->critic->parameters);
    size_t rows = n->critic->joint ? 2 * s->batch : s->batch;
    double minibatch = (double)(rows * n->critic->in) + 2 * (double)(s->batch * n->critic->out);

    return SINGLE * (4 * critics + (double)n->actor->parameters +
                     (double)s->analysis_minibatches * minibatch);
}

/* Two resume points with all networks and moments, and the transitions of replay (two observations
 * and an action, which are `inputs` numbers; reward, mask). */
static double resume_bytes(const struct ks_study *study, const struct ks_settings *s,
                           const struct networks *n, size_t inputs)
{
    double critics = (double)(s->critics * n->critic->parameters);
    double steps = (double)study->end / (double)s->action_repeat;
    double networks = 4 * critics + 3 * (double)n->actor->parameters + 4 * (double)n->encoder;

    if (steps > (double)s->replay)
        steps = (double)s->replay;
    return SINGLE * (2 * networks + steps * (double)(inputs + 2));
}

static ks_status basis_bytes(const struct ks_study *study, const struct ks_settings *s,
                             const struct networks *n, double *bytes)
{
    for (size_t k = 0; k < study->n_analyses; k++) {
        struct ks_options o;

        KS_TRY(ks_study_read_analysis(&study->analysis[k], &o));
        if (o.keep_basis)
            *bytes += DOUBLE * (double)((o.order + 1) * (o.probes + o.gradient_probe)) *
                      (double)(s->critics * n->critic->parameters);
    }
    return KS_OK;
}

ks_status ks_study_disk(const struct ks_study *study, size_t observations, size_t actions,
                        struct ks_disk *disk)
{
    *disk = (struct ks_disk){0, 0, 0};
    for (size_t a = 0; a < study->n_architectures; a++) {
        const struct ks_settings *s = &study->architecture[a].settings;
        double files = (double)(study->n_seeds * study->n_checkpoints), basis = 0, resume;
        struct networks n;
        ks_status status = networks_read(&study->architecture[a], observations, actions, &n);

        if (status == KS_OK)
            status = basis_bytes(study, s, &n, &basis);
        if (status == KS_OK) {
            disk->checkpoints += files * checkpoint_bytes(s, &n);
            disk->basis += files * basis;
            resume = resume_bytes(study, s, &n, 2 * observations + actions);
            disk->resume = resume > disk->resume ? resume : disk->resume;
        }
        networks_clear(&n);
        KS_TRY(status);
    }
    return KS_OK;
}
