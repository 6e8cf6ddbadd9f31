#include <stdio.h>
#include <tt_shm.h>

int main(void) {
    tt_shm_tracker *tracker;
    if (tt_shm_tracker_for_process(&tracker) != TT_SHM_OK || !tt_shm_tracker_is_enabled(tracker)) {
        return 1;
    }
    return puts(tt_shm_version()) < 0;
}
