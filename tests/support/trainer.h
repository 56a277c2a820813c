/* Runs kappascope-train in a scratch folder, as a user would. The binary is in $KS_BIN, or in
 * build/bin if that is not set. */
#ifndef KS_TRAINER_H
#define KS_TRAINER_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "scratch.h"

/* 60 agent steps, 30 of them before the first update; 2 checkpoints, and one before the first
 * update. */
#define SMALL                                                                                      \
    "--quiet --env dog-trot --steps 120 --set hidden=16 --set actor_hidden=16 --set batch=8 "      \
    "--set random_steps=30 --set eval_episodes=1 --set checkpoints=2 --set "                       \
    "analysis_minibatches=3 "

static char complained[1 << 14];

static inline const char *program(void)
{
    static char path[2048];
    char here[1024] = "";
    const char *folder = getenv("KS_BIN");

    folder = folder ? folder : "build/bin";
    if (folder[0] != '/')
        assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s%s%s/kappascope-train", here, here[0] ? "/" : "", folder);
    return path;
}

/* Runs the program in the scratch folder; its exit status. */
__attribute__((format(printf, 1, 2))) static inline int train(const char *arguments, ...)
{
    char list[2048], command[8192];
    va_list values;
    size_t length;
    FILE *errors;
    int status;

    va_start(values, arguments);
    vsnprintf(list, sizeof list, arguments, values);
    va_end(values);
    snprintf(command, sizeof command,
             "cd '%s' && OMP_WAIT_POLICY=passive '%s' >out.txt 2>err.txt %s", scratch_folder,
             program(), list);
    status = system(command);
    assert_true(WIFEXITED(status));
    errors = fopen(scratch("err.txt"), "r");
    assert_non_null(errors);
    length = fread(complained, 1, sizeof complained - 1, errors);
    complained[length] = '\0';
    fclose(errors);
    return WEXITSTATUS(status);
}

#define assert_trains(...)                                                                         \
    do {                                                                                           \
        if (train(__VA_ARGS__) != 0)                                                               \
            fail_msg("training failed: %s", complained);                                           \
    } while (0)

static inline int remove_all(void **state)
{
    char command[512];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", scratch_folder);
    return system(command);
}

static inline bool exists(const char *name)
{
    return access(scratch(name), F_OK) == 0;
}

#endif
