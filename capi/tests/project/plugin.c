/* Loads the library at run time, closes it while a tracker is open, and goes on: it stays. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tt_shm.h>

int main(int count, char **arguments) {
    void *library = dlopen(count > 1 ? arguments[1] : "libtt_shm.so.1", RTLD_NOW);
    if (library == NULL) {
        return fprintf(stderr, "%s\n", dlerror()), 1;
    }
    int32_t (*open)(tt_shm_tracker **);
    int32_t (*is_enabled)(tt_shm_tracker *);
    const char *(*version)(void);
    void *symbols[3] = {dlsym(library, "tt_shm_tracker_for_process"), dlsym(library, "tt_shm_tracker_is_enabled"),
                        dlsym(library, "tt_shm_version")};
    memcpy(&open, &symbols[0], sizeof open);
    memcpy(&is_enabled, &symbols[1], sizeof is_enabled);
    memcpy(&version, &symbols[2], sizeof version);
    tt_shm_tracker *tracker;
    if (open(&tracker) != TT_SHM_OK || dlclose(library) != 0 || !is_enabled(tracker)) {
        return 1;
    }
    return puts(version()) < 0;
}
