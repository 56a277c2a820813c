#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "env/physics.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "config.h"
#include "core/process.h"

/* --- the library --- */

struct ks_mujoco ks_mj;

static const char *missing; /* a name that the library does not have; NULL: none */
static char failure[512];   /* why it cannot be loaded; "" if it is */
static bool no_room;        /* it does not fit into the address space */

/* Stores the address of a symbol in the pointer at `to`, whatever its type. */
static void find(void *library, const char *name, void *to)
{
    void *address = dlsym(library, name);

    if (!address)
        missing = name;
    memcpy(to, &address, sizeof address);
}

/* Whether the process cannot map as many bytes as the file has. The loader's message does not
 * distinguish that from a damaged file. */
static bool is_too_large(const char *path)
{
    struct stat file;
    void *room;

    if (stat(path, &file) != 0 || file.st_size <= 0)
        return false;
    room = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
    if (room == MAP_FAILED)
        return true;
    munmap(room, (size_t)file.st_size);
    return false;
}

/* Looks up everything in the library at `path`. */
static void load_from(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

#define FIND(prefix, name) find(library, #prefix #name, &ks_mj.name);
    if (library) {
        KS_MUJOCO_NAMES(FIND)
    }
    if (!library)
        strncpy(failure, dlerror(), sizeof failure - 1);
    else if (missing)
        snprintf(failure, sizeof failure, "%s: it does not have %s", path, missing);
    /* "cannot allocate memory" of the loader, or "Cannot allocate memory" of the system */
    no_room = !library && (strstr(failure, "llocate memory") || is_too_large(path));
}

/* The library installed with the program, or the one that the build used. */
static void load(void)
{
    KS_OWNED char *installed = NULL;

    if (ks_installed_find("../lib/kappascope/libmujoco.so", &installed) == KS_OK && installed)
        load_from(installed);
    else /* the name is empty if the build found no library; dlopen("") would open this program */
        load_from(*KS_LIBMUJOCO ? KS_LIBMUJOCO : "libmujoco.so");
}

ks_status ks_mujoco_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (no_room)
        return ks_fail(KS_MEMORY,
                       "MuJoCo's library cannot be loaded: %s: the limit of this process's address "
                       "space (ulimit -v) leaves too little room for it",
                       failure);
    if (failure[0])
        return ks_fail(KS_MISSING,
                       "MuJoCo's library cannot be loaded: %s; 'make deps' installs it, or set "
                       "MUJOCO_DIR and build again",
                       failure);
    return KS_OK;
}

/* --- errors and warnings --- */

enum { WORDS = 400 };
static _Thread_local jmp_buf *escape; /* where an error jumps to; NULL outside ks_physics_guard */
static _Thread_local char error_words[WORDS], warning_words[WORDS];

static void keep_line(char *words, const char *text)
{
    snprintf(words, WORDS, "%s", text);
    for (char *c = words; *c; c++)
        if (*c == '\n')
            *c = ' ';
    for (size_t n = strlen(words); n > 0 && words[n - 1] == ' ';)
        words[--n] = '\0';
}

static void on_warning(const char *text)
{
    keep_line(warning_words, text);
}

/* The library does not expect its error handler to return, so this jumps or exits. */
static void on_error(const char *text)
{
    keep_line(error_words, text);
    if (escape)
        longjmp(*escape, 1);
    fprintf(stderr, "MuJoCo: %s\n", error_words);
    abort();
}

static void install_handlers(void)
{
    *ks_mj.user_warning = on_warning;
    *ks_mj.user_error = on_error;
}

ks_status ks_physics_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    KS_TRY(ks_mujoco_load());
    /* The layout of mjModel and mjData differs between versions. */
    if (ks_mj.version() != mjVERSION_HEADER)
        return ks_fail(
            KS_MISSING,
            "libmujoco is version %s, but the program was built with headers of version %d: "
            "set MUJOCO_DIR to one installation, run 'make clean' and build again",
            ks_mj.versionString(), mjVERSION_HEADER);
    pthread_once(&once, install_handlers);
    return KS_OK;
}

