/* This process's start and end. Child processes: start a program, read its output, wait for it;
 * signals; words of a shell. */
#ifndef KS_CORE_PROCESS_H
#define KS_CORE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/memory.h"

/* The first call of every main, before any file is opened:
 * - Opens /dev/null for standard input, output and error if they are closed. Otherwise a file
 *   opened later would get that descriptor and receive the program's messages. Writing to a
 *   standard output that was closed still fails.
 * - Ignores SIGXFSZ, so that exceeding a file size limit (ulimit -f) is a failed write, like a full
 *   disk. */
void ks_process_begin(void);
/* Flushes standard output; KS_FULL if that fails. */
ks_status ks_process_flush(void);

struct ks_process {
    pid_t pid;    /* 0: none */
    FILE *output; /* its standard output; owned */
};

/* Starts argv[0] (a path; argv ends in NULL) in `folder` with empty standard input. `errors`: a
 * file for its standard error, not a symbolic link; NULL: the same pipe as its output. With `group`
 * it leads a new process group, so that it can be stopped together with its own children, and gets
 * SIGTERM when this process dies. The caller ends with ks_process_end. */
ks_status ks_process_start(const char *folder, const char *const *argv, const char *errors,
                           bool group, struct ks_process *process);
/* Waits for the end. *code: the exit status, or 128 + the number of the signal that ended it. */
ks_status ks_process_end(struct ks_process *process, int *code);

/* Opens a regular file for reading; the caller closes it. KS_IO: also for a named pipe or a device,
 * which could block or never end. */
ks_status ks_path_open(const char *path, FILE **file);
void ks_path_close(FILE *file); /* NULL is fine */
KS_OWNER(ks_path_close, FILE *)

/* --- files that come with the programs, which are found relative to the running program, so that
 * an installation can be moved --- */

/* The folder of the running program; the caller frees *folder. KS_IO. */
ks_status ks_installed_folder(char **folder);
/* *path is "FOLDER/relative", or NULL if no such file or folder exists; the caller frees it. KS_IO.
 */
ks_status ks_installed_find(const char *relative, char **path);
/* *path = a shipped file or folder ("configs/quick.study"). The first of these folders that has it
 * is used, FOLDER being the folder of the running program: FOLDER/../share/kappascope (installed),
 * FOLDER/../.. (in build/bin), the folder in which the project was built. The caller frees it.
 * KS_MISSING. */
ks_status ks_installed_shared(const char *relative, char **path);

/* *path = the program of that name in the folder of the running program, else in PATH. The caller
 * frees it. KS_MISSING if it is in neither. */
ks_status ks_locate_program(const char *name, char **path);

/* --- signals that ask a program to stop (SIGINT, SIGTERM) --- */

/* Installs `handler` for the signal, with SA_RESTART. If `old` is not NULL, it receives the
 * previous action. A signal that is ignored stays ignored, as nohup and a shell's background jobs
 * require. */
void ks_signal_catch(int number, void (*handler)(int), struct sigaction *old);

/* From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, are only recorded; but if
 * ks_stop_check has not been called two seconds later, a second signal ends the program; if after
 * twenty seconds, or a multiple, the code of others runs, the program ends without one. */
void ks_stop_listen(void);
/* Whether from now on the code of others runs, such as a task's. */
void ks_stop_foreign(bool runs);
/* Fails with KS_RUN, naming the signal and env_step, if one has been received. */
ks_status ks_stop_check(size_t env_step);
/* Whether ks_stop_check has failed since ks_stop_listen: the program ends because of a signal. */
bool ks_stop_obeyed(void);

/* --- commands for the shell --- */

/* Refuses a word with control characters, above all newlines: in a makefile, text after a newline
 * would be another command. Fails with KS_USAGE, naming `what` and showing the word with such
 * characters escaped. */
ks_status ks_shell_check(const char *what, const char *word);

/* Prints a word for the shell, in single quotes if any of its characters is special there. */
void ks_shell_word(FILE *out, const char *word);

/* Prints " --KEY=VALUE", the value quoted like a word. */
void ks_shell_option(FILE *out, const char *key, const char *value);

#endif
