#include "train/run.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "config.h"
#include "core/blas.h"
#include "env/env.h"

static json_t *describe_setting(const struct ks_settings *settings, const struct ks_key *key)
{
    char text[KS_VALUE_LENGTH];
    double number;

    if (ks_key_number(key, settings, &number))
        return key->type == KS_KEY_NUMBER ? json_real(number) : json_integer((json_int_t)number);
    ks_key_print(key, settings, text);
    return json_string(text);
}

enum { SHOWN = 80 }; /* characters of a value in a message */

json_t *ks_fingerprint(const struct ks_plan *p)
{
    const struct ks_train_options *o = p->options;
    json_t *settings = json_object(), *all;
    bool whole = true;

    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (strcmp(key->name, "threads") != 0)
            json_object_set_new(settings, key->name, describe_setting(&o->settings, key));
    all = json_pack("{s:s, s:s, s:I, s:I, s:o}", "env", p->task, "architecture", p->name, "seed",
                    (json_int_t)o->seed, "steps", (json_int_t)o->steps, "settings", settings);
    for (size_t k = 0; k < KS_TEXTS; k++)
        whole = whole && (!p->text[k] ||
                          json_object_set_new(all, ks_text_names[k], json_string(p->text[k])) == 0);
    whole = whole && (!p->task_identity ||
                      json_object_set_new(all, "task", json_string(p->task_identity)) == 0);
    if (whole)
        return all;
    json_decref(all);
    return NULL;
}

/* Where to begin to print two texts that start alike: at the first line that differs.
 * Lines end with a backslash and an n in JSON. */
static size_t find_difference(const char *a, const char *b)
{
    size_t line = 0, i = 0;

    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\\' && a[i + 1] == 'n' && b[i + 1] == 'n')
            line = i + 2;
    return i < SHOWN ? 0 : line;
}

/* Compares a single value; `found` NULL: it is missing. */
static ks_status compare_value(const char *path, const char *what, const char *name,
                               const json_t *found, const json_t *want)
{
    /* Decimal numbers of 15 digits are the same after printing and parsing, so the settings of a
     * file can be compared with those of the command line as text. */
    size_t flags = JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(15);
    KS_OWNED char *found_text = found ? json_dumps(found, flags) : NULL,
                  *want_text = json_dumps(want, flags);
    bool same = found_text && want_text && strcmp(found_text, want_text) == 0;
    size_t from = found_text && want_text ? find_difference(want_text, found_text) : 0;

    return same ? KS_OK
                : ks_fail(KS_USAGE, "%s: %s: expected %s %.*s, found %.*s", path, what, name, SHOWN,
                          want_text ? want_text + from : "?", SHOWN,
                          found_text ? found_text + from : "none");
}

/* Compares each setting separately, so that the message names the one that differs. */
static ks_status compare_all(const char *path, const char *what, json_t *found, json_t *want)
{
    const char *name;
    json_t *value;

    json_object_foreach(want, name, value)
    {
        json_t *other = json_object_get(found, name);

        if (json_is_object(value))
            KS_TRY(compare_all(path, what, other, value));
        else
            KS_TRY(compare_value(path, what, name, other, value));
    }
    return KS_OK;
}

static void fill_defaults(json_t *settings)
{
    struct ks_settings defaults;

    ks_settings_defaults(&defaults);
    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (!json_object_get(settings, key->name))
            json_object_set_new(settings, key->name, describe_setting(&defaults, key));
}

/* A newer version of the program may have written a setting whose effect is not known here. */
static ks_status refuse_unknown(const char *path, const char *what, json_t *settings)
{
    const char *name;
    json_t *value;

    json_object_foreach(settings, name, value)
    {
        if (!ks_key_find(ks_keys, name))
            return ks_fail(KS_USAGE, "%s: %s: this version of the program has no setting '%.80s'",
                           path, what, name);
    }
    return KS_OK;
}

