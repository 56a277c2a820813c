#include "io/scout.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "io/spectrum.h"

#ifdef KS_COVERAGE /* _exit writes no counters */
void __gcov_dump(void);
#endif

/* Seconds of processor time, which depends neither on other processes nor on a slow disk. Without
 * large arrays, reading takes milliseconds. There is no limit of time otherwise: a child that waits
 * for a disk or a tape is not stuck in a damaged file. */
enum { SECONDS = 5, MOST_SECONDS = 1000, LAST_SIGNAL = 64 };
enum { A_SECOND = 100 }; /* small files that are read in much less than a second */
/* Decompressed bytes a second: a tenth of the usual speed of reading. */
static const double SLOWEST = 20e6;

struct scout {
    const char *path; /* for messages */
    struct ks_h5 *h5; /* the file; NULL: `read` is called in its place */
    double memory;    /* arrays of more bytes are not read */
    unsigned seconds; /* of processor time, apart from large arrays */
    ks_status (*read)(void *data);
    void *data;
};

/* What the child says at its end. */
struct answer {
    ks_status status;
    char text[1024]; /* the message, if status is not KS_OK */
};

/* --- the child --- */

static void limit(int resource, rlim_t most)
{
    struct rlimit now;

    if (getrlimit(resource, &now) != 0)
        return;
    now.rlim_cur = most < now.rlim_max ? most : now.rlim_max; /* RLIM_INFINITY is the largest */
    setrlimit(resource, &now);
}

/* Allows the time for reading arrays of this size, from now on. */
static void allow(const struct scout *s, double bytes)
{
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) == 0)
        limit(RLIMIT_CPU, (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + s->seconds +
                              (rlim_t)(bytes / SLOWEST));
}

/* Bytes of address space that the child may have: what this process has now, plus the free memory.
 */
static rlim_t address_space(double free_bytes)
{
    double pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    bool found = file && fscanf(file, "%lf", &pages) == 1;

    if (file)
        fclose(file);
    return found && free_bytes > 0 ? (rlim_t)(pages * (double)sysconf(_SC_PAGESIZE) + free_bytes)
                                   : RLIM_INFINITY;
}

/* Removes the program's handlers, and ignores the signals by which a user stops the program: the
 * child ends when the program does. */