ks_status ks_physics_guard(void (*work)(void *argument), void *argument)
{
    jmp_buf here;

    if (setjmp(here)) {
        escape = NULL;
        return ks_fail(KS_RUN, "MuJoCo: %s", error_words);
    }
    escape = &here;
    work(argument);
    escape = NULL;
    return KS_OK;
}

const char *ks_physics_warning(void)
{
    return warning_words;
}

void ks_physics_forward(mjModel *model, mjData *data)
{
    int flags = model->opt.disableflags;

    model->opt.disableflags |= mjDSBL_ACTUATION;
    ks_mj.forward(model, data);
    model->opt.disableflags = flags;
}

void ks_physics_reset(mjModel *model, mjData *data)
{
    ks_mj.resetData(model, data);
    ks_physics_forward(model, data);
}

/* "Legacy" stepping, dm_control's default. The mj_step1 at the end of a control step computes the
 * position and velocity stages of the next physics step, which mj_step2 then completes. So after a
 * control step positions, velocities and their sensors are current, while sensors of the
 * acceleration stage (touch, force, accelerometer) are one physics step old. An extra forward pass
 * here would change the touch sensors, and so the dog's reward. RK4 cannot be split this way and
 * needs an extra mj_step1. */
void ks_physics_step(const mjModel *model, mjData *data, int substeps)
{
    if (model->opt.integrator != mjINT_RK4) {
        ks_mj.step2(model, data);
        substeps--;
    }
    for (int i = 0; i < substeps; i++)
        ks_mj.step(model, data);
    ks_mj.step1(model, data);
}

/* --- flags: in enableflags or disableflags, depending on the version of MuJoCo --- */

/* A flag is a bit of enableflags, or of disableflags in versions where it is on by default
 * (nativeccd from 3.3.0, multiccd from 3.8.0). nativeccd exists since 3.2.3. */
struct flag {
    const char *name;
    bool disables;
    int bit;
};
static const struct flag flags[] = {
#if mjVERSION_HEADER >= 330
    {"nativeccd", true, mjDSBL_NATIVECCD},
#elif mjVERSION_HEADER >= 323
    {"nativeccd", false, mjENBL_NATIVECCD},
#else
    {"nativeccd", false, 0},
#endif
#if mjVERSION_HEADER >= 3008000
    {"multiccd", true, mjDSBL_MULTICCD},
#else
    {"multiccd", false, mjENBL_MULTICCD},
#endif
};

static bool is_set(const mjModel *model, const struct flag *f)
{
    return f->disables ? !(model->opt.disableflags & f->bit) : model->opt.enableflags & f->bit;
}

static ks_status set(mjModel *model, const struct flag *f, int value)
{
    if (value < -1 || value > 1)
        return ks_fail(KS_USAGE, "%s: expected 0 or 1, found %d", f->name, value);
    if (f->bit == 0 && value == 1)
        return ks_fail(KS_USAGE, "%s=1: MuJoCo %s does not have this flag", f->name,
                       ks_mj.versionString());
    if (value == -1 || value == is_set(model, f))
        return KS_OK;
    if (f->disables)
        model->opt.disableflags ^= f->bit;
    else
        model->opt.enableflags ^= f->bit;
    return KS_OK;
}

ks_status ks_physics_set_flags(mjModel *model, int nativeccd, int multiccd)
{
    KS_TRY(set(model, &flags[0], nativeccd));
    return set(model, &flags[1], multiccd);
}

void ks_physics_print_flags(const mjModel *model, size_t size, char *text)
{
    snprintf(text, size, "%s=%d %s=%d", flags[0].name, is_set(model, &flags[0]), flags[1].name,
             is_set(model, &flags[1]));
}
