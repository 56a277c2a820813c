#include "train/system.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/text.h"
#include "net/arch.h"

static const char ENDING[] = ".system";

enum { CRITIC, ACTOR, OPTIMIST, ENCODER, FILES = ENCODER + KS_PARTS };
static const char *const keys[FILES] = {
    [CRITIC] = "critic",
    [ACTOR] = "actor",
    [OPTIMIST] = "optimist",
    [ENCODER + KS_STATE_PART] = "encoder_state",
    [ENCODER + KS_ACTION_PART] = "encoder_action",
    [ENCODER + KS_PAIR_PART] = "encoder_pair",
    [ENCODER + KS_MODEL_PART] = "encoder_model",
};

struct system {
    const char *path;
    char *file[FILES]; /* paths, relative to the file's folder; owned */
    struct ks_settings *settings;
    ks_status status;
};

static ks_status take(struct system *s, const char *section, const char *key, const char *value)
{
    size_t k = 0;

    while (k < FILES && strcmp(key, keys[k]) != 0)
        k++;
    if (strcmp(section, "train") == 0)
        return ks_settings_set(s->settings, key, value);
    if (strcmp(section, "system") != 0)
        return ks_fail(KS_FORMAT, "expected [system] or [train]");
    if (k == FILES)
        return ks_fail(KS_FORMAT, "expected critic, actor, optimist, encoder_state, "
                                  "encoder_action, encoder_pair or encoder_model");
    if (s->file[k] || !*value)
        return ks_fail(KS_FORMAT, "expected one file, found %s", s->file[k] ? "two" : "none");
    return ks_copy_string(value, &s->file[k]);
}

/* Keeps the first failure, with its place. */
static int handle(void *user, const char *section, const char *key, const char *value)
{
    struct system *s = user;
    char message[600];
    ks_status status;

    if (s->status != KS_OK)
        return 0;
    status = take(s, section, key, value);
    if (status == KS_OK)
        return 1;
    snprintf(message, sizeof message, "%s", ks_error_text());
    s->status = ks_fail(status, "%s: [%s] %s: %s", s->path, section, key, message);
    return 0;
}

static void clear(struct system *s)
{
    for (size_t k = 0; k < FILES; k++)
        free(s->file[k]);
}

/* The first file that the system lacks: all parts of an encoder or none. FILES: none is missing. */
static size_t missing(const struct system *s)
{
    bool encoder = false;

    for (size_t k = ENCODER; k < FILES; k++)
        encoder = encoder || s->file[k];
    for (size_t k = 0; k < FILES; k++)
        if (!s->file[k] && k != OPTIMIST && (k < ENCODER || encoder))
            return k;
    return FILES;
}

/* The caller ends with clear, also after a failure. */
static ks_status read(const char *path, struct ks_settings *settings, struct system *s)
{
    char *text = NULL;
    size_t size;
    int line;

    *s = (struct system){.path = path, .settings = settings};
    KS_TRY(ks_text_read(path, &text, &size));
    if (strlen(text) != size) {
        free(text);
        return ks_fail(KS_FORMAT, "%s: expected text, found a zero byte", path);
    }
    line = ini_parse_string(text, handle, s);
    free(text);
    KS_TRY(s->status);
    if (line > 0)
        return ks_fail(KS_FORMAT, "%s:%d: expected a section, KEY = VALUE or a comment", path,
                       line);
    if (line < 0)
        return ks_fail(KS_MEMORY, "%s: out of memory", path);
    return missing(s) == FILES ? KS_OK
                               : ks_fail(KS_FORMAT, "%s: expected %s in [system], found none", path,
                                         keys[missing(s)]);
}

static bool is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+-_.", *c))
            return false;
    return isalnum((unsigned char)*name);
}

bool ks_system_is_file(const char *name)
{
    return ks_path_ends(name, ENDING);
}

ks_status ks_system_find(const char *name, char **path)
{
    char *relative = NULL;
    ks_status status;

    *path = NULL;
    if (ks_system_is_file(name))
        return ks_copy_string(name, path);
    if (!is_plain(name))
        return KS_OK;
    KS_TRY(ks_print_string(&relative, "configs/systems/%s%s", name, ENDING));
    status = ks_installed_shared(relative, path);
    free(relative);
    return status == KS_MISSING ? KS_OK : status;
}

