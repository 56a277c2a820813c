/* Models: read from a file, edited as XML, and compiled from memory.
 *
 * The edited text is put into MuJoCo's virtual file system under a name next to the original
 * file's, so that relative paths in it (includes, meshes) resolve. No file is written, so the
 * folder may be read-only. Tested with MuJoCo 3.1.6, 3.3.7, 3.17.0 and 4.0.0. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <expat.h>

#include "core/memory.h"
#include "core/process.h"
#include "env/domain.h"
#include "io/file.h"

/* MuJoCo with a limited address space (ulimit -v). A failed allocation in its model compiler throws
 * an uncaught exception, which ends the process. So a child process compiles first: if it dies, the
 * program can report an error instead. */

/* Waits for the child; returns its wait status. */
static int wait_for(pid_t child)
{
    int result = 0;

    while (waitpid(child, &result, 0) < 0)
        if (errno != EINTR)
            return 0;
    return result;
}

/* Fails with KS_MEMORY: "WHAT: MuJoCo is out of memory: WORDS", and the address space left, if
 * limited. */
static ks_status fail_for_memory(const char *what, const char *words)
{
    double left = ks_memory_left_by_limits("");

    if (isinf(left))
        return ks_fail(KS_MEMORY, "%s: MuJoCo is out of memory: %s", what, words);
    return ks_fail(KS_MEMORY,
                   "%s: MuJoCo is out of memory: %s; the limit of this process's address space "
                   "(ulimit -v) leaves %.0f MiB, which is too little",
                   what, words, floor(left / (1 << 20)));
}

/* If this process's address space is limited, first runs work(argument) in a child process, without
 * output: KS_MEMORY if a signal ends the child, as happens when MuJoCo runs out of memory. `what`
 * is the file name for the message. */
static ks_status try_in_child(void (*work)(void *argument), void *argument, const char *what)
{
    const struct rlimit none = {0, 0};
    pid_t child;
    int null;

    if (isinf(ks_memory_left_by_limits("")))
        return KS_OK;
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &none);
        null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        _exit(ks_physics_guard(work, argument) == KS_OK ? 0 : 1);
    }
    if (child > 0 && WIFSIGNALED(wait_for(child)))
        return fail_for_memory(what, "it aborted");
    return KS_OK;
}

/* Whether a message of the library is about a failed allocation. */
static bool is_about_memory(const char *words)
{
    return strstr(words, "allocat") || strstr(words, "alloc:");
}

/* The package whose models are used: the one that the suite's environment variable names, the one
 * installed with the program, or the one that the build used; NULL if there is none. The caller
 * frees *folder.
 */
static ks_status find_package(const struct ks_env_suite *suite, char **folder)
{
    const char *chosen = getenv(suite->variable);
    KS_OWNED char *bundled = NULL;

    *folder = NULL;
    if (chosen && *chosen)
        return ks_copy_string(chosen, folder);
    if (!suite->built)
        return KS_OK;
    KS_TRY(ks_print_string(&bundled, "../lib/kappascope/%s", suite->package));
    KS_TRY(ks_installed_find(bundled, folder));
    return *folder ? KS_OK : ks_copy_string(suite->built, folder);
}

/* --- edits --- */

enum { SIZE = 100 }; /* of the text of an attribute */

/* A copy of a model's text without some elements, or with another attribute `size` of them. */
struct copy {
    XML_Parser parser;
    const struct ks_env_removal *what;
    const char *size; /* the attribute's text; NULL: the elements are removed */
    char *text;
    size_t length, room; /* of the text so far, and at most                             */
    size_t depth;        /* of elements within the one that is removed; 0: none is      */
    size_t found;
    bool overflows;
};

static void copy_clear(struct copy *c)
{
    XML_ParserFree(c->parser);
    free(c->text);
}

static bool is_meant(const struct ks_env_removal *what, const char *tag, const char **attributes)
{
    if (strcmp(tag, what->tag) != 0 || !what->name)
        return strcmp(tag, what->tag) == 0;
    for (; *attributes; attributes += 2)
        if ((strcmp(attributes[0], "name") == 0 || strcmp(attributes[0], "file") == 0) &&
            strcmp(attributes[1], what->name) == 0)
            return true;
    return false;
}

