/* Confinement: policies of executors and requests, the facts, the modes and the doctor. */
#include "check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char workspace[] = "/var/tmp/dsh-sandbox-XXXXXX";

static dsh_sandbox_facts_t facts_of(const dsh_result_t *result)
{
    dsh_sandbox_facts_t facts = DSH_SANDBOX_FACTS_INIT;
    OK(dsh_result_sandbox(result, &facts, &error));
    return facts;
}

static dsh_executor_t *confining(dsh_sandbox_t *sandbox)
{
    dsh_executor_t *executor = NULL;
    dsh_config_t config = DSH_CONFIG_INIT;
    config.sandbox = sandbox;
    config.flags = test_flags();
    OK(dsh_executor_new(&config, &executor, &error));
    return executor;
}

static void confined_by(dsh_backend_t backend)
{
    dsh_sandbox_t sandbox = DSH_SANDBOX_INIT;
    sandbox.mode = DSH_SANDBOX_WORKSPACE_WRITE;
    sandbox.workspace = workspace;
    sandbox.backends = &backend;
    sandbox.backends_len = 1;
    dsh_executor_t *executor = confining(&sandbox);

    dsh_request_t request = request_of("touch \"$W\"/made; touch /var/tmp/dsh-not-allowed");
    const char *env[] = {NULL};
    char entry[64];
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    snprintf(entry, sizeof entry, "W=%s", workspace);
    env[0] = entry;
    request.env = env;
    request.env_len = 1;
    dsh_result_t *result = run(executor, &request, &info);
    dsh_sandbox_facts_t facts = facts_of(result);
    CHECK(info.outcome.code == 1 && facts.backend == backend && facts.mode == DSH_SANDBOX_WORKSPACE_WRITE);
    CHECK(!strcmp(facts.workspace, workspace) && facts.network == DSH_NETWORK_FULL && !facts.runner_failed);
    CHECK(facts.enforcement == (facts.missing_len ? DSH_ENFORCEMENT_PARTIAL : DSH_ENFORCEMENT_FULL));
    CHECK(facts.denied == DSH_DENIED_YES && !strcmp(facts.denied_path, "/var/tmp/dsh-not-allowed") && facts.denied_rule);
    CHECK(access("/var/tmp/dsh-not-allowed", F_OK) < 0);
    dsh_result_free(result);
    char made[64];
    snprintf(made, sizeof made, "%s/made", workspace);
    CHECK(!unlink(made));

    /* A request says what differs. */
    dsh_sandbox_t narrower = DSH_SANDBOX_INIT;
    narrower.mode = DSH_SANDBOX_READ_ONLY;
    request.sandbox = &narrower;
    result = run(executor, &request, &info);
    CHECK(facts_of(result).mode == DSH_SANDBOX_READ_ONLY && facts_of(result).backend == backend);
    CHECK(access(made, F_OK) < 0);
    dsh_result_free(result);

    /* A process knows it from its start, and the rest once it has settled. */
    dsh_process_t *process = NULL;
    dsh_sandbox_facts_t started = DSH_SANDBOX_FACTS_INIT;
    request.command = "read x; touch /var/tmp/dsh-not-allowed";
    request.command_len = strlen(request.command);
    OK(dsh_start(executor, &request, &process, &error));
    OK(dsh_process_sandbox(process, &started, &error));
    CHECK(started.backend == backend);
    OK(dsh_wait(process, 20000, &error));
    OK(dsh_process_sandbox(process, &facts, &error));
    CHECK(facts.denied == DSH_DENIED_YES && !strcmp(started.workspace, facts.workspace));
    dsh_process_free(process);
    dsh_executor_free(executor);
}

static void an_executor_tells_its_policy(void)
{
    dsh_sandbox_t sandbox = DSH_SANDBOX_INIT;
    const char *hidden[] = {"/root/.ssh", "/home/u/.ssh"};
    dsh_backend_t backends[] = {DSH_BACKEND_LANDLOCK, DSH_BACKEND_BUBBLEWRAP};
    sandbox.mode = DSH_SANDBOX_READ_ONLY;
    sandbox.hidden = hidden;
    sandbox.hidden_len = 2;
    sandbox.backends = backends;
    sandbox.backends_len = 2;
    sandbox.flags = DSH_SANDBOX_GIT_WORKTREE;
    dsh_executor_t *executor = confining(&sandbox);
    dsh_settings_t *settings = NULL;
    dsh_config_t config = DSH_CONFIG_INIT;
    OK(dsh_executor_config(executor, &settings, &error));
    OK(dsh_settings_info(settings, &config, &error));
    const dsh_sandbox_t *told = config.sandbox;
    CHECK(told && told->size == sizeof *told && told->mode == DSH_SANDBOX_READ_ONLY && told->hidden_len == 2);
    CHECK(!strcmp(told->hidden[1], "/home/u/.ssh") && told->backends_len == 2 && !told->workspace);
    CHECK(told->backends[0] == DSH_BACKEND_LANDLOCK && told->flags == DSH_SANDBOX_GIT_WORKTREE && !told->runner);
    OK(dsh_executor_configure(executor, &config, &error)); /* goes back as it came */
    dsh_settings_free(settings);

    dsh_spec_t *spec = NULL;
    dsh_spec_info_t info = DSH_SPEC_INFO_INIT;
    dsh_request_t request = request_of("true");
    OK(dsh_resolve(executor, &request, &spec, &error));
    OK(dsh_spec_info(spec, &info, &error));
    CHECK(info.sandbox_mode == DSH_SANDBOX_READ_ONLY);
    dsh_spec_free(spec);
    dsh_executor_free(executor);
}

