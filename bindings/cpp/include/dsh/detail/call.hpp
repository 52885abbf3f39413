// Calling functions of the C library.
#ifndef DSH_DETAIL_CALL_HPP
#define DSH_DETAIL_CALL_HPP

#include "../error.hpp"
#include "../expected.hpp"
#include "handle.hpp"

#include <cstddef>
#include <vector>

namespace dsh::detail {

/// Calls a function that gives a status and an error, which is its last parameter.
template <class Function, class... Arguments> Expected<void> call(Function* function, Arguments... arguments)
{
    dsh_error_t* given = nullptr;
    const dsh_status_t status = function(arguments..., &given);
    const Handle<dsh_error_t, dsh_error_free> error(given);
    if (status == DSH_OK)
        return {};
    return Error(static_cast<ErrorCode>(status), dsh_error_errno(given), dsh_error_stage(given),
                 dsh_error_message(given));
}

/// Calls a function that fills a struct about a handle.
template <class Info, class Object>
Expected<Info> info(dsh_status_t (*function)(const Object*, Info*, dsh_error_t**), const Object* object)
{
    Info info = dsh_init_value<Info>();
    if (auto called = call(function, object, &info); !called)
        return called.error();
    return info;
}

/// Calls a function that fills a list, `fill(buffer, capacity, &count)`, until the list has room.
template <class Item, class Fill> Expected<std::vector<Item>> list(Fill fill)
{
    std::vector<Item> items;
    for (;;) {
        std::size_t count = 0;
        if (auto called = fill(items.data(), items.size(), &count); !called)
            return called.error();
        // What is listed may change between two calls.
        const bool complete = count <= items.size();
        items.resize(count);
        if (complete)
            return items;
    }
}

/// What a wait answers: whether it came to its end in time.
inline Expected<bool> in_time(const Expected<void>& waited)
{
    if (waited)
        return true;
    if (waited.error().code() == ErrorCode::timed_out)
        return false;
    return waited.error();
}

} // namespace dsh::detail

#endif
