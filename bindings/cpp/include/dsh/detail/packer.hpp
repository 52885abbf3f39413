// Checks of options for what the C interface can't express or would take for a default.
#ifndef DSH_DETAIL_PACKER_HPP
#define DSH_DETAIL_PACKER_HPP

#include "../duration.hpp"
#include "../error.hpp"
#include "../expected.hpp"
#include "../request.hpp"

#include <dsh.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsh::detail {

inline Error invalid(const std::string& message) { return Error(ErrorCode::invalid, 0, "argument", message); }

/// A time to wait: one below zero is over already.
inline Expected<std::uint64_t> wait_ms(const char* field, Duration time)
{
    if (!time.is_number())
        return invalid(std::string(field) + ": is not a number");
    return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}

/// Checks options one after the other, and keeps the first thing that is wrong with them.
class Packer {
public:
    /// A time as a count of milliseconds.
    std::uint64_t time(const char* field, const std::optional<Duration>& time)
    {
        if (!time)
            return 0;
        const std::string value = std::string(field) + ' ' + std::to_string(time->count()) + " ms";
        if (!time->is_number())
            refuse(std::string(field) + ": is not a number");
        else if (time->count() < 0)
            refuse(value + ": is negative");
        else if (time->count() == 0)
            refuse(value + ": is no time at all; leave it empty for the default");
        return static_cast<std::uint64_t>(time->count());
    }

    /// A count of bytes.
    std::uint64_t bytes(const char* field, const std::optional<std::uint64_t>& count)
    {
        if (count == std::uint64_t{0})
            refuse(std::string(field) + " 0: is no room at all; leave it empty for the default");
        return count.value_or(0);
    }

    /// Text that ends with a NUL byte.
    const char* text(const char* field, const std::optional<std::string>& text)
    {
        return text ? terminated(field, *text) : nullptr;
    }

    /// A list of text.
    std::vector<const char*> texts(const char* field, const std::vector<std::string>& texts)
    {
        std::vector<const char*> pointers;
        for (const std::string& text : texts)
            pointers.push_back(terminated(item(field, pointers.size()), text));
        return pointers;
    }

    /// A program and its arguments, which must be there: none would be the default.
    std::vector<const char*> command(const char* field, const std::vector<std::string>& command)
    {
        if (command.empty())
            refuse(std::string(field) + ": names no program");
        return texts(field, command);
    }

    /// The number of an enumerator.
    template <class Enum> std::uint32_t number(const char* field, const std::optional<Enum>& value)
    {
        if (!value)
            return 0;
        const auto number = static_cast<std::uint32_t>(*value);
        if (number == 0)
            refuse(std::string(field) + " 0: is no enumerator; leave it empty for the default");
        return number;
    }

    /// Variables as `NAME=VALUE`, or `NAME` for those to be removed.
    std::vector<std::string> entries(const char* field, const std::vector<Variable>& variables)
    {
        std::vector<std::string> entries;
        for (const Variable& variable : variables) {
            check(item(field, entries.size()), variable);
            entries.push_back(variable.value ? variable.name + '=' + *variable.value : variable.name);
        }
        return entries;
    }

    /// A token, which must not have been moved from: the command would run without one.
    const dsh_cancel_t* token(const char* field, const CancelToken* token)
    {
        if (token != nullptr && token->native_handle() == nullptr)
            refuse(Error(ErrorCode::null, 0, "argument", std::string(field) + ": the token was moved from"));
        return token != nullptr ? token->native_handle() : nullptr;
    }

    /// What is wrong.
    [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

private:
    void refuse(const std::string& message) { refuse(invalid(message)); }

    void refuse(Error error)
    {
        if (!error_)
            error_ = std::move(error);
    }

    static std::string item(const char* field, std::size_t i) { return field + ('[' + std::to_string(i)) + ']'; }

    const char* terminated(const std::string& field, const std::string& text)
    {
        if (const std::size_t nul = text.find('\0'); nul != std::string::npos)
            refuse(field + " \"" + text.substr(0, nul) + "\\0…\": holds a NUL byte");
        return text.c_str();
    }

    /// Nothing after a `=` or NUL is shown: who gives `NAME=VALUE` for a name gives a value, which may be a secret.
    void check(const std::string& field, const Variable& variable)
    {
        const std::size_t bad = variable.name.find_first_of(std::string_view("=\0", 2));
        const std::string shown = field + " \"" + variable.name.substr(0, bad);
        if (bad != std::string::npos) {
            const bool nul = variable.name[bad] == '\0';
            refuse(Error(ErrorCode::env_name, 0, "argument",
                         shown + (nul ? "\\0…\": the name holds a NUL byte" : "=…\": the name holds '='")));
        } else if (variable.value && variable.value->find('\0') != std::string::npos) {
            refuse(shown + "\": the value holds a NUL byte");
        }
    }

    std::optional<Error> error_;
};

} // namespace dsh::detail

#endif