static void wrong_policies_are_named(const dsh_executor_t *executor)
{
    const struct {
        dsh_sandbox_t sandbox;
        dsh_status_t status;
        const char *words;
    } cases[] = {
        {{.size = sizeof(dsh_sandbox_t), .mode = 9}, DSH_E_INVALID, "sandbox.mode 9"},
        {{.size = sizeof(dsh_sandbox_t), .network = 9}, DSH_E_INVALID, "sandbox.network 9"},
        {{.size = sizeof(dsh_sandbox_t), .backends = (dsh_backend_t[]){9}, .backends_len = 1}, DSH_E_INVALID, "sandbox.backends[0] 9"},
        {{.size = sizeof(dsh_sandbox_t), .backends_len = 1}, DSH_E_NULL, "sandbox.backends"},
        {{.size = sizeof(dsh_sandbox_t), .hidden_len = 1}, DSH_E_NULL, "sandbox.hidden"},
        {{.size = sizeof(dsh_sandbox_t), .flags = 4}, DSH_E_FLAGS, "0x4"},
        {{.size = sizeof(dsh_sandbox_t), .flags = 3}, DSH_E_INVALID, "contradict"},
        {{.size = sizeof(dsh_sandbox_t), .workspace = "here"}, DSH_E_INVALID, "sandbox.workspace \"here\""},
        {{.size = 3}, DSH_E_STRUCT, "dsh_sandbox_t"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsh_request_t request = request_of("true");
        dsh_result_t *result = NULL;
        request.sandbox = &cases[i].sandbox;
        FAILS(dsh_run(executor, &request, &result, &error), cases[i].status, cases[i].words);
    }
}

static void the_doctor_reports(void)
{
    dsh_doctor_t *doctor = NULL;
    dsh_doctor_info_t info = DSH_DOCTOR_INFO_INIT;
    OK(dsh_sandbox_doctor(&doctor, &error));
    OK(dsh_doctor_info(doctor, &info, &error));
    CHECK(info.backends_len == 2 && info.facts_len > 3 && strstr(info.text, "landlock"));
    for (size_t i = 0; i < info.backends_len; i++)
        CHECK(info.backends[i].usable && !info.backends[i].remedy && *info.backends[i].tried && *info.backends[i].message);
    CHECK(info.backends[0].backend == DSH_BACKEND_BUBBLEWRAP && info.backends[1].version == dsh_feature(DSH_FEATURE_LANDLOCK));
    CHECK(dsh_feature(DSH_FEATURE_BUBBLEWRAP) == 1);
    dsh_doctor_free(doctor);
}

int main(void)
{
    CHECK(mkdtemp(workspace));
    confined_by(DSH_BACKEND_BUBBLEWRAP);
    confined_by(DSH_BACKEND_LANDLOCK);
    CHECK(!rmdir(workspace));
    an_executor_tells_its_policy();

    dsh_executor_t *executor = quick_executor();
    wrong_policies_are_named(executor);
    dsh_request_t request = request_of("true");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(facts_of(result).mode == DSH_SANDBOX_DEFAULT && facts_of(result).backend == DSH_BACKEND_NONE);
    dsh_result_free(result);
    dsh_executor_free(executor);

    CHECK(!strcmp(dsh_sandbox_mode_str(DSH_SANDBOX_WORKSPACE_WRITE), "workspace-write") && !*dsh_sandbox_mode_str(7));
    CHECK(dsh_sandbox_is_wider(DSH_SANDBOX_WORKSPACE_WRITE, DSH_SANDBOX_READ_ONLY));
    CHECK(!dsh_sandbox_is_wider(DSH_SANDBOX_READ_ONLY, DSH_SANDBOX_READ_ONLY) && !dsh_sandbox_is_wider(9, 1));
    the_doctor_reports();
    return 0;
}
