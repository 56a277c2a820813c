/* What the checkpoint's file says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/memory.h"
#include "inspect/dead_units.h"
#include "io/checkpoint.h"
#include "io/h5.h"

enum { TRIED = 4 }; /* minibatches for dead units */

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

static ks_status count_proofs(const char *path, size_t *proofs)
{
    static const char *const names[] = {"/batch/output", "/batch/loss", "/batch/gradient_norm"};
    struct ks_h5 *h5;
    ks_status status = KS_OK;

    *proofs = 0;
    KS_TRY(ks_h5_open(path, NULL, &h5));
    for (size_t i = 0; status == KS_OK && i < sizeof names / sizeof *names; i++) {
        bool found = false;

        status = ks_h5_has(h5, names[i], &found);
        *proofs += found;
    }
    ks_h5_close(h5);
    return status;
}

static ks_status count_dead(const struct ks_checkpoint *c, struct ks_audit_facts *f)
{
    struct ks_dead_units dead;
    ks_status status;

    f->tried = c->minibatches < TRIED ? c->minibatches : TRIED;
    status = ks_dead_units_count(c, f->tried, &dead);
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
    double bytes, left = (double)ks_memory_available("", 1);
    ks_status status;

    *f = (struct ks_audit_facts){.env_step = NAN};
    KS_TRY(ks_checkpoint_measure(path, &bytes));
    if (left > 0 && bytes > left / 2)
        return ks_fail(KS_MEMORY, "%s: its arrays take %.0fK, which do not fit in memory", path,
                       ceil(bytes / 1024));
    KS_TRY(ks_sha256_file(path, f->digest));
    KS_TRY(count_proofs(path, &f->proofs));
    KS_TRY(ks_checkpoint_read_loss(path, &c));
    status = take_facts(c, f);
    ks_checkpoint_free(c);
    return status;
}

void ks_audit_facts_clear(struct ks_audit_facts *f)
{
    free(f->units);
    f->units = NULL;
}
