/* Checks the analyses against the architectures before anything is trained. */
#include "study/study_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanczos/slq.h"
#include "operators/selection.h"
#include "program/options.h"
#include "study/study_keys.h"
#include "train/architecture.h"

struct check {
    const struct ks_study *study;
    const struct ks_study_analysis *asked;
    struct ks_options read;
    size_t observations, actions; /* of the task */
};

/* Repeats the last failure with the line of that key and the name of the architecture (may be
 * NULL).
 */
static ks_status fail_at(const struct check *c, const char *key, const char *architecture)
{
    char message[1024];
    size_t line = 0;

    snprintf(message, sizeof message, "%s", ks_error_text());
    for (size_t i = 0; i < c->asked->n; i++)
        if (strcmp(c->asked->setting[i].key, key) == 0)
            line = c->asked->setting[i].line;
    return ks_fail(KS_FORMAT, "%s:%zu: %s%s%s", c->study->path, line,
                   architecture ? architecture : "", architecture ? ": " : "", message);
}

static ks_status check_projected(const struct ks_arch *arch)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].sphere_rows > 0)
            return KS_OK;
    return ks_fail(KS_FORMAT, "--operator: manifold needs a projected layer (project=unit or "
                              "unit-kernel), and the description has none");
}

/* The critics of one architecture. */
static ks_status check_critics(const struct check *c, const char *name,
                               const struct ks_networks *critics)
{
    const struct ks_options *a = &c->read;
    size_t low, high, n;

    if (ks_selection_range(critics, a->critic, -1, &low, &high) != KS_OK)
        return fail_at(c, "critic", NULL);
    if (ks_selection_range(critics, a->critic, a->layer, &low, &high) != KS_OK)
        return fail_at(c, "layer", name);
    if (strcmp(a->kind->name, "manifold") == 0 && check_projected(critics->arch) != KS_OK)
        return fail_at(c, "operator", name);
    n = (high - low) * (a->critic < 0 ? critics->ensemble : 1);
    if (a->exact && !a->kind->moving && n > KS_EXACT_LIMIT) {
        ks_fail(KS_FORMAT, "--exact: expected at most %d parameters, found %zu", KS_EXACT_LIMIT, n);
        return fail_at(c, "exact", name);
    }
    return KS_OK;
}

static ks_status check_architecture(const struct check *c,
                                    const struct ks_study_architecture *architecture)
{
    const struct ks_settings *settings = &architecture->settings;
    struct ks_networks critics = {.ensemble = settings->critics};
    char *critic = NULL, *actor = NULL;
    struct ks_widths widths;
    ks_status status = KS_OK;

    KS_GO(ks_architecture(architecture->argument, settings, c->actions, &critic, &actor));
    KS_GO(ks_architecture_widths(architecture->argument, c->observations, c->actions, &widths));
    KS_GO(KS(arch_parse)(critic, architecture->argument, widths.critic, &critics.arch));
    status = check_critics(c, architecture->name, &critics);
done:
    KS(arch_free)(critics.arch);
    free(critic);
    free(actor);
    return status;
}

static ks_status check_analysis(struct check *c)
{
    const struct ks_study *s = c->study;

    KS_TRY(ks_study_read_analysis(c->asked, &c->read));
    if (c->read.batches > s->settings.analysis_minibatches) {
        ks_fail(KS_FORMAT, "--batches: expected at most %zu (analysis_minibatches), found %zu",
                s->settings.analysis_minibatches, c->read.batches);
        return fail_at(c, "batches", NULL);
    }
    for (size_t i = 0; i < s->n_architectures; i++)
        if (ks_study_asks_architecture(s, (size_t)(c->asked - s->analysis), i))
            KS_TRY(check_architecture(c, &s->architecture[i]));
    return KS_OK;
}

ks_status ks_study_check(const struct ks_study *s, size_t observations, size_t actions)
{
    struct check check = {.study = s, .observations = observations, .actions = actions};

    for (size_t i = 0; i < s->n_analyses; i++) {
        check.asked = &s->analysis[i];
        KS_TRY(check_analysis(&check));
    }
    return KS_OK;
}
