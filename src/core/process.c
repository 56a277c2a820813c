#include "core/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "core/memory.h"

enum { CANNOT_RUN = 127, BY_SIGNAL = 128 };

/* open() returns the lowest free descriptor. A closed standard output becomes /dev/null opened for
 * reading, so that printing results to it still fails. */
void ks_process_begin(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0 &&
            open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY) != number)
            _exit(1); /* there is nowhere to print a message */
    signal(SIGXFSZ, SIG_IGN);
}

ks_status ks_process_flush(void)
{
    const bool flushed = fflush(stdout) == 0;

    return flushed && !ferror(stdout) ? KS_OK
                                      : ks_fail(KS_FULL, "cannot write to standard output: %s",
                                                flushed ? "a part is lost" : strerror(errno));
}

struct plan {
    const char *folder;
    const char *const *argv;
    bool group;
    int input, output, errors; /* descriptors */
};

/* In the child. Between fork and exec only async-signal-safe calls are allowed. */
static void become(const struct plan *plan)
{
    if (plan->group) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
    if (dup2(plan->input, STDIN_FILENO) < 0 || dup2(plan->output, STDOUT_FILENO) < 0 ||
        dup2(plan->errors, STDERR_FILENO) < 0 || chdir(plan->folder) != 0)
        _exit(CANNOT_RUN);
    execv(plan->argv[0], (char *const *)plan->argv);
    _exit(CANNOT_RUN);
}

static ks_status start(const struct plan *plan, int reading, struct ks_process *process)
{
    process->pid = fork();
    if (process->pid == 0)
        become(plan);
    if (process->pid < 0) {
        process->pid = 0;
        return ks_fail(KS_RUN, "%s: cannot be started: %s", plan->argv[0], strerror(errno));
    }
    if (plan->group)
        setpgid(process->pid, process->pid); /* in both processes, as either may run first */
    process->output = fdopen(reading, "r");
    return process->output ? KS_OK : ks_fail(KS_MEMORY, "%s: out of memory", plan->argv[0]);
}

ks_status ks_process_start(const char *folder, const char *const *argv, const char *errors,
                           bool group, struct ks_process *process)
{
    struct plan plan = {folder, argv, group, -1, -1, -1};
    int ends[2] = {-1, -1};
    ks_status status = KS_OK;

    *process = (struct ks_process){0};
    if (pipe(ends) != 0)
        return ks_fail(KS_RUN, "%s: cannot be started: %s", argv[0], strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    plan.input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    plan.output = ends[1];
    plan.errors = errors ? open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666)
                         : ends[1];
    if (plan.input < 0 || plan.errors < 0) {
        status = ks_fail(KS_IO, "%s: cannot be opened: %s", plan.input < 0 ? "/dev/null" : errors,
                         strerror(errno));
        close(ends[0]);
    } else {
        status = start(&plan, ends[0], process);
        if (!process->output)
            close(ends[0]);
    }
    if (plan.input >= 0)
        close(plan.input);
    if (plan.errors >= 0 && plan.errors != ends[1])
        close(plan.errors);
    close(ends[1]);
    return status;
}

ks_status ks_process_end(struct ks_process *process, int *code)
{
    ks_status status = KS_OK;
    int result = 0;

    *code = CANNOT_RUN;
    if (process->output)
        fclose(process->output);
    while (process->pid > 0 && waitpid(process->pid, &result, 0) < 0)
        if (errno != EINTR) {
            status = ks_fail(KS_RUN, "waiting for a child process failed: %s", strerror(errno));
            goto done;
        }
    if (process->pid > 0)
        *code = WIFEXITED(result) ? WEXITSTATUS(result) : BY_SIGNAL + WTERMSIG(result);
done:
    *process = (struct ks_process){0};
    return status;
}

/* --- files --- */

ks_status ks_path_open(const char *path, FILE **file)
{
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat about;
    bool known = descriptor >= 0 && fstat(descriptor, &about) == 0;
    const char *found = NULL;

    *file = NULL;
    if (known && !S_ISREG(about.st_mode))
        found = S_ISDIR(about.st_mode) ? "it is a directory" : "it is a special file";
    else if (!known || !(*file = fdopen(descriptor, "rb")))
        found = strerror(errno);
    if (found && descriptor >= 0)
        close(descriptor);
    return found ? ks_fail(KS_IO, "%s: cannot be opened: %s", path, found) : KS_OK;
}

void ks_path_close(FILE *file)
{
    if (file)
        fclose(file);
}

/* --- files that come with the programs --- */

ks_status ks_installed_folder(char **folder)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    *folder = NULL;
    if (length < 0)
        return ks_fail(KS_IO, "/proc/self/exe: cannot be read: %s", strerror(errno));
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return ks_copy_string(path, folder);
}

ks_status ks_installed_find(const char *relative, char **path)
{
    KS_OWNED char *folder = NULL, *found = NULL;

    *path = NULL;
    KS_TRY(ks_installed_folder(&folder));
    KS_TRY(ks_print_string(&found, "%s/%s", folder, relative));
    if (access(found, F_OK) == 0)
        *path = found, found = NULL;
    return KS_OK;
}

