/* The header and the library are of one version, and every status has its own text. */
#include "check.h"

int main(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", DSH_VERSION_MAJOR, DSH_VERSION_MINOR, DSH_VERSION_PATCH);
    CHECK(strcmp(dsh_version(), version) == 0);
    CHECK(dsh_abi_version() == DSH_ABI_VERSION && DSH_ABI_VERSION == 0);

    CHECK(dsh_feature(DSH_FEATURE_PIDFD) <= 1 && dsh_feature(DSH_FEATURE_VFORK) <= 1);
    CHECK(dsh_feature(DSH_FEATURE_GUARD) <= 1);
    CHECK(dsh_feature(0) == 0 && dsh_feature(4711) == 0);

    const char *unknown = dsh_status_str(1);
    CHECK(strcmp(unknown, "unknown status") == 0);
    for (dsh_status_t status = DSH_OK; status >= DSH_E_PANIC; status--) {
        CHECK(strcmp(dsh_status_str(status), unknown) != 0);
        for (dsh_status_t other = DSH_OK; other > status; other--)
            CHECK(strcmp(dsh_status_str(status), dsh_status_str(other)) != 0);
    }
    CHECK(strcmp(dsh_status_str(DSH_E_PANIC - 1), unknown) == 0);
    CHECK(strcmp(dsh_status_str(INT32_MIN), unknown) == 0);

    CHECK(dsh_error_code(NULL) == DSH_OK && dsh_error_errno(NULL) == 0);
    CHECK(strcmp(dsh_error_stage(NULL), "") == 0 && strcmp(dsh_error_message(NULL), "") == 0);

    dsh_error_free(NULL);
    dsh_settings_free(NULL);
    dsh_executor_free(NULL);
    dsh_spec_free(NULL);
    dsh_cancel_free(NULL);
    dsh_result_free(NULL);
    dsh_process_free(NULL);
    dsh_chunk_free(NULL);
    return 0;
}
