#include "environment.h"

#include "values.h"

namespace dsh_node {

namespace {

struct Wake {
    std::shared_ptr<Environment> environment;
    const dsh_executor_t *executor;
};

} // namespace

dsh_status_t Executor::listen(std::shared_ptr<Environment> home, dsh_error_t **error)
{
    return dsh_executor_wake(
        raw_.get(),
        [](void *data) {
            auto *wake = static_cast<Wake *>(data);
            wake->environment->inbox.collect(wake->executor);
        },
        new Wake{std::move(home), raw_.get()}, [](void *data) { delete static_cast<Wake *>(data); },
        error);
}

std::shared_ptr<Environment> Environment::create(napi_env env)
{
    auto environment = std::make_shared<Environment>();
    auto *instance = new std::shared_ptr<Environment>(environment);
    check(env, napi_set_instance_data(
                   env, instance,
                   [](napi_env, void *data, void *) { delete static_cast<std::shared_ptr<Environment> *>(data); },
                   nullptr));
    return environment;
}

Environment &Environment::of(napi_env env)
{
    void *data = nullptr;
    check(env, napi_get_instance_data(env, &data));
    return **static_cast<std::shared_ptr<Environment> *>(data);
}

void Environment::set_up(napi_env env, napi_value dispatch, napi_value error_maker, napi_value fact_array,
                         napi_value event_array)
{
    if (bell_ != nullptr)
        raise(env, "the addon has been set up already");
    size_t length = 0;
    facts = doubles(env, fact_array, length);
    if (length < FACT_COUNT)
        raise(env, "too small an array for the facts");
    events = doubles(env, event_array, length);
    events_capacity = length / 2;
    // The arrays must stay where they are.
    check(env, napi_create_reference(env, fact_array, 1, &facts_reference_));
    check(env, napi_create_reference(env, event_array, 1, &events_reference_));
    check(env, napi_create_reference(env, error_maker, 1, &make_error));

    check(env, napi_create_threadsafe_function(env, dispatch, nullptr, string(env, "dsh"), 0, 1, nullptr, nullptr, this,
                                               answer, &bell_));
    check(env, napi_unref_threadsafe_function(env, bell_));
    inbox.open([this] { napi_call_threadsafe_function(bell_, nullptr, napi_tsfn_nonblocking); });
    // Last hook in, first out: before Node takes the bell away, which library threads may be about to ring.
    check(env, napi_add_env_cleanup_hook(env, end, this));
}

void Environment::hold(napi_env env)
{
    check(env, napi_ref_threadsafe_function(env, bell_));
}

void Environment::release(napi_env env)
{
    check(env, napi_unref_threadsafe_function(env, bell_));
}

void Environment::adopt(std::shared_ptr<Executor> executor)
{
    sweep();
    executors_.insert(std::move(executor));
}

void Environment::abandon(const std::shared_ptr<Executor> &executor)
{
    if (executors_.erase(executor) != 0)
        abandoned_.insert(executor);
    sweep();
}

void Environment::sweep()
{
    for (auto it = abandoned_.begin(); it != abandoned_.end();) {
        dsh_stats_t stats = DSH_STATS_INIT;
        if (dsh_executor_stats((*it)->raw(), &stats, nullptr) == DSH_OK && stats.live != 0) {
            ++it;
            continue;
        }
        // Its threads have to be waited for, if only for a moment.
        threads.run([self = shared_from_this(), executor = *it]() mutable { executor.reset(); });
        it = abandoned_.erase(it);
    }
}

// On the thread of the event loop, after the bell was rung.
void Environment::answer(napi_env env, napi_value dispatch, void *context, void *)
{
    auto *self = static_cast<Environment *>(context);
    if (env == nullptr)
        return;
    self->sweep();
    const size_t count = self->inbox.take(self->events, self->events_capacity);
    if (count != 0) {
        napi_value undefined = nullptr;
        napi_value argument = nullptr;
        napi_get_undefined(env, &undefined);
        napi_create_double(env, static_cast<double>(count), &argument);
        if (napi_call_function(env, undefined, dispatch, 1, &argument, nullptr) != napi_ok)
            return;
    }
    // After the events: whoever waits for a shutdown has been told of every process by then.
    for (const Inbox::Job &job : self->inbox.take_jobs()) {
        try {
            job(env);
        } catch (const Pending &) {
            return;
        }
    }
}

// The environment ends: a worker, or the whole process. What still runs is ended, all executors at the same time.
void Environment::end(void *environment)
{
    const auto self = static_cast<Environment *>(environment)->shared_from_this();
    self->inbox.close();
    napi_release_threadsafe_function(self->bell_, napi_tsfn_abort);
    for (const auto *set : {&self->executors_, &self->abandoned_})
        for (const auto &executor : *set)
            self->threads.run([self, executor] { dsh_executor_shutdown(executor->raw(), 0, nullptr); });
    self->threads.join();
    self->runs.clear();
    self->executors_.clear();
    self->abandoned_.clear();
}

} // namespace dsh_node
