#include "io/h5_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/h5_serve.h"

/* Seconds. A piece of work is one question, or 4 MiB of a dataset, or a row of its chunks, and
 * takes milliseconds. Processor time depends neither on other processes nor on a slow disk, so
 * PROCESSOR ends most hangs; PATIENCE ends those that use no processor time. */
enum { PROCESSOR = 5, PATIENCE = 300, LAST_SIGNAL = 64 };
static unsigned processor = PROCESSOR, patience = PATIENCE;

void ks_h5_reader_limits(unsigned new_processor, unsigned new_patience)
{
    processor = new_processor > 0 ? new_processor : PROCESSOR;
    patience = new_patience > 0 ? new_patience : PATIENCE;
}

/* --- the reader's start --- */

static void limit(int resource, rlim_t most)
{
    struct rlimit now;

    if (getrlimit(resource, &now) != 0 || now.rlim_cur <= most)
        return; /* RLIM_INFINITY is the largest number */
    now.rlim_cur = most;
    setrlimit(resource, &now);
}

/* Bytes of address space that the reader may have: what this process has now, plus half of the free
 * memory. The other half is for the values, which end up in this process. */
static rlim_t address_space(void)
{
    double pages = 0, free_bytes = (double)ks_memory_available("", 1);
    FILE *file = fopen("/proc/self/statm", "r");
    bool found = file && fscanf(file, "%lf", &pages) == 1;

    if (file)
        fclose(file);
    if (!found || !(free_bytes > 0))
        return RLIM_INFINITY;
    return (rlim_t)(pages * (double)sysconf(_SC_PAGESIZE) + free_bytes / 2);
}

/* Removes the program's handlers, and ignores the signals by which a user stops the program: the
 * reader ends when the program does. */
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

/* In the new process. After a fork of a program with threads, only calls that need no other thread
 * are safe. What the C library and libhdf5 print about damaged memory is discarded. */
static void become_reader(struct ks_h5 *h5, int socket, pid_t parent, rlim_t memory)
{
    int null;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    reset_signals();
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, memory);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    free(h5->reader); /* in this process, h5 is read with libhdf5 */
    h5->reader = NULL;
    ks_h5_serve(h5, socket, processor);
}

/* --- the reader's end --- */

/* Closes the socket, which ends the reader, and returns waitpid's result. shutdown() closes the
 * connection even if a reader that was forked later has a copy of the descriptor. */
static int collect(struct ks_h5_reader *reader)
{
    int result = 0;

    if (reader->socket >= 0) {
        shutdown(reader->socket, SHUT_RDWR);
        close(reader->socket);
    }
    while (reader->pid > 0 && waitpid(reader->pid, &result, 0) < 0 && errno == EINTR)
        ;
    *reader = (struct ks_h5_reader){.pid = 0, .socket = -1};
    return result;
}

void ks_h5_reader_end(struct ks_h5 *h5)
{
    if (!h5->reader)
        return;
    collect(h5->reader);
    free(h5->reader);
    h5->reader = NULL;
}

static ks_status damaged(const struct ks_h5 *h5, const char *object, const char *how)
{
    return ks_fail(KS_IO, "%s: %s: the file is damaged: the HDF5 library %s while reading it",
                   h5->path, object, how);
}

ks_status ks_h5_reader_invalid(const struct ks_h5 *h5, const char *object)
{
    kill(h5->reader->pid, SIGKILL);
    collect(h5->reader);
    return damaged(h5, object, "gave an invalid answer");
}

/* Fails because no answer came: it is late, or the reader has ended. */
static ks_status lost(const struct ks_h5 *h5, const char *object, bool late)
{
    char how[96];
    int result, number;

    if (late)
        kill(h5->reader->pid, SIGKILL);
    result = collect(h5->reader);
    number = WIFSIGNALED(result) ? WTERMSIG(result) : 0;
    if (late)
        snprintf(how, sizeof how, "gave no answer for %u s", patience);
    else if (number == SIGXCPU)
        snprintf(how, sizeof how, "did not finish within %u s", processor);
    else if (number == SIGKILL)
        snprintf(how, sizeof how, "was killed, as happens when memory runs out,");
    else if (number > 0)
        snprintf(how, sizeof how, "crashed (%s)", strsignal(number));
    else
        snprintf(how, sizeof how, "crashed (exit status %d)", WEXITSTATUS(result));
    return damaged(h5, object, how);
}

/* --- questions and answers --- */

ks_status ks_h5_follow(const struct ks_h5 *h5, const char *object, void *bytes, size_t size)
{
    if (h5->reader->pid == 0)
        return damaged(h5, object, "has ended");
    errno = 0;
    if (ks_h5_receive(h5->reader->socket, patience, bytes, size))
        return KS_OK;
    return lost(h5, object, errno == ETIMEDOUT);
}

ks_status ks_h5_next_answer(const struct ks_h5 *h5, const char *object, struct ks_h5_answer *answer)
{
    *answer = (struct ks_h5_answer){.status = KS_OK};
    KS_TRY(ks_h5_follow(h5, object, answer, sizeof *answer));
    answer->text[sizeof answer->text - 1] = '\0';
    return answer->status == KS_OK ? KS_OK : ks_fail(answer->status, "%s", answer->text);
}

ks_status ks_h5_ask(const struct ks_h5 *h5, const struct ks_h5_question *question,
                    struct ks_h5_answer *answer)
{
    if (h5->reader->pid > 0) /* if the socket is closed, receiving the answer fails, too */
        ks_h5_send(h5->reader->socket, question, sizeof *question);
    return ks_h5_next_answer(h5, question->object, answer);
}

ks_status ks_h5_reader_start(struct ks_h5 *h5)
{
    const rlim_t memory = address_space();
    const pid_t parent = getpid();
    struct ks_h5_answer opened;
    int ends[2];

    KS_TRY(ks_alloc(1, sizeof *h5->reader, &h5->reader));
    *h5->reader = (struct ks_h5_reader){.pid = 0, .socket = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return ks_fail(KS_RUN, "%s: cannot create a socket to the reading process: %s", h5->path,
                       strerror(errno));
    h5->reader->socket = ends[0];
    h5->reader->pid = fork();
    if (h5->reader->pid == 0) {
        close(ends[0]);
        become_reader(h5, ends[1], parent, memory);
    }
    close(ends[1]);
    if (h5->reader->pid < 0) {
        h5->reader->pid = 0;
        return ks_fail(KS_RUN, "%s: cannot start the reading process: %s", h5->path,
                       strerror(errno));
    }
    return ks_h5_next_answer(h5, "/", &opened);
}
