/* An OpenGL context by EGL, and in it MuJoCo's renderer. */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/domain.h"

/* --- EGL: types and numbers of its specification 1.5 and of the extensions EXT_device_enumeration
 * and EXT_platform_device (Khronos EGL Registry) --- */

typedef void *egl_handle; /* of a device, a display, a configuration, a context or a surface */

/* Name, result and arguments of each function that is used. */
#define EGL_FUNCTIONS(X)                                                                           \
    X(BindAPI, unsigned, (unsigned))                                                               \
    X(ChooseConfig, unsigned, (egl_handle, const int *, egl_handle *, int, int *))                 \
    X(CreateContext, egl_handle, (egl_handle, egl_handle, egl_handle, const int *))                \
    X(DestroyContext, unsigned, (egl_handle, egl_handle))                                          \
    X(GetPlatformDisplayEXT, egl_handle, (unsigned, egl_handle, const int *))                      \
    X(Initialize, unsigned, (egl_handle, int *, int *))                                            \
    X(MakeCurrent, unsigned, (egl_handle, egl_handle, egl_handle, egl_handle))                     \
    X(QueryDevicesEXT, unsigned, (int, egl_handle *, int *))

#define EGL_FIELD(name, result, arguments) result(*name) arguments;
static struct {
    EGL_FUNCTIONS(EGL_FIELD)
    void *(*find)(const char *); /* eglGetProcAddress */
    egl_handle display;
    char failure[256]; /* why there is none; "" if there is */
} egl;

enum { OPENGL_API = 0x30a2, PLATFORM_DEVICE = 0x313f, DEVICES = 16 };

/* What dm_control asks for, too (_render/pyopengl/egl_renderer.py). */
static const int wanted[] = {0x3024, 8,      /* red, ...                */
                             0x3023, 8,      /* ... green, ...          */
                             0x3022, 8,      /* ... blue, ...           */
                             0x3021, 8,      /* ... alpha, ...          */
                             0x3025, 24,     /* ... depth, ...          */
                             0x3026, 8,      /* ... and stencil in bits */
                             0x303f, 0x308e, /* an RGB buffer           */
                             0x3033, 1,      /* for a pixel buffer      */
                             0x3040, 8,      /* drawn by OpenGL         */
                             0x3038};

/* The first device that gives a display: a card, or Mesa's software. */
static void find_display(void)
{
    egl_handle device[DEVICES];
    int n = 0;

    if (!egl.QueryDevicesEXT(DEVICES, device, &n))
        n = 0;
    for (int i = 0; i < n && !egl.display; i++) {
        egl.display = egl.GetPlatformDisplayEXT(PLATFORM_DEVICE, device[i], NULL);
        if (egl.display && !egl.Initialize(egl.display, NULL, NULL))
            egl.display = NULL;
    }
    if (!egl.display)
        snprintf(egl.failure, sizeof egl.failure, "none of EGL's %d devices gives a display", n);
}

/* Once per process: functions and a display. */
static void load_egl(void)
{
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL), *address;

    if (library && (address = dlsym(library, "eglGetProcAddress")))
        memcpy(&egl.find, &address, sizeof egl.find);
    if (!egl.find) {
        snprintf(egl.failure, sizeof egl.failure, "%s", dlerror());
        return;
    }
