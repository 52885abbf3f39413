#include "doctor.h"

namespace dsh_node {

namespace {

struct Examination {
    napi_deferred deferred = nullptr;
    dsh_status_t status = DSH_OK;
    OwnedDoctor doctor;
    OwnedError error;
};

napi_value report_value(napi_env env, const dsh_backend_report_t &report)
{
    napi_value object = nullptr;
    check(env, napi_create_object(env, &object));
    set(env, object, "backend", number(env, report.backend));
    set(env, object, "usable", boolean(env, report.usable != 0));
    set(env, object, "network", boolean(env, report.network != 0));
    set(env, object, "version", number(env, report.version));
    set(env, object, "errno", number(env, report.error_number));
    set(env, object, "tried", string(env, report.tried));
    set(env, object, "message", string(env, report.message));
    set(env, object, "remedy", optional_string(env, report.remedy));
    return object;
}

napi_value doctor_value(napi_env env, const dsh_doctor_t *doctor)
{
    dsh_doctor_info_t info = DSH_DOCTOR_INFO_INIT;
    OwnedError error;
    const dsh_status_t status = dsh_doctor_info(doctor, &info, Out(error));
    require(env, status, error);
    napi_value object = nullptr;
    check(env, napi_create_object(env, &object));
    const napi_value backends = array(env, info.backends_len);
    for (size_t i = 0; i < info.backends_len; ++i)
        set_at(env, backends, i, report_value(env, info.backends[i]));
    set(env, object, "text", string(env, info.text));
    set(env, object, "backends", backends);
    set(env, object, "facts", strings(env, info.facts, info.facts_len));
    return object;
}

} // namespace

napi_value sandbox_doctor(Call &call)
{
    auto examination = std::make_shared<Examination>();
    napi_value promise = nullptr;
    check(call.env, napi_create_promise(call.env, &examination->deferred, &promise));
    call.environment.threads.run([home = call.environment.shared_from_this(), examination] {
        examination->status = dsh_sandbox_doctor(Out(examination->doctor), Out(examination->error));
        home->inbox.post([examination](napi_env env) {
            if (env == nullptr)
                return;
            if (examination->status == DSH_OK)
                napi_resolve_deferred(env, examination->deferred, doctor_value(env, examination->doctor.get()));
            else
                napi_reject_deferred(env, examination->deferred, error_value(env, examination->error.get()));
        });
    });
    return promise;
}

} // namespace dsh_node
