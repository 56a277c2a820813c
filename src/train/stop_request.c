#include "train/stop_request.h"

#include <signal.h>

#include "core/process.h"

static volatile sig_atomic_t signal_seen; /* 0: none */
static bool obeyed;

static void note_signal(int number)
{
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
    signal(SIGXFSZ, SIG_IGN);
}

static const char *signal_name(int number)
{
    return number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

ks_status ks_stop_check(size_t env_step)
{
    if (signal_seen == 0)
        return KS_OK;
    obeyed = true;
    return ks_fail(KS_RUN, "stopped by %s at environment step %zu", signal_name(signal_seen),
                   env_step);
}

bool ks_stop_obeyed(void)
{
    return obeyed;
}
