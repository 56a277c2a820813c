/* What the checkpoint's file says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/memory.h"
#include "inspect/dead_units.h"
#include "inspect/read.h"

static void copy_text(const struct ks_checkpoint *c, const char *name, size_t size, char *text)
{
    const struct ks_attribute *a = ks_attribute_find(&c->attributes, name);

    snprintf(text, size, "%s", a && a->type == KS_ATTRIBUTE_STRING ? a->string : "");
}

/* The step of the environment as a number; NaN if there is none. */
static double step_of(const struct ks_checkpoint *c)
{
    const struct ks_attribute *a = ks_attribute_find(&c->attributes, "env_step");

    return a && a->type == KS_ATTRIBUTE_INTEGER ? (double)a->integer : NAN;
}

static size_t count_proofs(const struct ks_proofs *p)
{
    return (size_t)((p->output.value != NULL) + (p->loss.value != NULL) +
                    (p->gradient_norm.value != NULL));
}

static ks_status count_dead(const struct ks_checkpoint *c, struct ks_audit_facts *f)
{
    struct ks_dead_units dead;
    ks_status status;

    status = ks_dead_units_count(c, &dead);
    f->tried = dead.minibatches;
    if (status == KS_OK)
        status = ks_alloc(dead.n, sizeof *f->units, &f->units);
    for (size_t i = 0; status == KS_OK && i < dead.n; i++) {
        const struct ks_layer *l = dead.layer[i].layer;
        struct ks_audit_units *u = &f->units[f->n_units++];

        u->number = l->number;
        u->units = c->critic.ensemble * l->out;
        snprintf(u->kind, sizeof u->kind, "%s", l->kind->name);
        for (size_t e = 0; e < c->critic.ensemble; e++)
            u->dead += dead.layer[i].dead[e];
    }
    ks_dead_units_clear(&dead);
    return status;
}

static ks_status take_facts(const struct ks_checkpoint *c, struct ks_audit_facts *f)
{
    const struct ks_arch *arch = c->critic.arch;
    const struct ks_piece batch[] = {
        {c->input, sizeof *c->input * c->minibatches * c->rows * arch->in},
        {c->target, sizeof *c->target * c->minibatches * ks_checkpoint_target_size(c)},
        {c->weight, c->weight ? sizeof *c->weight * c->minibatches * c->loss_rows : 0}};

    f->critics = c->critic.ensemble;
    f->parameters = arch->parameters;
    f->minibatches = c->minibatches;
    f->rows = c->rows;
    f->loss_rows = c->loss_rows;
    f->moments = c->adam_v != NULL;
    f->proofs = count_proofs(&c->proofs);
    f->env_step = step_of(c);
    snprintf(f->loss, sizeof f->loss, "%s", arch->loss.kind->name);
    copy_text(c, "env", sizeof f->env, f->env);
    copy_text(c, "architecture", sizeof f->architecture, f->architecture);
    KS_TRY(ks_sha256(3, batch, f->batch));
    return count_dead(c, f);
}

ks_status ks_audit_facts_read(const char *path, struct ks_audit_facts *f)
{
    struct ks_checkpoint *c = NULL;
    ks_status status;

    *f = (struct ks_audit_facts){.env_step = NAN};
    KS_TRY(ks_sha256_file(path, f->digest));
    KS_TRY(ks_inspect_read(path, &c));
    status = take_facts(c, f);
    ks_checkpoint_free(c);
    return status;
}

void ks_audit_facts_clear(struct ks_audit_facts *f)
{
    free(f->units);
    f->units = NULL;
}