static void append(struct copy *c, const char *text, size_t length)
{
    c->overflows = c->overflows || length > c->room - c->length;
    if (c->overflows)
        return;
    memcpy(c->text + c->length, text, length);
    c->length += length;
}

static void append_attribute(struct copy *c, const char *name, const char *value)
{
    append(c, " ", 1), append(c, name, strlen(name));
    append(c, "=\"", 2), append(c, value, strlen(value)), append(c, "\"", 1);
}

/* expat passes all markup and text as they stand in the file, but in UTF-8. */
static void XMLCALL take(void *argument, const char *text, int length)
{
    struct copy *c = argument;

    if (c->depth == 0)
        append(c, text, (size_t)length);
}

/* An element without content, with the other size. A model that MuJoCo reads has no attributes with
 * characters that XML escapes; of others it says that it cannot read them. */
static void take_resized(struct copy *c, const char *tag, const char **attributes)
{
    append(c, "<", 1), append(c, tag, strlen(tag));
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], "size") != 0)
            append_attribute(c, attributes[0], attributes[1]);
    append_attribute(c, "size", c->size);
    append(c, "/>", 2);
}

static void XMLCALL start(void *argument, const char *tag, const char **attributes)
{
    struct copy *c = argument;

    if (c->depth > 0) {
        c->depth++;
    } else if (is_meant(c->what, tag, attributes)) {
        c->depth = 1;
        c->found++;
        if (c->size)
            take_resized(c, tag, attributes);
    } else {
        XML_DefaultCurrent(c->parser);
    }
}

static void XMLCALL end(void *argument, const char *tag)
{
    struct copy *c = argument;

    (void)tag;
    if (c->depth == 0)
        XML_DefaultCurrent(c->parser);
    else
        c->depth--;
}

/* Removes the elements from *text; or sets their attribute `size` to `resized`. KS_FORMAT if `must`
 * and the model has no element of that name. */
static ks_status edit(const char *path, const struct ks_env_removal *what, bool must,
                      const char *resized, char **text, size_t *size)
{
    KS_CLEARED_BY(copy_clear)
    struct copy c = {.parser = XML_ParserCreate(NULL), .what = what, .size = resized};

    if (!c.parser)
        return ks_fail(KS_MEMORY, "%s: out of memory", path);
    c.room = 2 * (*size + SIZE); /* Latin-1 has at most twice the bytes in UTF-8 */
    KS_TRY(ks_alloc(c.room + 1, 1, &c.text));
    XML_SetUserData(c.parser, &c);
    XML_SetElementHandler(c.parser, start, end);
    XML_SetDefaultHandler(c.parser, take);
    if (*size > INT_MAX / 2 || XML_Parse(c.parser, *text, (int)*size, true) != XML_STATUS_OK)
        return ks_fail(KS_FORMAT, "%s: not a well-formed XML file", path);
    if (c.overflows)
        return ks_fail(KS_FORMAT, "%s: %s: expected attributes without entities", path, what->tag);
    if (c.found == 0 && what->name && must)
        return ks_fail(KS_FORMAT, "%s: no %s named '%s'", path, what->tag, what->name);
    free(*text);
    *text = c.text, c.text = NULL;
    *size = c.length;
    return KS_OK;
}

/* --- compilation --- */

struct compilation {
    const char *path;
    const mjVFS *files;
    mjModel *model;
    char error[1000];
};

static void compile(void *argument)
{
    struct compilation *c = argument;

    c->model = ks_mj.loadXML(c->path, c->files, c->error, sizeof c->error);
}

/* The XML of a model, `length` bytes; NULL: the file is read as it is. */
struct source {
    const char *text;
    int length;
    const char *hint; /* what to do if it cannot be loaded */
};

static ks_status compile_model(const char *path, const struct source *source, mjModel **model)
{
    ks_status status = KS_OK;
    struct compilation c = {.path = path};
    mjVFS *files = NULL; /* 2 MB before version 3.2: too large for the stack */

    KS_TRY(ks_alloc(1, sizeof *files, &files));
    ks_mj.defaultVFS(files);
    if (source->text && ks_mj.addBufferVFS(files, path, source->text, source->length) != 0) {
        status = ks_fail(KS_RUN, "%s: MuJoCo does not accept the edited model", path);
        goto done;
    }
    c.files = files;
    KS_GO(try_in_child(compile, &c, path));
    KS_GO(ks_physics_guard(compile, &c));
    c.error[strcspn(c.error, "\n")] = '\0';
    if (!c.model && is_about_memory(c.error)) {
        status = fail_for_memory(path, c.error);
    } else if (!c.model) {
        status = ks_fail(KS_MISSING, "%s: MuJoCo %s cannot load it: %s; %s", path,
                         ks_mj.versionString(), c.error, source->hint);
    }
done:
    ks_mj.deleteVFS(files);
    free(files);
    *model = c.model;
    return status;
}

