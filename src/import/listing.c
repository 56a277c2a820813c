/* The listing of a match: what was taken, ignored, unused, ambiguous, missing. */
#include <stdarg.h>
#include <string.h>

#include "core/say.h"
#include "import/match.h"

enum { LINE = 2048, KEY = 128 };

struct listing {
    const struct ks_match *m;
    FILE *out; /* NULL: nothing is printed */
    struct ks_problems *problems;
};

/* Prints a line. If it is about a problem, `problem` is the counter of such problems, else NULL. */
__attribute__((format(printf, 3, 4))) static void say(struct listing *l, size_t *problem,
                                                      const char *format, ...)
{
    char line[LINE], escaped[LINE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (l->out)
        fprintf(l->out, "%s\n", ks_escape(line, sizeof escaped, escaped));
    if (!problem)
        return;
    ++*problem;
    if (!l->problems->first[0])
        snprintf(l->problems->first, sizeof l->problems->first, "%.500s", line);
}

/* Prints the parts of a source's name that are not the same in all sources. They tell one critic
 * from another. */
static void print_key(const struct ks_found *f, size_t i, char key[KEY])
{
    size_t used = 0;

    key[0] = '\0';
    for (size_t k = 0; k < f->list[i].parts.n; k++) {
        const size_t length = f->list[i].parts.part[k].length;
        bool same = true;

        for (size_t j = 0; j < f->n && same; j++)
            same = f->list[j].parts.part[k].length == length &&
                   memcmp(f->list[j].parts.part[k].start, f->list[i].parts.part[k].start, length) ==
                       0;
        if (!same && used + 1 < KEY)
            used += (size_t)snprintf(key + used, KEY - used, "%s%.*s", used > 0 ? "," : "",
                                     (int)length, f->list[i].parts.part[k].start);
    }
}

static void list_taken(struct listing *l, const struct ks_found *f)
{
    const bool kernel = f->object->n_dims == 2;
    char from[KS_STORED_SHAPE], to[KS_STORED_SHAPE];

    for (size_t i = 0; i < f->n; i++) {
        const struct ks_stored *s = f->list[i].stored;

        say(l, NULL, "taken      %s %s -> %s %s%s%s, source %zu of %zu", s->name,
            ks_stored_describe(s, from), f->object->name,
            ks_shape_print(f->object->n_dims, f->object->dims, to),
            kernel && l->m->map->torch ? ", transposed" : "",
            ks_real_bytes(s->real) == 2 ? ", widened" : "", i + 1, f->n);
    }
}

static void list_leftover(struct listing *l, size_t i)
{
    const struct ks_matching_lines *uses = &l->m->uses[i];
    const struct ks_stored *s = &l->m->weights->list[i];
    const char *path = l->m->map->path;
    char words[KS_STORED_SHAPE];

    ks_stored_describe(s, words);
    if (!uses->first)
        say(l, &l->problems->unused, "unused     %s %s", s->name, words);
    else if (uses->second)
        say(l, &l->problems->ambiguous, "ambiguous  %s %s: lines %zu and %zu of %s both match it",
            s->name, words, uses->first->number, uses->second->number, path);
    else if (!uses->first->object)
        say(l, NULL, "ignored    %s %s", s->name, words);
}

static void list_missing(struct listing *l, const struct ks_found *f)
{
    const char *path = l->m->map->path;
    char shape[KS_STORED_SHAPE];

    if (f->n > 0)
        return;
    ks_shape_print(f->object->n_dims, f->object->dims, shape);
    if (f->line)
        say(l, &l->problems->missing, "missing    %s %s: no array matches '%s' (%s:%zu)",
            f->object->name, shape, f->line->glob, path, f->line->number);
    else
        say(l, &l->problems->missing, "missing    %s %s: %s has no line for it", f->object->name,
            shape, path);
}

/* Every array must have as many sources as the first one, and the same parts of their names must
 * tell them apart. Otherwise a kernel of one critic might meet a bias of another. */
static void list_mismatch(struct listing *l, const struct ks_found *first, const struct ks_found *f)
{
    char a[KEY], b[KEY];

    if (f->n == 0 || first->n == 0)
        return;
    if (f->n != first->n) {
        say(l, &l->problems->ambiguous,
            "ambiguous  %s: '%s' matches %zu arrays, but '%s' of %s matches %zu", f->object->name,
            f->line->glob, f->n, first->line->glob, first->object->name, first->n);
        return;
    }
    for (size_t i = 0; f->n > 1 && i < f->n; i++) {
        print_key(first, i, a);
        print_key(f, i, b);
        if (strcmp(a, b) == 0)
            continue;
        say(l, &l->problems->ambiguous,
            "ambiguous  %s: source %zu of '%s' is '%s', but source %zu of '%s' is '%s'",
            f->object->name, i + 1, f->line->glob, b, i + 1, first->line->glob, a);
        return;
    }
}

void ks_match_list(const struct ks_match *m, FILE *out, struct ks_problems *problems)
{
    struct listing l = {.m = m, .out = out, .problems = problems};

    say(&l, NULL, "%s: %s, %zu arrays", m->weights->path, m->weights->format->name, m->weights->n);
    for (size_t i = 0; i < m->n; i++)
        list_taken(&l, &m->found[i]);
    for (size_t i = 0; i < m->weights->n; i++)
        list_leftover(&l, i);
    for (size_t i = 0; i < m->n; i++)
        list_missing(&l, &m->found[i]);
    for (size_t i = 1; i < m->n; i++)
        list_mismatch(&l, &m->found[0], &m->found[i]);
}
