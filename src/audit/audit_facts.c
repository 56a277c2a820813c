/* What the checkpoint's file says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "core/memory.h"
#include "inspect/dead_units.h"
#include "inspect/inspect.h"

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

static size_t count_references(const struct ks_references *p)
{
    size_t references = p->output.value != NULL;

    references += p->loss.value != NULL;
    return references + (p->gradient_norm.value != NULL);
}

static int find_moments(const struct ks_checkpoint *c)
{
    if (!c->adam_v)
        return KS_MOMENTS_ABSENT;
    for (size_t i = 0; i < ks_networks_parameters(&c->critic); i++)
        if (c->adam_v[i] > 0)
            return KS_MOMENTS_PRESENT;
    return KS_MOMENTS_ZERO;
}

static ks_status hash_batch(const struct ks_checkpoint *c, unsigned char digest[KS_SHA256_BYTES])
{
    const size_t n = c->minibatches;
    const struct ks_piece batch[] = {
        {c->input, sizeof *c->input * n * c->rows * c->critic.arch->in},
        {c->target, sizeof *c->target * n * ks_checkpoint_target_size(c)},
        {c->weight, c->weight ? sizeof *c->weight * n * c->loss_rows : 0}};

    return ks_sha256(sizeof batch / sizeof *batch, batch, digest);
}

static ks_status count_dead(const struct ks_checkpoint *c, struct ks_audit_facts *f)
{
    struct ks_dead_units dead;
    ks_status status = ks_dead_units_count(c, &dead);

    f->tried = dead.minibatches;
    if (status == KS_OK)
        status = ks_alloc(dead.n, sizeof *f->units, &f->units);
    for (size_t i = 0; status == KS_OK && i < dead.n; i++) {
        const struct KS(layer) *l = dead.layer[i].layer;
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
    f->critics = c->critic.ensemble;
    f->parameters = c->critic.arch->parameters;
    f->minibatches = c->minibatches;
    f->rows = c->rows;
    f->loss_rows = c->loss_rows;
    f->moments = find_moments(c);
    f->references = count_references(&c->references);
    f->env_step = step_of(c);
    KS(loss_name)(&c->critic.arch->loss, sizeof f->loss, f->loss);
    copy_text(c, "env", sizeof f->env, f->env);
    KS_TRY(hash_batch(c, f->batch));
    return count_dead(c, f);
}

ks_status ks_audit_facts_read(const char *path, size_t batches, struct ks_audit_facts *f)
{
    struct ks_checkpoint *c = NULL;
    ks_status status;

    *f = (struct ks_audit_facts){.env_step = NAN};
    KS_TRY(ks_sha256_file(path, f->digest));
    KS_TRY(ks_inspect_read(path, &c));
    f->stored = c->minibatches;
    if (batches > 0 && batches <= c->minibatches)
        c->minibatches = batches; /* the others are not looked at */
    if (batches > c->minibatches)
        status = ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", path, f->stored,
                         batches);
    else
        status = take_facts(c, f);
    ks_checkpoint_free(c);
    return status;
}

void ks_audit_facts_clear(struct ks_audit_facts *f)
{
    free(f->units);
    f->units = NULL;
    f->n_units = 0;
}
