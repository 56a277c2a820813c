#include "import/map.h"

#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "import/glob.h"
#include "net/arch.h"

struct reader {
    struct ks_map *map;
    struct ks_line line;
    bool has_layout;
};

static ks_status add(struct reader *r, const char *object, const char *glob)
{
    struct ks_map *map = r->map;
    struct ks_map_line *at;

    if (!ks_glob_valid(glob))
        return ks_line_fail(&r->line, "expected a name with at most %d wildcards, found '%s'",
                            KS_GLOB_WILDCARDS, glob);
    if (object && ks_map_find(map, object))
        return ks_line_fail(&r->line, "%s has a second line; its first is line %zu", object,
                            ks_map_find(map, object)->number);
    KS_TRY(ks_grow(map->n, sizeof *map->line, &map->room, &map->line));
    at = &map->line[map->n++];
    *at = (struct ks_map_line){.number = r->line.number};
    if (object)
        KS_TRY(ks_copy_string(object, &at->object));
    return ks_copy_string(glob, &at->glob);
}

static ks_status set_layout(struct reader *r, const char *value)
{
    if (r->has_layout)
        return ks_line_fail(&r->line, "layout is given twice");
    if (strcmp(value, "torch") != 0 && strcmp(value, "flax") != 0)
        return ks_line_fail(&r->line, "layout: expected torch or flax, found '%s'", value);
    r->map->torch = strcmp(value, "torch") == 0;
    r->has_layout = true;
    return KS_OK;
}

/* Reads a line: KEY = VALUE, KEY=VALUE or ignore NAME. */
static ks_status read_words(struct reader *r)
{
    char **word = r->line.word, *equals = strchr(word[0], '=');
    const char *key = word[0], *value = NULL;

    if (r->line.n_words == 2 && strcmp(word[0], "ignore") == 0)
        return add(r, NULL, word[1]);
    if (r->line.n_words == 3 && strcmp(word[1], "=") == 0)
        value = word[2];
    if (r->line.n_words == 1 && equals) {
        *equals = '\0';
        value = equals + 1;
    }
    if (!value || !*key || !*value)
        return ks_line_fail(&r->line, "expected 'NN_kind/ARRAY = NAME', 'layout = torch', 'layout "
                                      "= flax' or 'ignore NAME'");
    return strcmp(key, "layout") == 0 ? set_layout(r, value) : add(r, key, value);
}

static ks_status read_lines(struct ks_map *map, const char *text)
{
    struct reader r = {.map = map};
    size_t number = 0;

    for (const char *next = text; next; next = strchr(next, '\n')) {
        next += number > 0;
        KS_TRY(ks_line_split(&r.line, map->path, ++number, next));
        if (r.line.opens)
            return ks_line_fail(&r.line, "expected no '{'");
        if (r.line.n_words > 0)
            KS_TRY(read_words(&r));
    }
    if (!r.has_layout)
        return ks_fail(KS_FORMAT,
                       "%s: expected a line 'layout = torch' (kernels [out, in], as PyTorch stores "
                       "them) or 'layout = flax' ([in, out]), found none",
                       map->path);
    return KS_OK;
}

ks_status ks_map_read(const char *path, struct ks_map *map)
{
    char *text = NULL;
    ks_status status;

    *map = (struct ks_map){.path = NULL};
    KS_TRY(ks_copy_string(path, &map->path));
    KS_TRY(KS(arch_read)(path, &text));
    status = read_lines(map, text);
    free(text);
    return status;
}

void ks_map_clear(struct ks_map *map)
{
    for (size_t i = 0; i < map->n; i++) {
        free(map->line[i].object);
        free(map->line[i].glob);
    }
    free(map->line);
    free(map->path);
    *map = (struct ks_map){.path = NULL};
}

const struct ks_map_line *ks_map_find(const struct ks_map *map, const char *object)
{
    for (size_t i = 0; i < map->n; i++)
        if (map->line[i].object && strcmp(map->line[i].object, object) == 0)
            return &map->line[i];
    return NULL;
}