/* Relative to PREFIX/bin of an installation, and to build/bin of the build tree. */
static const char *const SHARED[] = {"../share/kappascope", "../.."};

ks_status ks_installed_shared(const char *relative, char **path)
{
    KS_OWNED char *built = NULL;

    *path = NULL;
    for (size_t i = 0; i < sizeof SHARED / sizeof *SHARED && !*path; i++) {
        KS_OWNED char *beside = NULL;

        KS_TRY(ks_print_string(&beside, "%s/%s", SHARED[i], relative));
        KS_TRY(ks_installed_find(beside, path));
    }
    if (*path)
        return KS_OK;
    KS_TRY(ks_print_string(&built, "%s/%s", KS_SHARE_DIR, relative));
    if (access(built, F_OK) != 0)
        return ks_fail(KS_MISSING, "%s: not found among the project's files", relative);
    *path = built, built = NULL;
    return KS_OK;
}

/* --- programs --- */

/* *path = folder/name if that is a program. */
static ks_status try_program(int length, const char *folder, const char *name, char **path)
{
    KS_OWNED char *found = NULL;
    struct stat info;

    KS_TRY(ks_print_string(&found, "%.*s/%s", length, folder, name));
    if (stat(found, &info) == 0 && S_ISREG(info.st_mode) && access(found, X_OK) == 0)
        *path = found, found = NULL;
    return KS_OK;
}

ks_status ks_locate_program(const char *name, char **path)
{
    const char *search = getenv("PATH");
    KS_OWNED char *folder = NULL;

    *path = NULL;
    KS_TRY(ks_installed_folder(&folder));
    KS_TRY(try_program((int)strlen(folder), folder, name, path));
    while (!*path && search && *search) {
        size_t length = strcspn(search, ":");

        if (length > 0)
            KS_TRY(try_program((int)length, search, name, path));
        search += length + (search[length] == ':');
    }
    if (*path)
        return KS_OK;
    return ks_fail(KS_MISSING, "%s: not found in %s or in PATH%s", name, folder,
                   strcmp(name, "kappascope-train") == 0
                       ? " (with pip, it is in the wheel kappascope_train)"
                       : "");
}

/* --- signals that ask a program to stop --- */

void ks_signal_catch(int number, void (*handler)(int), struct sigaction *old)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;

    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
    if (old)
        *old = before;
}

static volatile sig_atomic_t signal_seen; /* 0: none */
static volatile sig_atomic_t obeyed, foreign;
static time_t first; /* when the signal was seen */
enum { GRACE = 20 }; /* seconds in which the code of others has to end, or the program does */

static void end_by(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void lose_patience(int number)
{
    (void)number;
    if (foreign)
        end_by(signal_seen);
    alarm(GRACE);
}

void ks_stop_foreign(bool runs)
{
    foreign = runs;
}

/* If the program does not react to a signal, a later one ends it; or GRACE, if the code of others
 * is why it does not. Of two at the same time, as batch systems send them, the second says nothing
 * new. */
static void note_signal(int number)
{
    const time_t now = time(NULL);

    if (signal_seen && !obeyed && now > first + 1)
        end_by(number);
    if (!signal_seen) {
        first = now;
        alarm(GRACE);
    }
    signal_seen = number;
}

/* SIGXFSZ is ignored so that a limit on file sizes makes write() fail, as on a full disk. */
void ks_stop_listen(void)
{
    signal_seen = 0;
    obeyed = false;
    ks_signal_catch(SIGINT, note_signal, NULL);
    ks_signal_catch(SIGTERM, note_signal, NULL);
    ks_signal_catch(SIGHUP, note_signal, NULL); /* the terminal or the connection was closed */
    ks_signal_catch(SIGALRM, lose_patience, NULL);
    signal(SIGXFSZ, SIG_IGN);
}

ks_status ks_stop_check(size_t env_step)
{
    const int number = signal_seen;

    if (number == 0)
        return KS_OK;
    obeyed = true;
    alarm(0);
    return ks_fail(KS_RUN, "stopped by %s at environment step %zu",
                   number == SIGINT   ? "SIGINT"
                   : number == SIGHUP ? "SIGHUP"
                                      : "SIGTERM",
                   env_step);
}

bool ks_stop_obeyed(void)
{
    return obeyed;
}

/* --- commands for the shell --- */

ks_status ks_shell_check(const char *what, const char *word)
{
    for (const char *c = word; *c; c++)
        if (iscntrl((unsigned char)*c))
            return ks_fail(KS_USAGE, "%s: expected no control characters, found '%.250s'", what,
                           word);
    return KS_OK;
}

void ks_shell_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "+-_./=:,";

    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            putc(*word, out);
    putc('\'', out);
}

void ks_shell_option(FILE *out, const char *key, const char *value)
{
    fprintf(out, " --%s=", key);
    ks_shell_word(out, value);
}
