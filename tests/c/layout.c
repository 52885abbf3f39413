/* Sizes and offsets of the structs, as every compiled program has them in it: they never change. */
#include "check.h"

#include <stddef.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)

SIZE(dsh_config_t, 144);
AT(dsh_config_t, size, 0);
AT(dsh_config_t, cwd, 8);
AT(dsh_config_t, shell, 16);
AT(dsh_config_t, spill_dir, 24);
AT(dsh_config_t, env_allow, 32);
AT(dsh_config_t, env_allow_len, 40);
AT(dsh_config_t, env_deny, 48);
AT(dsh_config_t, env_deny_len, 56);
AT(dsh_config_t, timeout_ms, 64);
AT(dsh_config_t, max_timeout_ms, 72);
AT(dsh_config_t, max_output_bytes, 80);
AT(dsh_config_t, max_spill_bytes, 88);
AT(dsh_config_t, max_total_spill_bytes, 96);
AT(dsh_config_t, grace_ms, 104);
AT(dsh_config_t, drain_ms, 112);
AT(dsh_config_t, flags, 120);
AT(dsh_config_t, keep, 128);
AT(dsh_config_t, reserved, 132);
AT(dsh_config_t, sandbox, 136);

SIZE(dsh_stats_t, 48);
AT(dsh_stats_t, size, 0);
AT(dsh_stats_t, live, 8);
AT(dsh_stats_t, ended, 16);
AT(dsh_stats_t, spill_bytes, 24);
AT(dsh_stats_t, threads, 32);
AT(dsh_stats_t, spawn_path, 40);
AT(dsh_stats_t, guard_pid, 44);

SIZE(dsh_request_t, 144);
AT(dsh_request_t, size, 0);
AT(dsh_request_t, command, 8);
AT(dsh_request_t, command_len, 16);
AT(dsh_request_t, workdir, 24);
AT(dsh_request_t, input, 32);
AT(dsh_request_t, input_len, 40);
AT(dsh_request_t, env, 48);
AT(dsh_request_t, env_len, 56);
AT(dsh_request_t, dsh_env, 64);
AT(dsh_request_t, dsh_env_len, 72);
AT(dsh_request_t, cancel, 80);
AT(dsh_request_t, timeout_ms, 88);
AT(dsh_request_t, stdout_max_bytes, 96);
AT(dsh_request_t, tag, 104);
AT(dsh_request_t, flags, 112);
AT(dsh_request_t, survivors, 120);
AT(dsh_request_t, reserved, 124);
AT(dsh_request_t, sandbox, 128);
AT(dsh_request_t, attend_ms, 136);

SIZE(dsh_spec_info_t, 120);
AT(dsh_spec_info_t, command, 8);
AT(dsh_spec_info_t, command_len, 16);
AT(dsh_spec_info_t, shell, 24);
AT(dsh_spec_info_t, workdir, 32);
AT(dsh_spec_info_t, scrubbed, 40);
AT(dsh_spec_info_t, scrubbed_len, 48);
AT(dsh_spec_info_t, timeout_ms, 56);
AT(dsh_spec_info_t, stdout_max_bytes, 64);
AT(dsh_spec_info_t, max_output_bytes, 72);
AT(dsh_spec_info_t, grace_ms, 80);
AT(dsh_spec_info_t, drain_ms, 88);
AT(dsh_spec_info_t, tag, 96);
AT(dsh_spec_info_t, flags, 104);
AT(dsh_spec_info_t, survivors, 112);
AT(dsh_spec_info_t, sandbox_mode, 116);

