// One environment of Node: the main thread's or a worker's.
#pragma once

#include "facts.h"
#include "handles.h"
#include "inbox.h"
#include "threads.h"

#include <node_api.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dsh_node {

class Environment;

// An executor, and what wakes the event loop when something has happened in it.
class Executor {
  public:
    explicit Executor(OwnedExecutor raw) noexcept : raw_(std::move(raw)) {}

    // Has the inbox of this environment collect its events.
    dsh_status_t listen(std::shared_ptr<Environment> home, dsh_error_t **error);

    const dsh_executor_t *raw() const noexcept
    {
        return raw_.get();
    }

  private:
    OwnedExecutor raw_;
};

// Shared by everything that may outlive the environment: threads, and the finalizers of its handles. Nothing but the
// inbox and the threads is touched by any thread but the environment's.
class Environment : public std::enable_shared_from_this<Environment> {
  public:
    // The environment that the addon was loaded into; its end shuts all executors down.
    static std::shared_ptr<Environment> create(napi_env env);
    static Environment &of(napi_env env);

    Inbox inbox;
    Threads threads;

    // The numbers that both sides see, laid out by `Fact`, and the pairs of `Inbox::take()`.
    double *facts = nullptr;
    double *events = nullptr;
    size_t events_capacity = 0;

    napi_ref make_error = nullptr;

    // Foreground runs that are under way, by their keys. Each is waited for until its end, so that it needs no value of
    // JavaScript, and no garbage collector to free it.
    std::unordered_map<uint64_t, OwnedProcess> runs;

    // Takes what JavaScript gives once: where to tell events, how to make errors, and the shared numbers.
    void set_up(napi_env env, napi_value dispatch, napi_value make_error, napi_value facts, napi_value events);

    // While it is held, the event loop goes on although nothing else keeps it.
    void hold(napi_env env);
    void release(napi_env env);

    void adopt(std::shared_ptr<Executor> executor);

    // JavaScript has no handle of the executor any more. It is freed, without blocking this thread, once nothing of it
    // is alive: forgetting an executor ends no command.
    void abandon(const std::shared_ptr<Executor> &executor);

  private:
    static void answer(napi_env env, napi_value dispatch, void *context, void *data);
    static void end(void *environment);
    void sweep();

    napi_threadsafe_function bell_ = nullptr;
    napi_ref facts_reference_ = nullptr;
    napi_ref events_reference_ = nullptr;
    std::unordered_set<std::shared_ptr<Executor>> executors_;
    std::unordered_set<std::shared_ptr<Executor>> abandoned_;
};

} // namespace dsh_node
