#include "study/changes.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "core/memory.h"

/* Skips an entry unless it has all of its four parts. */
static void print_change(const json_t *change, size_t before, FILE *out)
{
    const char *what = json_string_value(json_object_get(change, "what"));
    json_t *step = json_object_get(change, "env_step");
    char *from = json_dumps(json_object_get(change, "from"), JSON_ENCODE_ANY);
    char *to = json_dumps(json_object_get(change, "to"), JSON_ENCODE_ANY);

    if (what && json_is_integer(step) && from && to)
        fprintf(out, "%sfrom environment step %lld on, %s was %s, is %s", before > 0 ? "; " : "",
                (long long)json_integer_value(step), what, from, to);
    free(from);
    free(to);
}

ks_status ks_changes_read(const char *dir, const char *folder, char **text)
{
    char *path = NULL;
    json_t *run, *changes;
    size_t size = 0;
    FILE *out;

    *text = NULL;
    KS_TRY(ks_print_string(&path, "%s/%s/run.json", dir, folder));
    run = json_load_file(path, 0, NULL);
    free(path);
    changes = json_object_get(run, "changes");
    out = open_memstream(text, &size);
    for (size_t i = 0; out && i < json_array_size(changes); i++)
        print_change(json_array_get(changes, i), (size_t)ftell(out), out);
    json_decref(run);
    return out && fclose(out) == 0
               ? KS_OK
               : ks_fail(KS_MEMORY, "%s/%s/run.json: out of memory", dir, folder);
}