/* Makes the floor as large as an episode at the task's speed needs: planes are infinite for
 * collisions, but not in pictures. Tasks without a speed have one of 1 m/s. */
static ks_status resize_floor(const struct ks_env_task *task, const char *path, char **text,
                              size_t *size)
{
    static const struct ks_env_removal floor = {"geom", "floor"};
    const double half = task->domain->floor.seconds * (task->goal > 0 ? task->goal : 1);
    char words[SIZE];

    if (!(half > 0))
        return KS_OK;
    snprintf(words, sizeof words, "%.17g %.17g %.17g", half, half, task->domain->floor.grid);
    return edit(path, &floor, true, words, text, size);
}

static ks_status remove_elements(const char *path, const struct ks_env_removal *removed, bool must,
                                 char **text, size_t *size)
{
    for (; removed && removed->tag; removed++)
        KS_TRY(edit(path, removed, must, NULL, text, size));
    return KS_OK;
}

static ks_status edit_and_compile(const struct ks_env_task *task, bool drawn, const char *path,
                                  const char *hint, mjModel **model)
{
    KS_OWNED char *text = NULL;
    size_t size = 0;

    KS_TRY(ks_text_read(path, &text, &size));
    KS_TRY(remove_elements(path, task->domain->removed, true, &text, &size));
    if (!drawn)
        KS_TRY(remove_elements(path, task->domain->suite->sky, false, &text, &size));
    KS_TRY(resize_floor(task, path, &text, &size));
    return compile_model(path, &(struct source){text, (int)size, hint}, model);
}

/* What to do if a model is missing. The caller frees *hint. */
static ks_status advise(const struct ks_env_suite *suite, char **hint)
{
    if (!suite->built)
        return ks_print_string(hint, "set %s to the folder of %s", suite->variable, suite->source);
    return ks_print_string(hint, "run 'make %s', or set %s to a %s package", suite->target,
                           suite->variable, suite->package);
}

ks_status ks_env_load(const struct ks_env_task *task, bool drawn, mjModel **model)
{
    const struct ks_env_domain *domain = task->domain;
    const struct ks_env_suite *suite = domain->suite;
    KS_OWNED char *folder = NULL, *path = NULL, *hint = NULL;

    *model = NULL;
    KS_TRY(advise(suite, &hint));
    KS_TRY(find_package(suite, &folder));
    if (!folder)
        return ks_fail(KS_MISSING, "%s: its model is not installed with this program: %s",
                       task->name, hint);
    KS_TRY(ks_print_string(&path, "%s/%s/%s", folder, suite->models, domain->model.file));
    if (access(path, R_OK) != 0)
        return ks_fail(KS_MISSING, "%s: the model of %s does not exist: %s", path, task->name,
                       hint);
    return domain->removed || suite->sky
               ? edit_and_compile(task, drawn, path, hint, model)
               : compile_model(path, &(struct source){.hint = hint}, model);
}

/* --- elements of the compiled model --- */

ks_status ks_env_find_elements(struct ks_env *env)
{
    const char *const file = env->task->domain->model.file;
    const struct ks_env_element *e = env->task->domain->elements;

    for (size_t i = 0; e && e->name; i++, e++) {
        const int id = ks_mj.name2id(env->model, e->type, e->name);

        if (id < 0)
            return ks_fail(KS_FORMAT, "%s: no %s named '%s'", file, ks_mj.type2Str(e->type),
                           e->name);
        env->ids[i] = id;
        if (e->type != mjOBJ_SENSOR)
            continue;
        if (env->model->sensor_dim[id] != e->width)
            return ks_fail(KS_FORMAT, "%s: sensor '%s': expected %d values, found %d", file,
                           e->name, e->width, env->model->sensor_dim[id]);
        env->ids[i] = env->model->sensor_adr[id];
    }
    return KS_OK;
}
