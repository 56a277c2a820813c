#include "net/arch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "net/parser.h"

enum { MAX_BYTES = 1 << 20 };

size_t KS(array_size)(const struct ks_array *a)
{
    return (a->rows > 0 ? a->rows : 1) * a->columns;
}

void KS(arch_place)(struct KS(arch) *arch)
{
    arch->parameters = arch->states = arch->frozen = 0;
    arch->joint = arch->reads_state = false;
    for (size_t i = 0; i < arch->n_layers; i++) {
        struct KS(layer) *l = &arch->layer[i];

        l->offset = arch->parameters;
        l->state_offset = arch->states;
        arch->parameters += l->parameters;
        arch->states += l->states;
        arch->joint = arch->joint || l->kind->couples_rows;
        arch->reads_state = arch->reads_state || l->reads_state;
    }
    for (size_t i = 0; i < arch->n_layers; i++) {
        struct KS(layer) *l = &arch->layer[i];

        if (l->frozen > 0)
            l->offset = arch->parameters + arch->frozen;
        arch->frozen += l->frozen;
    }
}

static ks_status parse_all(struct KS(parser) *p, const char *text, size_t in)
{
    KS_TRY(ks_copy_string(text, &p->arch->text));
    p->arch->in = p->arch->out = in;
    p->next = p->arch->text;
    KS_TRY(KS(parse_block)(p));
    KS(arch_place)(p->arch);
    if (p->arch->parameters == 0 && p->arch->frozen > 0)
        return ks_line_fail(&p->line, "expected a layer without trainable=no, found none");
    return KS_OK;
}

ks_status KS(arch_parse)(const char *text, const char *source, size_t in, struct KS(arch) **arch)
{
    struct KS(parser) p = {.source = source};
    ks_status status;

    *arch = NULL;
    KS_TRY(ks_alloc(1, sizeof *p.arch, &p.arch));
    status = parse_all(&p, text, in);
    free(p.head);
    if (status != KS_OK) {
        KS(arch_free)(p.arch);
        return status;
    }
    *arch = p.arch;
    return KS_OK;
}

ks_status KS(arch_read)(const char *path, char **text)
{
    ks_status status = KS_OK;
    FILE *file = fopen(path, "rb");
    size_t length;

    *text = NULL;
    if (!file)
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    KS_GO(ks_alloc(MAX_BYTES + 1, 1, text));
    length = fread(*text, 1, MAX_BYTES + 1, file);
    if (ferror(file))
        status = ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    else if (length > MAX_BYTES || memchr(*text, '\0', length))
        status = ks_fail(KS_FORMAT, "%s: expected a text of at most %d bytes", path, MAX_BYTES);
    else
        (*text)[length] = '\0';
done:
    if (status != KS_OK) {
        free(*text);
        *text = NULL;
    }
    fclose(file);
    return status;
}

void KS(arch_free)(struct KS(arch) *arch)
{
    if (!arch)
        return;
    for (size_t i = 0; arch->layer && i < arch->n_layers; i++)
        free(arch->layer[i].settings);
    free(arch->layer);
    free(arch->loss.head);
    free(arch->text);
    free(arch);
}

bool KS(arch_is_head)(const struct KS(arch) *arch, const struct KS(layer) *layer)
{
    return layer == &arch->layer[arch->n_layers - 1];
}

void KS(arch_group)(const struct KS(layer) *layer, char name[32])
{
    snprintf(name, 32, "%02zu_%s", layer->number, layer->kind->name);
}
