// What confinement this system has.
#ifndef DSH_DOCTOR_HPP
#define DSH_DOCTOR_HPP

#include "confinement.hpp"
#include "detail/call.hpp"
#include "sandbox.hpp"

#include <dsh.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsh {

/// What was found out about one backend by really running something under it.
struct BackendReport {
    /// Which backend.
    Backend backend = Backend::bubblewrap;
    /// Whether it confines commands here.
    bool usable = false;
    /// Whether it also gives them a network of their own, or none.
    bool network = false;
    /// The version of its interface; 0 when it has none.
    std::uint32_t version = 0;
    /// The `errno` of what failed; 0 when nothing did, or no system call.
    int error_number = 0;
    /// What was tried.
    std::string tried;
    /// What came back.
    std::string message;
    /// What would mend it. Empty when it works.
    std::optional<std::string> remedy;
};

/// What the doctor found. Owns all it holds.
struct DoctorReport {
    /// The whole report as text for people.
    std::string text;
    /// The backends in the order in which they are tried by default.
    std::vector<BackendReport> backends;
    /// Facts of the system that decide about them: names and values.
    std::vector<std::pair<std::string, std::string>> facts;
};

/// As sandbox_doctor(), without exceptions.
inline Expected<DoctorReport> try_sandbox_doctor()
{
    dsh_doctor_t* given = nullptr;
    if (auto called = detail::call(dsh_sandbox_doctor, &given); !called)
        return called.error();
    const detail::Handle<dsh_doctor_t, dsh_doctor_free> doctor(given);
    const auto c = detail::info<dsh_doctor_info_t, dsh_doctor_t>(dsh_doctor_info, given);
    if (!c)
        return c.error();
    DoctorReport report;
    report.text = c->text;
    for (std::size_t i = 0; i < c->backends_len; ++i) {
        const dsh_backend_report_t& from = c->backends[i];
        BackendReport backend;
        backend.backend = static_cast<Backend>(from.backend);
        backend.usable = from.usable != 0;
        backend.network = from.network != 0;
        backend.version = from.version;
        backend.error_number = from.error_number;
        backend.tried = from.tried;
        backend.message = from.message;
        backend.remedy = detail::text_of(from.remedy);
        report.backends.push_back(std::move(backend));
    }
    for (std::size_t i = 0; i < c->facts_len; ++i) {
        const std::string fact = c->facts[i];
        const std::size_t sign = fact.find('=');
        report.facts.emplace_back(fact.substr(0, sign), sign == std::string::npos ? "" : fact.substr(sign + 1));
    }
    return report;
}

#if DSH_EXCEPTIONS
/// Tries every backend of the system with a shell that does nothing, and reports what works, why not more, and what
/// would mend it. Needs no executor. Blocks for some milliseconds per backend, and 10 seconds at most when one hangs: a
/// host with an event loop calls it on another thread. Any thread.
[[nodiscard]] inline DoctorReport sandbox_doctor() { return try_sandbox_doctor().value(); }
#endif

} // namespace dsh

#endif
