#include "import/match.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { LIST = 512 };

static ks_status fail_unknown(const struct ks_map *map, const struct ks_map_line *line,
                              const struct ks_objects *objects)
{
    char list[LIST] = "";
    size_t used = 0;

    for (size_t i = 0; i < objects->n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 objects->list[i].name);
    return ks_fail(KS_FORMAT, "%s:%zu: the description has no array %s: expected one of %s%s",
                   map->path, line->number, line->object, list, used < sizeof list ? "" : "...");
}

static ks_status check_lines(const struct ks_map *map, const struct ks_objects *objects)
{
    for (size_t i = 0; i < map->n; i++) {
        const char *name = map->line[i].object;
        bool known = !name;

        for (size_t k = 0; k < objects->n && !known; k++)
            known = strcmp(objects->list[k].name, name) == 0;
        if (!known)
            return fail_unknown(map, &map->line[i], objects);
    }
    return KS_OK;
}

/* Running statistics are needed by a layer that reads them in training mode. Otherwise the map may
 * leave out all of them. */
static bool wants_states(const struct ks_map *map, const struct ks_objects *objects)
{
    if (objects->read_states)
        return true;
    for (size_t i = 0; i < objects->n; i++)
        if (objects->list[i].state && ks_map_find(map, objects->list[i].name))
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    const char *x = ((const struct ks_source *)a)->stored->name;
    const char *y = ((const struct ks_source *)b)->stored->name;
    const int order = ks_glob_compare(x, y);

    return order != 0 ? order : strcmp(x, y); /* q2 and q02 */
}

/* Remembers that the line matches array i of the file. */
static void use(struct ks_match *m, size_t i, const struct ks_map_line *line)
{
    struct ks_matching_lines *uses = &m->uses[i];

    if (!uses->first)
        uses->first = line;
    else if (!uses->second)
        uses->second = line;
}

static ks_status find_sources(struct ks_match *m, struct ks_found *f)
{
    const struct ks_weights *w = m->weights;
    struct ks_source source;

    if (!f->line)
        return KS_OK;
    for (size_t i = 0; i < w->n; i++) {
        source.stored = &w->list[i];
        if (!ks_glob_matches(f->line->glob, w->list[i].name, &source.parts))
            continue;
        KS_TRY(ks_grow(f->n, sizeof *f->list, &f->room, &f->list));
        f->list[f->n++] = source;
        use(m, i, f->line);
    }
    if (f->n > 1)
        qsort(f->list, f->n, sizeof *f->list, by_name);
    return KS_OK;
}

static void find_ignored(struct ks_match *m)
{
    for (size_t k = 0; k < m->map->n; k++) {
        const struct ks_map_line *line = &m->map->line[k];

        for (size_t i = 0; !line->object && i < m->weights->n; i++)
            if (ks_glob_matches(line->glob, m->weights->list[i].name, NULL))
                use(m, i, line);
    }
}

ks_status ks_match_make(const struct ks_map *map, const struct ks_weights *weights,
                        const struct ks_objects *objects, struct ks_match *m)
{
    *m = (struct ks_match){.map = map, .weights = weights, .states = wants_states(map, objects)};
    KS_TRY(check_lines(map, objects));
    KS_TRY(ks_alloc(objects->n, sizeof *m->found, &m->found));
    KS_TRY(ks_alloc(weights->n, sizeof *m->uses, &m->uses));
    for (size_t i = 0; i < objects->n; i++) {
        const struct ks_object *object = &objects->list[i];
        struct ks_found *f = &m->found[m->n];

        if (object->state && !m->states)
            continue;
        m->n++;
        *f = (struct ks_found){.object = object, .line = ks_map_find(map, object->name)};
        KS_TRY(find_sources(m, f));
    }
    find_ignored(m);
    return KS_OK;
}

void ks_match_clear(struct ks_match *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->found[i].list);
    free(m->found);
    free(m->uses);
    *m = (struct ks_match){.n = 0};
}
