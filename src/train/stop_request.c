/* The signals that stop a run between two steps. */
#include <signal.h>

#include "core/signals.h"
#include "train/run.h"

static volatile sig_atomic_t signal_seen; /* 0: none */

static void note_signal(int number)
{
    signal_seen = number;
}

/* A limit on file sizes is met as a failure to write, like a full disk. */
void ks_run_listen_to_signals(void)
{
    signal_seen = 0;
    ks_signal_catch(SIGINT, note_signal, NULL);
    ks_signal_catch(SIGTERM, note_signal, NULL);
    ks_signal_catch(SIGHUP, note_signal, NULL); /* the terminal or the connection is gone */
    signal(SIGXFSZ, SIG_IGN);
}

static const char *signal_name(int number)
{
    return number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

ks_status ks_run_check_signal(struct ks_run *r)
{
    if (signal_seen == 0)
        return KS_OK;
    r->interrupted = true;
    return ks_fail(KS_RUN, "stopped by %s at environment step %zu", signal_name(signal_seen),
                   r->env_step);
}