SIZE(dsh_outcome_t, 72);
AT(dsh_outcome_t, exit, 0);
AT(dsh_outcome_t, code, 4);
AT(dsh_outcome_t, signal, 8);
AT(dsh_outcome_t, core_dumped, 12);
AT(dsh_outcome_t, timed_out, 16);
AT(dsh_outcome_t, aborted, 20);
AT(dsh_outcome_t, cause, 24);
AT(dsh_outcome_t, stopped_by, 28);
AT(dsh_outcome_t, stage, 32);
AT(dsh_outcome_t, pipes_held, 36);
AT(dsh_outcome_t, wall_us, 40);
AT(dsh_outcome_t, user_us, 48);
AT(dsh_outcome_t, system_us, 56);
AT(dsh_outcome_t, max_rss_bytes, 64);

SIZE(dsh_survivor_t, 16);
AT(dsh_survivor_t, start_time, 0);
AT(dsh_survivor_t, pid, 8);
AT(dsh_survivor_t, reserved, 12);

SIZE(dsh_captured_t, 56);
AT(dsh_captured_t, data, 0);
AT(dsh_captured_t, len, 8);
AT(dsh_captured_t, total, 16);
AT(dsh_captured_t, omitted, 24);
AT(dsh_captured_t, omitted_at, 32);
AT(dsh_captured_t, spill_path, 40);
AT(dsh_captured_t, spill_error, 48);

SIZE(dsh_result_info_t, 264);
AT(dsh_result_info_t, outcome, 8);
AT(dsh_result_info_t, out, 80);
AT(dsh_result_info_t, err, 136);
AT(dsh_result_info_t, held_by, 192);
AT(dsh_result_info_t, held_by_len, 200);
AT(dsh_result_info_t, survivors, 208);
AT(dsh_result_info_t, survivors_len, 216);
AT(dsh_result_info_t, scrubbed, 224);
AT(dsh_result_info_t, scrubbed_len, 232);
AT(dsh_result_info_t, timeout_ms, 240);
AT(dsh_result_info_t, input_written, 248);
AT(dsh_result_info_t, process_id, 256);

SIZE(dsh_process_info_t, 152);
AT(dsh_process_info_t, outcome, 8);
AT(dsh_process_info_t, process_id, 80);
AT(dsh_process_info_t, tag, 88);
AT(dsh_process_info_t, out_total, 96);
AT(dsh_process_info_t, err_total, 104);
AT(dsh_process_info_t, input_written, 112);
AT(dsh_process_info_t, pid, 120);
AT(dsh_process_info_t, status, 124);
AT(dsh_process_info_t, quiescent, 128);
AT(dsh_process_info_t, reserved, 132);
AT(dsh_process_info_t, survivors_len, 136);
AT(dsh_process_info_t, held_by_len, 144);

SIZE(dsh_chunk_info_t, 64);
AT(dsh_chunk_info_t, data, 8);
AT(dsh_chunk_info_t, len, 16);
AT(dsh_chunk_info_t, out_missing, 24);
AT(dsh_chunk_info_t, err_missing, 32);
AT(dsh_chunk_info_t, out_spill_path, 40);
AT(dsh_chunk_info_t, err_spill_path, 48);
AT(dsh_chunk_info_t, lossy, 56);
AT(dsh_chunk_info_t, end, 60);

SIZE(dsh_reading_t, 48);
AT(dsh_reading_t, start, 8);
AT(dsh_reading_t, len, 16);
AT(dsh_reading_t, next, 24);
AT(dsh_reading_t, missing, 32);
AT(dsh_reading_t, lossy, 40);
AT(dsh_reading_t, end, 44);

SIZE(dsh_event_t, 32);
AT(dsh_event_t, process_id, 8);
AT(dsh_event_t, tag, 16);
AT(dsh_event_t, kind, 24);
AT(dsh_event_t, reserved, 28);

SIZE(dsh_sandbox_t, 112);
AT(dsh_sandbox_t, size, 0);
AT(dsh_sandbox_t, workspace, 8);
AT(dsh_sandbox_t, writable, 16);
AT(dsh_sandbox_t, writable_len, 24);
AT(dsh_sandbox_t, hidden, 32);
AT(dsh_sandbox_t, hidden_len, 40);
AT(dsh_sandbox_t, backends, 48);
AT(dsh_sandbox_t, backends_len, 56);
AT(dsh_sandbox_t, runner, 64);
AT(dsh_sandbox_t, runner_len, 72);
AT(dsh_sandbox_t, runner_failures, 80);
AT(dsh_sandbox_t, runner_failures_len, 88);
AT(dsh_sandbox_t, flags, 96);
AT(dsh_sandbox_t, mode, 104);
AT(dsh_sandbox_t, network, 108);

