// Between JavaScript's values and C++'s. Everything here ends in a C++ exception `Pending` when a JavaScript exception
// is pending, and every function of the addon begins in `entry`, where that one ends.
#pragma once

#include "environment.h"
#include "handles.h"

#include <node_api.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsh_node {

// A JavaScript exception is pending.
struct Pending {};

[[noreturn]] void raise(napi_env env, const char *message);
[[noreturn]] void raise_last(napi_env env);

inline void check(napi_env env, napi_status status)
{
    if (status != napi_ok)
        raise_last(env);
}

// An error of the library as the one that JavaScript throws.
napi_value error_value(napi_env env, const dsh_error_t *error);

// Throws it when `status` is not `DSH_OK`.
void require(napi_env env, dsh_status_t status, const OwnedError &error);

// A refusal of the binding's own, in the form of the library's.
[[noreturn]] void refuse(napi_env env, const std::string &message);

// One call from JavaScript.
class Call {
  public:
    static constexpr size_t MAX_ARGUMENTS = 8;

    Call(napi_env env, napi_callback_info info);

    napi_env env;
    Environment &environment;

    napi_value operator[](size_t index) const
    {
        return arguments_[index];
    }

  private:
    std::array<napi_value, MAX_ARGUMENTS> arguments_;
};

template <napi_value (*Body)(Call &)> napi_value entry(napi_env env, napi_callback_info info)
{
    try {
        Call call(env, info);
        return Body(call);
    } catch (const Pending &) {
    } catch (const std::bad_alloc &) {
        napi_throw_error(env, "ERR_MEMORY_ALLOCATION_FAILED", "memory was refused");
    }
    return nullptr;
}

// To JavaScript.

napi_value undefined(napi_env env);
napi_value number(napi_env env, double value);
napi_value boolean(napi_env env, bool value);
napi_value string(napi_env env, std::string_view text);
napi_value array(napi_env env, size_t length);
napi_value array(napi_env env, std::initializer_list<napi_value> elements);
void set_at(napi_env env, napi_value array, size_t index, napi_value value);
void set(napi_env env, napi_value object, const char *name, napi_value value);

// undefined for NULL.
napi_value optional_string(napi_env env, const char *text);

// A copy; undefined when there is nothing.
napi_value bytes(napi_env env, const void *data, size_t length);

// undefined when there are none.
napi_value strings(napi_env env, const char *const *texts, size_t count);
napi_value pids(napi_env env, const int32_t *pids, size_t count);

// A flat list: pid, start time, pid, start time. undefined when there are none.
napi_value survivors(napi_env env, const dsh_survivor_t *list, size_t count);

// From JavaScript.

napi_value get(napi_env env, napi_value object, const char *name);
bool is_undefined(napi_env env, napi_value value);
double number(napi_env env, napi_value value);
double *doubles(napi_env env, napi_value float64_array, size_t &length);

// Rounds up, and takes what is too large as the largest.
uint64_t unsigned_from(double value);

// Text that goes to the library NUL-terminated; `name` is for the error when it holds a NUL itself.
std::string terminated(napi_env env, napi_value value, const char *name);

// A list of such text. Keeps it, and gives it as the library wants it.
class TextList {
  public:
    TextList() = default;
    TextList(napi_env env, napi_value value, const char *name);

    const char *const *data() const noexcept
    {
        return pointers_.empty() ? nullptr : pointers_.data();
    }
    size_t size() const noexcept
    {
        return pointers_.size();
    }

  private:
    std::vector<std::string> texts_;
    std::vector<const char *> pointers_;
};

// Bytes out of a string, as UTF-8, or out of a Uint8Array, which is not copied.
class Bytes {
  public:
    Bytes(napi_env env, napi_value value);

    const char *data() const noexcept
    {
        return data_;
    }
    size_t size() const noexcept
    {
        return size_;
    }

  private:
    std::string text_;
    const char *data_ = nullptr;
    size_t size_ = 0;
};

// An object of C++ behind a value of JavaScript, which frees it.
template <class Object> napi_value external(napi_env env, std::unique_ptr<Object> object)
{
    napi_value value = nullptr;
    check(env, napi_create_external(
                   env, object.get(), [](napi_env, void *data, void *) { delete static_cast<Object *>(data); }, nullptr,
                   &value));
    object.release();
    return value;
}

template <class Object> Object &object(napi_env env, napi_value value)
{
    void *data = nullptr;
    check(env, napi_get_value_external(env, value, &data));
    return *static_cast<Object *>(data);
}

} // namespace dsh_node