/* The block holds the pointers and behind them the names. */
static ks_status copy_names(const glob_t *found, char ***names)
{
    const size_t n = found->gl_pathc, pointers = (n + 1) * sizeof **names;
    size_t bytes = pointers, used = 0;
    char *text;

    for (size_t i = 0; i < n; i++)
        bytes += strlen(ks_path_base(found->gl_pathv[i])) + 1;
    KS_TRY(ks_alloc(bytes, 1, names));
    text = (char *)*names + pointers;
    for (size_t i = 0; i < n; i++) {
        const char *base = ks_path_base(found->gl_pathv[i]);
        size_t length = ks_path_stem(base, ENDING);

        (*names)[i] = memcpy(text + used, base, length);
        used += length + 1;
    }
    return KS_OK;
}

ks_status ks_system_list(char ***names)
{
    char *folder = NULL, *pattern = NULL;
    glob_t found = {.gl_pathc = 0};
    ks_status status = KS_OK;

    *names = NULL;
    KS_GO(ks_installed_shared("configs/systems", &folder));
    KS_GO(ks_print_string(&pattern, "%s/*%s", folder, ENDING));
    if (glob(pattern, 0, NULL, &found) != 0) {
        status = ks_fail(KS_MISSING, "%s: no system is there", folder);
        goto done;
    }
    KS_GO(copy_names(&found, names));
done:
    globfree(&found);
    free(folder);
    free(pattern);
    return status;
}

ks_status ks_system_settings(const char *path, struct ks_settings *settings)
{
    struct system s;
    ks_status status = read(path, settings, &s);

    clear(&s);
    return status;
}

/* The text of a description that is named relative to the system's folder. */
static ks_status read_description(const struct system *s, const char *name, char **text)
{
    const int folder = (int)(ks_path_base(s->path) - s->path);
    char *path = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%.*s%s", *name == '/' ? 0 : folder, s->path, name));
    status = KS(arch_read)(path, text);
    free(path);
    return status;
}

/* The number of outputs of an actor's last layer, which its description writes as multiples of the
 * number of actions. */
struct last_layer {
    const char *line;
    size_t outputs;
};

/* *text = the description `name` with that number. */
static ks_status fill(const struct system *s, const char *name, const struct last_layer *last,
                      char **text)
{
    char *template = NULL, *at;
    ks_status status;

    KS_TRY(read_description(s, name, &template));
    at = strstr(template, last->line);
    if (!at || strstr(at + 1, last->line))
        status = ks_fail(KS_FORMAT, "%s: %s: expected one line '%s', found %s", s->path, name,
                         last->line, at ? "more" : "none");
    else
        status = ks_print_string(text, "%.*sdense %zu%s", (int)(at - template), template,
                                 last->outputs, at + strlen(last->line));
    free(template);
    return status;
}

ks_status ks_system_describe(const char *path, size_t actions, char **critic, char **actor)
{
    struct ks_settings unused;
    struct system s;
    ks_status status = KS_OK;

    *critic = *actor = NULL;
    ks_settings_defaults(&unused);
    KS_GO(read(path, &unused, &s));
    KS_GO(read_description(&s, s.file[CRITIC], critic));
    if (s.file[ENCODER])
        KS_GO(fill(&s, s.file[ACTOR], &(struct last_layer){"dense A", actions}, actor));
    else
        KS_GO(fill(&s, s.file[ACTOR], &(struct last_layer){"dense 2A", 2 * actions}, actor));
done:
    clear(&s);
    return status;
}

ks_status ks_system_describe_optimist(const char *path, size_t actions, char **optimist)
{
    struct ks_settings unused;
    struct system s;
    ks_status status = KS_OK;

    *optimist = NULL;
    ks_settings_defaults(&unused);
    KS_GO(read(path, &unused, &s));
    if (s.file[OPTIMIST])
        KS_GO(fill(&s, s.file[OPTIMIST], &(struct last_layer){"dense A", actions}, optimist));
done:
    clear(&s);
    return status;
}

ks_status ks_system_describe_encoder(const char *path, char *encoder[KS_PARTS])
{
    struct ks_settings unused;
    struct system s;
    ks_status status = KS_OK;

    for (size_t k = 0; k < KS_PARTS; k++)
        encoder[k] = NULL;
    ks_settings_defaults(&unused);
    KS_GO(read(path, &unused, &s));
    for (size_t k = 0; k < KS_PARTS && s.file[ENCODER]; k++)
        KS_GO(read_description(&s, s.file[ENCODER + k], &encoder[k]));
done:
    clear(&s);
    return status;
}