SIZE(dsh_sandbox_facts_t, 80);
AT(dsh_sandbox_facts_t, size, 0);
AT(dsh_sandbox_facts_t, workspace, 8);
AT(dsh_sandbox_facts_t, missing, 16);
AT(dsh_sandbox_facts_t, missing_len, 24);
AT(dsh_sandbox_facts_t, denied_path, 32);
AT(dsh_sandbox_facts_t, denied_rule, 40);
AT(dsh_sandbox_facts_t, runner_failed, 48);
AT(dsh_sandbox_facts_t, mode, 56);
AT(dsh_sandbox_facts_t, backend, 60);
AT(dsh_sandbox_facts_t, enforcement, 64);
AT(dsh_sandbox_facts_t, denied, 68);
AT(dsh_sandbox_facts_t, network, 72);
AT(dsh_sandbox_facts_t, reserved, 76);

SIZE(dsh_backend_report_t, 48);
AT(dsh_backend_report_t, tried, 0);
AT(dsh_backend_report_t, message, 8);
AT(dsh_backend_report_t, remedy, 16);
AT(dsh_backend_report_t, backend, 24);
AT(dsh_backend_report_t, usable, 28);
AT(dsh_backend_report_t, network, 32);
AT(dsh_backend_report_t, version, 36);
AT(dsh_backend_report_t, error_number, 40);
AT(dsh_backend_report_t, reserved, 44);

SIZE(dsh_doctor_info_t, 48);
AT(dsh_doctor_info_t, size, 0);
AT(dsh_doctor_info_t, text, 8);
AT(dsh_doctor_info_t, backends, 16);
AT(dsh_doctor_info_t, backends_len, 24);
AT(dsh_doctor_info_t, facts, 32);
AT(dsh_doctor_info_t, facts_len, 40);

#define NUMBER(name, value) _Static_assert((name) == (value), #name)