#define EGL_FIND(name, result, arguments)                                                          \
    address = egl.find("egl" #name);                                                               \
    memcpy(&egl.name, &address, sizeof address);                                                   \
    if (!address)                                                                                  \
        snprintf(egl.failure, sizeof egl.failure, "libEGL.so.1: it does not have egl" #name);
    EGL_FUNCTIONS(EGL_FIND)
    if (!egl.failure[0])
        find_display();
}

static ks_status fail_to_render(const struct ks_env *env, const char *why)
{
    return ks_fail(KS_MISSING,
                   "%s: no OpenGL to draw frames with: %s; 'make deps-pixels' installs Mesa's",
                   ks_env_name(env), why);
}

static ks_status new_context(const struct ks_env *env, egl_handle *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    egl_handle config;
    int n = 0;

    pthread_once(&once, load_egl);
    if (egl.failure[0])
        return fail_to_render(env, egl.failure);
    if (!egl.ChooseConfig(egl.display, wanted, &config, 1, &n) || n < 1 || !egl.BindAPI(OPENGL_API))
        return fail_to_render(env, "EGL has no configuration for it");
    *context = egl.CreateContext(egl.display, config, NULL, NULL);
    return *context ? KS_OK : fail_to_render(env, "EGL makes no context");
}

/* --- MuJoCo's renderer --- */

struct ks_render {
    struct ks_env *env; /* not owned */
    int height, width;
    egl_handle context;
    mjvScene scene;
    mjrContext gl;
    bool has_scene, has_gl;
    uint8_t *lines; /* [height, width, 3], from the bottom */
    char opengl[160];
};

static ks_status make_current(const struct ks_render *r)
{
    return egl.BindAPI(OPENGL_API) && egl.MakeCurrent(egl.display, NULL, NULL, r->context)
               ? KS_OK
               : fail_to_render(r->env, "EGL's context cannot be used");
}

enum { MOST_SIDE = 4096, MOST_SHAPES = 1000 }; /* dm_control has at least 1000 shapes in a scene */

static void make_scene(void *argument)
{
    struct ks_render *r = argument;

    r->env->model->vis.global.offwidth = r->width;
    r->env->model->vis.global.offheight = r->height;
    ks_mj.defaultScene(&r->scene);
    ks_mj.makeScene(r->env->model, &r->scene, MOST_SHAPES);
    r->has_scene = true;
    ks_mj.defaultContext(&r->gl);
    ks_mj.makeContext(r->env->model, &r->gl, mjFONTSCALE_150);
    r->has_gl = true;
    ks_mj.setBuffer(mjFB_OFFSCREEN, &r->gl);
}

/* What draws, and in which version. */
static void describe_opengl(struct ks_render *r)
{
    enum { RENDERER = 0x1f01, VERSION = 0x1f02 }; /* of OpenGL 1.0 */
    const unsigned char *(*get_string)(unsigned) = NULL;
    void *address = egl.find("glGetString");

    memcpy(&get_string, &address, sizeof address);
    if (get_string)
        snprintf(r->opengl, sizeof r->opengl, "%s, OpenGL %s", (const char *)get_string(RENDERER),
                 (const char *)get_string(VERSION));
}

const char *ks_render_opengl(const struct ks_render *r)
{
    return r->opengl;
}

ks_status ks_render_new(struct ks_env *env, size_t height, size_t width, struct ks_render **render)
{
    KS_OWNED_BY(ks_render_free) struct ks_render *r = NULL;

    assert(height > 0 && width > 0 && height <= MOST_SIDE && width <= MOST_SIDE);
    *render = NULL;
    if (!env->pixels)
        return ks_fail(KS_USAGE, "%s: expected a task NAME-pixels, which can be drawn",
                       ks_env_name(env));
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    r->env = env;
    r->height = (int)height;
    r->width = (int)width;
    KS_TRY(ks_alloc(height * width, 3, &r->lines));
    KS_TRY(new_context(env, &r->context));
    KS_TRY(make_current(r));
    describe_opengl(r);
    KS_TRY(ks_physics_guard(make_scene, r));
    if (r->gl.offWidth < r->width || r->gl.offHeight < r->height)
        return fail_to_render(env, "MuJoCo's buffer for frames is too small");
    *render = r, r = NULL;
    return KS_OK;
}

void ks_render_free(struct ks_render *r)
{
    if (!r)
        return;
    if (r->has_gl && make_current(r) == KS_OK)
        ks_mj.freeContext(&r->gl);
    if (r->has_scene)
        ks_mj.freeScene(&r->scene);
    if (r->context) {
        egl.MakeCurrent(egl.display, NULL, NULL, NULL);
        egl.DestroyContext(egl.display, r->context);
    }
    free(r->lines);
    free(r);
}

/* Everything but rangefinders is drawn, as in dm_control (mujoco/wrapper/core.py, MjvOption). */
static void draw(void *argument)
{
    struct ks_render *r = argument;
    const mjrRect all = {0, 0, r->width, r->height};
    mjvCamera camera = {.type = mjCAMERA_FIXED, .fixedcamid = r->env->task->domain->camera};
    mjvOption option;
    mjvPerturb nothing;

    ks_mj.defaultOption(&option);
    option.flags[mjVIS_RANGEFINDER] = 0;
    ks_mj.defaultPerturb(&nothing);
    ks_mj.updateScene(r->env->model, r->env->data, &option, &nothing, &camera, mjCAT_ALL,
                      &r->scene);
    ks_mj.render(all, &r->scene, &r->gl);
    ks_mj.readPixels(r->lines, NULL, all, &r->gl);
}

ks_status ks_render_frame(struct ks_render *r, uint8_t *frame)
{
    const size_t line = 3 * (size_t)r->width;

    KS_TRY(make_current(r));
    KS_TRY(ks_physics_guard(draw, r));
    for (int i = 0; i < r->height; i++)
        memcpy(frame + (size_t)i * line, r->lines + (size_t)(r->height - 1 - i) * line, line);
    return KS_OK;
}
