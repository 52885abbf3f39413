// libdsh for C++17: runs shell commands for AI agents, with bounded output, hard timeouts, and process trees that
// really die. Header-only, over the C interface in <dsh.h>; link with libdsh.
//
//     #include <dsh.hpp>
//     #include <iostream>
//
//     int main()
//     {
//         dsh::Executor executor;
//         const dsh::Result result = executor.run("echo hello; exit 3");
//         std::cout << result.out().text << "(exit code " << *result.outcome().code << ")\n";
//     }
//
// Conventions. They hold for every function; what a function adds stands with it.
//
// Errors     A call that fails throws dsh::Error. Each of them has a twin whose name begins with `try_`, which gives a
//            dsh::Expected instead and throws nothing but what the standard library throws when memory is refused.
//            Without exceptions (-fno-exceptions) only the twins are there. What a command does, exits and timeouts
//            included, is never an error.
//
// Handles    Executor, Process, CancelToken, Result, Chunk and Spec own what the C library gave them, and nothing else.
//            They can be moved and not copied. They may be destroyed in any order. One that was moved from can be
//            assigned to and destroyed; calls on it fail with ErrorCode::null.
//
// Views      A std::string_view lives as long as the handle it was read from. What gives views can't be called on a
//            temporary handle.
//
// Threads    Member functions that are const may be called on one handle from any thread at any time, also while others
//            are called: kill during read during wait. Only moving, assigning and destroying must be alone.
//
// Options    A std::optional that is left empty means the default. An explicit zero is no way to ask for it: it is
//            refused by the call, as is a negative time, with an error that names the field and the value.
//
// Blocking   Executor::run(), Executor::shutdown(), Executor's destructor and Process::wait() wait for commands;
//            nothing else does, but for the first confined command of an executor and sandbox_doctor(), which try the
//            backends for some milliseconds. A host with an event loop uses Executor::start(), event_fd() and
//            next_event() instead.
//
// Fork       In a forked child of the process that made a handle, calls fail with ErrorCode::forked and touch nothing.
//            What is in memory already (results, chunks, specs) can still be read there.
#ifndef DSH_HPP
#define DSH_HPP

#include "dsh/cancel.hpp"
#include "dsh/confinement.hpp"
#include "dsh/doctor.hpp"
#include "dsh/duration.hpp"
#include "dsh/error.hpp"
#include "dsh/event.hpp"
#include "dsh/executor.hpp"
#include "dsh/expected.hpp"
#include "dsh/outcome.hpp"
#include "dsh/output.hpp"
#include "dsh/process.hpp"
#include "dsh/request.hpp"
#include "dsh/result.hpp"
#include "dsh/sandbox.hpp"
#include "dsh/settings.hpp"
#include "dsh/spec.hpp"
#include "dsh/version.hpp"

#endif