static void reset_signals(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
    struct sigaction action;
    sigset_t none;

    for (int number = 1; number <= LAST_SIGNAL; number++)
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(number, SIG_DFL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGXCPU, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static ks_status read_checkpoint(const struct scout *s)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *checkpoint = NULL;
    double bytes;

    KS_TRY(ks_checkpoint_bytes(s->h5, &bytes));
    if (bytes > s->memory)
        return KS_OK;
    allow(s, bytes);
    return ks_checkpoint_read_loss(s->h5, &checkpoint);
}

static ks_status read_spectrum(const struct scout *s)
{
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *spectrum = NULL;

    return ks_spectrum_read_open(s->h5, &spectrum);
}

static ks_status read_vectors(const struct scout *s)
{
    KS_CLEARED_BY(ks_attributes_clear) struct ks_attributes attributes = {.n = 0};
    struct ks_h5_shape shape = {.n_dims = 0};
    KS_OWNED double *vectors = NULL, *eigenvalues = NULL;
    double bytes;
    size_t k;

    KS_TRY(ks_h5_read_attributes(s->h5, "/", &attributes));
    KS_TRY(ks_h5_shape(s->h5, "/vector", &shape));
    bytes = sizeof *vectors * (double)shape.dims[0] * (double)shape.dims[1];
    if (shape.n_dims != 2 || bytes > s->memory)
        return KS_OK;
    allow(s, bytes);
    KS_TRY(ks_vectors_read_open(s->h5, shape.dims[1], &k, &vectors));
    return ks_vectors_read_eigenvalues(s->h5, k, &eigenvalues);
}

/* Results of an audit. */
static ks_status read_layers(const struct scout *s)
{
    KS_CLEARED_BY(ks_attributes_clear) struct ks_attributes attributes = {.n = 0};

    return ks_h5_read_attributes(s->h5, "/", &attributes);
}

static ks_status read_format(const struct scout *s, const char *format)
{
    static const struct {
        const char *format;
        ks_status (*read)(const struct scout *s);
    } kinds[] = {{"kappascope-checkpoint", read_checkpoint},
                 {"kappascope-spectrum", read_spectrum},
                 {"kappascope-vector", read_vectors},
                 {"kappascope-layers", read_layers}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(format, kinds[i].format) == 0) {
            KS_TRY(ks_h5_check_format(s->h5, format));
            return kinds[i].read(s);
        }
    return KS_OK;
}

static ks_status read_file(const struct scout *s)
{
    KS_OWNED char *format = NULL;
    bool found;

    KS_TRY(ks_h5_start(s->h5));
    KS_TRY(ks_h5_has_attribute(s->h5, "/", "format", &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_read_string(s->h5, "/", "format", &format));
    return read_format(s, format);
}

static void end(int code) __attribute__((noreturn));
static void end(int code)
{
#ifdef KS_COVERAGE
    __gcov_dump();
#endif
    _exit(code);
}

/* After a fork of a program with threads, only calls that need no other thread are safe. What the C
 * library and libhdf5 print about damaged memory is discarded. */
static void run(const struct scout *s, pid_t parent, rlim_t memory, int pipe)
    __attribute__((noreturn));
static void run(const struct scout *s, pid_t parent, rlim_t memory, int pipe)
{
    struct answer answer = {.status = KS_OK};
    int null;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        end(1);
    reset_signals();
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, memory);
    allow(s, 0);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    ks_scout_only_if_asked();
    answer.status = s->h5 ? read_file(s) : s->read(s->data);
    if (answer.status != KS_OK)
        snprintf(answer.text, sizeof answer.text, "%s", ks_error_text());
    end(write(pipe, &answer, sizeof answer) == sizeof answer ? 0 : 1); /* less than PIPE_BUF */
}

/* --- this process --- */

/* Waits for the child's end and reads its answer, for which the pipe has room. False if there is no
 * whole answer; then *result is waitpid's. */
static bool collect(pid_t child, int pipe, struct answer *answer, int *result)
{
    ssize_t got;

    while (waitpid(child, result, 0) < 0 && errno == EINTR)
        ;
    fcntl(pipe, F_SETFL, O_NONBLOCK); /* other processes may have inherited the other end */
    got = read(pipe, answer, sizeof *answer);
    close(pipe);
    answer->text[sizeof answer->text - 1] = '\0';
    return got == sizeof *answer;
}

static ks_status damaged(const struct scout *s, int result)
{
    const int number = WIFSIGNALED(result) ? WTERMSIG(result) : 0;
    char how[96];

    if (number == SIGXCPU)
        snprintf(how, sizeof how, "did not finish in time");
    else if (number == SIGKILL)
        snprintf(how, sizeof how, "was killed, as happens when memory runs out,");
    else if (number > 0)
        snprintf(how, sizeof how, "crashed (%s)", strsignal(number));
    else
        snprintf(how, sizeof how, "crashed (exit status %d)", WEXITSTATUS(result));
    return ks_fail(KS_IO, "%s: the file is damaged: the HDF5 library %s while reading it", s->path,
                   how);
}

static bool automatic = true;
static size_t most_memory; /* of ks_scout_limit_memory */

void ks_scout_only_if_asked(void)
{
    automatic = false;
}

void ks_scout_limit_memory(size_t bytes)
{
    most_memory = bytes;
}

/* --- one file --- */

/* Starts the child and waits for its answer. *answered: whether it gave one; otherwise *result is
 * waitpid's. */
static ks_status send_child(const struct scout *s, struct answer *answer, bool *answered,
                            int *result)
{
    const rlim_t space = address_space((double)ks_memory_available("", 1));
    const pid_t parent = getpid();
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0)
        return ks_fail(KS_RUN, "%s: cannot create a pipe to the reading process: %s", s->path,
                       strerror(errno));
    child = fork();
    if (child == 0) {
        close(ends[0]);
        run(s, parent, space, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return ks_fail(KS_RUN, "%s: cannot start the reading process: %s", s->path,
                       strerror(errno));
    }
    *answered = collect(child, ends[0], answer, result);
    return KS_OK;
}

/* The seconds that are asked for, or these. */
static unsigned find_seconds(unsigned seconds)
{
    const char *asked = getenv("KAPPASCOPE_SCOUT");
    unsigned found;

    return asked && sscanf(asked, "%u", &found) == 1 && found <= MOST_SECONDS ? found : seconds;
}

static ks_status check_file(struct ks_h5 *h5)
{
    const double bytes = most_memory > 0 ? (double)most_memory : (double)ks_memory_available("", 1);
    const struct scout s = {.path = h5->path,
                            .h5 = h5,
                            .memory = bytes > 0 ? bytes : INFINITY,
                            .seconds = find_seconds(SECONDS)};
    struct answer answer = {.status = KS_OK};
    bool answered = false;
    int result = 0;

    if (s.seconds == 0)
        return KS_OK;
    KS_TRY(send_child(&s, &answer, &answered, &result));
    if (!answered)
        return damaged(&s, result);
    if (answer.status == KS_MEMORY && strncmp(answer.text, s.path, strlen(s.path)) != 0)
        return ks_fail(KS_MEMORY, "%s: %s", s.path, answer.text); /* an allocation does not know */
    return answer.status == KS_OK ? KS_OK : ks_fail(answer.status, "%s", answer.text);
}

ks_status ks_scout_before_opening(struct ks_h5 *h5)
{
    return automatic ? check_file(h5) : KS_OK;
}

ks_status ks_scout(const char *path)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    KS_TRY(ks_h5_load(path, &h5));
    return check_file(h5);
}

ks_status ks_scout_many(size_t files, ks_status (*read)(void *data), void *data)
{
    const bool before = automatic;
    const struct scout s = {.path = "files",
                            .seconds = find_seconds(SECONDS + (unsigned)(files / A_SECOND)),
                            .read = read,
                            .data = data};
    struct answer answer = {.status = KS_OK};
    bool answered = false;
    int result;
    ks_status status;

    if (automatic && s.seconds > 0)
        KS_TRY(send_child(&s, &answer, &answered, &result));
    automatic = before && !(answered && answer.status == KS_OK);
    status = read(data);
    automatic = before;
    return status;
}