NUMBER(DSH_OK, 0);
NUMBER(DSH_E_NULL, -1);
NUMBER(DSH_E_INVALID, -2);
NUMBER(DSH_E_STRUCT, -3);
NUMBER(DSH_E_FLAGS, -4);
NUMBER(DSH_E_COMMAND_NUL, -5);
NUMBER(DSH_E_ENV_NAME, -6);
NUMBER(DSH_E_ENV_RESERVED, -7);
NUMBER(DSH_E_ENV_TOO_BIG, -8);
NUMBER(DSH_E_WORKDIR_MISSING, -9);
NUMBER(DSH_E_WORKDIR_NOT_DIR, -10);
NUMBER(DSH_E_WORKDIR_DENIED, -11);
NUMBER(DSH_E_WORKDIR_UNUSABLE, -12);
NUMBER(DSH_E_SHELL_MISSING, -13);
NUMBER(DSH_E_CANCELLED, -14);
NUMBER(DSH_E_SHUTDOWN, -15);
NUMBER(DSH_E_SPAWN, -16);
NUMBER(DSH_E_SANDBOX_UNAVAILABLE, -17);
NUMBER(DSH_E_TIMED_OUT, -18);
NUMBER(DSH_E_SYSTEM, -19);
NUMBER(DSH_E_OUT_OF_MEMORY, -20);
NUMBER(DSH_E_FORKED, -21);
NUMBER(DSH_E_PANIC, -22);
NUMBER(DSH_KEEP_TAIL, 0);
NUMBER(DSH_KEEP_HEAD_TAIL, 1);
NUMBER(DSH_CONFIG_NO_INHERIT_ENV, 1);
NUMBER(DSH_CONFIG_NO_GUARD, 2);
NUMBER(DSH_CONFIG_KEEP_SPILL_FILES, 4);
NUMBER(DSH_SURVIVORS_KEEP, 0);
NUMBER(DSH_SURVIVORS_KILL, 1);
NUMBER(DSH_REQUEST_MERGE_STDERR, 1);
NUMBER(DSH_REQUEST_FOREGROUND, 2);
NUMBER(DSH_SPAWN_VFORK, 1);
NUMBER(DSH_SPAWN_FORK, 2);
NUMBER(DSH_SPAWN_PORTABLE, 3);
NUMBER(DSH_EXIT_NONE, 0);
NUMBER(DSH_EXIT_CODE, 1);
NUMBER(DSH_EXIT_SIGNAL, 2);
NUMBER(DSH_EXIT_UNKNOWN, 3);
NUMBER(DSH_STOP_NONE, 0);
NUMBER(DSH_STOP_TIMEOUT, 1);
NUMBER(DSH_STOP_CANCEL, 2);
NUMBER(DSH_STOP_KILL, 3);
NUMBER(DSH_STOP_SHUTDOWN, 4);
NUMBER(DSH_STOP_SURVIVORS, 5);
NUMBER(DSH_STOP_STAGE_NONE, 0);
NUMBER(DSH_STOP_STAGE_TERM, 1);
NUMBER(DSH_STOP_STAGE_KILL, 2);
NUMBER(DSH_PROCESS_RUNNING, 1);
NUMBER(DSH_PROCESS_COMPLETED, 2);
NUMBER(DSH_PROCESS_KILLED, 3);
NUMBER(DSH_STDOUT, 1);
NUMBER(DSH_STDERR, 2);
NUMBER(DSH_EVENT_NONE, 0);
NUMBER(DSH_EVENT_OUTPUT, 1);
NUMBER(DSH_EVENT_EXIT, 2);
NUMBER(DSH_EVENT_SETTLED, 3);
NUMBER(DSH_EVENT_QUIESCENT, 4);
NUMBER(DSH_FEATURE_PIDFD, 1);
NUMBER(DSH_FEATURE_VFORK, 2);
NUMBER(DSH_FEATURE_GUARD, 3);
NUMBER(DSH_FEATURE_LANDLOCK, 4);
NUMBER(DSH_FEATURE_BUBBLEWRAP, 5);
NUMBER(DSH_SANDBOX_DEFAULT, 0);
NUMBER(DSH_SANDBOX_READ_ONLY, 1);
NUMBER(DSH_SANDBOX_WORKSPACE_WRITE, 2);
NUMBER(DSH_SANDBOX_DANGER_FULL_ACCESS, 3);
NUMBER(DSH_SANDBOX_GIT_WORKTREE, 1);
NUMBER(DSH_SANDBOX_NO_GIT_WORKTREE, 2);
NUMBER(DSH_NETWORK_DEFAULT, 0);
NUMBER(DSH_NETWORK_FULL, 1);
NUMBER(DSH_NETWORK_LOOPBACK, 2);
NUMBER(DSH_NETWORK_NONE, 3);
NUMBER(DSH_BACKEND_NONE, 0);
NUMBER(DSH_BACKEND_BUBBLEWRAP, 1);
NUMBER(DSH_BACKEND_LANDLOCK, 2);
NUMBER(DSH_BACKEND_SEATBELT, 3);
NUMBER(DSH_BACKEND_RUNNER, 4);
NUMBER(DSH_ENFORCEMENT_NONE, 0);
NUMBER(DSH_ENFORCEMENT_FULL, 1);
NUMBER(DSH_ENFORCEMENT_PARTIAL, 2);
NUMBER(DSH_DENIED_UNKNOWN, 0);
NUMBER(DSH_DENIED_NO, 1);
NUMBER(DSH_DENIED_YES, 2);

int main(void)
{
    return 0;
}