/* What only some runs have: `found` must not have it where `want` has none. */
static ks_status refuse_additions(const char *path, const char *what, const json_t *found,
                                  const json_t *want)
{
    for (size_t k = KS_OPTIMIST_TEXT; k <= KS_TEXTS; k++) {
        const char *name = k < KS_TEXTS ? ks_text_names[k] : "task";

        if (json_object_get(found, name) && !json_object_get(want, name))
            return ks_fail(KS_USAGE, "%s: %s: expected no %s, found one", path, what, name);
    }
    return KS_OK;
}

ks_status ks_fingerprint_compare(const struct ks_plan *p, const char *path, const char *what,
                                 json_t *found)
{
    json_auto_t *want = ks_fingerprint(p);
    json_t *settings = json_object_get(found, "settings");

    if (!want)
        return ks_fail(KS_USAGE, "%s: a name or a description of the run is not valid UTF-8", path);
    KS_TRY(refuse_unknown(path, what, settings));
    if (json_is_object(settings))
        fill_defaults(settings);
    KS_TRY(compare_all(path, what, found, want));
    return refuse_additions(path, what, found, want);
}

/* Resume points from before this condition existed: blas. */
static const char PRODUCTS[] = "products";

/* Only recorded: OpenBLAS selects the same kernel on processors of several names. */
static const char PROCESSOR[] = "processor";

ks_status ks_conditions_init(const struct ks_agent_config *config, const char *mujoco_flags,
                             const char *opengl, struct ks_conditions *c)
{
    c->changes = json_array();
    c->now = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "threads", config->threads,
                       "kappascope", KS_BUILD, "blas", ks_blas_version(), "blas_kernel",
                       ks_blas_kernel(), PRODUCTS, ks_products_names[config->products], "mujoco",
                       ks_env_mujoco_version(), "mujoco_flags", mujoco_flags, PROCESSOR,
                       ks_processor_name());
    return c->now && c->changes &&
                   (!opengl || json_object_set_new(c->now, "opengl", json_string(opengl)) == 0)
               ? KS_OK
               : ks_fail(KS_MEMORY, "out of memory: describing the conditions of a run");
}

void ks_conditions_free(struct ks_conditions *c)
{
    json_decref(c->now);
    json_decref(c->changes);
}

ks_status ks_conditions_compare(const struct ks_conditions *c, const char *path, json_t *found,
                                bool any)
{
    const char *name;
    char text[1024];
    json_t *value;

    if (!json_object_get(found, PRODUCTS))
        json_object_set_new(found, PRODUCTS, json_string(ks_products_names[KS_PRODUCTS_BLAS]));
    json_object_foreach(c->now, name, value)
    {
        ks_status status;

        if (any || strcmp(name, PROCESSOR) == 0)
            continue;
        status = compare_value(path, "--resume needs what the run was started with", name,
                               json_object_get(found, name), value);
        if (status == KS_OK)
            continue;
        snprintf(text, sizeof text, "%s", ks_error_text());
        return ks_fail(status, "%s; --resume=any accepts that and notes it in run.json", text);
    }
    return KS_OK;
}

/* A condition that an older resume point does not contain is not known to have changed. */
ks_status ks_conditions_continue(struct ks_conditions *c, const json_t *found, bool any,
                                 size_t env_step)
{
    json_t *earlier = json_object_get(found, "changes"), *value;
    const char *name;

    json_decref(c->changes);
    c->changes = json_is_array(earlier) ? json_incref(earlier) : json_array();
    json_object_foreach(c->now, name, value)
    {
        json_t *before = json_object_get(found, name), *change;

        if (!any || !before || json_equal(before, value))
            continue;
        change = json_pack("{s:I, s:s, s:O, s:O}", "env_step", (json_int_t)env_step, "what", name,
                           "from", before, "to", value);
        if (json_array_append_new(c->changes, change) != 0)
            return ks_fail(KS_MEMORY, "out of memory: recording changed conditions");
    }
    return c->changes ? KS_OK : ks_fail(KS_MEMORY, "out of memory: reading changed conditions");
}
