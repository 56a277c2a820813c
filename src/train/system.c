#include "train/architecture.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"

const char KS_SYSTEM_ENDING[] = ".system";

const char *const ks_text_names[KS_TEXTS] = {
    [KS_CRITIC_TEXT] = "critic",
    [KS_ACTOR_TEXT] = "actor",
    [KS_OPTIMIST_TEXT] = "optimist",
    [KS_ENCODER_TEXT + KS_STATE_MODULE] = "encoder_state",
    [KS_ENCODER_TEXT + KS_ACTION_MODULE] = "encoder_action",
    [KS_ENCODER_TEXT + KS_PAIR_MODULE] = "encoder_pair",
    [KS_ENCODER_TEXT + KS_MODEL_MODULE] = "encoder_model",
    [KS_PIXELS_TEXT + KS_IMAGE] = "image",
    [KS_PIXELS_TEXT + KS_TRUNK] = "trunk",
};

void ks_texts_free(char *text[KS_TEXTS])
{
    for (size_t k = 0; k < KS_TEXTS; k++) {
        free(text[k]);
        text[k] = NULL;
    }
}

struct system {
    const char *path;
    char *file[KS_TEXTS]; /* paths, relative to the file's folder; owned */
    struct ks_settings *settings;
    ks_status status;
};

static ks_status take(struct system *s, const char *section, const char *key, const char *value)
{
    size_t k = 0;

    while (k < KS_TEXTS && strcmp(key, ks_text_names[k]) != 0)
        k++;
    if (strcmp(section, "train") == 0)
        return ks_settings_set(s->settings, key, value);
    if (strcmp(section, "system") != 0)
        return ks_fail(KS_FORMAT, "expected [system] or [train]");
    if (k == KS_TEXTS)
        return ks_fail(KS_FORMAT, "expected critic, actor, optimist, encoder_state, "
                                  "encoder_action, encoder_pair, encoder_model, image or trunk");
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

/* Whether the system has a file of these kinds. */
static bool has(const struct system *s, size_t from, size_t to)
{
    while (from < to && !s->file[from])
        from++;
    return from < to;
}

/* The first file that the system lacks: of an encoder, and of image and trunk, there are all or
 * none. KS_TEXTS: none is missing. */
static size_t missing(const struct system *s)
{
    const bool encoder = has(s, KS_ENCODER_TEXT, KS_PIXELS_TEXT);
    const bool pixels = has(s, KS_PIXELS_TEXT, KS_TEXTS);

    for (size_t k = 0; k < KS_TEXTS; k++) {
        const bool needed = k < KS_OPTIMIST_TEXT  ? true
                            : k < KS_ENCODER_TEXT ? false
                            : k < KS_PIXELS_TEXT  ? encoder
                                                  : pixels;

        if (needed && !s->file[k])
            return k;
    }
    return KS_TEXTS;
}

static void system_clear(struct system *s)
{
    ks_texts_free(s->file);
}

/* The caller clears, also after a failure. */
static ks_status read(const char *path, struct ks_settings *settings, struct system *s)
{
    KS_OWNED char *text = NULL;
    int line;

    *s = (struct system){.path = path, .settings = settings};
    KS_TRY(ks_text_read(path, &text, NULL));
    line = ini_parse_string(text, handle, s);
    KS_TRY(s->status);
    if (line > 0)
        return ks_fail(KS_FORMAT, "%s:%d: expected a section, KEY = VALUE or a comment", path,
                       line);
    if (line < 0)
        return ks_fail(KS_MEMORY, "%s: out of memory", path);
    if (has(s, KS_ENCODER_TEXT, KS_PIXELS_TEXT) && has(s, KS_PIXELS_TEXT, KS_TEXTS))
        return ks_fail(KS_FORMAT, "%s: expected an encoder, or image and trunk, found both", path);
    return missing(s) == KS_TEXTS ? KS_OK
                                  : ks_fail(KS_FORMAT, "%s: expected %s in [system], found none",
                                            path, ks_text_names[missing(s)]);
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
    return ks_path_ends(name, KS_SYSTEM_ENDING);
}

ks_status ks_system_find(const char *name, char **path)
{
    KS_OWNED char *relative = NULL;
    ks_status status;

    *path = NULL;
    if (ks_system_is_file(name))
        return ks_copy_string(name, path);
    if (!is_plain(name))
        return KS_OK;
    KS_TRY(ks_print_string(&relative, "configs/systems/%s%s", name, KS_SYSTEM_ENDING));
    status = ks_installed_shared(relative, path);
    return status == KS_MISSING ? KS_OK : status;
}

ks_status ks_system_settings(const char *path, struct ks_settings *settings)
{
    KS_CLEARED_BY(system_clear) struct system s = {.path = path};

    return read(path, settings, &s);
}

/* Description k, from the file that is named relative to the system's folder. An actor's last layer
 * has a multiple of the number of actions as its outputs: 2A for means and deviations, else A. */
static ks_status read_description(const struct system *s, enum ks_network_text k, size_t actions,
                                  char **text)
{
    const int folder = (int)(ks_path_base(s->path) - s->path);
    const bool gaussian = k == KS_ACTOR_TEXT && !has(s, KS_ENCODER_TEXT, KS_TEXTS);
    const char *name = s->file[k], *last = gaussian ? "dense 2A" : "dense A", *at;
    KS_OWNED char *path = NULL, *template = NULL;

    KS_TRY(ks_print_string(&path, "%.*s%s", *name == '/' ? 0 : folder, s->path, name));
    if (k != KS_ACTOR_TEXT && k != KS_OPTIMIST_TEXT)
        return KS(arch_read)(path, text);
    KS_TRY(KS(arch_read)(path, &template));
    at = strstr(template, last);
    if (!at || strstr(at + 1, last))
        return ks_fail(KS_FORMAT, "%s: %s: expected one line '%s', found %s", s->path, name, last,
                       at ? "more" : "none");
    return ks_print_string(text, "%.*sdense %zu%s", (int)(at - template), template,
                           gaussian ? 2 * actions : actions, at + strlen(last));
}

ks_status ks_system_describe(const char *path, size_t actions, char *text[KS_TEXTS])
{
    struct ks_settings unused;
    KS_CLEARED_BY(system_clear) struct system s = {.path = path};

    ks_settings_defaults(&unused);
    KS_TRY(read(path, &unused, &s));
    for (size_t k = 0; k < KS_TEXTS; k++)
        if (s.file[k])
            KS_TRY(read_description(&s, (enum ks_network_text)k, actions, &text[k]));
    return KS_OK;
}
